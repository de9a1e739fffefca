"""The soft confusion at any threshold, sigma and damping from a joint histogram of p, c and u.

Pixels are counted by the level of their reference c, by their row, an interval of p, and by their bin, an
interval of u. Of each such cell there are the sums of T_i(y) T_j(x) over its pixels: T_i Chebyshev polynomials
up to the second, y in [-1, 1] the place of p in its row, x that of u in its bin. The certainty A(p) is replaced
by a parabola on the row, the damping C_d(u) by one on the bin; the error of both is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dask_uncert.formulas.damping_series import NODES, damping_series, parabolas
from dask_uncert.formulas.soft_confusion import cell_index, certainty_at, in_sigmas
from dask_uncert.formulas.threshold_distributions import ThresholdDistribution, parabola_error
from dask_uncert.formulas.typing import Bools, Floats

ROUNDING = 2.0**-42
"""Rounding error of a pixel's weight: float64 sums over rows."""
MOMENT_ROUNDING = 2.0**-20
"""Rounding error of T_i(y) T_j(x) of a pixel."""


def moment_powers(in_row: bool, in_bin: bool) -> tuple[tuple[int, int], ...]:
    """Return the powers (i, j) of y and x whose sums a cell keeps: up to the second, but not y**2 x**2.

    in_row: whether p varies in a row, so that y does; in_bin: whether u varies in a bin, so that x does.

    >>> moment_powers(True, False), len(moment_powers(True, True))
    (((0, 0), (1, 0), (2, 0)), 8)
    """
    pairs = ((i, j) for i in range(3 if in_row else 1) for j in range(3 if in_bin else 1))
    return tuple(pair for pair in pairs if pair != (2, 2))


class JointMoments(NamedTuple):
    """A decoded joint histogram. Rows and levels that hold a single value have equal ends."""

    rows: Floats  # (rows, 2): ends of the intervals of p
    levels: Floats  # (levels, 2): ends of the intervals of c
    upper: float  # the largest u, or infinity
    sums: Floats  # (levels, rows, bins, 3, 3): of T_i(y) T_j(x); of T_2 T_2, which is not kept, 0


class DampedSums(NamedTuple):
    """Summed T_i(y) C_d(u) of every group, and a bound on the error of each: (3, levels, rows)."""

    sums: Floats
    errors: Floats


def damped_sums(moments: JointMoments, damping: float, form: str = "exponential") -> DampedSums:
    """Return the sums of T_i(y) C_d(u) over the pixels of every level and row, i from 0 to 2."""
    sums = moments.sums
    series = damping_series(form, damping, moments.upper, sums.shape[2])
    number, size = sums[..., 0, 0], np.abs(series.coefficients)
    damped = np.einsum("lrbij,bj->ilrb", sums, series.coefficients)
    errors = np.empty_like(damped)
    for i in range(3):
        left_out = size[:, 2] if i == 2 else 0.0  # by T_2 T_2
        rounded = size[:, 1] + size[:, 2] if i == 0 else size.sum(axis=1)
        errors[i] = number * (series.error + left_out + MOMENT_ROUNDING * rounded)
    bottom = np.maximum(damped[0] - errors[0], series.least * number)
    top = np.minimum(damped[0] + errors[0], series.most * number)
    damped[0] = np.clip(damped[0], bottom, top)
    errors[0] = np.maximum(damped[0] - bottom, top - damped[0])
    return DampedSums(damped.sum(axis=-1), errors.sum(axis=-1))


class RowCertainty(NamedTuple):
    """The certainty A(p) on every row, for every sigma: (sigmas, rows)."""

    coefficients: Floats  # of T_0(y), T_1(y), T_2(y): (sigmas, rows, 3)
    error: Floats  # bound on their error
    least: Floats  # A at the end of the row nearest to the threshold
    most: Floats  # at its other end


