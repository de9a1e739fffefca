"""What `measure` finds out about each pixel, and how a pixel's state is coded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

USABLE, MISSING, OFF = 0, 1, 2
"""Probabilities usable; one of them NaN; further from the simplex than the tolerance."""
CLIPPED, RENORMALISED = 4, 8
"""Added to USABLE where a value outside [0, 1] was clipped; where the sum was off by more than rounding."""


class Pixels(NamedTuple):
    """Of n pixels, in the order asked for; the rows of `values` are NaN where the pixel is not usable."""

    values: NDArray[np.float64]  # (measures, n)
    predicted: NDArray[np.int64]  # (n,) class index of the largest probability, ties to the lowest
    second: NDArray[np.int64]  # (n,) class index of the second largest
    confused: NDArray[np.int64]  # (n,) how many probabilities exceed 1/C
    confidence: NDArray[np.float64]  # (n,) the largest probability as stored, clipped to 1
    state: NDArray[np.uint8]  # (n,)


class Rounding(NamedTuple):
    """What the storage dtype makes of the simplex."""

    tolerance: float  # how far values and sums may be off before the vector is refused
    exact: float  # sums off by no more than this are as exact as the dtype can say
    level: float  # 1/C as the dtype says it


class Finder(NamedTuple):
    """Finds the bin of a value among edges: bins are right-closed, the first also holds its left end.

    Where `start` is empty the bins are equally wide but for rounding, and a bin's number follows from the
    value, give or take one; else it says for each of equally wide cells in which bin to start looking.
    """

    edges: NDArray[np.float64]  # (bins + 1,) rising from 0
    start: NDArray[np.int64]  # (cells,) or (0,)


class Apart(NamedTuple):
    """Rows of counts that a kernel's pixels add to as well, a row a spatial tile; `owner` is empty for none.

    places: at which cells of a row the kernel's numbers start, as it says. bins: of each fine bin of calibration,
    the job's.
    """

    owner: NDArray[np.int64]  # (n,) the row of each pixel
    counts: NDArray[np.int64]  # (rows, cells)
    places: NDArray[np.int64]
    bins: NDArray[np.int64]


NOTHING_APART = Apart(
    np.empty(0, np.int64), np.empty((0, 0), np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
)


def finder(edges: Sequence[float], upper: float) -> Finder:
    """The Finder for edges that rise from 0 to `upper`."""
    bounds = np.asarray(edges, np.float64)
    bins = bounds.size - 1
    even = np.arange(bins + 1) * (upper / bins)
    if (np.abs(bounds - even) <= 0.49 * upper / bins).all():
        return Finder(bounds, np.empty(0, np.int64))
    left = np.arange(2 * bins) / (2 * bins) * upper * (1 - 1e-12)
    return Finder(bounds, np.clip(np.searchsorted(bounds, left, side="left") - 1, 0, bins - 1))


AnyFloats = NDArray[Any]
