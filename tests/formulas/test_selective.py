"""Selective risk: against scikit-learn, and against every order of the items, in exact fractions."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, roc_auc_score

from dask_uncert.formulas import selective as se
from tests.support.arrays import by_slice

FORMULAS = (se.aurc, se.excess_aurc, se.augrc, se.error_auroc, se.error_auprc)
TWO = hnp.arrays(np.int64, st.integers(1, 8).map(lambda b: (2, b)), elements=st.integers(0, 9))


def expand(correct, wrong):
    """Items of two histograms: uncertainty (the bin) and whether wrong."""
    u = np.concatenate([np.repeat(np.arange(len(c)), c) for c in (correct, wrong)])
    return u, np.concatenate([np.zeros(np.sum(correct), int), np.ones(np.sum(wrong), int)])


def exact_aurc(losses):
    return sum(Fraction(sum(losses[:k]), k) for k in range(1, len(losses) + 1)) / len(losses)


def exact_augrc(losses):
    """Trapezoids between (k/N, errors among k / N) for k = 0..N."""
    n = len(losses)
    reached = [sum(losses[:k]) for k in range(n + 1)]
    return sum(Fraction(reached[k] + reached[k + 1], 2) for k in range(n)) / n**2


def orders(correct, wrong):
    """Losses in every order that the bins allow, each distinct order of a bin once (equally likely)."""
    found = [()]
    for c, w in zip(correct, wrong, strict=True):
        inside = sorted(set(permutations([0] * int(c) + [1] * int(w))))
        found = [head + tail for head in found for tail in inside]
    return found


@settings(max_examples=25, deadline=None)
@given(TWO)
def test_error_detection_agrees_with_scikit_learn(counts):
    correct, wrong = counts
    assume(correct.sum() > 0)
    assume(wrong.sum() > 0)
    u, error = expand(correct, wrong)
    np.testing.assert_allclose(se.error_auroc(correct, wrong), roc_auc_score(error, u), rtol=1e-12)
    np.testing.assert_allclose(se.error_auprc(correct, wrong), average_precision_score(error, u), rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.int64, st.integers(1, 3).map(lambda b: (2, b)), elements=st.integers(0, 2)))
def test_areas_are_means_over_all_orders(counts):
    correct, wrong = counts
    assume(counts.sum() > 0)
    losses = orders(correct, wrong)
    for formula, exact in ((se.aurc, exact_aurc), (se.augrc, exact_augrc)):
        values = [exact(order) for order in losses]
        np.testing.assert_allclose(formula(correct, wrong), float(sum(values) / len(values)), atol=1e-14)
        low, high = se.bounds(formula, correct, wrong)
        np.testing.assert_allclose([low, high], [float(min(values)), float(max(values))], atol=1e-14)


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.int64, st.integers(1, 3).map(lambda b: (2, b)), elements=st.integers(0, 3)), st.data())
def test_bounds_hold_for_any_values_inside_the_bins(counts, data):
    correct, wrong = counts
    assume(correct.sum() > 0)
    assume(wrong.sum() > 0)
    bins, error = expand(correct, wrong)
    inside = data.draw(hnp.arrays(np.int64, len(bins), elements=st.integers(0, 4)))
    fine = np.zeros((2, 5 * len(correct)), np.int64)
    np.add.at(fine, (error, 5 * bins + inside), 1)
    for formula in FORMULAS:
        low, high = se.bounds(formula, correct, wrong)
        assert low - 1e-13 <= formula(*fine) <= high + 1e-13
        assert low - 1e-13 <= formula(correct, wrong) <= high + 1e-13


def test_bounds_of_average_precision_are_reached():
    correct, wrong = [2, 1], [3, 2]
    low, high = se.bounds(se.error_auprc, correct, wrong)
    _, error = expand(correct, wrong)
    worst = [4.0, 3.9, 9.0, 3.1, 3.2, 3.3, 8.1, 8.2]
    best = [3.0, 3.0, 8.0, 3.5, 3.5, 3.5, 9.0, 9.0]
    np.testing.assert_allclose(low, average_precision_score(error, worst), rtol=1e-14)
    np.testing.assert_allclose(high, average_precision_score(error, best), rtol=1e-14)


@settings(max_examples=25, deadline=None)
@given(TWO)
def test_augrc_is_what_auroc_and_accuracy_say(counts):
    correct, wrong = counts
    assume(correct.sum() > 0)
    assume(wrong.sum() > 0)
    a = correct.sum() / counts.sum()
    expected = (1 - se.error_auroc(correct, wrong)) * a * (1 - a) + (1 - a) ** 2 / 2
    np.testing.assert_allclose(se.augrc(correct, wrong), expected, rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_distinct_values_give_the_item_formulas(losses):
    wrong = np.array(losses)
    correct = 1 - wrong
    np.testing.assert_allclose(se.aurc(correct, wrong), float(exact_aurc(losses)), rtol=1e-13)
    best = float(exact_aurc(sorted(losses)))
    np.testing.assert_allclose(se.excess_aurc(correct, wrong), float(exact_aurc(losses)) - best, atol=1e-13)
    coverage, risk = se.risk_coverage(correct, wrong)
    k = np.arange(1, len(losses) + 1)
    np.testing.assert_allclose(risk, np.cumsum(losses) / k, rtol=1e-15)
    np.testing.assert_allclose(coverage, k / len(losses), rtol=1e-15)
    np.testing.assert_allclose(se.risk_at_coverage(correct, wrong, k / len(losses)), risk, rtol=1e-13)
    for pair in zip(*(se.bounds(f, correct, wrong) for f in FORMULAS), strict=True):
        for value, formula in zip(pair, FORMULAS, strict=True):
            np.testing.assert_allclose(value, formula(correct, wrong), atol=1e-14)


def test_harmonic_differences_keep_their_digits():
    for start, count in ((0, 1), (0, 50), (31, 7), (32, 1), (33, 1000), (5000, 3), (10, 100_000)):
        exact = float(sum((Fraction(1, start + j) for j in range(1, min(count, 1000) + 1)), Fraction(0)))
        if count > 1000:
            exact += float(np.sum(1 / np.arange(start + count, start + 1000, -1, dtype=np.longdouble)))
        found = se._harmonic(np.array(start), np.array(count))
        np.testing.assert_allclose(found, exact, rtol=4e-15)
    big = se._harmonic(np.array(2**40), np.array(1))
    np.testing.assert_allclose(big, 1 / (2**40 + 1), rtol=1e-15)


def test_huge_counts():
    correct, wrong = np.array([2**39, 2**38, 1]), np.array([1, 2**38 - 3, 1])
    a = correct.sum() / (correct.sum() + wrong.sum())
    auroc = se.error_auroc(correct, wrong)
    np.testing.assert_allclose(se.augrc(correct, wrong), (1 - auroc) * a * (1 - a) + (1 - a) ** 2 / 2, rtol=1e-12)
    # The sum is an integral over the coverage x: no errors up to 1/2, then rho (x - 1/2).
    x, rho = np.array([0.5, 1.0]), 0.5
    expected = rho * (x[1] - x[0]) - rho * x[0] * np.log(x[1] / x[0])
    np.testing.assert_allclose(se.aurc(correct, wrong), expected, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.int64, st.integers(1, 3).map(lambda b: (2, b)), elements=st.integers(0, 2)))
def test_risk_at_coverage_is_the_mean_over_orders(counts):
    correct, wrong = counts
    assume(counts.sum() > 0)
    losses = orders(correct, wrong)
    n = int(counts.sum())
    for k in range(1, n + 1):
        expected = sum(Fraction(sum(order[:k]), k) for order in losses) / len(losses)
        np.testing.assert_allclose(se.risk_at_coverage(correct, wrong, k / n), float(expected), atol=1e-14)
        np.testing.assert_allclose(se.risk_at_coverage(correct, wrong, (k - 0.5) / n), float(expected), atol=1e-14)


def test_coverage_at_risk():
    correct, wrong = [0, 9, 1, 80], [0, 1, 4, 5]
    coverage, risk = se.risk_coverage(correct, wrong)
    targets = [0.05, 0.1, 0.3, 1.0]
    found = se.coverage_at_risk(correct, wrong, targets)
    expected = [max([c for c, r in zip(coverage, risk, strict=True) if r <= t], default=0.0) for t in targets]
    np.testing.assert_array_equal(found, expected)
    assert found.tolist() == [0.0, 1.0, 1.0, 1.0]
    assert se.coverage_at_risk([71, 0], [29, 9], 0.29) == 100 / 109  # risk of .29 is at most .29


def test_undefined():
    none = np.zeros(3, int)
    for formula in FORMULAS:
        assert np.isnan(formula(none, none))
    for f in (se.risk_at_coverage, se.coverage_at_risk):
        assert np.isnan(f(none, none, [0.0, 0.5])).all()
    some = np.array([1, 2, 3])
    assert se.aurc(some, none) == se.augrc(some, none) == se.excess_aurc(some, none) == 0
    assert np.isnan(se.error_auroc(some, none))
    assert np.isnan(se.error_auprc(some, none))
    assert np.isnan(se.error_auroc(none, some))
    assert se.error_auprc(none, some) == se.aurc(none, some) == 1
    assert np.isnan(se.risk_at_coverage(some, some, 0))
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        se.risk_at_coverage(some, some, 1.2)
    with pytest.raises(ValueError, match="same bins"):
        se.aurc(some, some[1:])


def test_leading_dimensions():
    rng = np.random.default_rng(0)
    correct, wrong = rng.integers(0, 9, (2, 2, 3, 6))
    correct[0, 0] = wrong[0, 0] = wrong[0, 1] = 0
    for f in (
        *FORMULAS,
        *(lambda c, w, f=f: np.stack(se.bounds(f, c, w), axis=-1) for f in FORMULAS),
        lambda c, w: se.risk_coverage(c, w).risk,
        lambda c, w: se.risk_at_coverage(c, w, [0.3, 0.9]),
        lambda c, w: se.coverage_at_risk(c, w, 0.4),
    ):
        np.testing.assert_array_equal(f(correct, wrong), by_slice(f, correct, wrong))
