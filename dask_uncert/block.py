"""One pure pass over one block: arrays in, (maps, Evaluation) out.

Probabilities are normalised once, the decision is taken once and each measure is computed once; the same
values feed the maps and the counts. Nothing here knows where the block lies or who computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.counting import Counter, Indices
from dask_uncert.errors import UnusableBlockError
from dask_uncert.kernels.pixels import MISSING, OFF, Pixels
from dask_uncert.request import MAPS, Request
from dask_uncert.stored import NO_CODE, UNKNOWN, UNLABELLED, class_indices, rounding_of, three_axes
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.ledger import REASONS

STEP = 1 << 14  # pixels at a time: their measures stay in a core's second-level cache
LEFT_OUT = -4  # and below: left out for the reason with that number


def evaluate_block(
    request: Request, arrays: Mapping[str, NDArray[Any]], class_axis: int | None, kernels: ModuleType
) -> tuple[dict[str, NDArray[Any]], Evaluation]:
    """One block's maps and Evaluation.

    arrays: `probabilities` (grid dimensions, with the classes on `class_axis`; None for a binary prediction,
    which holds the second class's probability), `reference` codes and, where given, `mask` (true counts) and
    `uncertainty`, each over the same grid dimensions in the same order. Arrays are not written to.
    kernels: `kernels.compiled` or `kernels.reference`.

    Raises UnusableBlockError for unknown reference codes and for counted probabilities out of tolerance.
    """
    total = request.zero()
    excluded = total.ledger.excluded
    stored, dtype = three_axes(arrays["probabilities"], class_axis, request.scale)
    rounding = rounding_of(dtype, len(request.classes), request.scale, request.tolerance)
    reference = counted_pixels(request, arrays, excluded)
    u = arrays["uncertainty"].ravel() if "uncertainty" in arrays else None
    if u is not None and off_range(request, u[reference >= 0]).any():
        raise UnusableBlockError("uncertainty", "predicted uncertainty out of range")
    wanted = np.arange(reference.size) if request.maps else np.flatnonzero(reference >= 0)
    maps = {name: _empty_map(name, reference.size) for name in request.maps}
    counter = Counter(request, total, dtype, kernels)
    for start in range(0, wanted.size, STEP):
        pixels = wanted[start : start + STEP]
        found = kernels.measure(stored, pixels, request.measures, request.maxima, rounding)
        truth = reference[pixels]
        _leave_out(truth, (truth >= 0) & (found.state == MISSING), "no_prediction", excluded)
        if ((truth >= 0) & (found.state == OFF)).any():
            raise UnusableBlockError("probabilities", "probabilities out of tolerance")
        counter.add(found, truth, stored, pixels, None if u is None else u[pixels].astype(np.float64))
        for name, values in maps.items():
            values[pixels] = _map_values(name, found, truth, request)
    total.ledger.counted[...] = reference.size - excluded.sum()
    shape = arrays["reference"].shape
    return {name: values.reshape(shape) for name, values in maps.items()}, total


def counted_pixels(
    request: Request, arrays: Mapping[str, NDArray[Any]], excluded: Indices | None = None
) -> Indices:
    """Class indices (n,) of the pixels that count as far as all inputs but the prediction say, else < 0."""
    excluded = np.zeros(len(REASONS), np.int64) if excluded is None else excluded
    reference = class_indices(arrays["reference"], request.codes, request.ignore)
    if (reference == UNKNOWN).any():
        raise UnusableBlockError("codes", "unknown reference codes")
    if "mask" in arrays:
        _leave_out(reference, arrays["mask"].ravel() == 0, "masked", excluded)
    _leave_out(reference, reference == UNLABELLED, "ignored", excluded)
    _leave_out(reference, reference == NO_CODE, "no_reference", excluded)
    if "uncertainty" in arrays:
        _leave_out(reference, np.isnan(arrays["uncertainty"].ravel()), "no_uncertainty", excluded)
    return reference


def _leave_out(reference: Indices, where: NDArray[np.bool_], reason: str, excluded: Indices) -> None:
    """Leave out pixels for a reason; a pixel is left out once, for the first reason that applies."""
    fresh = where & (reference > LEFT_OUT)
    number = REASONS.index(reason)
    excluded[number] += np.count_nonzero(fresh)
    reference[fresh] = LEFT_OUT - number


def _empty_map(name: str, size: int) -> NDArray[Any]:
    dtype, fill = MAPS.get(name, ("float32", np.nan))
    return np.full(size, fill, dtype)


def _map_values(name: str, found: Pixels, truth: Indices, request: Request) -> NDArray[Any]:
    usable = (found.state & 3) == 0
    if name == "correct":
        return np.where(truth >= 0, found.predicted == truth, MAPS[name][1])
    if name == "predicted":
        return np.where(usable, np.asarray(request.codes)[found.predicted], MAPS[name][1])
    if name == "confused_classes":
        return np.where(usable, found.confused, MAPS[name][1])
    return np.asarray(found.values[[one.name for one in request.measures].index(name)])


def largest_uncertainty(request: Request) -> float:
    """The largest predicted uncertainty that can be used: 1 as a measure of its own, else no limit."""
    return 1.0 if any(one.kind == "uncertainty" for one in request.measures) else np.inf


def off_range(request: Request, u: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a predicted uncertainty is negative or larger than can be used."""
    return np.asarray((u < 0) | (u > largest_uncertainty(request)))
