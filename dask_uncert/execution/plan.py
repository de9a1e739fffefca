"""A pass over a scene: checked, cut into blocks, then run; class distances first where they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.diagnostics import (
    say_codes,
    say_probabilities,
    say_shares,
    say_uncertainties,
    say_weights,
)
from dask_uncert.blocks.encoding import rounding_of
from dask_uncert.blocks.tiles import HELD
from dask_uncert.errors import InputError, LostPixelsError, UnusableBlockError
from dask_uncert.execution import chunking, graph
from dask_uncert.execution.block_reads import reading_memory
from dask_uncert.execution.checkpoints import Checkpoints, blocks_left
from dask_uncert.execution.tasks import EvaluateBlock, GroupDistances, Inspection, Labelled
from dask_uncert.formulas.class_distances import Metric, combine_bands
from dask_uncert.formulas.measure_values import measure_maximum
from dask_uncert.formulas.measures import SAMPLE_KINDS
from dask_uncert.inputs.cube import BAND, CLASS, SAMPLE, Cube, Scene, is_prediction
from dask_uncert.inputs.names import APART, STACKED, VIRTUAL, gap_of
from dask_uncert.io.maps import MapWriter
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation

BAND_GROUPS = 8  # tasks that work out class distances side by side, at most
PIECES = 512  # of blocks that travel to them, about: a piece is a task
FLOATS = 8  # bytes of a float64
DISTANCE_SOURCES = ("features", "reference", *(f"{prefix}reference" for prefix in VIRTUAL))


@dataclass(frozen=True)
class Plan:
    """A pass that is checked and cut, and not run: what would be read, in how many tasks, with how much memory."""

    request: Request
    scene: Scene
    grid: chunking.Grid
    metric: Metric | None = None
    writer: MapWriter | None = None
    split_every: int | None = None
    engine: str = "compiled"
    checkpoints: Checkpoints | None = None
    target: int = chunking.TARGET_BYTES

    @property
    def sources(self) -> dict[str, Cube]:
        """The inputs of the pass; features are read beforehand, for the class distances."""
        return {name: cube for name, cube in self.scene.cubes.items() if name != "features"}

    @property
    def distance_sources(self) -> dict[str, Cube]:
        """The inputs of the class distances; empty where none are asked for."""
        wanted = [name for name in DISTANCE_SOURCES if name in self.scene.cubes]
        return {} if self.metric is None else {name: self.scene.cubes[name] for name in wanted}

    @property
    def distance_grid(self) -> chunking.Grid:
        """How the reading of the features is cut."""
        return chunking.plan_grid(self.distance_sources, self.scene.dims, target=self.target)

    def nbytes(self) -> dict[str, int]:
        """Decoded bytes that will be read, by input; the reference twice where class distances are asked for."""
        read = {name: cube.nbytes for name, cube in self.sources.items() if gap_of(name) is None}
        for name, cube in self.distance_sources.items():
            read[name] = read.get(name, 0) + cube.nbytes
        return read

    def tasks(self) -> int:
        """Tasks of the pass and of the class distances."""
        known = self if self.metric is None else self._with_distances(1.0 - np.eye(len(self.request.classes)))
        number = graph.tasks(known.lazy())
        if self.metric is not None:
            bands = self.scene.cubes["features"].sizes[BAND]
            blocks = self.distance_grid.blocks
            number += blocks + self._band_groups(bands) * (blocks + 1)
        return number

    def _band_groups(self, bands: int) -> int:
        """Into how many tasks the work on bands is cut: fewer where many blocks have pieces for each."""
        return min(bands, max(2, min(BAND_GROUPS, PIECES // self.distance_grid.blocks)))

    def block_memory(self) -> int:
        """Bytes that one task of the pass needs at most, beside Python's own: inputs, their float64 form, the maps.

        Tasks that work out class distances hold all labelled samples of some bands besides, and how many pixels are
        labelled is not known yet.
        """
        pixels = int(np.prod(self.grid.block, dtype=np.int64))
        share = pixels / np.prod(self.scene.shape, dtype=np.float64)
        vectors = pixels * len(self.request.classes)
        predictions = [cube for name, cube in self.sources.items() if is_prediction(name)]
        widened = kept = 0
        if any(cube.dtype not in (np.float32, np.float64) for cube in predictions):
            widened = vectors * FLOATS  # of samples, one at a time
        if any(cube.name != "probabilities" for cube in predictions):
            kept += vectors * (FLOATS + 4) + pixels * (len(SAMPLE_KINDS) + 2) * FLOATS
        if self.request.reference != "codes":
            kept += 2 * vectors * FLOATS
        kept += pixels * 4 * FLOATS
        decoded = [cube for cube in self.sources.values() if cube.dtype != cube.data.dtype]
        kept += int(sum(FLOATS * np.prod(cube.data.shape, dtype=np.float64) for cube in decoded) * share)
        for cube in self.sources.values():
            values = np.prod(cube.data.shape, dtype=np.float64) * share
            kept += int(2 * values) if cube.decoding.missing else 0
            kept += int(2 * FLOATS * values) if cube.logits and CLASS not in cube.dims else 0
        for layer in self.request.layers.values():
            kept += pixels * int(np.dtype(layer.dtype).itemsize * np.prod([*layer.extra.values()], initial=1))
        kept += 2 * sum(one.nbytes for one in self.request.joint)
        if self.request.tiles is not None:
            kept += HELD + pixels * FLOATS * (2 * len(self.request.measures) + 8)
        memory = reading_memory(self.sources, self.grid) + int(widened + kept)
        if self.metric is not None:
            features, grid = self.scene.cubes["features"], self.distance_grid
            gathered = features.nbytes * np.prod(grid.block, dtype=np.float64) / np.prod(self.scene.shape)
            memory = max(memory, reading_memory(self.distance_sources, grid) + int(gathered))
        return memory

    def work(self) -> graph.Work:
        """What is to be done; class distances must be known."""
        assert self.metric is None
        function = EvaluateBlock(self.request, self.scene, self.writer, self.engine)
        finish = Evaluation.sealed if self.request.tiles is not None else None
        label = graph.label_of(self.writer is not None)
        return graph.Work(function, self.sources, self.grid, finish, self.checkpoints, label)

    def lazy(self) -> Any:
        """The Evaluation as a dask Delayed; class distances must be known."""
        return self.work().lazy(self.split_every)

    def left(self) -> int:
        """Blocks that are not finished yet."""
        return blocks_left(self.grid.blocks, self.checkpoints)

    def compute(self, by: Callable[[graph.Work], Any] | None = None) -> Evaluation:
        """Run the pass on the current dask scheduler; InputError where the input turns out unusable.

        by: what runs it instead.
        """
        known = self.known()
        try:
            evaluation = graph.compute_all([known.lazy()])[0] if by is None else by(known.work())
        except UnusableBlockError as error:
            raise InputError(self._diagnosis(error)) from None
        return self._whole(evaluation)

    def _whole(self, evaluation: Any) -> Evaluation:
        """The Evaluation, once every pixel of the grid is in its ledger."""
        assert isinstance(evaluation, Evaluation)
        found, expected = evaluation.ledger.pixels, int(np.prod(self.scene.shape, dtype=np.int64))
        if found != expected:
            raise LostPixelsError(
                f"the grid has {expected} pixels, but {found} are accounted for: this is a fault of dask-uncert or of "
                f"the cluster's software. Please report it; nothing was written."
            )
        return evaluation

    def within_a_task(self) -> Plan:
        """The same plan in as few blocks as memory allows, for `compute_here`."""
        return replace(self, grid=chunking.plan_grid(self.sources, self.scene.dims, many=1))

    def compute_here(self) -> Evaluation:
        """Run the pass in this thread, block by block, without dask; class distances must be known."""
        assert self.metric is None
        function = EvaluateBlock(self.request, self.scene, self.writer, self.engine)
        try:
            evaluation = chunking.sum_here(function, self.sources, self.grid)
        except UnusableBlockError as error:
            raise InputError(self._diagnosis(error, here=True)) from None
        return self._whole(evaluation)

    def known(self) -> Plan:
        """The same plan with the class distances worked out from the features, where they are asked for.

        Raises InputError for unknown reference codes and for classes without a labelled pixel.
        """
        if self.metric is None:
            return self
        try:
            return self._with_distances(self._measured_distances(self.metric))
        except UnusableBlockError as error:
            raise InputError(self._diagnosis(error)) from None

    def _measured_distances(self, metric: Metric) -> NDArray[np.float64]:
        bands = self.scene.cubes["features"].sizes[BAND]
        parts = np.array_split(np.arange(bands), self._band_groups(bands))
        spans = tuple((int(part[0]), int(part[-1]) + 1) for part in parts)
        made = graph.regroup_blocks(
            Labelled(self.request, self.scene, spans),
            self.distance_sources,
            self.distance_grid,
            len(spans),
            GroupDistances(len(self.request.classes), metric),
            "class-distances",
        )
        per_band = graph.compute_all(made)
        missing = [c.name for c, n in zip(self.request.classes, per_band[0][1], strict=True) if n == 0]
        if missing:
            raise InputError(
                f"class_distances: no labelled pixel of {', '.join(missing)} in the scene, so their distance to "
                f"other classes is unknown. Give `class_distances: {{table: ...}}` instead."
            )
        return combine_bands(np.concatenate([values for values, _ in per_band]), metric)

    def _with_distances(self, table: NDArray[np.float64]) -> Plan:
        return replace(self, metric=None, request=with_table(self.request, table, self.metric))

    def _diagnosis(self, error: UnusableBlockError, here: bool = False) -> str:
        """Read the refused input once more, whole, to say how much is wrong; independent of the blocks."""
        first = f"{APART}0" if error.what == STACKED and STACKED not in self.scene.cubes else error.what
        source = self.scene.cubes["reference" if error.what == "codes" else first]
        function = Inspection(error.what, self.request, self.scene)
        # Which codes occur does not depend on the other inputs, but on what is missing of the reference.
        names = [name for name in self.sources if name == "reference" or error.what != "codes"]
        names += [name for name in self.sources if gap_of(name) is not None and name not in names]
        cubes = {name: self.scene.cubes[name] for name in names}
        if here:
            found = chunking.sum_here(function, cubes, self.grid)
        else:
            lazy = graph.sum_over_blocks(function, cubes, self.grid, label="inspect-block")
            (found,) = graph.compute_all([lazy])
        if error.what == "codes":
            return say_codes(found, self.request, source.where)
        if error.what == "uncertainty":
            return say_uncertainties(found, self.request, source.where)
        if error.what == "weight":
            return say_weights(found, source.where)
        dtype = source.dtype
        if error.what == "reference":
            return say_shares(found, dtype, self.request.raters, source.where)
        request = self.request
        scale, tolerance, dims, where = request.scale, request.tolerance, self.scene.dims, source.where
        if error.what == STACKED:
            scale, tolerance, dims = request.sample_scale, request.sample_tolerance, (*dims, SAMPLE)
            members = [cube for name, cube in self.sources.items() if name.startswith(APART)]
            where = f"{where} and {len(members) - 1} more" if len(members) > 1 else where
        rounding = rounding_of(dtype, len(request.classes), scale, tolerance)
        return say_probabilities(found, error.what, dims, dtype, rounding.tolerance, where)


def with_table(request: Request, table: NDArray[np.float64], metric: str | None) -> Request:
    """The Request whose homophily measures know their distances H and the certified maximum of H∘H."""
    rows = tuple(tuple(row) for row in table.tolist())
    measures = tuple(
        replace(one, distances=rows) if one.kind == "homophily" else one for one in request.measures
    )
    maxima = tuple(measure_maximum(one) or 1.0 for one in measures)
    return replace(request, measures=measures, maxima=maxima, class_metric=metric or "table")
