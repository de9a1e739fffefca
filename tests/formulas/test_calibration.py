"""Calibration: against direct loops over items, scikit-learn and scipy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from dask_uncert.formulas import calibration as ca
from dask_uncert.formulas import scoring_rules
from dask_uncert.formulas.fixed_point import encode
from dask_uncert.formulas.residuals import nssr_of_covariances, nssr_of_variances
from tests.support import forest
from tests.support.arrays import by_slice


def state(p, hit, bins):
    """Counts of right-closed equal bins, the first with its left edge: n, hits, sums."""
    edges = np.arange(bins + 1) / bins
    place = np.maximum(np.searchsorted(edges, p, side="left") - 1, 0)
    one_hot = np.arange(bins)[:, None] == place
    return one_hot.sum(1), (one_hot & (np.asarray(hit) > 0)).sum(1), (one_hot[..., None] * encode(p)).sum(1)


def items(draw_max=40):
    return st.integers(1, draw_max).flatmap(
        lambda n: st.tuples(
            hnp.arrays(np.float64, n, elements=st.floats(0, 1)),
            hnp.arrays(np.int64, n, elements=st.integers(0, 1)),
        )
    )


@settings(max_examples=25, deadline=None)
@given(items(), st.integers(1, 15))
def test_binned_errors_agree_with_loops(drawn, bins):
    p, hit = drawn
    expected, largest = 0.0, 0.0
    for m in range(bins):
        inside = (p > m / bins) & (p <= (m + 1) / bins) | ((p == 0) & (m == 0))
        if inside.any():
            gap = abs(hit[inside].mean() - p[inside].mean())
            expected += inside.mean() * gap
            largest = max(largest, gap)
    counts = state(p, hit, bins)
    assert counts[0].sum() == len(p)
    np.testing.assert_allclose(ca.expected_calibration_error(*counts), expected, atol=1e-13)
    np.testing.assert_allclose(ca.maximum_calibration_error(*counts), largest, atol=1e-13)


def test_reliability_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    hit = rng.random(500) < p**2
    confidence, accuracy = ca.reliability(*state(p, hit, 10))
    observed, stated = calibration_curve(hit, p, n_bins=10)
    np.testing.assert_allclose(accuracy, observed, rtol=1e-12)
    np.testing.assert_allclose(confidence, stated, rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 2**32))
def test_equal_mass_groups_are_equal_for_single_items(size, groups, seed):
    n = size * groups
    fine = np.zeros(3 * n, np.int64)
    fine[np.sort(np.random.default_rng(seed).choice(3 * n, n, replace=False))] = 1
    place = ca.equal_mass_groups(fine, groups)
    assert np.all(np.diff(place) >= 0)
    np.testing.assert_array_equal(np.bincount(place[fine > 0], minlength=groups), size)


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.int64, 12, elements=st.integers(0, 9)), st.integers(1, 6))
def test_equal_mass_groups_are_as_equal_as_the_bins_allow(n, groups):
    place = ca.equal_mass_groups(n, groups)
    assert np.all(np.diff(place) >= 0)
    assert place.min() >= 0
    assert place.max() < groups
    mass = np.bincount(place, weights=n, minlength=groups)
    assert np.all(np.abs(mass - n.sum() / groups) <= n.max())


def test_equal_mass_error_agrees_with_sorted_items():
    rng = np.random.default_rng(1)
    p = (rng.permutation(4096)[:600] + 0.5) / 4096
    hit = (rng.random(600) < p).astype(int)
    order = np.argsort(p)
    gaps = [abs(hit[g].mean() - p[g].mean()) for g in np.split(order, 15)]
    fine = state(p, hit, 4096)
    np.testing.assert_allclose(ca.equal_mass_calibration_error(*fine, 15), np.mean(gaps), rtol=1e-12)
    n, hits, total = ca.equal_mass_bins(*fine, 15)
    assert n.tolist() == [40] * 15
    assert hits.sum() == hit.sum()
    np.testing.assert_array_equal(total.sum(axis=0), fine[2].sum(axis=0))


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(1, 400),
    bins=st.sampled_from([1, 4, 32, 1024]),
    groups=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
def test_equal_mass_bound_holds_for_groups_cut_between_items(size, bins, groups, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(*rng.choice([0.2, 1, 8], 2), size)
    hit = (rng.random(size) < p ** rng.choice([0.5, 1, 3])).astype(int)
    order, place = np.argsort(p), np.arange(size) * groups // size
    gap = np.bincount(place, (hit - p)[order], groups)
    n, hits, sums = state(p, hit, bins)
    bound = ca.equal_mass_bound(n, hits, np.arange(bins + 1) / bins, groups)
    assert abs(ca.equal_mass_calibration_error(n, hits, sums, groups) - np.abs(gap).sum() / size) <= bound + 1e-12


def classwise(p, y, bins):
    each = [state(p[:, c], y == c, bins) for c in range(p.shape[1])]
    n, positives, total = (np.stack(part) for part in zip(*each, strict=True))
    return n, positives, total, encode(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)).sum(axis=0)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.integers(2, 5), st.integers(1, 12), st.integers(0, 2**32))
def test_brier_parts_add_up(items, classes, bins, seed):
    rng = np.random.default_rng(seed)
    p, y = rng.dirichlet(np.ones(classes), items), rng.integers(0, classes, items)
    n, positives, total, squared = classwise(p, y, bins)
    parts = scoring_rules.brier_decomposition(n, positives, total, squared)
    score = ((p - np.eye(classes)[y]) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(parts["score"], score, rtol=1e-12, atol=3e-14)
    np.testing.assert_allclose(scoring_rules.brier_score(items, squared), score, rtol=1e-12, atol=3e-14)
    # The remainder in its own right: variance of p inside the bins less twice its covariance with y.
    inside = 0.0
    for c in range(classes):
        place = np.maximum(np.ceil(p[:, c] * bins).astype(int) - 1, 0)
        for m in np.unique(place):
            own, hit = p[place == m, c], (y == c)[place == m]
            inside += ((own - own.mean()) * (own - own.mean() - 2 * (hit - hit.mean()))).sum() / items
    np.testing.assert_allclose(parts["within_bins"], inside, atol=1e-12)
    frequency = np.bincount(y, minlength=classes) / items
    np.testing.assert_allclose(parts["uncertainty"], (frequency * (1 - frequency)).sum(), atol=1e-12)
    expected = np.mean([ca.expected_calibration_error(*s) for s in zip(n, positives, total, strict=True)])
    np.testing.assert_allclose(ca.classwise_calibration_error(n, positives, total), expected, rtol=1e-14)


def test_scores_agree_with_scikit_learn():
    rng = np.random.default_rng(2)
    p, y = rng.dirichlet(np.ones(3), 400), rng.integers(0, 3, 400)
    losses = -np.log(p[np.arange(400), y])
    nll = scoring_rules.negative_log_likelihood(400, encode(losses).sum(axis=0), 0)
    np.testing.assert_allclose(nll["value"], log_loss(y, p), rtol=1e-12)
    squared = encode((p[:, 1] - (y == 1)) ** 2).sum(axis=0)
    np.testing.assert_allclose(scoring_rules.brier_score(400, squared), brier_score_loss(y == 1, p[:, 1]), rtol=1e-12)
    only_zeros = scoring_rules.negative_log_likelihood(2, encode(0.0), 2)
    assert only_zeros["value"] == np.inf
    assert np.isnan(only_zeros["finite"])


def test_no_items():
    n, total = np.zeros((2, 4), int), np.zeros((2, 4, 2), np.int64)
    nothing = np.zeros(2, np.int64)
    for value in (
        ca.expected_calibration_error(n, n, total),
        ca.maximum_calibration_error(n, n, total),
        ca.classwise_calibration_error(n, n, total),
        ca.equal_mass_calibration_error(n, n, total, 3),
        *scoring_rules.brier_decomposition(n, n, total, nothing).values(),
        scoring_rules.negative_log_likelihood(0, nothing, 0)["value"],
        ca.regression_curve(n[0]),
        ca.windows_curve(n[0], n[0], np.linspace(0, 1, 5), [0.5], 0.2)[1],
    ):
        assert np.isnan(value).all()


def test_windows_hold_the_items_near_p():
    rng = np.random.default_rng(3)
    p = (rng.integers(0, 1000, 5000) + 0.5) / 1000  # each on the middle of its fine bin
    y = rng.random(5000) < p
    edges = np.linspace(0, 1, 1001)
    n, positives, _ = state(p, y, 1000)
    points = np.array([0.0, 0.3, 0.5, 1.0])
    count, observed = ca.windows_curve(n, positives, edges, points, 0.05)
    for index, point in enumerate(points):
        inside = np.abs(p - point) <= 0.05
        assert count[index] == inside.sum()
        np.testing.assert_allclose(observed[index], y[inside].mean(), rtol=1e-14)
    assert ca.windows_curve(n, positives, edges, 0.4, 0.05)[1].shape == ()


def test_nssr_and_its_probability():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(7, 3, 3))
    covariance = root @ root.swapaxes(-1, -2) + 0.1 * np.eye(3)
    residual = rng.normal(size=(7, 3))
    expected = np.einsum("ni,nij,nj->n", residual, np.linalg.inv(covariance), residual)
    found, pivot = nssr_of_covariances(residual.T, np.moveaxis(covariance, 0, -1))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert (pivot > 0).all()
    variance = rng.random((3, 7)) + 0.1
    diagonal = variance * np.eye(3)[..., np.newaxis]
    found = nssr_of_variances(residual.T, variance)
    np.testing.assert_allclose(found, nssr_of_covariances(residual.T, diagonal)[0], rtol=1e-12)
    np.testing.assert_allclose(ca.predicted_probability(expected, 3), stats.chi2.cdf(expected, 3), rtol=1e-12)
    assert np.isnan(nssr_of_variances(np.zeros((1, 1)), np.zeros((1, 1))))
    assert np.isinf(nssr_of_variances(np.ones((1, 1)), np.zeros((1, 1))))
    found, pivot = nssr_of_covariances(np.ones((2, 1)), np.array([[1.0, 2.0], [2.0, 1.0]])[..., np.newaxis])
    assert np.isnan(found)
    assert pivot <= 0


def test_regression_curve_and_its_distance():
    y = np.random.default_rng(5).normal(size=20_000)
    for variance, side in ((1.0, 0), (0.25, -1), (4.0, 1)):  # too small a variance: area below 1/2
        area = 1 - ca.predicted_probability(y**2 / variance, 1).mean()
        assert np.sign(np.round(area - 0.5, 1)) == side
    predicted = ca.predicted_probability(y**2 / 0.25, 1)
    grid = np.linspace(0, 1, 1001)
    observed = ca.regression_curve(np.histogram(predicted, grid)[0])
    np.testing.assert_allclose(observed, [(predicted <= g).mean() for g in grid], atol=1e-12)
    fine = np.linspace(0, 1, 1_000_001)
    expected = np.mean((np.interp(fine, grid, observed) - fine) ** 2)
    np.testing.assert_allclose(ca.calibration_distance(grid, observed), expected, atol=1e-6)
    assert ca.calibration_distance(grid, grid) == 0
    np.testing.assert_allclose(ca.calibration_distance(fine, fine**2), 1 / 30, atol=1e-7)


def test_leading_dimensions():
    rng = np.random.default_rng(6)
    n = rng.integers(0, 9, (2, 3, 4, 8))
    n[0, 0] = 0
    hits = rng.integers(0, n + 1)
    total = encode(rng.random((2, 3, 4, 8))) * n[..., None]
    squared = encode(rng.random((2, 3))) * 5
    edges = np.linspace(0, 1, 9)
    for f in (
        ca.expected_calibration_error,
        ca.maximum_calibration_error,
        ca.classwise_calibration_error,
        lambda n, h, s: ca.reliability(n, h, s).confidence,
        lambda n, h, s: ca.equal_mass_calibration_error(n, h, s, 3),
        lambda n, h, s: ca.equal_mass_bins(n, h, s, 3)[2],
        lambda n, h, s: ca.windows_curve(n, h, edges, [0.2, 0.7], 0.1)[1],
        lambda n, h, s: ca.regression_curve(n),
        lambda n, h, s: ca.calibration_distance(edges, ca.regression_curve(n)),
    ):
        np.testing.assert_array_equal(f(n, hits, total), by_slice(f, n, hits, total))
    items = n.sum(axis=-1).max(axis=-1)
    n[..., 0] += items[..., None] - n.sum(axis=-1)  # every item once a class
    stacked = scoring_rules.brier_decomposition(n, hits, total, squared)
    single = scoring_rules.brier_decomposition(n[1, 2], hits[1, 2], total[1, 2], squared[1, 2])
    for name, value in single.items():
        np.testing.assert_array_equal(stacked[name][1, 2], value)


def test_squared_error_of_the_random_forest():
    """The stated value puts probabilities at an edge, such as float32's .2, into the bin above."""
    p, y = forest.held_out()
    stated, right = p.max(axis=1).astype(float), p.argmax(axis=1) == y
    bins = np.minimum(stated * 15, 14).astype(int)
    n, hits, sums = (np.bincount(bins, w, 15) for w in (None, right, stated))
    plug_in, debiased, left_out = ca.squared_calibration_error(n, hits.astype(int), encode(sums))
    np.testing.assert_allclose([plug_in, debiased], [0.0168914195, 0.0167022097], atol=1e-10)
    assert left_out == 0


def test_the_squared_error_of_calibrated_items_is_debiased():
    rng = np.random.default_rng(3)
    p = np.repeat(np.linspace(0.05, 0.95, 10), 20)
    draws = rng.random((4000, 10, 20)) < p.reshape(10, 20)
    n, sums = np.full(10, 20), encode(p.reshape(10, 20).sum(axis=1))
    plug_in, debiased, _ = ca.squared_calibration_error(n, draws.sum(axis=2), sums)
    assert plug_in.mean() > 0.005
    assert abs(debiased.mean()) < 4 * debiased.std() / np.sqrt(4000)
