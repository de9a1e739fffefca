"""Distributions: against numpy, scipy and exact order statistics."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dask_uncert.formulas import distributions as di
from dask_uncert.formulas.fixed_point import encode
from tests.support.arrays import by_slice

EDGES = np.linspace(0, 1, 11)
VALUES = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))
COUNTS = hnp.arrays(np.int64, 10, elements=st.integers(0, 30))


def sums(x, moments=3):
    return encode(np.stack([x**power for power in range(1, moments + 1)])).sum(axis=1)


def binned(x, edges=EDGES):
    place = np.maximum(np.searchsorted(edges, x, side="left") - 1, 0)
    return np.bincount(place, minlength=len(edges) - 1)


@settings(max_examples=80, deadline=None)
@given(VALUES)
def test_moments_agree_with_scipy(x):
    n, state = len(x), sums(x)
    np.testing.assert_allclose(di.mean(n, state), x.mean(), atol=3e-14)
    spread = x.std()
    np.testing.assert_allclose(di.standard_deviation(n, state) ** 2, spread**2, atol=1.8e-13)
    np.testing.assert_allclose(di.standard_deviation(n, state), spread, atol=5e-7)
    if spread > 1e-5:
        error = abs(di.skewness(n, state) - stats.skew(x))
        assert error <= 5e-13 / spread**3 + 2e-13 / spread**2 * abs(stats.skew(x)) + 1e-12


@given(st.floats(0, 1), st.integers(1, 2**40))
@settings(max_examples=80, deadline=None)
def test_a_constant_has_no_spread_and_no_skewness(x, n):
    state = encode(np.array([x, x**2, x**3])) * n
    assert di.standard_deviation(n, state) == 0
    assert np.isnan(di.skewness(n, state))
    np.testing.assert_allclose(di.mean(n, state), x, atol=3e-14)


def test_many_values():
    rng = np.random.default_rng(1)
    x = rng.beta(1, 9, 200_000)
    np.testing.assert_allclose(di.mean(x.size, sums(x)), math.fsum(x) / x.size, rtol=1e-13)
    np.testing.assert_allclose(di.standard_deviation(x.size, sums(x)), x.std(), rtol=1e-12)
    np.testing.assert_allclose(di.skewness(x.size, sums(x)), stats.skew(x), rtol=1e-10)


def test_no_values():
    none = np.zeros((3, 2), np.int64)
    for f in (di.mean, di.standard_deviation, di.skewness):
        assert np.isnan(f(0, none))
    assert np.isnan(di.ecdf(np.zeros(4, int))).all()
    assert np.isnan(di.quantiles(np.zeros(10, int), EDGES, [0, 0.5, 1])).all()


@settings(max_examples=80, deadline=None)
@given(VALUES)
def test_ecdf_is_the_share_at_or_below(x):
    expected = [(x <= edge).mean() for edge in EDGES[1:]]
    np.testing.assert_allclose(di.ecdf(binned(x)), expected, rtol=1e-15)


@settings(max_examples=100, deadline=None)
@given(VALUES, st.integers(0, 100))
def test_quantiles_lie_in_the_bin_of_the_order_statistic(x, percent):
    rank = max(math.ceil(Fraction(percent, 100) * len(x)), 1)
    exact = np.sort(x)[rank - 1]
    found = float(di.quantiles(binned(x), EDGES, percent / 100))
    place = max(np.searchsorted(EDGES, exact, side="left") - 1, 0)
    assert EDGES[place] <= found <= EDGES[place + 1] + 1e-15
    assert abs(found - exact) <= 0.1 + 1e-15


def test_quantiles_of_a_fine_grid():
    x = np.random.default_rng(2).random(10_000)
    edges = np.linspace(0, 1, 4097)
    q = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    found = di.quantiles(binned(x, edges), edges, q)
    np.testing.assert_allclose(found, np.quantile(x, q, method="inverted_cdf"), atol=1 / 4096)
    assert di.quantiles([5, 0, 0, 5], np.linspace(0, 1, 5), 0.5) == 0.25  # not drawn across empty bins


@pytest.mark.parametrize(
    ("four", "printed"),
    [
        ((5, 1, 37, 88), (0.833, 0.704, 0.119, 0.710)),
        ((7, 2, 29, 93), (0.778, 0.762, 0.194, 0.763)),
        ((5, 1, 28, 97), (0.833, 0.776, 0.152, 0.779)),
    ],
)
def test_table_1_of_a22(four, printed):
    tu, fc, fu, tc = four
    table = di.uncertainty_confusion([tc, fu], [fc, tu], [0, 0.3, 1], 0.3)
    assert tuple(int(table[k]) for k in ("TU", "FC", "FU", "TC")) == four
    assert sum(four) == 131
    assert tuple(round(float(table[k]), 3) for k in ("USen", "USpe", "UPre", "UAcc")) == printed


@settings(max_examples=60, deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_uncertainty_confusion_counts_exactly(u, random):
    right = np.array([random.random() < 0.5 for _ in u])
    taus = EDGES[1:]
    table = di.uncertainty_confusion(binned(u[right]), binned(u[~right]), EDGES, taus)
    for index, tau in enumerate(taus):
        assert table["TC"][index] == (right & (u <= tau)).sum()
        assert table["FU"][index] == (right & (u > tau)).sum()
        assert table["FC"][index] == (~right & (u <= tau)).sum()
        assert table["TU"][index] == (~right & (u > tau)).sum()
    assert np.isnan(table["UPre"][-1])  # nothing lies above 1


def test_thresholds_must_be_edges():
    counts = np.ones(10, int)
    with pytest.raises(ValueError, match=r"0\.35"):
        di.uncertainty_confusion(counts, counts, EDGES, [0.5, 0.35])
    for outside in (0.0, -1.0, 2.0, np.nan):
        with pytest.raises(ValueError, match="not edges"):
            di.uncertainty_confusion(counts, counts, EDGES, outside)
    single = EDGES.astype(np.float32)  # the number .7 in any form
    for tau in (0.7, np.float64(0.7), np.float32(0.7)):
        assert di.uncertainty_confusion(counts, counts, single, tau)["TC"] == 7
    with pytest.raises(ValueError, match="10 bins have 11 edges"):
        di.uncertainty_confusion(counts, counts, EDGES[1:], 0.5)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        di.quantiles(counts, EDGES, 1.5)


@given(hnp.arrays(np.int64, (2, 3, 10), elements=st.integers(0, 9)))
@settings(max_examples=20, deadline=None)
def test_leading_dimensions(stack):
    for f in (
        di.ecdf,
        lambda h: di.quantiles(h, EDGES, [0.1, 0.5]),
        lambda h: di.quantiles(h, EDGES, 0.5),
        lambda h: di.uncertainty_confusion(h, h[..., ::-1], EDGES, [0.1, 0.5])["TU"],
        lambda h: di.uncertainty_confusion(h, h[..., ::-1], EDGES, 0.5)["USpe"],
    ):
        np.testing.assert_array_equal(f(stack), by_slice(f, stack))


def test_leading_dimensions_of_moments():
    x = np.random.default_rng(3).random((2, 4, 50))
    state = encode(np.stack([x, x**2, x**3], axis=-2)).sum(axis=-2)
    n = np.full((2, 4), 50)
    for f in (di.mean, di.standard_deviation, di.skewness):
        np.testing.assert_array_equal(f(n, state), by_slice(f, n, state))
