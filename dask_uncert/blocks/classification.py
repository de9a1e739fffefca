"""One pure pass over one block: arrays in, (maps, Evaluation) out.

Probabilities are normalised once, the decision is taken once and each measure is computed once; the same
values feed the maps and the counts. Nothing here depends on the block's store or on who computes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.accumulate import Counter
from dask_uncert.blocks.binary import count_plain, is_plain
from dask_uncert.blocks.coded import count_by_code, is_coded
from dask_uncert.blocks.decided import decided, decision_indices
from dask_uncert.blocks.encoding import (
    BLANK,
    GAPS,
    ZONE_GAPS,
    as_slice,
    reference_indices,
    rounding_of,
    shares_of,
    three_axes,
)
from dask_uncert.blocks.ensemble import Spread, spread_of
from dask_uncert.blocks.kernels.types import MISSING, OFF, Pixels, Rounding
from dask_uncert.blocks.own_measures import add_own
from dask_uncert.blocks.set_maps import set_maps
from dask_uncert.blocks.tiles import TileCounter
from dask_uncert.blocks.zones import BlockZones, ZoneRows, with_tiles, zones_of
from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, UNLABELLED
from dask_uncert.formulas.measures import LARGEST_UNCERTAINTY
from dask_uncert.formulas.typing import Bools, Floats, Indices
from dask_uncert.inputs.scene import Encoding
from dask_uncert.io.large_pages import zeros
from dask_uncert.io.maps import MAPS
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.ledger import INPUTS, OF_INPUT, REASONS
from dask_uncert.summaries.tiles import Tiles
from dask_uncert.summaries.weighted_decisions import LARGEST

MOST_OF_A_BYTE = 100  # classes whose indices int8 holds, beside the reasons for which pixels are left out
STEP = 1 << 16  # pixels at a time: their measures are not held for a whole block
LEFT_OUT = -4  # and below: left out for the reason with that number
NOTHING = np.empty((0, 0, 0))
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
    is the prediction. Or `prediction`, class codes. `reference`: codes or, where the request says so, shares (classes last). Where given, `mask` (true
    counts), `uncertainty`, `weight`, `zones`, GAPS, ZONE_GAPS and BLANK. All over the same grid dimensions in the same order; none is
    written to. kernels: `kernels.compiled` or `kernels.reference`. offset: of the block in the grid, for tiles; by
    default its origin.

    Raises UnusableBlockError for unknown codes of classes, and for counted probabilities, samples, shares or
    uncertainties out of range.
    """
    if "uncertainty" in arrays and arrays["uncertainty"].dtype == np.float16:  # numpy compares them slowly
        arrays = {**arrays, "uncertainty": arrays["uncertainty"].astype(np.float32)}
    shape = arrays["reference"].shape[: -1 if request.reference == "shares" else None]
    total = _frame(request, len(shape))
    zones = None if request.zones is None else zones_of(request, arrays)
    excluded = np.zeros((1 if zones is None else len(zones.codes) + 1, *total.ledger.excluded.shape), np.int64)
    shares = shares_of(request, arrays["reference"])
    plain = is_plain(request, arrays, encoding)
    narrow = np.int8 if len(request.classes) <= MOST_OF_A_BYTE else np.int16
    reference = counted_pixels(request, arrays, excluded, shares, zones, narrow)
    if (reference == UNKNOWN).any():
        raise UnusableBlockError("reference", "shares out of range")
    u = arrays["uncertainty"].ravel() if "uncertainty" in arrays else None
    if u is not None and (invalid_uncertainties(request, u) & (reference >= 0)).any():
        raise UnusableBlockError("uncertainty", "predicted uncertainty out of range")
    weights = arrays["weight"].ravel() if "weight" in arrays else None
    if weights is not None and invalid_weights(weights[reference >= 0]).any():
        raise UnusableBlockError("weight", "weight out of range")
    decisions = None if "prediction" not in arrays else decision_indices(request, arrays["prediction"], narrow)
    if decisions is not None and ((decisions < 0) & (reference >= 0)).any():
        raise UnusableBlockError("prediction", "unknown predicted codes")
    block = _Block(request, arrays, encoding, kernels, reference, shares, decisions, offset or (0,) * len(shape), plain)
    if zones is None:
        counts = zeros((sum(array.size for _, _, array in total.arrays()),), np.int64)
        total = total.in_buffer(counts)
        coded = is_coded(request, arrays, encoding)
        if not (coded and count_by_code(request, counts, arrays, reference, encoding, kernels, evaluate_block)):
            total = block.count(total, excluded[0], None)
        _close(total, excluded[0], reference.size)
    else:
        total = _count_zones(block, total, excluded, zones)
    return {name: values.reshape(*shape, *values.shape[1:]) for name, values in block.maps.items()}, total


