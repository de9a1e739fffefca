"""Two models on the same cases: tests of whether their difference is more than chance.

Differences are (n, ...): one per case, for any numbers; a case where either model is undefined (NaN) takes no
part and is counted. Tests are two-sided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Counts, Floats

TIE = 1e-12
"""Differences closer than this, relative to the observed one, count as equal to it: the careful side."""
EXACT_RANKS = 50
"""Largest number of different ranks for which the signed-rank distribution is enumerated."""


class Significance(NamedTuple):
    """A ``statistic`` and its ``p_value``, from ``n`` cases; ``undefined`` took no part."""

    statistic: Floats
    p_value: Floats
    n: Counts
    undefined: Counts


def paired_t_test(differences: ArrayLike) -> Significance:
    """Student's t of differences, (n, ...) to four of (...).

    ``t = mean / (s / sqrt(n))`` with the sample deviation s, n - 1 degrees of freedom; p in [0, 1]. NaN below
    two cases and where all differences are 0; infinite, p = 0, where all are the same other number. [A22]

    >>> t, p, n, _ = paired_t_test([1.0, 2.0, 3.0, np.nan])
    >>> round(float(t), 6), round(float(p), 6), int(n)
    (3.464102, 0.07418, 3)
    """

    def test(column: Floats) -> tuple[float, float]:
        if len(column) < 2 or not np.isfinite(column).all():
            return np.nan, np.nan
        if (column == column[0]).all():
            return (np.nan, np.nan) if column[0] == 0 else (float(np.copysign(np.inf, column[0])), 0.0)
        from scipy import stats  # loaded where two models are compared only: a second

        result = stats.ttest_1samp(column, 0.0)
        return float(result.statistic), float(result.pvalue)

    return _by_column(differences, test)


def signed_rank_test(differences: ArrayLike) -> Significance:
    """Wilcoxon's signed ranks of differences, (n, ...) to four of (...).

    Differences of 0 are dropped; ``statistic`` is the smaller of the rank sums of positive and of negative
    ones. p is exact up to 50 differences without ties, else normal with the ties' variance and no continuity
    correction. NaN where nothing is left. Wilcoxon, Biometrics Bulletin 1, 1945.

    >>> statistic, p, n, _ = signed_rank_test([1.0, 2.0, 3.0, -4.0])
    >>> float(statistic), float(p), int(n)
    (4.0, 0.875, 4)
    """

    def test(column: Floats) -> tuple[float, float]:
        left = column[column != 0]
        if not len(left):
            return np.nan, np.nan
        exact = len(left) <= EXACT_RANKS and len(np.unique(np.abs(left))) == len(left)
        from scipy import stats

        result = stats.wilcoxon(left, method="exact" if exact else "approx")
        return float(result.statistic), float(result.pvalue)

    return _by_column(differences, test)


def permutation_test(observed: ArrayLike, permuted: ArrayLike, exact: bool) -> Significance:
    """Share of permutations that differ as much as observed: (...) and (B, ...) to four of (...).

    ``permuted`` are the differences with the models swapped in some cases. exact: these are all, each once
    (the observed one or its negative among them), and p is their share ``b / B``; else they are drawn, and
    ``p = (b + 1) / (B + 1)``, which no p of a finite number of draws undercuts. b counts ``|permuted| >=
    |observed|``, ties to rounding too. Undefined permutations are left out; ``n`` and ``undefined`` count
    permutations here. NaN where the observed difference is undefined or nothing is left. Phipson and Smyth,
    Statistical Applications in Genetics and Molecular Biology 9, 2010.

    >>> _, p, _, _ = permutation_test(1.0, [1.0, -0.5, 0.25, -1.0], exact=False)
    >>> float(p)
    0.6
    """
    seen, drawn = np.asarray(observed, np.float64), np.asarray(permuted, np.float64)
    defined = (~np.isnan(drawn)).sum(axis=0)
    far = (np.abs(drawn) >= np.abs(seen) * (1 - TIE)).sum(axis=0)
    p = ratio(far, defined) if exact else np.where(defined > 0, (far + 1) / (defined + 1), np.nan)
    return Significance(seen, np.where(np.isnan(seen), np.nan, p), defined, len(drawn) - defined)


def holm(p_values: ArrayLike) -> Floats:
    """p-values adjusted for m comparisons (Holm), (..., m) to (..., m).

    In rising order ``max over j <= i of min(1, (m - j + 1) p_j)``; with them the chance of any false finding
    is at most the level. NaN stays NaN and is not counted in m. Holm, Scandinavian Journal of Statistics 6,
    1979.

    >>> holm([0.01, 0.04, np.nan, 0.02]).tolist()
    [0.03, 0.04, nan, 0.04]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, axis=-1)  # NaN last
    m = (~np.isnan(p)).sum(axis=-1, keepdims=True)
    stepped = np.take_along_axis(p, order, axis=-1) * (m - np.arange(p.shape[-1]))
    adjusted = np.minimum(np.maximum.accumulate(stepped, axis=-1), 1.0)
    result = np.empty_like(p)
    np.put_along_axis(result, order, adjusted, axis=-1)
    return np.where(np.isnan(p), np.nan, result)


def _by_column(differences: ArrayLike, test: Callable[[Floats], tuple[float, float]]) -> Significance:
    d = np.asarray(differences, np.float64)
    flat = d.reshape(len(d), -1)
    kept = ~np.isnan(flat)
    results = np.array([test(flat[kept[:, i], i]) for i in range(flat.shape[1])]).reshape(-1, 2)
    shape = d.shape[1:]
    n = kept.sum(axis=0).reshape(shape)
    return Significance(results[:, 0].reshape(shape), results[:, 1].reshape(shape), n, len(d) - n)
