"""Paired tests: against SciPy, by listing every swap, and Holm against its definition."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from dask_uncert.formulas.paired_tests import holm, paired_t_test, permutation_test, signed_rank_test
from dask_uncert.formulas.resampling import all_swaps, swaps

TENTHS = st.integers(-6, 6).map(lambda i: i / 8)


@given(st.integers(0, 2**32), st.integers(3, 80))
@settings(max_examples=25, deadline=None)
def test_agreement_with_scipy(seed, n):
    rng = np.random.default_rng(seed)
    a, b = rng.random((n, 2)), rng.random((n, 2)) + 0.1
    a[0, 1] = np.nan
    t, w = paired_t_test(a - b), signed_rank_test(a - b)
    assert t.n.tolist() == w.n.tolist() == [n, n - 1]
    assert t.undefined.tolist() == [0, 1]
    for i in range(2):
        theirs = stats.ttest_rel(a[i:, i], b[i:, i])
        np.testing.assert_allclose([t.statistic[i], t.p_value[i]], theirs, rtol=1e-10)
        theirs = stats.wilcoxon(a[i:, i], b[i:, i])
        np.testing.assert_allclose([w.statistic[i], w.p_value[i]], theirs, rtol=1e-10)


@given(st.lists(TENTHS, min_size=1, max_size=7).filter(any))
@settings(max_examples=25, deadline=None)
def test_signed_ranks_by_listing_all_signs(d):
    left = np.array([x for x in d if x])
    ranks = stats.rankdata(np.abs(left))
    statistic, p, n, _ = signed_rank_test(d)
    assert n == len(d)
    seen = min(ranks[left > 0].sum(), ranks[left < 0].sum())
    assert statistic == seen
    if len(np.unique(np.abs(left))) == len(left):
        every = [sum(r for r, s in zip(ranks, signs, strict=True) if s) for signs in product((0, 1), repeat=len(left))]
        tail = sum(w <= seen for w in every) / len(every)
        np.testing.assert_allclose(p, min(1.0, 2 * tail), rtol=1e-12)
    else:
        spread = (ranks**2).sum() / 4  # of a sum of ranks with fair signs
        z = (seen - ranks.sum() / 2) / np.sqrt(spread)
        np.testing.assert_allclose(p, min(1.0, 2 * stats.norm.cdf(z)), rtol=1e-9)


def test_undefined_tests():
    for test in (paired_t_test, signed_rank_test):
        zero = test(np.zeros(5))
        assert np.isnan([zero.statistic, zero.p_value]).all()
        assert zero.n == 5
        none = test(np.full((4, 2), np.nan))
        assert np.isnan(none.p_value).all()
        assert none.undefined.tolist() == [4, 4]
    assert np.isnan(paired_t_test([1.0]).p_value)
    same = paired_t_test([0.25, 0.25, 0.25])
    assert (same.statistic, same.p_value) == (np.inf, 0.0)


@given(hnp.arrays(np.float64, st.integers(2, 9), elements=TENTHS))
def test_exact_permutations_are_all_sign_flips(d):
    names = [str(i) for i in range(len(d))]
    signs = 1 - 2 * all_swaps(names).astype(int)
    found = permutation_test(d.mean(), (signs * d).mean(axis=1), exact=True)
    every = [abs(np.dot(s, d)) for s in product((-1, 1), repeat=len(d))]
    expected = np.mean([v >= abs(d.sum()) - 1e-9 for v in every])
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-12)
    theirs = stats.permutation_test(
        (d, np.zeros_like(d)), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf,
        vectorized=False,
    )  # fmt: skip
    np.testing.assert_allclose(found.p_value, theirs.pvalue, rtol=1e-12)


def test_drawn_permutations_approach_all_of_them_and_never_reach_0():
    d = np.random.default_rng(5).normal(0.4, 1.0, 12)
    names = [str(i) for i in range(12)]
    p = [
        permutation_test(d.mean(), ((1 - 2 * sign.astype(int)) * d).mean(axis=1), exact=exact).p_value
        for sign, exact in ((all_swaps(names), True), (swaps(names, range(20_000)), False))
    ]
    assert abs(p[0] - p[1]) < 5 * np.sqrt(0.25 / 20_000)
    assert permutation_test(1.0, np.zeros(99), exact=False).p_value == 0.01
    some = permutation_test([0.5, np.nan], [[0.5, 1.0], [np.nan, 1.0], [0.1, 1.0]], exact=False)
    np.testing.assert_allclose(some.p_value, [2 / 3, np.nan])
    assert some.n.tolist() == [2, 3]
    assert some.undefined.tolist() == [1, 0]


P = st.one_of(st.floats(0, 1), st.just(np.nan), st.sampled_from([0.01, 0.02]))


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 3), st.integers(1, 6)), elements=P))
def test_holm_by_its_definition(p):
    for row, found in zip(p, holm(p), strict=True):
        asked = sorted(v for v in row if not np.isnan(v))
        m = len(asked)
        for value, adjusted in zip(row, found, strict=True):
            if np.isnan(value):
                assert np.isnan(adjusted)
            else:
                upto = [min(1.0, (m - j) * asked[j]) for j in range(m) if asked[j] <= value]
                assert adjusted == max(upto)


def test_holm_rejects_what_stepping_down_rejects():
    p = np.array([0.001, 0.04, 0.012, 0.3])
    rejected, m = set(), len(p)
    for step, i in enumerate(np.argsort(p)):
        if p[i] > 0.05 / (m - step):
            break
        rejected.add(int(i))
    assert set(np.flatnonzero(holm(p) <= 0.05)) == rejected == {0, 2}
