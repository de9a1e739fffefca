"""Named tuples that kernels take and return, and how the state of a pixel is coded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.typing import Counts, Floats, Indices

AnyFloats = NDArray[Any]
USABLE, MISSING, OFF = 0, 1, 2
"""Probabilities usable; one of them NaN; further from the simplex than the tolerance."""
CLIPPED, RENORMALISED = 4, 8
"""Added to USABLE where a value outside [0, 1] was clipped; where the sum was off by more than rounding."""
SMALLEST_SUM = 1e-300
"""A vector that adds up to less is off the simplex, however much is tolerated."""


class Pixels(NamedTuple):
    """Decisions and measures of n pixels; the rows of `values` are NaN where a pixel is not usable."""

    values: Floats  # (measures, n)
    predicted: Indices  # (n,) class index of the largest probability, ties to the lowest
    second: Indices  # (n,) class index of the second largest
    confused: Indices  # (n,) how many probabilities exceed 1/C
    confidence: Floats  # (n,) the largest probability as stored, clipped to 1
    state: NDArray[np.uint8]  # (n,)


class Rounding(NamedTuple):
    """The precision of the simplex in a storage dtype."""

    tolerance: float  # how far values and sums may be off before the vector is refused
    exact: float  # sums off by no more than this are as exact as the dtype can say
    level: float  # 1/C as the dtype says it


class Finder(NamedTuple):
    """A search table for bins: they are right-closed, the first also holds its left end.

    Where `start` is empty the bins are equally wide but for rounding, and the number of a bin follows from
    the value, give or take one; else `start` is the bin at which to start looking for each of equally wide
    cells.
    """

    edges: Floats  # (bins + 1,) rising from 0
    start: Indices  # (cells,) or (0,)


class RowGrid(NamedTuple):
    """Rows over [0, 1]: equal cells, a power of two of them, some cut into several rows."""

    edges: Floats  # (rows + 1,)
    first: Indices  # (cells + 1,) the first row of every cell, and the number of rows


class ValueCounts(NamedTuple):
    """Counts of one measure's values, see `summaries.Distribution`; sums as in `formulas.power_sums`."""

    histogram: Counts  # (reference, right, bin)
    by_pair: Counts  # (reference, predicted, second, sums of 2 powers)
    by_confused: Counts  # (confused classes, right, sums of 3 powers)


class ScoreCounts(NamedTuple):
    """Counts of every class's stated probability, see `summaries.Calibration`."""

    classwise: Counts  # (classes, bins, 4)
    squared_error: Counts  # (2 limbs,)
    log_loss: Counts  # (2 limbs,)
    infinite: Counts  # (1,)


class TileRows(NamedTuple):
    """Rows of counts, one a spatial tile, that a kernel adds its pixels to as well; `row` is empty for none.

    starts: the cells of a row at which the kernel's numbers start, in the order that the kernel says. bins:
    the job's bin of calibration for each fine one.
    """

    row: Indices  # (n,) the row of each pixel
    counts: Counts  # (rows, cells)
    starts: Indices
    bins: Indices


NO_TILES = TileRows(np.empty(0, np.int64), np.empty((0, 0), np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def finder(edges: Sequence[float], upper: float) -> Finder:
    """Return the Finder for edges that rise from 0 to `upper`."""
    bounds = np.asarray(edges, np.float64)
    bins = bounds.size - 1
    even = np.arange(bins + 1) * (upper / bins)
    if (np.abs(bounds - even) <= 0.49 * upper / bins).all():
        return Finder(bounds, np.empty(0, np.int64))
    left = np.arange(2 * bins) / (2 * bins) * upper * (1 - 1e-12)
    return Finder(bounds, np.clip(np.searchsorted(bounds, left, side="left") - 1, 0, bins - 1))
