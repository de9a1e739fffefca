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
from dask_uncert.formulas.power_sums import BOUNDED, WIDE, encode
from tests.support.arrays import by_slice

EDGES = np.linspace(0, 1, 11)
VALUES = hnp.arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))
COUNTS = hnp.arrays(np.int64, 10, elements=st.integers(0, 30))


def sums(x, resolution=BOUNDED):
    return encode(x, 3, resolution).sum(axis=-2)


def binned(x, edges=EDGES):
    place = np.maximum(np.searchsorted(edges, x, side="left") - 1, 0)
    return np.bincount(place, minlength=len(edges) - 1)


@settings(max_examples=25, deadline=None)
@given(VALUES)
def test_moments_agree_with_scipy(x):
    n, state = len(x), sums(x)
    np.testing.assert_allclose(di.mean(n, state), x.mean(), atol=3e-14)
    spread = x.std()
    np.testing.assert_allclose(di.standard_deviation(n, state), spread, atol=3e-14)
    if spread > 1e-7:
        assert di.skewness(n, state) == pytest.approx(stats.skew(x), abs=1.8e-13 / spread + 1e-12, rel=1.8e-13 / spread)


@given(
    st.sampled_from([(BOUNDED, 0, 1), (WIDE, 0, 2**20), (WIDE, 0, 1e-9), (WIDE, 1e6, 1e6 + 1), (WIDE, 1000, 1000.001)]),
    st.integers(0, 2**32 - 1),
    st.integers(2, 30),
)
@settings(max_examples=25, deadline=None)
def test_moments_are_exact_wherever_the_values_lie(drawn, seed, n):
    resolution, low, high = drawn
    x = np.random.default_rng(seed).uniform(low, high, n)
    exact = [Fraction(v) for v in x.tolist()]
    centre = sum(exact) / n
    second, third = (float(sum((v - centre) ** k for v in exact) / n) for k in (2, 3))
    state = sums(x, resolution)
    step = 2.0**-resolution.bits
    assert di.mean(n, state, resolution) == pytest.approx(float(centre), abs=step, rel=1e-15)
    assert di.standard_deviation(n, state, resolution) == pytest.approx(second**0.5, abs=step, rel=1e-14)
    error = 3 * step / second**0.5
    assert di.skewness(n, state, resolution) == pytest.approx(third / second**1.5, abs=error + 1e-14, rel=error + 1e-13)


def test_what_rounding_could_have_made_is_undefined():
    x = 0.5 + np.array([1, 2, 4]) * 2.0**-40
    assert di.standard_deviation(3, sums(x)) == pytest.approx(x.std(), rel=0.01)
    assert np.isnan(di.skewness(3, sums(x)))


@given(st.floats(0, 1), st.integers(1, 2**40))
@settings(max_examples=25, deadline=None)
def test_a_constant_has_no_spread_and_no_skewness(x, n):
    state = encode(x, 3) * n
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
    none = np.zeros(12, np.int64)
    for f in (di.mean, di.standard_deviation, di.skewness):
        assert np.isnan(f(0, none))
    assert np.isnan(di.ecdf(np.zeros(4, int))).all()
    assert np.isnan(di.quantiles(np.zeros(10, int), EDGES, [0, 0.5, 1])).all()


@settings(max_examples=25, deadline=None)
@given(VALUES)
def test_ecdf_is_the_share_at_or_below(x):
    expected = [(x <= edge).mean() for edge in EDGES[1:]]
    np.testing.assert_allclose(di.ecdf(binned(x)), expected, rtol=1e-15)


@settings(max_examples=25, deadline=None)
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


@settings(max_examples=25, deadline=None)
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
    state = sums(x)
    n = np.full((2, 4), 50)
    for f in (di.mean, di.standard_deviation, di.skewness):
        np.testing.assert_array_equal(f(n, state), by_slice(f, n, state))


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.float64, st.integers(2, 40), elements=st.floats(-1, 1).map(lambda v: round(v, 3)), unique=True))
def test_the_gaussian_density_is_that_of_scipy(x):
    at = np.linspace(-1.2, 1.2, 7)
    np.testing.assert_allclose(di.gaussian_density(x, at), stats.gaussian_kde(x)(at), rtol=1e-9, atol=1e-12)
