"""A pass over a classification or a regression: checked, cut into blocks, then run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dask_uncert.errors import InputError, LostPixelsError, UnusableBlockError
from dask_uncert.execution import chunking, tasks
from dask_uncert.execution.checkpoints import Checkpoints
from dask_uncert.execution.class_distances import DistancePlan
from dask_uncert.execution.compile_ahead import compile_ahead
from dask_uncert.execution.graph import Reduction, count_tasks
from dask_uncert.formulas.class_distances import Metric
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.scene import Scene
from dask_uncert.io.maps import MapWriter
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.registry import AnyEvaluation


@dataclass(frozen=True)
class Plan:
    """A pass that is checked and cut into blocks, but not run.

    metric: of class distances that must be measured first. target_bytes: of input in a block.
    """

    request: tasks.AnyRequest
    scene: Scene
    grid: chunking.Grid
    metric: Metric | None = None
    writer: MapWriter | None = None
    split_every: int | None = None
    engine: str = "compiled"
    checkpoints: Checkpoints | None = None
    target_bytes: int = chunking.TARGET_BYTES

    @property
    def sources(self) -> dict[str, Cube]:
        """Inputs of the pass: all but the features, which are read before it for the class distances."""
        return {name: cube for name, cube in self.scene.cubes.items() if cube.kind != "features"}

    @property
    def distances(self) -> DistancePlan | None:
        """Class distances that must be measured first; None if none are needed or they are known."""
        if self.metric is None:
            return None
        assert isinstance(self.request, Request)
        return DistancePlan(self.request, self.scene, self.metric, self.target_bytes)

    def nbytes(self) -> dict[str, int]:
        """Return the decoded bytes that are read of each input; a reference is read twice if distances need it."""
        read = {name: cube.nbytes for name, cube in self.sources.items() if cube.gap is None}
        for name, cube in self.distances.cubes.items() if self.distances else ():
            read[name] = read.get(name, 0) + cube.nbytes
        return read

    def without_checksum(self) -> list[str]:
        """Return the stored inputs whose chunks have no checksum: if they are damaged, that may pass unnoticed."""
        cubes = {**self.scene.cubes, **(self.distances.cubes if self.distances else {})}
        stored = {name: cube.stored for name, cube in cubes.items() if cube.stored is not None}
        return sorted(name for name, array in stored.items() if not array.has_checksum)

    def tasks(self) -> int:
        """Return the number of tasks of the pass and of the class distances."""
        number = count_tasks(self.reduction().delayed(self.split_every))
        return number + (self.distances.tasks() if self.distances else 0)

    def block_memory(self) -> int:
        """Return the most bytes that a task of the pass needs, without Python's own memory."""
        memory = chunking.reading_memory(self.sources, self.grid)
        memory += tasks.working_memory(self.request, self.sources, self.grid)
        return max(memory, self.distances.block_memory()) if self.distances else memory

    def chunk_reads(self) -> int:
        """Return the number of chunks that all blocks read; one that several blocks share counts for each."""
        reads = chunking.chunk_reads(self.sources, self.grid)
        return reads + (chunking.chunk_reads(self.distances.cubes, self.distances.grid) if self.distances else 0)

    def unfinished_blocks(self) -> int:
        """Return the number of blocks that no checkpoint holds."""
        blocks = self.grid.blocks
        return blocks if self.checkpoints is None else self.checkpoints.unfinished_blocks(blocks)

    def delayed(self) -> Any:
        """Return the evaluation as a dask Delayed; class distances must be known."""
        assert self.metric is None
        return self.reduction().delayed(self.split_every)

    def compile_ahead(self) -> None:
        """Let a second process compile half of the kernels, if this machine has compiled none for such a pass."""
        p = self.sources.get("probabilities")
        if self.engine == "compiled" and p is not None and CLASS in p.dims and p.dtype in (np.float16, np.float32):
            compile_ahead()

    def compute(self, run: Callable[[Reduction], Any] | None = None) -> AnyEvaluation:
        """Run the pass on the current dask scheduler; InputError if an input turns out to be unusable.

        run: a function that computes the sum over all blocks in another way.
        """
        plan = self.with_distances()
        with plan._diagnosed():
            reduction = plan.reduction()
            return plan._complete(run(reduction) if run else reduction.compute(self.split_every))

    def compute_here(self) -> AnyEvaluation:
        """Run the pass in this thread, block by block, without dask; class distances must be known."""
        assert self.metric is None
        with self._diagnosed(here=True):
            return self._complete(self.reduction().compute_here())

    def in_one_task(self) -> Plan:
        """Return the plan in as few blocks as memory allows, for `compute_here`."""
        return replace(self, grid=chunking.plan_grid(self.sources, self.scene.dims, min_blocks=1))

    def with_distances(self) -> Plan:
        """Return the plan with its class distances measured, if it needs them.

        Raises InputError for unknown reference codes and for classes without a labelled pixel.
        """
        if self.distances is None:
            return self
        with self._diagnosed():
            return replace(self, metric=None, request=self.distances.compute())

    def reduction(self) -> Reduction:
        tiled = isinstance(self.request, Request) and self.request.tiles is not None
        return Reduction(
            tasks.EvaluateBlock(self.request, self.scene, self.writer, self.engine),
            self.sources,
            self.grid,
            "evaluate-block" if self.writer is None else "evaluate-block-write-map",
            Evaluation.sealed if tiled else None,
            self.checkpoints,
        )

    def _complete(self, evaluation: AnyEvaluation) -> AnyEvaluation:
        """Return the evaluation; LostPixelsError unless every pixel of the grid is in its ledger."""
        pixels, expected = evaluation.ledger.pixels, int(np.prod(self.scene.shape, dtype=np.int64))
        if pixels != expected:
            raise LostPixelsError(
                f"the grid has {expected} pixels, but {pixels} are accounted for. This is a fault of dask-uncert or of "
                f"the cluster's software. Please report it; nothing was written."
            )
        return evaluation

    @contextmanager
    def _diagnosed(self, here: bool = False) -> Iterator[None]:
        """Turn an UnusableBlockError into an InputError that says how much of the input is wrong."""
        try:
            yield
        except UnusableBlockError as error:
            problem = error.problem
        else:
            return
        # Unknown codes depend only on the reference or the zones, and on where they are missing.
        kind = {"codes": "reference"}.get(problem, problem)
        cubes = {
            name: cube
            for name, cube in self.sources.items()
            if problem not in ("codes", "zones") or name == kind or cube.gap is not None
        }
        inspect = tasks.InspectBlock(problem, self.request, self.scene)
        inspection = Reduction(inspect, cubes, self.grid, "inspect-block")
        findings = inspection.compute_here() if here else inspection.compute()
        raise InputError(tasks.problem_message(problem, findings, self.request, self.scene))