@lru_cache(maxsize=4)  # every block of a pass asks for the same
def _frame(request: Request, dimensions: int) -> Evaluation:
    """Return the Evaluation of no pixels, for others of its frame: its arrays cannot be written."""
    zero = request.zero(dimensions)
    for _, _, array in zero.arrays():
        array.flags.writeable = False
    return zero


def _count_zones(block: _Block, total: Evaluation, excluded: Indices, zones: BlockZones) -> Evaluation:
    """Count the pixels of a block zone by zone into an Evaluation, which is their sum."""
    assert total.zones is not None
    alone, rows, tiles = total.alone(), ZoneRows(block.kernels, total.zones.width), dict[int, Tiles]()
    for number, size, pixels in zones.parts(block.selected, block.kernels):
        part = replace(alone.in_buffer(rows.dense), tiles=total.tiles)
        part = block.count(part, excluded[number], pixels)
        _close(part, excluded[number], size)
        code = zones.codes[number] if number < len(zones.codes) else None
        rows.add(code)
        if code is not None and part.tiles is not None:
            tiles[code] = part.tiles
    total = replace(alone.in_buffer(rows.sums), tiles=total.tiles, zones=rows.result(total.zones))
    return total if total.tiles is None else with_tiles(total, tiles)


def _close(total: Evaluation, excluded: Indices, pixels: int) -> None:
    """Put pixels left out, (reasons, classes + 1), and the others of so many into the ledger."""
    total.ledger.excluded[...] = excluded
    total.ledger.counted[...] = pixels - excluded.sum()


class _Block:
    """One block, whose pixels are counted in one or several parts.

    selected: (n,) pixels to look at: those that count, and for maps all that have a prediction; `number` of them.
    """

    def __init__(
        self,
        request: Request,
        arrays: Mapping[str, Any],
        encoding: Encoding,
        kernels: ModuleType,
        reference: Indices,
        shares: Floats | None,
        decisions: Indices | None,
        offset: Sequence[int],
        plain: bool,
    ) -> None:
        self.request, self.arrays, self.encoding, self.kernels = request, arrays, encoding, kernels
        self.reference, self.shares, self.decisions, self.offset = reference, shares, decisions, offset
        self.u, self.weights = (arrays[name].ravel() if name in arrays else None for name in ("uncertainty", "weight"))
        self.plain = plain
        self.selected = reference >= 0
        self.maps = {
            name: np.full((reference.size, *layer.extra.values()), layer.fill, layer.dtype)
            for name, layer in request.layers.items()
        }
        if self.maps and not request.maps_of_counted:  # they show pixels that do not count, too
            self.selected = ~arrays[BLANK].ravel() if BLANK in arrays else np.ones(reference.size, np.bool_)
        self.number = np.count_nonzero(self.selected)

    @cached_property
    def spread(self) -> Spread | None:
        """The samples' mean and measures."""
        if not len(self.arrays.get("samples", ())):
            return None
        pixels = np.flatnonzero(self.selected)
        return spread_of(self.arrays["samples"], len(self.request.classes), self.encoding, pixels, self.kernels)

    @cached_property
    def prediction(self) -> tuple[NDArray[Any], np.dtype[Any], Rounding]:
        """Probabilities (a, classes, b), the dtype they are stored in, and how it rounds; none beside decisions."""
        if self.decisions is not None:
            return NOTHING, NOTHING.dtype, rounding_of(NOTHING.dtype, len(self.request.classes))
        if "probabilities" in self.arrays:
            precision = self.encoding.probabilities
            stored, dtype = three_axes(self.arrays["probabilities"], self.encoding.class_axis, precision.scale)
            return stored, dtype, rounding_of(dtype, len(self.request.classes), precision)
        assert self.spread is not None
        return self.spread.mean, self.spread.mean.dtype, self.spread.rounding

    def count(self, total: Evaluation, excluded: Indices, pixels: Indices | None) -> Evaluation:
        """Add pixels, or None for all that are selected, to an Evaluation and return it with their tiles.

        Those left out go to (reasons, classes + 1).
        """
        if self.plain:
            part = None if pixels is None or pixels.size == self.number else pixels
            p = self.arrays["probabilities"]
            pixels = count_plain(self.request, total, p, self.reference, self.u, self.kernels, part)
        elif pixels is None:
            pixels = np.flatnonzero(self.selected) if self.number < self.selected.size else every_pixel(self.number)
        if not pixels.size:
            return total
        request, kernels, (stored, dtype, rounding) = self.request, self.kernels, self.prediction
        scale = self.encoding.probabilities.scale if "probabilities" in self.arrays else None
        share_dtype = None if self.shares is None else self.arrays["reference"].dtype.newbyteorder("=")
        tiles = None
        if total.tiles is not None:
            shape = self.arrays["reference"].shape[: len(self.offset)]
            tiles = TileCounter(total, kernels, shape, self.offset)
        counter = Counter(request, total, dtype, kernels, share_dtype, tiles, scale)
        batches = (pixels[start : start + STEP] for start in range(0, pixels.size, STEP))
        for batch in batches if tiles is None else tiles.batches(pixels, STEP):
            truth = counter.memory.empty("truth", batch.shape, np.int64)
            here = as_slice(batch) if tiles is None else batch
            truth[...] = self.reference[here]
            if self.spread is not None:
                state = self.spread.state[here]
                _leave_out(truth, (truth >= 0) & (state == MISSING), "samples_nan", excluded)
                _leave_out_off(request, truth, state == OFF, "samples", excluded)
            if self.decisions is None:
                measured = counter.measure(stored, batch, truth, rounding)
                add_own(request, stored, batch, measured)
            else:
                measured = decided(self.decisions[here], len(request.measures))
            if self.spread is not None:
                measured = self.spread.add_to(measured, batch, request.measures)
            if np.bitwise_or.reduce(measured.state) & (MISSING | OFF):
                _leave_out(truth, (truth >= 0) & (measured.state == MISSING), "probabilities_nan", excluded)
                _leave_out_off(request, truth, measured.state == OFF, "probabilities", excluded)
            soft = counter.add(
                measured, truth, stored, batch,
                None if self.u is None else self.u[here].astype(np.float64),
                None if self.shares is None else self.shares[here],
            )  # fmt: skip
            if self.weights is not None:
                total.weighted[0].add(truth, measured.predicted, self.weights[here].astype(np.float64))
            drawn = soft | set_maps(request, stored, batch, measured.state, dtype, scale, kernels)
            for name, values in self.maps.items():
                values[here] = drawn[name] if name in drawn else _map_values(name, measured, truth, request)
        return total if tiles is None else replace(total, tiles=tiles.result())


