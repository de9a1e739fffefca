"""Scalars with a leading dimension: the bits of results.json, of each case, of sums and of all but one."""

import re

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
from dask_uncert.metrics.scalars import BRIER_PARTS, scalars, soft_settings
from dask_uncert.reports.results.intervals import Intervals
from dask_uncert.reports.results.scene import scene_results
from dask_uncert.summaries.marginals import marginal_reader, marginals_for
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


def same(found, expected):
    """Equal to the last bit, NaN where NaN."""
    assert list(found) == list(expected)
    assert not [name for name in expected if not np.array_equal(found[name], expected[name], equal_nan=True)]


def rows_are(found, evaluations):
    """Whether the leading dimension is of these Evaluations' scalars."""
    for i, evaluation in enumerate(evaluations):
        same({name: values[i] for name, values in found.items()}, scalars(evaluation))


def with_intervals(found):
    """Every (number, interval) in results."""
    if isinstance(found, dict):
        yield from ((found[key.removesuffix("_interval")], ends) for key, ends in found.items() if "_interval" in key)
    for part in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from with_intervals(part)


def test_every_scalar_is_in_results_with_its_interval(evaluations):
    for evaluation in (evaluations["P0"], evaluations["P3"], sum(evaluations.values())):
        numbers = scalars(evaluation)
        marked = {name: Interval(i, i, 0) for i, name in enumerate(numbers)}
        found = scene_results(evaluation, Intervals(marked, {}, Confidence()))
        values = {low: number for number, (low, _) in with_intervals(found)}
        assert len(list(with_intervals(found))) == len(values) == len(numbers)
        for i, number in enumerate(map(float, numbers.values())):
            assert values[i] == (number if np.isfinite(number) else None)
        assert np.isinf(float(numbers["calibration/nll/value"]))


def many_classes():
    rng = np.random.default_rng(1)
    for name in "abc":
        p = rng.dirichlet(np.full(19, 0.2), size=150)
        yield name, evaluate(p, np.where(rng.random(150) < 0.5, p.argmax(axis=1), rng.integers(0, 19, 150)))


def test_each_case_has_its_own_bits(evaluations):
    for every in (evaluations, dict(many_classes())):
        rows_are(unit_scalars(cases(Stack.of(every))), every.values())


def test_all_but_one_is_the_cohort_without_it(stack):
    rows_are(jackknife(cases(stack)), [stack.without([name]).total() for name in stack.names])


def test_replicates_are_sums_of_the_cases_drawn(stack, evaluations):
    weights = bootstrap_weights(stack.names, range(5), 3)
    totals = [sum(np.repeat([*evaluations.values()], row)) for row in weights]
    rows_are(scalars(stack.total(), weighted_totals(cases(stack), weights)), totals)


def test_visits_of_a_patient_are_drawn_together(evaluations):
    units = patients(Stack.of({Case(f"Q{i // 3}", name): e for i, (name, e) in enumerate(evaluations.items())}))
    assert units.names == ("Q0", "Q1", "Q2")
    every = [*evaluations.values()]
    rows_are(unit_scalars(units), [sum(every[i : i + 3]) for i in (0, 3, 6)])


def test_swapped_models_are_sums_of_either(stack, evaluations):
    other = {name: drawn(100 + i, 30, gap=4) for i, name in enumerate(evaluations)}
    swaps = np.array([[0] * 7, [1, 0, 1, 1, 0, 0, 0]])
    readers = swapped_totals(cases(stack), cases(Stack.of(other)), swaps)
    for read, models in zip(readers, ((evaluations, other), (other, evaluations)), strict=True):
        totals = [sum(models[s][name] for s, name in zip(row, stack.names, strict=True)) for row in swaps]
        rows_are(scalars(stack.total(), read), totals)


def test_cutting_units_and_counts_does_not_change_a_bit(stack, monkeypatch):
    units, weights = cases(stack), bootstrap_weights(stack.names, range(9))
    expected = jackknife(units), scalars(stack.total(), weighted_totals(units, weights))
    monkeypatch.setattr("dask_uncert.metrics.resampling_units.DENSE_UNITS", 2)
    monkeypatch.setattr("dask_uncert.metrics.scalars.AT_ONCE", 5000)
    same(jackknife(cases(stack)), expected[0])
    same(scalars(stack.total(), weighted_totals(cases(stack), weights)), expected[1])


FINE = {"calibration/equal_mass_ece", *(f"calibration/corp/{part}" for part in ("brier", "mcb", "dsc", "unc"))}
PARTS = {f"calibration/brier/{part}" for part in ("reliability", "resolution", "uncertainty", "within_bins")}
PARTS |= {f"calibration/classes/{c}/brier/{part}" for c in ("a", "b", "c", "d/e") for part in BRIER_PARTS}
AREAS = ("/auroc", "/average_precision")


@pytest.mark.parametrize(
    ("missing", "lost"),
    [
        ("winning", FINE.__eq__),
        ("histogram/0", lambda names: names and all("gini" in name for name in names)),
        ("log_loss", lambda names: names and all("calibration/nll" in name for name in names)),
        (r"winning|class/\d+", lambda names: {name for name in names if not name.endswith(AREAS)} == FINE | PARTS),
    ],
)
def test_a_marginal_that_was_not_kept_takes_its_scalars_with_it(evaluations, missing, lost):
    evaluation = evaluations["P1"]
    read, whole = marginal_reader(evaluation), scalars(evaluation)
    found = scalars(evaluation, lambda name: None if re.fullmatch(missing, name) else read(name))
    assert lost(set(whole) - set(found))
    same(found, {name: whole[name] for name in whole if name in found})


def test_labels_of_soft_settings_are_each_their_own(evaluations):
    labels = [setting.label for setting in soft_settings(evaluations["P0"])]
    assert len(set(labels)) == len(labels) == 10
    assert labels[-1] == "c/threshold 0.3 sigma 0.0 damping 0.0 #2"


def test_the_marginals_for_a_scalar_are_enough(evaluations):
    evaluation = evaluations["P2"]
    read = marginal_reader(evaluation)
    for name, value in scalars(evaluation).items():
        kept = marginals_for(evaluation, [name])
        found = scalars(evaluation, lambda marginal, kept=kept: read(marginal) if marginal in kept else None)
        assert np.array_equal(found[name], value, equal_nan=True), name
        assert len(kept) <= 12
