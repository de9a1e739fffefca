"""Confidence intervals from bootstrap replicates.

Replicates are on the first axis, (B, ...); every number has its own interval. Replicates that are
undefined (NaN) are left out and counted, never taken for a number. A number that
does not vary has the interval [v, v].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Counts, Floats

ROUNDING = 1e-12
"""Replicates that differ by less, relative to their size, are equal up to rounding."""


class Interval(NamedTuple):
    """Ends of an interval, and how many replicates were ``undefined`` and took no part."""

    low: Floats
    high: Floats
    undefined: Counts


@dataclass(frozen=True)
class Confidence:
    """Settings of intervals: number of bootstrap replicates of the units, level, seed and method."""

    replicates: int = 1000
    level: float = 0.95
    seed: int = 0
    method: Literal["bca", "percentile"] = "bca"

    def interval(self, estimate: ArrayLike, replicates: ArrayLike, left_out: ArrayLike | None) -> Interval:
        """Return the interval: estimate (...), replicates (B, ...), left_out (n, ...), which BCa needs."""
        if self.method == "percentile" or left_out is None:
            return percentile_interval(replicates, self.level)
        return bca_interval(estimate, replicates, left_out, self.level)


def percentile_interval(replicates: ArrayLike, level: float = 0.95) -> Interval:
    """Return the central ``level`` of the replicates: (B, ...) to three of (...).

    Their quantiles at ``(1 - level) / 2`` and ``(1 + level) / 2``, linear between order statistics. NaN
    where no replicate is defined. Raises ValueError for a level outside (0, 1). Efron 1979.

    >>> low, high, undefined = percentile_interval([0.0, np.nan, 1.0, 0.5], 0.5)
    >>> float(low), float(high), int(undefined)
    (0.25, 0.75, 1)
    """
    ordered, defined = _ordered(replicates)
    low, high = (_quantile(ordered, defined, np.full(defined.shape, share)) for share in _tails(level))
    return Interval(low, high, len(ordered) - defined)


def quantiles_of(values: ArrayLike, shares: ArrayLike) -> Floats:
    """Return linear quantiles of the defined values: (n, ...) and (Q,) to (Q, ...); NaN where none is.

    >>> quantiles_of([0.0, np.nan, 1.0, 0.5], [0.25, 1.0]).tolist()
    [0.25, 1.0]
    """
    ordered, defined = _ordered(values)
    return np.stack([_quantile(ordered, defined, np.full(defined.shape, s)) for s in np.asarray(shares, np.float64)])


def bca_interval(estimate: ArrayLike, replicates: ArrayLike, left_out: ArrayLike, level: float = 0.95) -> Interval:
    """Return the BCa interval: estimate (...), replicates (B, ...), left_out (n, ...) to three of (...).

    Bias-corrected and accelerated.

    ``left_out`` are the values without one unit each. With z the normal quantiles of the tails, the ends are
    the replicates' quantiles at ``Phi(z0 + (z0 + z) / (1 - a (z0 + z)))``. Bias: ``z0 = Phi^-1`` of the share
    of replicates below the estimate, equal ones half. Acceleration: ``a = sum d**3 / (6 (sum d**2)**1.5)``,
    d the mean of the finite left-out values less each of them; 0 where they do not vary.

    NaN where the estimate or every replicate is undefined, where all replicates lie on one side of the
    estimate (their bias has no correction) and where ``1 - a (z0 + z)`` is not positive. Second-order exact
    for smooth numbers. Raises ValueError for a level outside (0, 1). Efron, JASA 82, 1987.

    >>> low, high, _ = bca_interval(2.0, [1.0, 1.5, 2.0, 2.5, 3.0], [2.5, 2.0, 1.5], 0.5)
    >>> float(low), float(high)
    (1.5, 2.5)
    """
    point = np.asarray(estimate, np.float64)
    ordered, defined = _ordered(replicates)
    below = ((ordered < point).sum(axis=0) + (ordered <= point).sum(axis=0)) / 2
    bias = ndtri(ratio(below, defined))
    acceleration = _acceleration(np.asarray(left_out, np.float64))
    ends = []
    for share in _tails(level):
        with np.errstate(invalid="ignore"):
            z = bias + ndtri(share)
            denominator = 1.0 - acceleration * z
            shifted = bias + ratio(z, denominator)
        usable = np.isfinite(bias) & (denominator > 0) & ~np.isnan(point)
        end = _quantile(ordered, defined, np.where(usable, ndtr(shifted), 0.5))
        ends.append(np.where(usable, end, np.nan))
    # Equal up to rounding: on which side the estimate is means nothing.
    first, last = ordered[0], np.take_along_axis(ordered, np.maximum(defined - 1, 0)[None], axis=0)[0]
    with np.errstate(invalid="ignore"):
        constant = (last - first <= ROUNDING * np.abs(last)) & ~np.isnan(point)
    low, high = np.where(constant, first, ends[0]), np.where(constant, last, ends[1])
    return Interval(low, high, len(ordered) - defined)


def _acceleration(left_out: Floats) -> Floats:
    finite = np.isfinite(left_out)
    mean = ratio(np.where(finite, left_out, 0.0).sum(axis=0), finite.sum(axis=0))
    difference = np.where(finite, mean - np.where(finite, left_out, 0.0), 0.0)
    # Scaled first: cubes of small differences vanish.
    largest = np.abs(difference).max(axis=0)
    scaled = np.where(largest > ROUNDING * np.abs(mean), ratio(difference, largest), 0.0)
    skew = ratio((scaled**3).sum(axis=0), 6 * (scaled**2).sum(axis=0) ** 1.5)
    return np.where(np.isnan(skew), 0.0, skew)


def _tails(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval lies in (0, 1), found {level!r}")
    return (1 - level) / 2, (1 + level) / 2


def _ordered(replicates: ArrayLike) -> tuple[Floats, Counts]:
    """Return values sorted along the first axis, NaN last, and how many are defined."""
    values = np.asarray(replicates, np.float64)
    if values.ndim == 0 or len(values) == 0:
        raise ValueError(f"an interval needs replicates along the first axis, found shape {values.shape}")
    return np.sort(values, axis=0), np.asarray((~np.isnan(values)).sum(axis=0))


def _quantile(ordered: Floats, defined: Counts, shares: Floats) -> Floats:
    """Return the quantile at a share for every number; NaN where nothing is defined."""
    last = np.maximum(defined - 1, 0)
    rank = shares * last
    lower = np.minimum(np.floor(rank).astype(np.int64), last)
    here, there = (
        np.take_along_axis(ordered, index[None], axis=0)[0] for index in (lower, np.minimum(lower + 1, last))
    )
    part = rank - lower
    with np.errstate(invalid="ignore"):  # between equal infinities, or at one, nothing is interpolated
        between = here + part * (there - here)
    return np.asarray(np.where((part == 0) | (here == there), here, between))
