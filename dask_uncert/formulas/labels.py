"""Reference codes as class indices, and thresholds in the storage's own dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

UNLABELLED, UNKNOWN, NO_CODE = -1, -2, -3
"""Instead of a class index: an ignore code, a code of no class (or a share out of range), NaN."""

WIDEST_TABLE = 1 << 16


def as_stored(thresholds: ArrayLike, dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """Thresholds rounded to the data's own dtype: a float32 .7 lies on the threshold .7."""
    exact = np.asarray(thresholds, np.float64)
    return exact.astype(dtype).astype(np.float64) if dtype.kind == "f" else exact


def class_indices(codes: NDArray[Any], classes: Sequence[int], ignore: Sequence[int]) -> NDArray[np.int64]:
    """Of reference codes of any shape the class indices, flat (n,); UNLABELLED, UNKNOWN or NO_CODE for others.

    classes: the code of each class, in the order of the class axis. Floats must be whole numbers to be known.
    """
    flat = codes.ravel()
    missing = odd = None
    if flat.dtype.kind == "f":
        missing = np.isnan(flat)
        inside = ~missing & (np.abs(flat) < 2.0**62)
        whole = np.where(inside, flat, 0).astype(np.int64)
        odd = ~missing & (~inside | (whole != flat))
    else:
        whole = flat.astype(np.int64)  # never index arithmetic in the storage's dtype
    known = np.array([*classes, *ignore], np.int64)
    place = np.array([*range(len(classes)), *[UNLABELLED] * len(ignore)], np.int64)
    low, high = int(known.min()), int(known.max())
    if high - low < WIDEST_TABLE:
        table = np.full(high - low + 2, UNKNOWN, np.int64)
        table[known - low] = place
        index = table[np.where((whole >= low) & (whole <= high), whole - low, high - low + 1)]
    else:
        order = np.argsort(known)
        at = np.clip(np.searchsorted(known[order], whole), 0, known.size - 1)
        index = np.where(known[order][at] == whole, place[order][at], UNKNOWN)
    if missing is not None and odd is not None:
        index[odd] = UNKNOWN
        index[missing] = NO_CODE
    return index
