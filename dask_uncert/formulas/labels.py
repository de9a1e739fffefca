"""Reference codes as class indices, and thresholds in the storage's own dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas.typing import Floats, Indices

UNLABELLED, UNKNOWN, NO_CODE = -1, -2, -3
"""Instead of a class index: an ignore code, a code of no class (or a share out of range), NaN."""

WIDEST_TABLE = 1 << 16


STEP_ROUNDING = 1e-9
"""A number this close to a whole one, in units of the scale, is that one but for rounding."""


def as_stored(numbers: ArrayLike, dtype: np.dtype[Any], scale: float | None = None) -> Floats:
    """Return thresholds or probabilities rounded to the data's own dtype: a float32 .7 lies on the threshold .7.

    scale: of stored numbers. Integers have no form for what lies between two steps: that stays as it is.

    >>> float(as_stored(0.7, np.dtype("uint8"), 0.01)) == 70 * 0.01
    True
    """
    exact = np.asarray(numbers, np.float64)
    if scale is None:
        return exact.astype(dtype).astype(np.float64) if dtype.kind == "f" else exact
    steps = exact / scale
    if dtype.kind == "f":
        return steps.astype(dtype).astype(np.float64) * scale
    whole = np.rint(steps)
    return np.where(np.abs(steps - whole) <= STEP_ROUNDING, whole * scale, exact)


def stored_threshold(threshold: float, dtype: np.dtype[Any]) -> float:
    """Return one threshold rounded to the data's own dtype."""
    return float(as_stored(threshold, dtype))


def class_indices(
    codes: NDArray[Any], classes: Sequence[int], ignore: Sequence[int], dtype: type[np.integer[Any]] = np.int64
) -> Indices:
    """Return the class index of each reference code, flat (n,), or UNLABELLED, UNKNOWN or NO_CODE.

    classes: the code of each class, in the order of the class axis. Floats must be whole numbers to be known. dtype: of
    the result.
    """
    flat = codes.ravel()
    known = np.array([*classes, *ignore], np.int64)
    indices = np.array([*range(len(classes)), *[UNLABELLED] * len(ignore)], np.int64)
    in_order = [*classes] == [*range(len(classes))] and not {*classes} & {*ignore}
    if in_order and flat.dtype.kind == "u" and flat.size and flat.max() < len(classes):  # they are indices already
        return flat.astype(dtype)
    if flat.dtype.kind in "ui" and flat.dtype.itemsize <= 2:
        span = np.iinfo(flat.dtype)
        stored = (known >= span.min) & (known <= span.max)
        table = np.full(1 << 8 * flat.dtype.itemsize, UNKNOWN, dtype)
        table[known[stored]] = indices[stored]  # a negative code counts from the end
        if flat.dtype.itemsize == table.itemsize == 1:  # a tenth of the time
            return np.asarray(np.frombuffer(bytearray(flat).translate(table.tobytes()), table.dtype))
        return np.take(table, flat)
    missing = unknown = None
    if flat.dtype.kind == "f":
        missing = np.isnan(flat)
        inside = ~missing & (np.abs(flat) < 2.0**62)
        whole = np.where(inside, flat, 0).astype(np.int64)
        unknown = ~missing & (~inside | (whole != flat))
    else:
        whole = flat.astype(np.int64)  # never index arithmetic in the storage's dtype
    low, high = int(known.min()), int(known.max())
    if high - low < WIDEST_TABLE:
        table = np.full(high - low + 2, UNKNOWN, np.int64)
        table[known - low] = indices
        index = table[np.where((whole >= low) & (whole <= high), whole - low, high - low + 1)]
    else:
        order = np.argsort(known)
        nearest = np.clip(np.searchsorted(known[order], whole), 0, known.size - 1)
        index = np.where(known[order][nearest] == whole, indices[order][nearest], UNKNOWN)
    if missing is not None and unknown is not None:
        index[unknown] = UNKNOWN
        index[missing] = NO_CODE
    return index.astype(dtype, copy=False)
