"""Bounded sums as integers, so that they add exactly in any order.

A value ``x`` becomes ``q = rint(x * 2**44)`` and ``q`` is split into a high and a low limb of 22 bits.
Each limb is summed as a plain int64: no carry, hence the sum is linear (it may be added, subtracted and
multiplied by integer weights) and has the same bits for every order. One value is off by at most
``2**-45`` (2.8e-14); for values in [0, 1] neither limb overflows below ``2**41`` (2.2e12) values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FRACTION_BITS = 44
LIMB_BITS = 22
LIMB_MASK = (1 << LIMB_BITS) - 1
SCALE = float(1 << FRACTION_BITS)
LIMIT = 1 << 40
"""Most values that a Summary may hold; beyond it a sum could overflow."""


def encode(values: ArrayLike) -> NDArray[np.int64]:
    """Finite values of shape (...) as limbs of shape (..., 2), int64.

    >>> encode([0.0, 1.0]).tolist()
    [[0, 0], [4194304, 0]]
    """
    q = np.rint(np.asarray(values, dtype=np.float64) * SCALE).astype(np.int64)
    return np.stack([q >> LIMB_BITS, q & LIMB_MASK], axis=-1)


def decode(limbs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums of shape (..., 2) as float64 of shape (...), within two roundings of the exact sum.

    >>> float(decode(encode([0.25, 0.5]).sum(axis=0)))
    0.75
    """
    high = limbs[..., 0] + (limbs[..., 1] >> LIMB_BITS)
    low = limbs[..., 1] & LIMB_MASK
    total: NDArray[Any] = high * 2.0**-LIMB_BITS + low * 2.0**-FRACTION_BITS
    return np.asarray(total, dtype=np.float64)
