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
    """Finds the bin of a value in [0, 1] times the range of its edges, in one comparison.

    The range is cut into equally wide cells, each with at most one edge inside. Where edges lie too close for
    that, `above` is empty and `below` is only where to start looking.
    """

    edges: NDArray[np.float64]  # (bins + 1,) rising; bins are right-closed, the first also holds its left end
    edge: NDArray[np.float64]  # (cells,) the edge inside the cell; infinity where there is none
    below: NDArray[np.int16]  # (cells,) the bin of values of the cell up to its edge
    above: NDArray[np.int16]  # (cells,) the bin of values of the cell above its edge


def finder(edges: Sequence[float], upper: float) -> Finder:
    """The Finder for edges that rise from 0 to `upper`."""
    bounds = np.asarray(edges, np.float64)
    cells = 1 << 10
    while True:
        left = np.arange(cells) / cells * upper * (1 - 1e-12)  # values of a cell lie at or above it
        right = np.append(left[1:], bounds[-1]) * (1 + 1e-11)
        first = np.searchsorted(bounds, left, side="left")  # the lowest edge at or above the cell's left end
        last = np.searchsorted(bounds, right, side="right") - 1  # the highest edge inside
        inside = last >= first
        low = bounds[np.minimum(first, bounds.size - 1)]
        high = bounds[np.maximum(last, 0)]
        if not (inside & (low != high)).any():
            break
        if cells == 1 << 14:
            start = np.maximum(first - 1, 0).astype(np.int16)
            return Finder(bounds, np.empty(0), start, np.empty(0, np.int16))
        cells *= 2
    most = bounds.size - 2
    return Finder(
        bounds,
        np.where(inside, low, np.inf),
        np.clip(first - 1, 0, most).astype(np.int16),
        np.clip(last, 0, most).astype(np.int16),
    )


AnyFloats = NDArray[Any]
