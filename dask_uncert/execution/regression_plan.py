"""A pass over a regression: checked, cut into blocks, then run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.regression import (
    REGRESSION_MAPS,
    STEP,
    Refused,
    RegressionRequest,
    evaluate_regression_block,
    refused_uncertainties,
    say_refused,
)
from dask_uncert.errors import InputError, UnusableBlockError
from dask_uncert.execution import chunking, graph
from dask_uncert.execution.block_reads import reading_memory
from dask_uncert.execution.checkpoints import Checkpoints, blocks_left
from dask_uncert.execution.decode_block import Orders
from dask_uncert.inputs.alignment import together
from dask_uncert.inputs.cube import OUTPUT, OUTPUT2, Cube, check_grids
from dask_uncert.io.maps import MapWriter
from dask_uncert.summaries.regression import RegressionEvaluation

MOST_OUTPUTS = 8


@dataclass(frozen=True)
class RegressionScene:
    """Inputs that align: every cube covers the grid `dims`, in the order of the mean's."""

    cubes: Mapping[str, Cube]
    dims: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the grid."""
        return tuple(self.cubes["mean"].sizes[d] for d in self.dims)

    def order(self, name: str) -> tuple[int, ...]:
        """The transposition that brings an input's dimensions to the grid's order, outputs last."""
        dims = self.cubes[name].dims
        return tuple(dims.index(d) for d in (*self.dims, OUTPUT, OUTPUT2) if d in dims)


def prepare_regression(
    cubes: Mapping[str, Cube],
    maps: Sequence[str] = (),
    *,
    block: Sequence[int] | None = None,
    split_every: int | None = None,
) -> RegressionPlan:
    """Everything that can be checked without reading a pixel, checked; the pass, cut into blocks."""
    unknown = [name for name in maps if name not in REGRESSION_MAPS]
    if unknown or len(set(maps)) != len(maps):
        what = f"unknown map {unknown[0]!r}" if unknown else "a map is named twice"
        raise InputError(f"maps: {what}; known: {', '.join(REGRESSION_MAPS)}.")
    if split_every is not None and split_every < 2:
        raise InputError(f"split_every must be at least 2, found {split_every}.")
    if ("variance" in cubes) == ("covariance" in cubes):
        found = "both" if "variance" in cubes else "neither"
        raise InputError(f"a regression needs either `variance` or `covariance`, found {found}.")
    cubes = together(cubes)
    outputs = _check_outputs(cubes)
    check_grids(cubes, cubes["mean"])
    _check_dtypes(cubes)
    scene = RegressionScene(dict(cubes), tuple(cubes["mean"].grid))
    try:
        grid = chunking.plan_grid(cubes, scene.dims, tuple(block) if block is not None else None)
    except ValueError as error:
        raise InputError(f"{error}.") from None
    return RegressionPlan(RegressionRequest(outputs, tuple(maps)), scene, grid, split_every=split_every)


def _check_outputs(cubes: Mapping[str, Cube]) -> int:
    """The number of outputs, once every input has its own dimensions of as many."""
    mean = cubes["mean"]
    several = (OUTPUT,) if OUTPUT in mean.dims else ()
    outputs = mean.sizes.get(OUTPUT, 1)
    if not 1 <= outputs <= MOST_OUTPUTS:
        raise InputError(
            f"mean: {mean.where} has {outputs} outputs; between 1 and {MOST_OUTPUTS} can be evaluated."
        )
    expected = {"covariance": (OUTPUT, OUTPUT2), "mask": ()}
    for name, cube in cubes.items():
        wanted = expected.get(name, several)
        found = tuple(d for d in cube.dims if d not in cube.grid)
        if sorted(found) != sorted(wanted):
            raise InputError(
                f"{name}: dims {list(cube.dims)} hold {', '.join(found) or 'none'} of the reserved dimensions; "
                f"expected {', '.join(wanted) or 'none'}."
            )
        for d in wanted:
            if cube.sizes[d] != outputs:
                raise InputError(
                    f"{name}: {cube.where} has {d} = {cube.sizes[d]}, but the mean has {outputs} "
                    f"output{'s' if outputs > 1 else ''}."
                )
    return outputs


def _check_dtypes(cubes: Mapping[str, Cube]) -> None:
    for name, cube in cubes.items():
        dtype = np.dtype(cube.data.dtype)
        wanted = "biu" if name == "mask" else "fiu"
        if dtype.kind not in wanted or dtype.itemsize > 8:
            expected = "true and false, or whole numbers (0: left out)" if name == "mask" else "real numbers"
            raise InputError(f"{name}: {cube.where} holds {dtype}; expected {expected}.")


@dataclass(frozen=True)
class RegressionPlan:
    """A pass that is checked and cut, and not run: what would be read, in how many tasks, with how much memory."""

    request: RegressionRequest
    scene: RegressionScene
    grid: chunking.Grid
    writer: MapWriter | None = None
    split_every: int | None = None
    checkpoints: Checkpoints | None = None
    target: int = chunking.TARGET_BYTES

    @property
    def sources(self) -> Mapping[str, Cube]:
        """The inputs of the pass."""
        return self.scene.cubes

    def nbytes(self) -> dict[str, int]:
        """Decoded bytes that will be read, by input."""
        return {name: cube.nbytes for name, cube in self.scene.cubes.items()}

    def tasks(self) -> int:
        """Tasks of the pass."""
        return graph.tasks(self.lazy())

    def block_memory(self) -> int:
        """Bytes that one task needs at most, beside Python's own: its inputs, a batch's numbers and the maps."""
        pixels = int(np.prod(self.grid.block, dtype=np.int64))
        batch = min(STEP, pixels) * 8 * (3 * self.request.outputs**2 + 8 * self.request.outputs + 8)
        return reading_memory(self.sources, self.grid) + batch + 4 * pixels * len(self.request.maps)

    def work(self) -> graph.Work:
        """What is to be done."""
        function = _EvaluateBlock(self.request, self.scene, self.writer)
        return graph.Work(
            function,
            self.scene.cubes,
            self.grid,
            groups=self.checkpoints,
            label=graph.label_of(self.writer is not None),
        )

    def lazy(self) -> Any:
        """The evaluation as a dask Delayed."""
        return self.work().lazy(self.split_every)

    def left(self) -> int:
        """Blocks that are not finished yet."""
        return blocks_left(self.grid.blocks, self.checkpoints)

    def compute(self, by: Callable[[graph.Work], Any] | None = None) -> RegressionEvaluation:
        """Run the pass on the current dask scheduler; InputError where the input turns out unusable.

        by: what runs it instead.
        """
        try:
            evaluation = graph.compute_all([self.lazy()])[0] if by is None else by(self.work())
        except UnusableBlockError as error:
            raise InputError(self._diagnosis(error)) from None
        assert isinstance(evaluation, RegressionEvaluation)
        return evaluation

    def _diagnosis(self, error: UnusableBlockError) -> str:
        """Read the inputs once more, whole, to say how much is wrong; independent of the blocks."""
        function = _InspectBlock(self.request, self.scene)
        lazy = graph.sum_over_blocks(function, self.scene.cubes, self.grid, label="inspect-block")
        (found,) = graph.compute_all([lazy])
        return say_refused(found, error.what, self.scene.dims, self.scene.cubes[error.what].where)


class _EvaluateBlock:
    """What a block task does: evaluate, write its maps, leave the Summary."""

    def __init__(self, request: RegressionRequest, scene: RegressionScene, writer: MapWriter | None) -> None:
        self.request, self.grid, self.writer = request, len(scene.dims), writer
        self.ordered = Orders(scene)

    def __call__(self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]) -> RegressionEvaluation:
        maps, evaluation = evaluate_regression_block(self.request, self.ordered(arrays), self.grid)
        if self.writer is not None and maps:
            self.writer.write(maps, offset)
        return evaluation


class _InspectBlock:
    """What a block task does once a pass was refused."""

    def __init__(self, request: RegressionRequest, scene: RegressionScene) -> None:
        self.request, self.grid, self.ordered = request, len(scene.dims), Orders(scene)

    def __call__(self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]) -> Refused:
        return refused_uncertainties(self.request, self.ordered(arrays), self.grid, offset)
