"""From stored numbers to what the kernels take: floats with the classes in the middle, class indices, shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.types import Rounding
from dask_uncert.formulas.array_dispatch import tolerance as dtype_tolerance
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, as_stored, class_indices
from dask_uncert.formulas.typing import Bools, Floats, Indices
from dask_uncert.inputs.cube import AS_THE_DTYPE, Precision
from dask_uncert.spec.request import Request

GAPS = "gaps"
"""In a block's arrays: over the grid, uint8, 0 or one more than the index of a reason in the ledger's `REASONS`."""
ZONE_GAPS = "zone_gaps"
"""The same for pixels without a zone: they are asked for their zone first."""
BLANK = "blank"
"""In a block's arrays: over the grid, true where the prediction itself is missing, so that maps are undefined."""


def three_axes(
    probabilities: NDArray[Any], class_axis: int | None, scale: float | None
) -> tuple[NDArray[Any], np.dtype[Any]]:
    """Return probabilities as (a, classes, b), float32 or float64, and the dtype they are stored in.

    No copy where the dtype already serves. class_axis None: a binary prediction, the second class's
    probability, becomes both classes', the first one's in the form in which it would be stored beside it. scale:
    factor of numbers passed on as stored, see `Precision`.
    """
    dtype = probabilities.dtype
    if scale is not None:
        probabilities = probabilities.astype(np.float64) * scale
    elif dtype == np.float16:
        probabilities = probabilities.astype(np.float32)
    elif not dtype.isnative:
        probabilities = probabilities.astype(dtype.newbyteorder("="))
    if class_axis is None:
        second = probabilities.reshape(-1)
        first = as_stored(1.0 - second.astype(np.float64), dtype.newbyteorder("="), scale).astype(second.dtype)
        return np.stack([first, second], axis=1)[:, :, np.newaxis], dtype
    shape = probabilities.shape
    before = int(np.prod(shape[:class_axis], dtype=np.int64))
    after = int(np.prod(shape[class_axis + 1 :], dtype=np.int64))
    return probabilities.reshape(before, shape[class_axis], after), dtype


def rounding_of(dtype: np.dtype[Any], classes: int, precision: Precision = AS_THE_DTYPE) -> Rounding:
    """Return how storage rounds vectors of probabilities: by its dtype, scaled numbers by their step."""
    if precision.scale is not None:
        step = 0.5 * precision.scale * classes * (1 + 1e-6)
        return Rounding(step if precision.tolerance is None else precision.tolerance, step, 1.0 / classes)
    native = dtype.newbyteorder("=")
    tolerance = dtype_tolerance(native) if precision.tolerance is None else precision.tolerance
    level = float(np.asarray(1.0 / classes, dtype=native))
    # Storage rounds each probability; adding them up in float64 rounds once a class more.
    exact = float(np.finfo(native).eps) + classes * float(np.finfo(np.float64).eps)
    return Rounding(tolerance, exact, level)


def shares_of(request: Request, reference: NDArray[Any]) -> Floats | None:
    """Return the shares (n, classes) of a fuzzy reference (grid, and classes last where it holds one for each).

    Shares are clipped to [0, 1] where they are off by no more than the tolerance; others stay. None where the reference
    holds codes.
    """
    if request.reference == "codes":
        return None
    allowed = request.share_tolerance
    if request.reference == "share":
        second = _clipped(reference.reshape(-1).astype(np.float64), allowed)
        return np.stack([1.0 - second, second], axis=1)
    return _clipped(reference.reshape(-1, reference.shape[-1]).astype(np.float64), allowed)


def _clipped(shares: Floats, allowed: float) -> Floats:
    near: Bools = (shares >= -allowed) & (shares <= 1 + allowed)
    return np.where(near, np.clip(shares, 0.0, 1.0), shares)


def share_indices(shares: Floats, tolerance: float, complete: bool = False) -> Indices:
    """Return the class with the largest share, flat (n,), ties to the lowest; UNKNOWN where shares are out of range.

    That is one outside [0, 1], or a sum above 1 by more than the tolerance, or with `complete` below 1. NO_CODE where a
    share is NaN or all are 0. Of two classes by the share of the second, it is the second exactly where that share
    exceeds .5.
    """
    index, total = np.asarray(shares.argmax(axis=1), np.int64), shares.sum(axis=1)
    index[(shares == 0).all(axis=1)] = NO_CODE
    index[((shares < 0) | (shares > 1)).any(axis=1) | (total > 1 + tolerance)] = UNKNOWN
    if complete:
        index[total < 1 - tolerance] = UNKNOWN
    index[np.isnan(shares).any(axis=1)] = NO_CODE
    return index


def are_incomplete(shares: Floats, tolerance: float) -> Bools:
    """Return where shares sum to less than 1, (n,): part of the pixel is unlabelled."""
    return np.asarray(shares.sum(axis=1) < 1 - tolerance)


def reference_indices(
    request: Request,
    reference: NDArray[Any],
    shares: Floats | None = None,
    dtype: type[np.integer[Any]] = np.int64,
) -> Indices:
    """Return the class indices (n,) of a reference of any kind; negative where there is none, see `labels`.

    shares: those of `shares_of`, where they are known already. dtype: of the indices of codes.
    """
    if request.reference == "codes":
        return class_indices(reference, request.codes, request.ignore, dtype)
    shares = shares_of(request, reference) if shares is None else shares
    assert shares is not None
    index = share_indices(shares, request.share_tolerance, request.complete)
    if request.raters is not None:
        # Of two classes the first one's share is computed, and rounded differently.
        stored = shares[:, 1:] if request.reference == "share" else shares
        votes = np.rint(stored * request.raters)
        whole = as_stored(votes / request.raters, reference.dtype.newbyteorder("="))
        index[((whole != stored) & ~np.isnan(stored)).any(axis=1)] = UNKNOWN
    return index


def as_slice(pixels: Indices) -> slice | Indices:
    """Return rising numbers of pixels, at least one, as a slice where they follow each other: it needs no copy.

    >>> as_slice(np.array([3, 4, 5]))
    slice(3, 6, None)
    """
    first, last = int(pixels[0]), int(pixels[-1])
    return slice(first, last + 1) if last - first < pixels.size else pixels
