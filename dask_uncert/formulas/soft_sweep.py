"""The soft confusion at any threshold, spread and damping from counts over bins of p, c and u, with its error.

Pixels are counted by the level of their reference c and by their row, an interval of p; of each such group there
are the sums of T_k(x), and of y T_k(x), over its pixels: T_k Chebyshev polynomials, x in [-1, 1] where u lies in
its piece of the u axis, y in [-1, 1] where p lies in its row. The certainty A(p) is replaced by its tangent in the
middle of the row, and the damping C_d(u) by its series in T_k; both leave out no more than is said.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.damping_series import damping_series
from dask_uncert.formulas.soft_confusion import damping_factor
from dask_uncert.formulas.threshold_distributions import Shape, remainder
from dask_uncert.formulas.typing import Floats

ROUNDING = 2.0**-42
"""Of a pixel's weight: fixed point, and float64 sums over rows."""


class Piece(NamedTuple):
    """A part of the u axis (left-open but for the first; high may be infinite), and its numbers of moments."""

    low: float
    high: float
    zeroth: int
    first: int


class Record(NamedTuple):
    """What was counted. Rows and levels that are a single value have equal ends; so do all of few-valued data."""

    rows: Floats  # (rows, 2): ends of the intervals of p
    levels: Floats  # (levels, 2): ends of the intervals of c
    pieces: tuple[Piece, ...]
    zeroth: Floats  # (levels, rows, columns): sums of T_k(x), columns piece after piece
    first: Floats  # (levels, rows, columns): sums of y T_k(x)


class Damped(NamedTuple):
    """Of every group the summed damping factor, its error, its sum times y, and that one's error."""

    weight: Floats  # (levels, rows)
    error: Floats
    first: Floats
    first_error: Floats


def damped(record: Record, damping: float, form: str = "exponential") -> Damped:
    """Sums of C_d(u) over the pixels of every group, and of y C_d(u)."""
    shape = record.zeroth.shape[:2]
    weight, error, first, first_error = (np.zeros(shape) for _ in range(4))
    at = at_first = 0
    for piece in record.pieces:
        number = record.zeroth[..., at]  # T_0 is 1
        series = damping_series(form, damping, piece.low, piece.high, piece.zeroth)
        found = record.zeroth[..., at : at + piece.zeroth] @ series.coefficients
        ends = np.array([piece.high, piece.low])
        least, most = damping_factor(ends, damping, form)
        low = np.maximum(found - series.error * number, least * number)
        high = np.minimum(found + series.error * number, most * number)
        found = np.clip(found, low, high)
        weight += found
        error += np.maximum(found - low, high - found)
        at += piece.zeroth
        if piece.first:
            series = damping_series(form, damping, piece.low, piece.high, piece.first)
            first += record.first[..., at_first : at_first + piece.first] @ series.coefficients
            first_error += series.error * number
            at_first += piece.first
    return Damped(weight, error, first, first_error)


class Tangents(NamedTuple):
    """What A(p) is on every row, for every sigma: (sigmas, rows)."""

    middle: Floats  # A in the middle of the row
    least: Floats  # at its end nearest to the threshold
    most: Floats  # at its other end
    slope: Floats  # what A changes from the middle to an end, along the tangent
    off: Floats  # by what the tangent may miss A


def tangents(rows: Floats, threshold: float, sigmas: Floats, shape: Shape) -> Tangents:
    """The certainty that p is off the threshold, on rows that are not astride it."""
    low, high = rows.T
    middle, half = (low + high) / 2, (high - low) / 2
    value = _certainty(np.abs(middle - threshold), sigmas, shape)
    if not half.any():
        nothing = np.zeros_like(value)
        return Tangents(value, value, value, nothing, nothing)
    nearest = np.maximum(np.maximum(low - threshold, threshold - high), 0.0)
    furthest = np.maximum(high - threshold, threshold - low)
    z, z_low, z_high, reach = (
        _over(x, sigmas) for x in (np.abs(middle - threshold), nearest, furthest, half)
    )
    spread = (sigmas > 0)[:, np.newaxis]
    rising = np.where(middle >= threshold, 1.0, -1.0)
    return Tangents(
        value,
        _certainty(nearest, sigmas, shape),
        _certainty(furthest, sigmas, shape),
        np.where(spread, shape.slope(z) * reach * rising, 0.0),
        np.where(spread, remainder(shape, z_low, z_high, reach), 0.0),
    )


