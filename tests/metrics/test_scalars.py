"""Scalars with a leading dimension: the bits of results.json, of each case, of sums and of all but one."""

import numpy as np
import pytest

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.resampling import bootstrap_weights
from dask_uncert.metrics.resampling_units import (
    cases,
    jackknife,
    patients,
    swapped_totals,
    unit_scalars,
    weighted_totals,
)
from dask_uncert.metrics.scalars import scalars, soft_settings
from dask_uncert.reports.results.intervals import Intervals
from dask_uncert.reports.results.scene import results
from dask_uncert.summaries.marginals import marginal_reader, marginals, marginals_for
from dask_uncert.summaries.stack import Case, Stack

SOFT = [
    {"class": "c", "thresholds": [0.3, 0.5], "sigmas": [0, 0.1], "dampings": [0, 1], "uncertainty": "gini"},
    {"class": "c", "thresholds": [0.3]},
    {"class": "c", "thresholds": [0.3], "distribution": "laplace"},
]


def drawn(seed, pixels=60, gap=None):
    """An Evaluation of drawn pixels; `gap`: a class that the reference lacks."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.5), size=pixels).astype(np.float32)
    y = np.where(rng.random(pixels) < 0.6, p.argmax(axis=1), rng.integers(0, 4, pixels))
    y[y == gap] = 9
    p[y == 1] = 0.0
    p[y == 1, 0] = 1.0  # a true class that got 0: infinite loss
    return evaluate(
        p, y, uncertainty=rng.gamma(1.0, size=pixels), classes={0: "a", 1: "b", 2: "c", 3: "d/e"}, ignore=[9],
        measures=["gini", "uncertainty"], soft_confusion=SOFT,
        uncertainty_confusion={"measures": ["gini"], "thresholds": [0.3, 1 / 3]},
    )  # fmt: skip


@pytest.fixture(scope="module")
def evaluations():
    return {f"P{i}": drawn(i, 20 + 9 * i, gap=i % 5) for i in range(7)}


@pytest.fixture(scope="module")
def stack(evaluations):
    return Stack.of(evaluations)


def of(evaluation):
    return scalars(evaluation)


def same(found, expected):
    """Equal to the last bit, NaN where NaN."""
    assert list(found) == list(expected)
    off = [name for name in expected if not np.array_equal(found[name], expected[name], equal_nan=True)]
    assert not off


def with_intervals(found):
    """Every (number, interval) in results."""
    if isinstance(found, dict):
        yield from (
            (found[key.removesuffix("_interval")], ends) for key, ends in found.items() if "_interval" in key
        )
    for part in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from with_intervals(part)


def test_every_scalar_is_in_results_with_its_interval(evaluations):
    for evaluation in (evaluations["P0"], evaluations["P3"], sum(evaluations.values())):
        numbers = of(evaluation)
        marked = {name: Interval(i, i, 0) for i, name in enumerate(numbers)}
        found = results(evaluation, Intervals(marked, {}, Confidence()))
        values = {low: number for number, (low, _) in with_intervals(found)}
        assert len(list(with_intervals(found))) == len(values) == len(numbers)
        for i, number in enumerate(map(float, numbers.values())):
            assert values[i] == (number if np.isfinite(number) else None)
        assert np.isinf(float(numbers["calibration/nll/value"]))


def test_each_case_has_its_own_bits(stack, evaluations):
    found = unit_scalars(cases(stack))
    for i, name in enumerate(stack.names):
        same({k: v[i] for k, v in found.items()}, of(evaluations[name]))


def test_all_but_one_is_the_cohort_without_it(stack):
    found = jackknife(cases(stack))
    for i, name in enumerate(stack.names):
        same({k: v[i] for k, v in found.items()}, of(stack.without([name]).total()))


def test_replicates_are_sums_of_the_cases_drawn(stack, evaluations):
    units = cases(stack)
    weights = bootstrap_weights(stack.names, range(5), 3)
    found = scalars(units.total, weighted_totals(units, weights))
    for b, row in enumerate(weights):
        total = sum(evaluations[name] for name, w in zip(stack.names, row, strict=True) for _ in range(w))
        same({k: v[b] for k, v in found.items()}, of(total))


def test_many_classes_add_in_the_same_order():
    rng = np.random.default_rng(1)
    every = {}
    for name in "abc":
        p = rng.dirichlet(np.full(19, 0.2), size=150)
        every[name] = evaluate(p, np.where(rng.random(150) < 0.5, p.argmax(axis=1), rng.integers(0, 19, 150)))
    stack = Stack.of(every)
    found = unit_scalars(cases(stack))
    for i, name in enumerate(every):
        same({k: v[i] for k, v in found.items()}, of(every[name]))


def test_visits_of_a_patient_are_drawn_together(evaluations):
    names = list(evaluations)
    who = {name: Case(f"Q{i // 3}", name) for i, name in enumerate(names)}
    stack = Stack.of({who[name]: evaluations[name] for name in names})
    units = patients(stack)
    assert units.names == ("Q0", "Q1", "Q2")
    found = unit_scalars(units)
    for i, patient in enumerate(units.names):
        total = sum(evaluations[name] for name in names if who[name].patient == patient)
        same({k: v[i] for k, v in found.items()}, of(total))


def test_swapped_models_are_sums_of_either(stack, evaluations):
    other = {name: drawn(100 + i, 30, gap=4) for i, name in enumerate(evaluations)}
    units = cases(stack), cases(Stack.of(other))
    swaps = np.array([[0] * 7, [1, 0, 1, 1, 0, 0, 0]])
    for read, models in zip(
        swapped_totals(*units, swaps), ((evaluations, other), (other, evaluations)), strict=True
    ):
        found = scalars(units[0].total, read)
        for b, row in enumerate(swaps):
            total = sum(models[s][name] for s, name in zip(row, stack.names, strict=True))
            same({k: v[b] for k, v in found.items()}, of(total))


def test_parts_and_steps_do_not_change_a_bit(stack, monkeypatch):
    whole = jackknife(cases(stack))
    weights = bootstrap_weights(stack.names, range(9))
    drawn_ = scalars(cases(stack).total, weighted_totals(cases(stack), weights))
    monkeypatch.setattr("dask_uncert.metrics.resampling_units.DENSE_UNITS", 2)
    monkeypatch.setattr("dask_uncert.metrics.scalars.AT_ONCE", 5000)
    same(jackknife(cases(stack)), whole)
    same(scalars(cases(stack).total, weighted_totals(cases(stack), weights)), drawn_)


def test_what_was_not_kept_takes_its_numbers_with_it(evaluations):
    one = evaluations["P1"]
    read, whole = marginal_reader(one), of(one)
    gone = {"winning": {"calibration/equal_mass_ece"}, "histogram/0": "gini", "log_loss": "calibration/nll"}
    for item, names in gone.items():
        found = scalars(one, lambda name, item=item: None if name == item else read(name))
        lost = set(whole) - set(found)
        assert lost == names if isinstance(names, set) else all(names in name for name in lost)
        assert lost
        same(found, {name: value for name, value in whole.items() if name not in lost})
    fine = {name for name in marginals(one) if name.startswith(("winning", "class/")) and "bins" not in name}
    found = scalars(one, lambda name: None if name in fine else read(name))
    parts = {"reliability", "resolution", "uncertainty", "within_bins"}
    assert set(whole) - set(found) == {
        "calibration/equal_mass_ece",
        *(f"calibration/brier/{p}" for p in parts),
    }
    same(found, {name: whole[name] for name in found})


def test_labels_of_soft_settings_are_each_their_own(evaluations):
    labels = [setting.label for setting in soft_settings(evaluations["P0"])]
    assert len(set(labels)) == len(labels) == 10
    assert labels[-1] == "c/threshold 0.3 sigma 0.0 damping 0.0 #2"


def test_what_is_needed_for_a_number_is_enough(evaluations):
    one = evaluations["P2"]
    read, whole = marginal_reader(one), of(one)
    for name, value in whole.items():
        kept = marginals_for(one, [name])
        found = scalars(one, lambda item, kept=kept: read(item) if item in kept else None)
        assert np.array_equal(found[name], value, equal_nan=True), name
        assert len(kept) <= 12