def row_certainty(rows: Floats, threshold: float, sigmas: Floats, distribution: ThresholdDistribution) -> RowCertainty:
    """Return the certainty that p is off the threshold, on rows that are not astride it."""
    low, high = rows.T
    sigma = sigmas[:, np.newaxis]
    middle, half = (low + high) / 2, (high - low) / 2
    nodes = np.abs(middle[:, np.newaxis] + half[:, np.newaxis] * NODES - threshold)
    nearest = np.maximum(np.maximum(low - threshold, threshold - high), 0.0)
    furthest = np.maximum(high - threshold, threshold - low)
    error = parabola_error(distribution, in_sigmas(nearest, sigma), in_sigmas(furthest, sigma))
    return RowCertainty(
        parabolas(certainty_at(nodes, sigma[..., np.newaxis], distribution.certainty)),
        np.where((sigma > 0) & (half > 0), error, 0.0),
        certainty_at(nearest, sigma, distribution.certainty),
        certainty_at(furthest, sigma, distribution.certainty),
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
    errors += ROUNDING * float(moments.sums[..., 0, 0].sum())
    return values, errors


def _whole_rows(certainty: RowCertainty, sums: DampedSums, level: int, side: Bools) -> tuple[Floats, Floats]:
    """Return summed A(p) C(u) over the rows of one side, and its error, (sigmas,) twice."""
    damped, loose = sums.sums[:, level, side], sums.errors[:, level, side]
    coefficients, weight = certainty.coefficients[:, side], damped[0]
    least, most = certainty.least[:, side], certainty.most[:, side]
    value = np.einsum("sri,ir->sr", coefficients, damped)
    error = np.einsum("sri,ir->sr", np.abs(coefficients), loose) + certainty.error[:, side] * (weight + loose[0])
    # the values of A at both ends of the row bound the sum, too
    bottom = np.maximum(value - error, least * np.maximum(weight - loose[0], 0.0))
    top = np.maximum(np.minimum(value + error, most * (weight + loose[0])), bottom)
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

    Right minus left is the sum of A with the sign of p - t, which is smooth in most distributions. Right plus left
    follows within bounds from the sum of (p - t)**2, as A is concave and 0 on the threshold. Within these bounds the
    value takes the pixels as spread evenly.
    """
    low, high = moments.rows[astride].T
    middle, half = (low + high) / 2, (high - low) / 2
    sigma = sigmas[:, np.newaxis]
    weights, loose = sums.sums[..., astride], sums.errors[..., astride]  # (3, levels, rows)
    # the sum of y - t squared, t the place of the threshold in the row
    t = (threshold - middle) / half
    square = (weights[2] + weights[0]) / 2 - 2 * t * weights[1] + t * t * weights[0]
    off = loose[2] / 2 + 2 * np.abs(t) * loose[1] + (t * t + 0.5) * loose[0]
    most, far = weights[0] + loose[0], 1 + np.abs(t)
    mean = np.sqrt(np.clip((square + off) / np.where(most > 0, most, 1.0), 0.0, far**2)) * half
    together_least = certainty_at(far * half, sigma, distribution.certainty)[:, np.newaxis] * np.where(
        sigma[:, np.newaxis] > 0, np.maximum(square - off, 0.0) / far**2, np.maximum(weights[0] - loose[0], 0.0)
    )
    together_most = certainty_at(mean, sigma[:, np.newaxis], distribution.certainty) * most
    # the sum of A with the sign of p - t
    distance = (NODES - t[:, np.newaxis]) * half[:, np.newaxis]
    signed = parabolas(
        np.sign(distance) * certainty_at(np.abs(distance), sigma[..., np.newaxis], distribution.certainty)
    )
    between = parabola_error(distribution, in_sigmas(low - threshold, sigma), in_sigmas(high - threshold, sigma))
    difference = np.einsum("sri,ilr->slr", signed, weights)
    wrong = np.einsum("sri,ilr->slr", np.abs(signed), loose) + between[:, np.newaxis] * most
    wrong = np.where(sigma[:, np.newaxis] > 0, wrong, np.inf)
    parts = []
    for reach, sign in ((high - threshold, 1), (threshold - low, -1)):
        bottom = np.maximum((together_least + sign * difference - wrong) / 2, 0.0)
        top = np.maximum(np.minimum((together_most + sign * difference + wrong) / 2, together_most), bottom)
        even = certainty_at(reach / 2, sigma, distribution.certainty) * reach / (high - low)
        value = np.clip(even[:, np.newaxis] * weights[0], bottom, top)
        parts.append((value.sum(axis=2), np.maximum(value - bottom, top - value).sum(axis=2)))
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
