"""The counts of a block: each batch of pixels is added to its Summaries."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import are_incomplete
from dask_uncert.blocks.kernels.memory import thread_memory
from dask_uncert.blocks.kernels.types import (
    CLIPPED,
    NO_TILES,
    RENORMALISED,
    Finder,
    Pixels,
    Rounding,
    ScoreCounts,
    Stated,
    TileRows,
    ValueBins,
    ValueCounts,
    finder,
)
from dask_uncert.blocks.soft_confusion import OneVsRest
from dask_uncert.blocks.tiles import TileCounter
from dask_uncert.formulas.labels import as_stored
from dask_uncert.formulas.typing import Floats, Indices
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation

MOST_FINDERS = 256  # that are kept


class Counter:
    """Adds pixels to the Summaries of one block; what depends on the job alone is prepared once."""

    def __init__(
        self,
        request: Request,
        total: Evaluation,
        dtype: np.dtype[Any],
        kernels: ModuleType,
        share_dtype: np.dtype[Any] | None = None,
        tiles: TileCounter | None = None,
        scale: float | None = None,
    ) -> None:
        self.request, self.total, self.dtype, self.kernels = request, total, dtype, kernels
        self.share_dtype, self.tiles, self.memory = share_dtype, tiles, thread_memory()
        self.value_bins = [
            ValueBins(
                d.upper,
                cached_finder(d.edges, d.upper, True),
                ValueCounts(d.histogram, d.by_pair, d.by_confused),
                d.wide,
            )
            for d in total.distributions
        ]
        bins = total.calibration
        if bins is None:
            return
        self.probability_finder = cached_finder(bins.edges, 1.0, False, dtype, scale)
        names = [measure.name for measure in request.measures]
        self.joint = [(names.index(d.measure), d, cached_finder(d.edges, d.edges[-1])) for d in total.confidence_joint]
        if self.joint:
            edges = total.confidence_joint[0].confidence_edges
            self.confidence_finder = cached_finder(edges, 1.0, False, dtype, scale)
        self.scores = ScoreCounts(bins.classwise, bins.squared_error, bins.log_loss, bins.infinite.reshape(1))

    def measure(self, stored: NDArray[Any], pixels: Indices, truth: Indices, rounding: Rounding) -> Pixels:
        """Measure pixels as `kernels.measure` does; without tiles, their stated probabilities are counted on the way.

        truth: (n,) class indices, negative where the pixel does not count, whatever its probabilities are.
        """
        calibration, stated = self.total.calibration, None
        if calibration is not None and self.tiles is None:
            stated = Stated(truth, self.probability_finder, calibration.winning, self.scores)
        measures = self.request.measures, self.request.maxima
        measured: Pixels = self.kernels.measure(stored, pixels, *measures, rounding, stated, self.memory)
        return measured

    def add(
        self,
        batch: Pixels,
        truth: Indices,
        stored: NDArray[Any],
        pixels: Indices,
        u: Floats | None,
        shares: Floats | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Count pixels that `measure` has measured; return the values of the soft maps there.

        truth: (n,) class indices, negative where the pixel does not count. shares: (n, classes) of a fuzzy
        reference.
        """
        request, total, kernels = self.request, self.total, self.kernels
        states = np.bitwise_or.reduce(batch.state)
        for number, bit in enumerate((CLIPPED, RENORMALISED)):
            if states & bit:
                total.ledger.repaired[number] += np.count_nonzero((truth >= 0) & (batch.state & bit > 0))
        if shares is not None and request.reference == "shares":
            incomplete = are_incomplete(shares, request.share_tolerance) & (truth >= 0)
            total.ledger.incomplete[...] += np.count_nonzero(incomplete)
        for values, measure in zip(batch.values, request.measures, strict=True):
            if measure.kind == "uncertainty" and u is not None:
                values[:] = u
            elif measure.kind == "confused_classes":
                values[:] = batch.confused
        tiles = self.tiles.open(truth, pixels) if self.tiles is not None else _no_tiles
        decisions, groups = total.decisions, None
        if self.value_bins:
            groups = kernels.group_decisions(truth, batch, len(request.classes), self.memory)
        kernels.count_decisions(groups, truth, batch, decisions.pairs, decisions.by_confused, tiles("confusion"))
        rows = tiles(*(f"{part}/{i}" for i in range(len(self.value_bins)) for part in ("histogram", "sums")))
        if groups is not None:
            kernels.count_values(batch.values, groups, truth, batch, self.value_bins, rows, self.memory)
        if total.calibration is not None:
            if self.tiles is not None:
                by_class = (f"class_in_bins/{c}" for c in range(len(request.classes)))
                rows, finder = tiles("squared_error", "log_loss", "infinite", *by_class), self.probability_finder
                kernels.count_confidence(truth, batch, finder, total.calibration.winning, tiles("winning", fine=True))
                kernels.count_probabilities(stored, pixels, truth, finder, self.scores, rows)
            if self.tiles is not None and self.tiles.sets:
                self._add_sets(self.tiles, truth, stored, pixels)
            for i, joint, bins in self.joint:
                kernels.count_with_confidence(
                    np.ascontiguousarray(batch.values[i]),
                    joint.edges[-1],
                    bins,
                    truth,
                    batch,
                    self.confidence_finder,
                    joint.pixels,
                )
        maps = self._add_soft(batch, truth, stored, pixels, u, shares)
        if self.tiles is not None:
            self.tiles.close()
        return maps

    def _add_sets(self, tiles: TileCounter, truth: Indices, stored: NDArray[Any], pixels: Indices) -> None:
        """Count what prediction sets of a tile need: fine bins of all classes together, and of each true class."""
        classes, finder = len(self.request.classes), self.probability_finder
        scratch = ScoreCounts(*(np.zeros_like(counts) for counts in self.scores))
        self.kernels.count_probabilities(stored, pixels, truth, finder, scratch, tiles.set_rows(classes))
        for c in range(classes):
            selected = truth == c
            p = np.empty(np.count_nonzero(selected))
            self.kernels.class_probabilities(stored, pixels[selected], c, p)
            tiles.add_true(c, selected, np.maximum(np.searchsorted(finder.edges, p) - 1, 0))

    def _add_soft(
        self,
        batch: Pixels,
        truth: Indices,
        stored: NDArray[Any],
        pixels: Indices,
        u: Floats | None,
        shares: Floats | None,
    ) -> dict[str, NDArray[Any]]:
        request, total, kernels = self.request, self.total, self.kernels
        if not (total.soft_confusion or total.joint or request.soft_maps):
            return {}
        classes = OneVsRest(request, self.dtype, kernels, batch, truth, stored, pixels, u, shares, self.share_dtype)
        for number, soft in enumerate(total.soft_confusion):
            tile_sums = None if self.tiles is None else partial(self.tiles.soft_sums, number)
            classes.add_to(soft, tile_sums)
        for joint in total.joint:
            classes.add_jointly(joint)
        return {name: values for soft in request.soft_maps for name, values in classes.maps(soft).items()}


def _no_tiles(*items: str, fine: bool = False) -> TileRows:
    return NO_TILES


_finders: dict[tuple[Any, ...], tuple[tuple[float, ...], Finder]] = {}


def cached_finder(
    edges: tuple[float, ...],
    upper: float,
    octaves: bool = False,
    dtype: np.dtype[Any] | None = None,
    scale: float | None = None,
) -> Finder:
    """Return `finder` of the edges, as the dtype and scale have them where given.

    Every block of a pass has the same edges, known by their identity: to compare thousands takes longer than to search.
    """
    key = id(edges), upper, octaves, dtype, scale
    found = _finders.get(key)
    if found is None or found[0] is not edges:
        stored = edges if dtype is None else tuple(as_stored(edges, dtype, scale).tolist())
        found = edges, finder(stored, upper, octaves)
        if len(_finders) >= MOST_FINDERS:
            _finders.clear()
        _finders[key] = found
    return found[1]
