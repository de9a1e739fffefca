"""The soft confusion at any threshold, sigma and damping from a joint histogram of p, c and u.

Pixels are counted by the level of their reference c and by their row, an interval of p; of each such group
there are the sums of T_k(x), and of y T_k(x), over its pixels: T_k Chebyshev polynomials, x in [-1, 1] the
place of u in its interval of the u axis, y in [-1, 1] the place of p in its row. The certainty A(p) is
replaced by its tangent in the middle of the row, and the damping C_d(u) by its series in T_k; the error of
both is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dask_uncert.formulas.damping_series import damping_series
from dask_uncert.formulas.soft_confusion import cell_index, certainty_at, damping_factor, in_sigmas
from dask_uncert.formulas.threshold_distributions import ThresholdDistribution, tangent_error
from dask_uncert.formulas.typing import Bools, Floats

ROUNDING = 2.0**-42
"""Rounding error of a pixel's weight: fixed point, and float64 sums over rows."""


class UncertaintyInterval(NamedTuple):
    """An interval of the u axis (left-open but for the first; high may be inf) and its numbers of moments."""

    low: float
    high: float
    zeroth: int
    first: int


class JointMoments(NamedTuple):
    """A decoded joint histogram. Rows and levels that hold a single value have equal ends."""

    rows: Floats  # (rows, 2): ends of the intervals of p
    levels: Floats  # (levels, 2): ends of the intervals of c
    intervals: tuple[UncertaintyInterval, ...]
    zeroth: Floats  # (levels, rows, columns): sums of T_k(x), columns interval after interval
    first: Floats  # (levels, rows, columns): sums of y T_k(x)


class DampedSums(NamedTuple):
    """The summed damping factor of every group, its error, its sum times y, and the error of that."""

    weight: Floats  # (levels, rows)
    error: Floats
    first: Floats
    first_error: Floats


def damped_sums(moments: JointMoments, damping: float, form: str = "exponential") -> DampedSums:
    """Return the sums of C_d(u) over the pixels of every group, and of y C_d(u)."""
    shape = moments.zeroth.shape[:2]
    weight, error, first, first_error = (np.zeros(shape) for _ in range(4))
    column = first_column = 0
    for low, high, zeroth_terms, first_terms in moments.intervals:
        number = moments.zeroth[..., column]  # T_0 is 1
        series = damping_series(form, damping, low, high, zeroth_terms)
        total = moments.zeroth[..., column : column + zeroth_terms] @ series.coefficients
        least, most = damping_factor(np.array([high, low]), damping, form)
        bottom = np.maximum(total - series.error * number, least * number)
        top = np.minimum(total + series.error * number, most * number)
        total = np.clip(total, bottom, top)
        weight += total
        error += np.maximum(total - bottom, top - total)
        column += zeroth_terms
        if first_terms:
            series = damping_series(form, damping, low, high, first_terms)
            first += moments.first[..., first_column : first_column + first_terms] @ series.coefficients
            first_error += series.error * number
            first_column += first_terms
    return DampedSums(weight, error, first, first_error)


class RowCertainty(NamedTuple):
    """The certainty A(p) on every row, for every sigma: (sigmas, rows)."""

    middle: Floats  # A in the middle of the row
    least: Floats  # at its end nearest to the threshold
    most: Floats  # at its other end
    slope: Floats  # change of A from the middle to an end, along the tangent
    error: Floats  # bound on the tangent's error


def row_certainty(rows: Floats, threshold: float, sigmas: Floats, distribution: ThresholdDistribution) -> RowCertainty:
    """Return the certainty that p is off the threshold, on rows that are not astride it."""
    low, high = rows.T
    sigma = sigmas[:, np.newaxis]
    middle, half = (low + high) / 2, (high - low) / 2
    value = certainty_at(np.abs(middle - threshold), sigma, distribution.certainty)
    if not half.any():
        zero = np.zeros_like(value)
        return RowCertainty(value, value, value, zero, zero)
    nearest = np.maximum(np.maximum(low - threshold, threshold - high), 0.0)
    furthest = np.maximum(high - threshold, threshold - low)
    z, z_low, z_high, reach = (in_sigmas(x, sigma) for x in (np.abs(middle - threshold), nearest, furthest, half))
    rising = np.where(middle >= threshold, 1.0, -1.0)
    return RowCertainty(
        value,
        certainty_at(nearest, sigma, distribution.certainty),
        certainty_at(furthest, sigma, distribution.certainty),
        np.where(sigma > 0, distribution.slope(z) * reach * rising, 0.0),
        np.where(sigma > 0, tangent_error(distribution, z_low, z_high, reach), 0.0),
    )