def soft_cells(
    record: Record,
    found: Tangents,
    sums: Damped,
    threshold: float,
    sigmas: Floats,
    shape: Shape,
    reference_threshold: float,
    reference_certainty: str = "paper",
) -> tuple[Floats, Floats]:
    """TP, TN, FP, FN and the most that each is off by, (sigmas, 4) twice.

    found: `tangents` at this threshold. threshold, reference_threshold: rounded to the dtypes of p and c. Rows are
    right-closed for levels that are negative at their upper end, left-closed for others, so that counts at an end
    are exact.
    """
    low, high = record.rows.T
    right, left = low >= threshold, high <= threshold
    values, errors = np.zeros((2, sigmas.size, 4))
    parts = _split_rows(record, sums, threshold, sigmas, shape, ~right & ~left)
    for number, level in enumerate(record.levels):
        for positive, factor, loose in _reference(
            level, sigmas, shape, reference_threshold, reference_certainty
        ):
            # A row that is the threshold itself agrees with the reference either way.
            above, below = (right & ~left, left) if not positive else (right, left & ~right)
            cells = (0, 3) if positive else (2, 1)
            for side, split, cell in zip((above, below), parts, cells, strict=True):
                whole = _whole_rows(found, sums, number, side)
                value, error = (one + part[:, number] for one, part in zip(whole, split, strict=True))
                values[:, cell] += factor * value
                errors[:, cell] += factor * error + loose * (value + error)
    errors += ROUNDING * float(record.zeroth.sum(axis=(0, 1))[_starts(record)].sum())
    return values, errors


def _starts(record: Record) -> list[int]:
    """The column of each piece's T_0."""
    ends = np.cumsum([0, *(piece.zeroth for piece in record.pieces)])
    return [int(end) for end in ends[:-1]]


def _whole_rows(found: Tangents, sums: Damped, level: int, side: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Summed A(p) C(u) over the rows of one side, and its error, (sigmas,) twice."""
    weight, loose = sums.weight[level, side], sums.error[level, side]
    middle = found.middle[:, side]
    if not (found.off.any() or found.slope.any()):  # single values, or sigma 0
        return middle @ weight, middle @ loose
    slope, most = found.slope[:, side], weight + loose
    value = middle * weight + slope * sums.first[level, side]
    error = middle * loose + np.abs(slope) * sums.first_error[level, side] + found.off[:, side] * most
    # The sum also lies between what both ends of the row say.
    bottom = np.maximum(value - error, found.least[:, side] * np.maximum(weight - loose, 0.0))
    top = np.maximum(np.minimum(value + error, found.most[:, side] * most), bottom)
    value = np.clip(value, bottom, top)
    return value.sum(axis=1), np.maximum(value - bottom, top - value).sum(axis=1)


def _split_rows(
    record: Record, sums: Damped, threshold: float, sigmas: Floats, shape: Shape, astride: NDArray[np.bool_]
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """(value, error), each (sigmas, levels), of what lies right and left of the threshold in rows astride it.

    Nobody knows how the pixels of such a row lie; the value takes them as spread evenly.
    """
    low, high = record.rows[astride].T
    most = (sums.weight + sums.error)[:, astride]
    found = []
    for end, middle, share in (
        (high - threshold, (high - threshold) / 2, (high - threshold) / (high - low)),
        (threshold - low, (threshold - low) / 2, (threshold - low) / (high - low)),
    ):
        at_end, at_middle = (_certainty(x, sigmas, shape) for x in (end, middle))
        value = (at_middle * share)[:, np.newaxis] * sums.weight[:, astride]
        error = np.maximum(value, at_end[:, np.newaxis] * most - value)
        found.append((value.sum(axis=2), error.sum(axis=2)))
    return found[0], found[1]


def _certainty(distance: Floats, sigmas: Floats, shape: Shape) -> Floats:
    """A at distances (n,) from the threshold, (sigmas, n); 1 where sigma is 0."""
    return np.where((sigmas > 0)[:, np.newaxis], shape.value(_over(distance, sigmas)), 1.0)


def _over(distance: Floats, sigmas: Floats) -> Floats:
    """Distances (n,) in units of each sigma, (sigmas, n); where sigma is 0 they are not used."""
    with np.errstate(over="ignore"):
        return np.asarray(distance / np.where(sigmas > 0, sigmas, 1.0)[:, np.newaxis])


def _reference(
    level: Floats, sigmas: Floats, shape: Shape, threshold: float, certainty: str
) -> list[tuple[bool, Floats, Floats]]:
    """Is it positive; what the reference's certainty multiplies a weight with, and by how much it may be off."""
    low, high = float(level[0]), float(level[1])
    if certainty == "none":
        ends = np.ones((2, sigmas.size))
    else:
        ends = _certainty(np.abs(level - threshold), sigmas, shape).T
    if low < threshold < high:
        return [(False, ends[0] / 2, ends[0] / 2), (True, ends[1] / 2, ends[1] / 2)]
    positive = low > threshold or (low >= threshold and high > low)
    return [(positive, ends.mean(axis=0), np.abs(ends[1] - ends[0]) / 2)]
