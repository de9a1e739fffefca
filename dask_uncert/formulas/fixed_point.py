"""Bounded sums as integers, so that they add exactly in any order.

A value ``x`` becomes ``q = rint(x * 2**44)`` and ``q`` is split into a high and a low limb of 22 bits.
Each limb is summed as a plain int64: no carry, hence the sum is linear (it may be added, subtracted and
multiplied by integer weights) and has the same bits for every order. One value is off by at most
``2**-45`` (2.8e-14); for values in [0, 1] neither limb overflows below ``2**41`` (2.2e12) values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.typing import Counts, Floats

FRACTION_BITS = 44
LIMB_BITS = 22
LIMB_MASK = (1 << LIMB_BITS) - 1
SCALE = float(1 << FRACTION_BITS)
FIRST, SECOND = float(1 << 20), float(1 << 22)
"""Units of the moments of the joint histogram: of the first, of those of higher order. An int64 sum of either holds
2**41 values in [-1, 1] and more."""


def encode(values: ArrayLike, limbs: int = 2) -> Counts:
    """Return finite values (...) as int64 limbs (..., limbs), the highest first; it has the sign.

    Two limbs hold sizes below 2**19; each limb more adds a factor of 2**22. Above 2**9 float64 itself is
    coarser than ``2**-44``, and no digit is lost.

    >>> encode([0.0, 1.0]).tolist()
    [[0, 0], [4194304, 0]]
    """
    rest = np.rint(np.asarray(values, dtype=np.float64) * SCALE)
    result = np.empty((*rest.shape, limbs), np.int64)
    for i in range(limbs):
        weight = 2.0 ** (LIMB_BITS * (limbs - 1 - i))
        part = np.floor(rest / weight)
        result[..., i] = part
        rest = rest - part * weight  # exact: both are whole multiples of the same power of two
    return result


def decode(limbs: Counts) -> Floats:
    """Return sums of shape (..., limbs) as float64 of shape (...), within a few roundings of the exact sum.

    >>> float(decode(encode([0.25, 0.5]).sum(axis=0)))
    0.75
    """
    count = limbs.shape[-1]
    total = np.zeros(limbs.shape[:-1])
    carry = np.zeros(limbs.shape[:-1], np.int64)
    for i in range(count - 1, 0, -1):
        whole = limbs[..., i] + carry
        carry = whole >> LIMB_BITS
        total = total + (whole & LIMB_MASK) * 2.0 ** (LIMB_BITS * (count - 1 - i) - FRACTION_BITS)
    highest = limbs[..., 0] + carry
    return np.asarray(highest * 2.0 ** (LIMB_BITS * (count - 1) - FRACTION_BITS) + total)