def soft_cells(
    moments: JointMoments,
    certainty: RowCertainty,
    sums: DampedSums,
    threshold: float,
    sigmas: Floats,
    distribution: ThresholdDistribution,
    reference_threshold: float,
    reference_certainty: str = "paper",
) -> tuple[Floats, Floats]:
    """Return TP, TN, FP, FN and the bound on the error of each, (sigmas, 4) twice.

    certainty: `row_certainty` at this threshold. threshold, reference_threshold: rounded to the dtypes of p
    and c. Rows are right-closed for levels that are negative at their upper end, left-closed for others, so
    that counts at an end are exact.
    """
    low, high = moments.rows.T
    astride = (low < threshold) & (threshold < high)
    values, errors = np.zeros((2, sigmas.size, 4))
    parts = _split_rows(moments, sums, threshold, sigmas, distribution, astride)
    for number, level in enumerate(moments.levels):
        for positive, factor, loose in _reference(
            level, sigmas, distribution, reference_threshold, reference_certainty
        ):
            # a row is where the end is that belongs to it
            row_cells = cell_index(low if positive else high, positive, threshold)
            for p, part in zip((1.0, 0.0), parts, strict=True):  # right and left of the threshold
                cell = int(cell_index(p, positive, threshold))
                whole = _whole_rows(certainty, sums, number, ~astride & (row_cells == cell))
                value, error = (rows + split[:, number] for rows, split in zip(whole, part, strict=True))
                values[:, cell] += factor * value
                errors[:, cell] += factor * error + loose * (value + error)
    columns = np.cumsum([0, *(interval.zeroth for interval in moments.intervals[:-1])])  # of each T_0
    errors += ROUNDING * float(moments.zeroth.sum(axis=(0, 1))[columns].sum())
    return values, errors


def _whole_rows(certainty: RowCertainty, sums: DampedSums, level: int, side: Bools) -> tuple[Floats, Floats]:
    """Return summed A(p) C(u) over the rows of one side, and its error, (sigmas,) twice."""
    weight, loose = sums.weight[level, side], sums.error[level, side]
    middle = certainty.middle[:, side]
    if not (certainty.error.any() or certainty.slope.any()):  # single values, or sigma 0
        return middle @ weight, middle @ loose
    slope, most = certainty.slope[:, side], weight + loose
    value = middle * weight + slope * sums.first[level, side]
    error = middle * loose + np.abs(slope) * sums.first_error[level, side] + certainty.error[:, side] * most
    # the values of A at both ends of the row bound the sum, too
    bottom = np.maximum(value - error, certainty.least[:, side] * np.maximum(weight - loose, 0.0))
    top = np.maximum(np.minimum(value + error, certainty.most[:, side] * most), bottom)
    value = np.clip(value, bottom, top)
    return value.sum(axis=1), np.maximum(value - bottom, top - value).sum(axis=1)


def _split_rows(
    moments: JointMoments,
    sums: DampedSums,
    threshold: float,
    sigmas: Floats,
    distribution: ThresholdDistribution,
    astride: Bools,
) -> list[tuple[Floats, Floats]]:
    """Return (value, error), each (sigmas, levels), right and left of the threshold in rows astride it.

    Where the pixels of such a row lie is not known; the value takes them as spread evenly.
    """
    low, high = moments.rows[astride].T
    most = (sums.weight + sums.error)[:, astride]
    parts = []
    for reach in (high - threshold, threshold - low):
        at_end, at_middle = (certainty_at(x, sigmas[:, np.newaxis], distribution.certainty) for x in (reach, reach / 2))
        share = reach / (high - low)
        value = (at_middle * share)[:, np.newaxis] * sums.weight[:, astride]
        error = np.maximum(value, at_end[:, np.newaxis] * most - value)
        parts.append((value.sum(axis=2), error.sum(axis=2)))
    return parts


def _reference(
    level: Floats, sigmas: Floats, distribution: ThresholdDistribution, threshold: float, certainty: str
) -> list[tuple[bool, Floats, Floats]]:
    """Return whether a level is positive, the factor of the reference's certainty, and the error of that."""
    low, high = float(level[0]), float(level[1])
    if certainty == "none":
        ends = np.ones((2, sigmas.size))
    else:
        distance = np.abs(level - threshold)
        ends = certainty_at(distance, sigmas[:, np.newaxis], distribution.certainty).T
    if low < threshold < high:
        return [(False, ends[0] / 2, ends[0] / 2), (True, ends[1] / 2, ends[1] / 2)]
    positive = low > threshold or (low >= threshold and high > low)
    return [(positive, ends.mean(axis=0), np.abs(ends[1] - ends[0]) / 2)]