@lru_cache(maxsize=4)  # most blocks of a scene have the same size
def every_pixel(number: int) -> Indices:
    """Return the numbers of all pixels of a block, (number,)."""
    return np.arange(number)


def counted_pixels(
    request: Request,
    arrays: Mapping[str, Any],
    excluded: Indices | None = None,
    shares: Floats | None = None,
    zones: BlockZones | None = None,
    dtype: type[np.integer[Any]] = np.int64,
) -> Indices:
    """Return the class indices (n,) of pixels that count, whatever their prediction is; < 0 for others.

    excluded: (zones and none, reasons, classes + 1) to which others are added. dtype: of the result.
    """
    excluded = np.zeros((1, len(REASONS), len(request.codes) + 1), np.int64) if excluded is None else excluded
    reference = reference_indices(request, arrays["reference"], shares, dtype)
    gaps = arrays[GAPS].ravel() if GAPS in arrays else None
    if gaps is not None:
        reference[np.isin(gaps, REFERENCE_GAPS) & (reference != UNLABELLED)] = NO_CODE
    if request.reference == "codes" and (reference == UNKNOWN).any():
        raise UnusableBlockError("codes", "unknown reference codes")
    zone = None
    if zones is not None:
        zone, none = zones.of, zones.of == len(zones.codes)
        if ZONE_GAPS in arrays:
            faults = arrays[ZONE_GAPS].ravel()
            for number in np.unique(faults[faults > 0]).tolist():
                _leave_out(reference, faults == number, REASONS[number - 1], excluded, zone)
        _leave_out(reference, none, "zones_nan", excluded, zone)
    if "mask" in arrays:
        _leave_out(reference, arrays["mask"].ravel() == 0, "masked", excluded, zone)
    _leave_out(reference, reference == UNLABELLED, "ignored", excluded, zone)
    present = [] if gaps is None else (np.unique(gaps[gaps > 0]) - 1).tolist()
    for name in INPUTS:
        for number in present:
            if number in OF_INPUT[name]:
                _leave_out(reference, gaps == number + 1, REASONS[number], excluded, zone)
        if name == "reference":
            _leave_out(reference, reference == NO_CODE, "reference_nan", excluded, zone)
        elif name in ("uncertainty", "weight", "prediction") and name in arrays:
            _leave_out(reference, np.isnan(arrays[name].ravel()), f"{name}_nan", excluded, zone)
    return reference


def _leave_out(reference: Indices, where: Bools, reason: str, excluded: Indices, zone: Indices | None = None) -> None:
    """Leave out pixels for a reason; a pixel is left out once, for the first reason that applies.

    excluded: (reasons, classes + 1), which may have a leading dimension of zones; zone: of each pixel.
    """
    if not where.any():
        return
    fresh = where & (reference > LEFT_OUT)
    number, width = REASONS.index(reason), excluded.shape[-1]
    known = reference[fresh]
    cell = np.where(known >= 0, known, width - 1)
    if zone is not None:
        cell = cell + zone[fresh] * width
    rows = excluded[..., number, :]
    rows += np.bincount(cell, minlength=rows.size).reshape(rows.shape)
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
    largest = largest_uncertainty(request)
    negative: Bools = u < 0
    return negative if largest == np.inf else negative | (u > largest)
