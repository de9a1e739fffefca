"""Named tuples that kernels take and return, and how the state of a pixel is coded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.typing import Counts, Floats, Indices

AnyFloats = NDArray[Any]
SmallIndices = NDArray[np.int16]
"""Class numbers. int16 is enough: a table of all pairs of 32,768 classes would not fit into memory."""
USABLE, MISSING, OFF = 0, 1, 2
"""Probabilities usable; one of them NaN; further from the simplex than the tolerance."""
CLIPPED, RENORMALISED = 4, 8
"""Added to USABLE where a value outside [0, 1] was clipped; where the sum was off by more than rounding."""
SMALLEST_SUM = 1e-300
"""A vector that adds up to less is off the simplex, however much is tolerated."""

ENTROPY_ROUNDING = 2.0**-52
"""Each sample, each class and each step rounds an entropy by about as much of itself, at most."""


BINARY_TILE = 512  # pixels at a time of a prediction without a class axis


class Pixels(NamedTuple):
    """Decisions and measures of n pixels; the rows of `values` are NaN where a pixel is not usable."""

    values: AnyFloats  # (measures, n), in Fortran order: float64; float32 where they were computed in it
    predicted: SmallIndices  # (n,) class index of the largest probability, ties to the lowest
    second: SmallIndices  # (n,) class index of the second largest
    confused: SmallIndices  # (n,) how many probabilities exceed 1/C
    confidence: Floats  # (n,) the largest probability as stored, clipped to 1
    state: NDArray[np.uint8]  # (n,)


class Groups(NamedTuple):
    """The pixels that count, sorted: those whose reference, decision, runner-up and confused classes agree stand together.

    order: (counted,) their numbers. place: (n,) where each pixel is in `order`, beyond its end if it does not count. starts: (groups + 1,) where each group starts in `order`; the last is its end.
    right, pair, number: (groups,) where each group is counted, as numbers in tables (reference, right), (reference,
    predicted, reference is second) and (confused classes, right).
    """

    order: NDArray[np.int32]
    place: NDArray[np.int32]
    starts: NDArray[np.int32]
    right: Indices
    pair: Indices
    number: Indices


class Rounding(NamedTuple):
    """The precision of the simplex in a storage dtype."""

    tolerance: float  # how far values and sums may be off before the vector is refused
    exact: float  # sums off by no more than this are as exact as the dtype can say
    level: float  # 1/C as the dtype says it


class Finder(NamedTuple):
    """A search table for bins: they are right-closed, the first also holds its left end.

    Where `start` is empty the bins are equally wide but for rounding, and the number of a bin follows from
    the value, give or take one; else `start` is the bin at which to start looking for each cell. Cells are equally
    wide, or where there are `steps`, right-closed and 512 an octave, by the bits of the float; `ends` are then the
    edges where the first bin of each cell ends, infinite for the last bin.
    """

    edges: Floats  # (bins + 1,) rising from 0
    start: NDArray[np.int32]  # (cells,) or (0,)
    steps: int = 0  # of octaves: the bin of a value in a cell is at most so many further
    ends: Floats = np.empty(0)  # (cells,) or (0,)
    uneven: float = 0.0  # of equally wide bins: by how much of a width edges may be off, with the rounding of a float32


class SoftGrid(NamedTuple):
    """Settings of a class's soft confusion with gaussian thresholds: every threshold (T,), sigma (S,) and damping (D,).

    form: of the damping. certainty: (T, S, 2), A of the reference where it is another class, and where it is this one.
    """

    class_index: int
    thresholds: Floats
    sigmas: Floats
    dampings: Floats
    form: str
    certainty: Floats


class RowGrid(NamedTuple):
    """Rows over [0, 1]: equal cells, a power of two of them, some cut into several rows."""

    edges: Floats  # (rows + 1,)
    first: Indices  # (cells + 1,) the first row of every cell, and the number of rows


class ValueCounts(NamedTuple):
    """Counts of one measure's values, see `summaries.Distribution`; sums as in `formulas.power_sums`."""

    histogram: Counts  # (reference, right, bin)
    by_pair: Counts  # (reference, predicted, second, sums of 2 powers)
    by_confused: Counts  # (confused classes, right, sums of 3 powers)


class ValueBins(NamedTuple):
    """Where the values of a measure are counted."""

    upper: float  # end of the range [0, upper], unless `wide`
    finder: Finder  # of bins over the range, by octaves
    counts: ValueCounts
    wide: bool  # values have no range: their power sums have more limbs


class ScoreCounts(NamedTuple):
    """Counts of every class's stated probability, see `summaries.Calibration`."""

    classwise: Counts  # (classes, bins, 4)
    squared_error: Counts  # (2 limbs,)
    log_loss: Counts  # (2 limbs,)
    infinite: Counts  # (1,)


class Stated(NamedTuple):
    """Where stated probabilities are counted while pixels are measured.

    truth: (n,) class index, negative where the pixel does not count. finder: of bins over [0, 1] whose edges are as the
    data's dtype has them. winning: (bins, 4), the tally of the largest; scores: of all classes.
    """

    truth: Indices
    finder: Finder
    winning: Counts
    scores: ScoreCounts


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


CELL_BITS = 52 - 9  # of the mantissa, that cells of 512 an octave leave out
LOWEST_CELL = (1023 - 62) << 9  # the first one also holds all below 2**-62
CELLS = (1023 << 9) - LOWEST_CELL


def finder(edges: Sequence[float], upper: float, octaves: bool = False) -> Finder:
    """Return the Finder for edges that rise from 0 to `upper`; octaves: they are dense towards 0."""
    bounds = np.asarray(edges, np.float64)
    bins = bounds.size - 1
    if octaves:
        left = ((np.arange(CELLS) + LOWEST_CELL) << CELL_BITS).view(np.float64) * upper
        if upper != 1.0:  # the share of a value rounds
            left *= 1 - 1e-12
        left[0] = 0.0
        start = _bins_of(bounds, left, "right")
        ends = np.append(left[1:] if upper == 1.0 else left[1:] * (1 + 2e-12), upper)
        steps = max(1, int((_bins_of(bounds, ends, "left") - start).max()))
        return Finder(bounds, start, steps, np.where(start < bins - 1, bounds[start + 1], np.inf))
    even = np.arange(bins + 1) * (upper / bins)
    uneven = float(np.abs(bounds - even).max()) * bins / upper + 1e-4
    if (np.abs(bounds - even) <= 0.49 * upper / bins).all():
        return Finder(bounds, np.empty(0, np.int32), uneven=uneven)
    left = np.arange(2 * bins) / (2 * bins) * upper * (1 - 1e-12)
    return Finder(bounds, _bins_of(bounds, left, "left"), uneven=uneven)


def _bins_of(edges: Floats, values: Floats, side: Literal["left", "right"]) -> NDArray[np.int32]:
    return np.clip(np.searchsorted(edges, values, side=side) - 1, 0, edges.size - 2).astype(np.int32)
