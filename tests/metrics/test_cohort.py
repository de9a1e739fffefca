"""Cohorts: the known cases, intervals against a plain loop over patients, and laws of order and leaving out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.resampling import bootstrap_weights
from dask_uncert.metrics.bootstrap import pooled_intervals
from dask_uncert.metrics.cohort import case_table, cohort, cohort_by, patient_values
from dask_uncert.metrics.resampling_units import patients
from dask_uncert.metrics.scalars import scalars
from dask_uncert.summaries.stack import Case, Stack
from tests.support.cohorts import evaluated
from tests.support.requests import request_of

DICE = "classes/lesion/f1"
REQUEST = request_of(classes={0: "background", 1: "lesion"}, measures=["gini"])


def binary(tp=0, fp=0, fn=0, tn=0, p=0.9):
    """An Evaluation with these four cells, every decision stated with probability p."""
    cells = ((tp, 1, p), (fp, 0, p), (fn, 1, 1 - p), (tn, 0, 1 - p))
    y = np.concatenate([np.full(n, truth) for n, truth, _ in cells])
    stated = np.concatenate([np.full(n, value) for n, _, value in cells])
    return evaluated(REQUEST, stated, y)


def number(found, metric, name):
    """A number of one metric of a Cohort."""
    return getattr(found, name)[found.metrics.index(metric)]


def test_pooled_numbers_differ_from_means_over_patients():
    found = cohort(Stack.of({"A": binary(tp=90, fp=10), "B": binary(tp=1, fn=9)}))
    assert round(number(found, DICE, "mean"), 7) == 0.5645933
    assert round(number(found, DICE, "pooled"), 7) == 0.9054726
    same = {"A": binary(tp=9, fp=1, p=0.7), "B": binary(tp=5, fp=5, p=0.7)}
    found = cohort(Stack.of(same), metrics=["calibration/ece"])
    assert found.mean[0] == pytest.approx(0.2, abs=1e-12)
    assert found.pooled[0] == pytest.approx(0.0, abs=1e-12)


def test_undefined_values_are_counted_each_time():
    stack = Stack.of({"P1": binary(tp=4, fp=2), "P2": binary(tn=5), "P3": binary(tp=3, fn=4)})
    for _ in range(3):
        found = cohort(stack, metrics=[DICE])
        assert found.mean[0] == pytest.approx(0.7, abs=1e-12)
        assert (found.n[0], found.undefined[0]) == (2, 1)
    assert np.isnan(found.values[1, 0])


def test_visits_weigh_a_patient_once():
    cases = {("P1", "a"): 4, ("P1", "b"): 9, ("P2", ""): 8}
    stack = Stack.of({Case(*who): binary(tp=right, fp=10 - right) for who, right in cases.items()})
    found = cohort(stack, Confidence(50), ["overall/accuracy"])
    assert found.patients == ("P1", "P2")
    assert found.mean[0] == pytest.approx(0.725, abs=1e-12)
    assert found.pooled[0] == 0.7
    with pytest.raises(InputError, match="P1"):
        Stack.of({Case("P1"): binary(tp=4)}) + Stack.of({Case("P1"): binary(tp=9)})


def test_patients_at_the_quantiles_are_named():
    dice = {f"P{i:02d}": binary(tp=i, fp=20 - i) for i in range(1, 21)}
    found = cohort(Stack.of({**dice, "none": binary(tn=3)}), metrics=[DICE])
    assert [names[0] for names in found.at] == ["P01", "P05", "P10", "P15", "P19"]
    assert found.quantiles[2, 0] == pytest.approx(np.median(found.values[:20, 0]))
    nobody = cohort(Stack.of({"a": binary(tn=3)}), metrics=[DICE])
    assert [names[0] for names in nobody.at] == [""] * 5
    assert np.isnan([nobody.mean[0], nobody.std[0], *nobody.quantiles[:, 0]]).all()


def cases_of(seed, n=9):
    rng = np.random.default_rng(seed)
    found = {}
    for i in range(n):
        skill, pixels = rng.beta(5, 2), int(rng.integers(10, 60))
        y = rng.random(pixels) < rng.random() * (i % 4 > 0)
        p = np.clip(np.where(rng.random(pixels) < skill, y, ~y) * 0.8 + rng.random(pixels) * 0.2, 0, 1)
        found[f"patient {i}"] = evaluated(REQUEST, p, y)
    return found


@pytest.mark.slow
@given(st.integers(0, 2**32))
@settings(max_examples=5, deadline=None)
def test_intervals_equal_those_of_a_plain_loop_over_patients(seed):
    """Every scalar, pooled and mean over patients, from sums and means made one replicate at a time."""
    evaluations = cases_of(seed)
    stack, names = Stack.of(evaluations), list(evaluations)
    how = Confidence(replicates=40, level=0.9, seed=5, method="percentile")
    found = cohort(stack, how)
    pooled, means = [], []
    every = [*evaluations.values()]
    values = np.array([[float(v) for v in scalars(one).values()] for one in every])
    for row in bootstrap_weights(names, range(40), 5):
        pooled.append([float(v) for v in scalars(sum(np.repeat(every, row))).values()])
        drawn = np.repeat(values, row, axis=0)
        means.append([np.mean(c[~np.isnan(c)]) if (~np.isnan(c)).any() else np.nan for c in drawn.T])
    for values, interval in ((pooled, found.pooled_interval), (means, found.mean_interval)):
        for i, column in enumerate(np.array(values).T):
            kept = column[~np.isnan(column)]
            assert interval.undefined[i] == 40 - len(kept)
            expected = np.quantile(kept, [0.05, 0.95]) if len(kept) else [np.nan, np.nan]
            np.testing.assert_allclose([interval.low[i], interval.high[i]], expected, rtol=1e-12, atol=1e-13)


def equal(one, other):
    """Two statistics to the last bit."""
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), name, strict=True)


def test_order_and_leaving_out_and_putting_back_change_no_bit():
    evaluations = cases_of(1)
    how = Confidence(replicates=60)
    expected = cohort(Stack.of(evaluations), how)
    equal(cohort(Stack.of(dict(reversed(evaluations.items()))), how), expected)
    stack = Stack.of(evaluations)
    taken = stack.select(["patient 3"])
    equal(cohort(stack.without(["patient 3"]) + taken, how), expected)
    left = {name: one for name, one in evaluations.items() if name != "patient 3"}
    equal(cohort(stack.without(["patient 3"]), how), cohort(Stack.of(left), how))


def test_groups_are_cohorts_of_their_own():
    evaluations = cases_of(2)
    sites = {name: "Bern" if i % 2 else "Oslo" for i, name in enumerate(evaluations)}
    for how in (None, Confidence(30)):
        found = cohort_by(Stack.of(evaluations, {"site": sites}), "site", how)
        assert list(found) == ["Bern", "Oslo"]
        for site, one in found.items():
            part = Stack.of({name: e for name, e in evaluations.items() if sites[name] == site})
            equal(one, cohort(part, how))


def test_visits_are_averaged_in_pieces(monkeypatch):
    evaluations = {Case(f"P{i % 5}", f"{i}"): one for i, one in enumerate(cases_of(4, 13).values())}
    stack = Stack.of(evaluations)
    whole = cohort(stack)
    monkeypatch.setattr("dask_uncert.metrics.cohort.AVERAGED", 2)
    pieces = cohort(stack)
    assert pieces.patients == whole.patients
    np.testing.assert_allclose(pieces.values, whole.values, rtol=1e-14)


def test_one_patient_has_no_interval():
    found = cohort(Stack.of({"only": binary(tp=4, fp=2)}), Confidence(20), [DICE])
    for interval in (found.pooled_interval, found.mean_interval):
        assert np.isnan([interval.low, interval.high]).all()
    assert found.pooled[0] == pytest.approx(0.8)


def test_methods_of_intervals():
    units = patients(Stack.of(cases_of(3)))
    plain = pooled_intervals(units, Confidence(100, method="percentile"))
    better = pooled_intervals(units, Confidence(100))
    for name in ("overall/accuracy", DICE):
        assert plain[name].low < plain[name].high
        assert (plain[name].low, plain[name].high) != (better[name].low, better[name].high)


def test_the_case_table_has_a_row_a_case():
    evaluations = {"b": binary(tp=3, fp=1), "a": binary(tn=2)}
    table = case_table(Stack.of(evaluations, {"site": {"a": "Oslo", "b": "Bern"}}))
    assert (table["case"], table["site"], table["counted"]) == (("a", "b"), ("Oslo", "Bern"), [2, 4])
    assert table["excluded/masked"] == [0, 0]
    assert table[DICE][1] == pytest.approx(6 / 7)
    assert np.isnan(table[DICE][0])
    assert {len(column) for column in table.values()} == {2}
    visits = case_table(Stack.of({Case("P", "1"): evaluations["a"], Case("P", "2"): evaluations["b"]}))
    assert (visits["case"], visits["visit"]) == (("P/1", "P/2"), ("1", "2"))


def test_metrics_are_chosen_by_name_or_pattern():
    stack = Stack.of(cases_of(4, 3))
    found = cohort(stack, metrics=["classes/*/f1", "overall/kappa"])
    assert found.metrics == ("overall/kappa", "classes/background/f1", DICE)
    row = found.rows()[-1]
    assert row["metric"] == DICE
    assert row["n"] + row["undefined"] == 3
    with pytest.raises(InputError, match="nothing is called 'dice'"):
        cohort(stack, metrics=["dice"])
    names, values = patient_values(stack, [DICE])
    assert names == stack.names
    np.testing.assert_array_equal(values, found.values[:, -1:])
