"""Two models on the same patients: against sums and swaps made one at a time, and symmetry."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence, percentile_interval
from dask_uncert.formulas.resampling import bootstrap_weights
from dask_uncert.metrics.comparison import compare
from dask_uncert.metrics.scalars import scalars
from dask_uncert.summaries.stack import Case, Stack
from tests.support.cohorts import evaluated
from tests.support.requests import request_of

REQUEST = request_of(classes=["0", "1"], measures=["gini"])
METRICS = ("overall/accuracy", "classes/1/f1", "calibration/ece")


def models(seed, n=6, skills=(0.85, 0.7)):
    """Two models' Evaluations of the same n patients."""
    rng = np.random.default_rng(seed)
    pair = ({}, {})
    for i in range(n):
        y = rng.random(40) < 0.4
        for model, skill in zip(pair, skills, strict=True):
            p = np.where(rng.random(40) < skill, y, ~y) * 0.8 + rng.random(40) * 0.2
            model[f"P{i:02d}"] = evaluated(REQUEST, p, y)
    return pair


def numbers(evaluation):
    found = scalars(evaluation)
    return np.array([float(found[name]) for name in METRICS])


@pytest.mark.slow
def test_differences_and_tests_by_hand():
    first, second = models(0)
    names = list(first)
    found = compare(Stack.of(first), Stack.of(second), Confidence(50, method="percentile"), METRICS)
    assert found.metrics == METRICS
    seen = numbers(sum(first.values())) - numbers(sum(second.values()))
    np.testing.assert_array_equal(found.pooled_difference, seen)
    drawn = []
    for row in bootstrap_weights(names, range(50)):
        both = [numbers(sum(np.repeat([*model.values()], row))) for model in (first, second)]
        drawn.append(both[0] - both[1])
    np.testing.assert_allclose(found.pooled_interval, percentile_interval(drawn), rtol=1e-12)
    # Every way to swap the two models' Summaries, patient by patient.
    far = []
    for swap in product((0, 1), repeat=6):
        parts = [sum((first, second)[s ^ k][name] for s, name in zip(swap, names, strict=True)) for k in (0, 1)]
        far.append(np.abs(numbers(parts[0]) - numbers(parts[1])) >= np.abs(seen) - 1e-12)
    assert found.exact
    np.testing.assert_allclose(found.permutation.p_value, np.mean(far, axis=0), rtol=1e-12)
    a, b = (np.array([numbers(one) for one in m.values()]) for m in (first, second))
    np.testing.assert_allclose(found.mean_difference, (a - b).mean(axis=0), rtol=1e-12)
    theirs = stats.ttest_rel(a, b)
    np.testing.assert_allclose(found.t_test.p_value, theirs.pvalue, rtol=1e-9)
    for i in range(len(METRICS)):
        d = (a - b)[:, i]
        np.testing.assert_allclose(found.signed_rank.statistic[i], stats.wilcoxon(d).statistic)
    assert found.t_test.n.tolist() == [6, 6, 6]


def test_the_other_way_round_changes_signs_alone():
    first, second = (Stack.of(m) for m in models(1, n=14))
    how = Confidence(50)
    one = compare(first, second, how, METRICS, permutations=100)
    other = compare(second, first, how, METRICS, permutations=100)
    assert not one.exact
    np.testing.assert_array_equal(one.pooled_difference, -other.pooled_difference)
    np.testing.assert_allclose(one.pooled_interval.low, -other.pooled_interval.high, rtol=1e-9)
    np.testing.assert_allclose(one.mean_interval.low, -other.mean_interval.high, rtol=1e-9)
    for test in ("permutation", "t_test", "signed_rank"):
        np.testing.assert_allclose(getattr(one, test).p_value, getattr(other, test).p_value, rtol=1e-12)
        assert (one.holm[test] >= getattr(one, test).p_value).all()


def test_a_model_against_itself():
    stack = Stack.of(models(2)[0])
    found = compare(stack, stack, Confidence(30), METRICS)
    assert not found.pooled_difference.any()
    assert not np.any([found.pooled_interval.low, found.pooled_interval.high])
    assert (found.permutation.p_value == 1.0).all()
    assert np.isnan(found.t_test.p_value).all()
    assert np.isnan(found.holm["t_test"]).all()


