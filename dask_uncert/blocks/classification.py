"""One pure pass over one block: arrays in, (maps, Evaluation) out.

Probabilities are normalised once, the decision is taken once and each measure is computed once; the same
values feed the maps and the counts. Nothing here depends on the block's store or on who computes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.accumulate import Counter
from dask_uncert.blocks.binary import count_plain, is_plain
from dask_uncert.blocks.encoding import BLANK, GAPS, reference_indices, rounding_of, shares_of, three_axes
from dask_uncert.blocks.ensemble import spread_of
from dask_uncert.blocks.kernels.types import MISSING, OFF, Pixels
from dask_uncert.blocks.tiles import TileCounter
from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, UNLABELLED
from dask_uncert.formulas.measures import LARGEST_UNCERTAINTY
from dask_uncert.formulas.typing import Bools, Floats, Indices
from dask_uncert.inputs.scene import Encoding
from dask_uncert.io.maps import MAPS
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.ledger import INPUTS, OF_INPUT, REASONS
from dask_uncert.summaries.weighted_decisions import LARGEST

STEP = 1 << 14  # pixels at a time: their measures are not held for a whole block
LEFT_OUT = -4  # and below: left out for the reason with that number
REFERENCE_GAPS = [number + 1 for number in OF_INPUT["reference"]]


def evaluate_block(
    request: Request,
    arrays: Mapping[str, Any],
    encoding: Encoding,
    kernels: ModuleType,
    offset: Sequence[int] | None = None,
) -> tuple[dict[str, NDArray[Any]], Evaluation]:
    """Return one block's maps and Evaluation.

    arrays: `probabilities` (grid dimensions, with the classes on the encoding's axis; without classes that of the second
    of two), `samples` of them (in a list, or stacked on the first axis), or both: without probabilities the samples' mean
    is the prediction. `reference`: codes or, where the request says so, shares (classes last). Where given, `mask` (true
    counts), `uncertainty`, `weight`, GAPS and BLANK. All over the same grid dimensions in the same order; none is
    written to. kernels: `kernels.compiled` or `kernels.reference`. offset: of the block in the grid, for tiles; by
    default its origin.

    Raises UnusableBlockError for unknown reference codes, and for counted probabilities, samples, shares or
    uncertainties out of range.
    """
    shape = arrays["reference"].shape[: -1 if request.reference == "shares" else None]
    total = request.zero(len(shape))
    excluded = total.ledger.excluded
    shares = shares_of(request, arrays["reference"])
    reference = counted_pixels(request, arrays, excluded, shares)
    if (reference == UNKNOWN).any():
        raise UnusableBlockError("reference", "shares out of range")
    u = arrays["uncertainty"].ravel() if "uncertainty" in arrays else None
    if u is not None and invalid_uncertainties(request, u[reference >= 0]).any():
        raise UnusableBlockError("uncertainty", "predicted uncertainty out of range")
    weights = arrays["weight"].ravel() if "weight" in arrays else None
    if weights is not None and invalid_weights(weights[reference >= 0]).any():
        raise UnusableBlockError("weight", "weight out of range")
    plain = is_plain(request, arrays, encoding)
    if plain:
        selected = count_plain(total, arrays["probabilities"], reference, u, kernels)
    else:
        selected = np.flatnonzero(reference >= 0)
    maps = {
        name: np.full((reference.size, *layer.extra.values()), layer.fill, layer.dtype)
        for name, layer in request.layers.items()
    }
    if maps:  # they show pixels that do not count, too
        selected = np.flatnonzero(~arrays[BLANK]) if BLANK in arrays else np.arange(reference.size)
    classes, spread, scale = len(request.classes), None, None
    if len(arrays.get("samples", ())):
        spread = spread_of(arrays["samples"], classes, encoding, selected, kernels)
    if "probabilities" in arrays:
        precision, scale = encoding.probabilities, encoding.probabilities.scale
        needed = arrays["probabilities"] if selected.size or not plain else arrays["probabilities"][:0]
        stored, dtype = three_axes(needed, encoding.class_axis, scale)
        rounding = rounding_of(dtype, classes, precision)
    else:
        assert spread is not None
        stored, dtype, rounding = spread.mean, spread.mean.dtype, spread.rounding
    share_dtype = None if shares is None else arrays["reference"].dtype.newbyteorder("=")
    tiles = None
    if total.tiles is not None:
        tiles = TileCounter(total, kernels, shape, offset or (0,) * len(shape))
    counter = Counter(request, total, dtype, kernels, share_dtype, tiles, scale)
    batches = (selected[start : start + STEP] for start in range(0, selected.size, STEP))
    for pixels in batches if tiles is None else tiles.batches(selected, STEP):
        measured = kernels.measure(stored, pixels, request.measures, request.maxima, rounding)
        truth = reference[pixels]
        if spread is not None:
            state = spread.state[pixels]
            _leave_out(truth, (truth >= 0) & (state == MISSING), "samples_nan", excluded)
            _leave_out_off(request, truth, state == OFF, "samples", excluded)
            measured = spread.add_to(measured, pixels, request.measures)
        _leave_out(truth, (truth >= 0) & (measured.state == MISSING), "probabilities_nan", excluded)
        _leave_out_off(request, truth, measured.state == OFF, "probabilities", excluded)
        soft = counter.add(
            measured, truth, stored, pixels,
            None if u is None else u[pixels].astype(np.float64), None if shares is None else shares[pixels],
        )  # fmt: skip
        if weights is not None:
            total.weighted[0].add(truth, measured.predicted, weights[pixels].astype(np.float64))
        for name, values in maps.items():
            values[pixels] = soft[name] if name in soft else _map_values(name, measured, truth, request)
    total.ledger.counted[...] = reference.size - excluded.sum()
    if tiles is not None:
        total = replace(total, tiles=tiles.result())
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in maps.items()}, total


def counted_pixels(
    request: Request, arrays: Mapping[str, Any], excluded: Indices | None = None, shares: Floats | None = None
) -> Indices:
    """Return the class indices (n,) of pixels that count, whatever their prediction is; < 0 for others."""
    excluded = np.zeros((len(REASONS), len(request.codes) + 1), np.int64) if excluded is None else excluded
    reference = reference_indices(request, arrays["reference"], shares)
    gaps = arrays[GAPS].ravel() if GAPS in arrays else None
    if gaps is not None:
        reference[np.isin(gaps, REFERENCE_GAPS) & (reference != UNLABELLED)] = NO_CODE
    if request.reference == "codes" and (reference == UNKNOWN).any():
        raise UnusableBlockError("codes", "unknown reference codes")
    if "mask" in arrays:
        _leave_out(reference, arrays["mask"].ravel() == 0, "masked", excluded)
    _leave_out(reference, reference == UNLABELLED, "ignored", excluded)
    present = [] if gaps is None else (np.unique(gaps[gaps > 0]) - 1).tolist()
    for name in INPUTS:
        for number in present:
            if number in OF_INPUT[name]:
                _leave_out(reference, gaps == number + 1, REASONS[number], excluded)
        if name == "reference":
            _leave_out(reference, reference == NO_CODE, "reference_nan", excluded)
        elif name in ("uncertainty", "weight") and name in arrays:
            _leave_out(reference, np.isnan(arrays[name].ravel()), f"{name}_nan", excluded)
    return reference


def _leave_out(reference: Indices, where: Bools, reason: str, excluded: Indices) -> None:
    """Leave out pixels for a reason; a pixel is left out once, for the first reason that applies."""
    fresh = where & (reference > LEFT_OUT)
    if not fresh.any():
        return
    number, last = REASONS.index(reason), excluded.shape[1] - 1
    known = reference[fresh]
    excluded[number] += np.bincount(np.where(known >= 0, known, last), minlength=last + 1)
    reference[fresh] = LEFT_OUT - number


def _leave_out_off(request: Request, truth: Indices, off: Bools, name: str, excluded: Indices) -> None:
    """Leave out counted pixels whose vectors are off the simplex, or refuse them, as the request says."""
    where = (truth >= 0) & off
    if where.any() and not request.leave_out_off:
        raise UnusableBlockError(name, f"{name} out of tolerance")
    _leave_out(truth, where, f"{name}_off", excluded)


def _map_values(name: str, measured: Pixels, truth: Indices, request: Request) -> NDArray[Any]:
    usable = (measured.state & 3) == 0
    if name == "correct":
        return np.where(truth >= 0, measured.predicted == truth, MAPS[name][1])
    if name == "predicted":
        return np.where(usable, np.asarray(request.codes)[measured.predicted], MAPS[name][1])
    if name == "confused_classes":
        return np.where(usable, measured.confused, MAPS[name][1])
    return np.asarray(measured.values[[measure.name for measure in request.measures].index(name)])


def invalid_weights(weights: NDArray[Any]) -> Bools:
    """Return where a weight is negative, or larger than can be summed."""
    return np.asarray(~((weights >= 0) & (weights <= LARGEST)))


def largest_uncertainty(request: Request) -> float:
    """Return the largest predicted uncertainty that can be used: limited where it is a measure, else not."""
    counted = any(measure.kind == "uncertainty" for measure in request.measures)
    return LARGEST_UNCERTAINTY if counted else np.inf


def invalid_uncertainties(request: Request, u: NDArray[Any]) -> Bools:
    """Return where a predicted uncertainty is negative or larger than can be used."""
    return np.asarray((u < 0) | (u > largest_uncertainty(request)))
