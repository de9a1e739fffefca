"""What `measure` finds out about each pixel, and how a pixel's state is coded."""

from __future__ import annotations

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


AnyFloats = NDArray[Any]
