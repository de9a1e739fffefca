"""From stored numbers to what the kernels take: floats with the classes in the middle, class indices, shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.array_dispatch import tolerance as tolerance_of
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, as_stored, class_indices
from dask_uncert.kernels.types import Rounding
from dask_uncert.spec.request import Request


def three_axes(
    probabilities: NDArray[Any], class_axis: int | None, scale: float | None
) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Probabilities as (a, classes, b), float32 or float64, and the dtype they are stored in.

    No copy where the dtype already serves. class_axis None: a binary prediction, the second class's
    probability, becomes both classes'. scale: the declared factor of integer probabilities.
    """
    dtype = probabilities.dtype
    if scale is not None:
        probabilities = probabilities.astype(np.float64) * scale
    elif dtype == np.float16:
        probabilities = probabilities.astype(np.float32)
    elif not dtype.isnative:
        probabilities = probabilities.astype(dtype.newbyteorder("="))
    if class_axis is None:
        second = probabilities.reshape(-1).astype(np.float64)
        return np.stack([1.0 - second, second], axis=1)[:, :, np.newaxis], dtype
    shape = probabilities.shape
    before = int(np.prod(shape[:class_axis], dtype=np.int64))
    after = int(np.prod(shape[class_axis + 1 :], dtype=np.int64))
    return probabilities.reshape(before, shape[class_axis], after), dtype


def rounding_of(
    dtype: np.dtype[Any], classes: int, scale: float | None = None, tolerance: float | None = None
) -> Rounding:
    """What the storage dtype (and, for integers, the declared scale) makes of the simplex."""
    if scale is not None:
        step = 0.5 * scale * classes * (1 + 1e-6)
        return Rounding(step if tolerance is None else tolerance, step, 1.0 / classes)
    native = dtype.newbyteorder("=")
    wide = tolerance_of(native) if tolerance is None else tolerance
    level = float(np.asarray(1.0 / classes, dtype=native))
    # Storage rounds each probability; adding them up in float64 rounds once a class more.
    exact = float(np.finfo(native).eps) + classes * float(np.finfo(np.float64).eps)
    return Rounding(wide, exact, level)


def shares_of(request: Request, reference: NDArray[Any]) -> NDArray[np.float64] | None:
    """Of a fuzzy reference (grid, and classes last where it holds one a class) the shares (n, classes).

    Clipped to [0, 1] where they are off by no more than the storage dtype's tolerance; further off ones stay.
    None where the reference holds codes.
    """
    if request.reference == "codes":
        return None
    allowed = tolerance_of(reference.dtype.newbyteorder("="))
    if request.reference == "share":
        second = _within(reference.reshape(-1).astype(np.float64), allowed)
        return np.stack([1.0 - second, second], axis=1)
    return _within(reference.reshape(-1, reference.shape[-1]).astype(np.float64), allowed)


def _within(shares: NDArray[np.float64], allowed: float) -> NDArray[np.float64]:
    near = (shares >= -allowed) & (shares <= 1 + allowed)
    return np.where(near, np.clip(shares, 0.0, 1.0), shares)


def share_indices(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """The class with the largest share, flat (n,), ties to the lowest; UNKNOWN where a share is out of range.

    NO_CODE where one is NaN, or where all are 0: nothing is there. Of two classes by the share of the second,
    it is the second exactly where that share exceeds .5.
    """
    index = np.asarray(shares.argmax(axis=1), np.int64)
    index[((shares < 0) | (shares > 1)).any(axis=1)] = UNKNOWN
    index[np.isnan(shares).any(axis=1) | (shares == 0).all(axis=1)] = NO_CODE
    return index


def reference_indices(
    request: Request, reference: NDArray[Any], shares: NDArray[np.float64] | None = None
) -> NDArray[np.int64]:
    """Class indices (n,) of a reference of any kind; negative where there is none, see above.

    shares: `shares_of` it, where they are known already.
    """
    if request.reference == "codes":
        return class_indices(reference, request.codes, request.ignore)
    found = shares_of(request, reference) if shares is None else shares
    assert found is not None
    index = share_indices(found)
    if request.raters is not None:
        # Of two classes the first one's share is worked out, and rounds otherwise.
        stored = found[:, 1:] if request.reference == "share" else found
        votes = np.rint(stored * request.raters)
        whole = as_stored(votes / request.raters, reference.dtype.newbyteorder("="))
        index[((whole != stored) & ~np.isnan(stored)).any(axis=1)] = UNKNOWN
    return index