def test_a_better_model_is_found_and_an_equal_one_is_not():
    better = compare(*(Stack.of(m) for m in models(3, 30, (0.9, 0.7))), Confidence(300), METRICS[:1])
    assert better.pooled_interval.low[0] > 0
    assert max(better.permutation.p_value[0], better.t_test.p_value[0], better.signed_rank.p_value[0]) < 0.01
    equal = compare(*(Stack.of(m) for m in models(4, 30, (0.8, 0.8))), Confidence(300), METRICS[:1])
    assert equal.permutation.p_value[0] > 0.05


def test_cases_of_one_model_alone_take_no_part_and_are_named():
    first, second = models(5)
    part = {name: one for name, one in second.items() if name != "P03"}
    found = compare(Stack.of(first), Stack.of(part), Confidence(20), METRICS)
    assert found.only == (("P03",), ())
    assert found.patients == tuple(sorted(part))
    rest = {name: one for name, one in first.items() if name != "P03"}
    same = compare(Stack.of(rest), Stack.of(part), Confidence(20), METRICS)
    np.testing.assert_array_equal(found.pooled_interval, same.pooled_interval)
    assert [row["metric"] for row in found.rows()] == list(METRICS)
    assert found.rows()[0]["n"] == 5


def test_what_cannot_be_compared_is_refused():
    first, second = models(6, n=2)
    with pytest.raises(InputError, match="no case in common"):
        compare(Stack.of(first), Stack.of({f"x{k}": v for k, v in second.items()}))
    request = request_of(classes=["0", "1"], measures=["entropy"])
    other = {name: evaluated(request, np.array([0.1]), [0]) for name in first}
    with pytest.raises(InputError, match="does not compare"):
        compare(Stack.of(first), Stack.of(other))
    renamed = {Case("P00/P01", ""): first["P00"]}
    with pytest.raises(InputError, match="other patients"):
        compare(Stack.of(renamed), Stack.of({Case("P00", "P01"): first["P00"]}))


def test_two_models_on_one_scene_are_paired_by_tile_as_cases_would_be():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, (20, 30))
    models = [rng.dirichlet(np.ones(3), y.shape) + skill * np.eye(3)[y] for skill in (0.6, 0.4)]
    models = [p / p.sum(axis=-1, keepdims=True) for p in models]
    tiled = [du.evaluate(p, y, measures=["gini"], confidence={"size": 10}) for p in models]
    corners = [(i, k) for i in range(2) for k in range(3)]
    apart = [  # the same tiles, evaluated one by one under the same names
        Stack.of({
            f"000000/{i:06},{k:06}": du.evaluate(p[part], y[part], measures=["gini"], classes=["0", "1", "2"])
            for i, k in corners
            for part in [np.s_[10 * i : 10 * i + 10, 10 * k : 10 * k + 10]]
        })
        for p in models
    ]  # fmt: skip
    metrics = ["overall/*", "classes/*/f1", "calibration/ece", "selective/gini/aurc"]
    found, wanted = (du.compare(*pair, metrics=metrics, replicates=20) for pair in (tiled, apart))
    assert (found.unit, len(found.patients), found.exact) == ("tile", 6, True)
    for mine, other in zip(found.rows(), wanted.rows(), strict=True):
        assert mine.pop("metric") == other.pop("metric")
        assert mine == pytest.approx(other, rel=1e-12, nan_ok=True)
    assert found.pooled[0, 0] == du.accuracy(tiled[0]) > du.accuracy(tiled[1])
    assert "weighted" not in str(du.compare(*tiled, metrics="*", replicates=5, permutations=5).metrics)


def test_scenes_that_do_not_pair_are_refused():
    p, y = np.full((8, 8, 2), 0.5), np.zeros((8, 8), int)
    scene = partial(du.evaluate, p, y, classes=["a", "b"])
    tiled = scene(confidence={"size": 4})
    corner = np.ones((8, 8), bool)
    corner[:4, :4] = False
    for other, said in (
        (scene(), r"without tiles cannot be compared.*confidence"),
        (scene(confidence={"size": 8}), "of 4 and of 8 pixels a side"),
        (
            scene(confidence={"size": 4}, mask=corner),
            "same pixels: 1 tile only in the first, 0 tiles only in the second",
        ),
        (scene(confidence={"size": 4}, measures=["gini"]), "other distributions"),
        (Stack.of({"P1": scene()}), "one is a scene and the other has cases"),
    ):
        with pytest.raises(InputError, match=said):
            du.compare(tiled, other)
