"""Blocks to a dask graph, and the tree that sums their results; the only module of the pass that imports dask.

A task is a block of many store chunks: scheduling costs about a millisecond a task, so a task should be worth
hundreds. Only public dask is used: `delayed`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from dask_uncert.execution.checkpoints import GROUPS, Checkpoints
from dask_uncert.execution.chunking import Grid, cut_in_groups
from dask_uncert.inputs.cube import Cube

SPLIT_EVERY = 16  # Summaries that a merge task adds
BlockFunction = Callable[[dict[str, NDArray[Any]], tuple[int, ...]], Any]
"""Takes the arrays of one block by input name, each with its own dimensions in its own order, and the block's offset
along the grid's dimensions; returns an object that adds."""


@dataclass(frozen=True)
class Reduction:
    """The sum of what a function returns for each block of a grid; `finalize` is called on the sum.

    name: start of the names of the blocks' tasks. checkpoints: keep the sums of groups of blocks; groups that are
    there are read back instead of computed.
    """

    function: BlockFunction
    cubes: Mapping[str, Cube]
    grid: Grid
    name: str = "evaluate-block"
    finalize: Callable[[Any], Any] | None = None
    checkpoints: Checkpoints | None = None

    def delayed(self, split_every: int | None = None) -> Any:
        """Return the sum as a dask Delayed, of a tree whose tasks add `split_every` parts each."""
        parts, width = self._blocks(), split_every or SPLIT_EVERY
        if self.checkpoints is not None:
            parts = _groups(parts, self.checkpoints, width)
        total = _tree(parts, width)
        return total if self.finalize is None else _delayed(self.finalize, "finish-summary", total)

    def compute(self, split_every: int | None = None) -> Any:
        """Return the sum, computed on the current dask scheduler or cluster."""
        return self.delayed(split_every).compute()

    def compute_here(self) -> Any:
        """Return the sum, computed block by block in this thread."""
        total = self.sum_blocks(range(self.grid.blocks))
        return total if self.finalize is None else self.finalize(total)

    def sum_blocks(self, blocks: Iterable[int]) -> Any:
        """Return the sum over blocks given by number, computed one by one in this thread."""
        read_all = dict.fromkeys(self.cubes)
        return reduce(add, (self._compute_block(self.grid.index(number), read_all) for number in blocks))

    def _blocks(self) -> list[Any]:
        """Return one Delayed a block. Its task slices stored arrays itself, so that nothing read travels or waits.

        Of arrays in memory it holds its own part, of dask arrays it gets it.
        """
        name = f"{self.name}-{uuid.uuid4().hex}"  # identity is never inferred from the content of inputs
        stored = {n: c for n, c in self.cubes.items() if not isinstance(c.data, (np.ndarray, da.Array))}
        task = dask.delayed(replace(self, cubes=stored)._compute_unless_saved, pure=False)
        parts = {n: _parts(cube, self.grid) for n, cube in self.cubes.items()}
        return [
            task(index, {n: part(index) for n, part in parts.items()}, dask_key_name=(name, *index))
            for index in np.ndindex(*self.grid.numblocks)
        ]

    def _compute_unless_saved(self, index: tuple[int, ...], parts: Mapping[str, Any]) -> Any:
        saved = self.checkpoints is not None and self.checkpoints.has(self.grid.group(index, GROUPS))
        return AlreadyDone() if saved else self._compute_block(index, parts)

    def _compute_block(self, index: tuple[int, ...], parts: Mapping[str, Any]) -> Any:
        """Return the function's result for a block; an input whose part is None is read."""
        region = self.grid.region(index)
        read = {n: _region(self.cubes[n], region) if part is None else part for n, part in parts.items()}
        return self.function({n: np.asarray(part) for n, part in read.items()}, self.grid.offset(index))


def _delayed(function: Callable[..., Any], name: str, *args: Any) -> Any:
    return dask.delayed(function, pure=False)(*args, dask_key_name=f"{name}-{uuid.uuid4().hex}")


def _tree(parts: list[Any], width: int) -> Any:
    while True:
        parts = [
            _delayed(_merge, "merge-summaries", parts[i : i + width]) for i in range(0, len(parts), width)
        ]
        if len(parts) == 1:
            return parts[0]


def _groups(parts: list[Any], checkpoints: Checkpoints, width: int) -> list[Any]:
    finished = checkpoints.finished()
    return [
        _delayed(checkpoints.load, "read-checkpoint", number)
        if number in finished
        else _delayed(_save, "keep-checkpoint", checkpoints, _tree([parts[i] for i in group], width), number)
        for number, group in enumerate(cut_in_groups(len(parts), GROUPS))
    ]


def _save(checkpoints: Checkpoints, total: Any, number: int) -> Any:
    """Save a group's sum and return it; read it back where another run of the task has saved it."""
    return checkpoints.load(number) if isinstance(total, AlreadyDone) else checkpoints.save(total, number)


def _parts(cube: Cube, grid: Grid) -> Callable[[tuple[int, ...]], Any]:
    """Return a function from a block's index to its part of an array in memory or a dask array; None of what is stored."""
    if isinstance(cube.data, np.ndarray):
        return lambda index: _region(cube, grid.region(index))
    if not isinstance(cube.data, da.Array):
        return lambda index: None
    sides = dict(zip(grid.dims, grid.block, strict=True))
    chunks = cube.data.rechunk(tuple(sides.get(d, n) for d, n in cube.sizes.items())).to_delayed()
    axes = [grid.dims.index(d) if d in grid.dims else None for d in cube.dims]
    return lambda index: chunks[tuple(0 if axis is None else index[axis] for axis in axes)]


def _region(cube: Cube, region: Mapping[str, slice]) -> Any:
    return cube.data[tuple(region.get(d, slice(None)) for d in cube.dims)]


def shuffle_blocks(
    function: BlockFunction,
    cubes: Mapping[str, Cube],
    grid: Grid,
    parts: int,
    combine: Callable[[Sequence[Any]], Any],
    name: str,
) -> list[Any]:
    """Return what `combine` makes of all blocks' first pieces, of all second, ...; `function` returns `parts` a block.

    The pieces stay where they were made and meet only in the task that combines them.
    """
    blocks = Reduction(function, cubes, grid, f"{name}-read")._blocks()
    combined = []
    for i in range(parts):
        pieces = [_delayed(_piece, f"{name}-piece", block, i) for block in blocks]
        combined.append(_delayed(combine, name, pieces))
    return list(dask.compute(*combined))


def _piece(pieces: Sequence[Any], number: int) -> Any:
    return pieces[number]


class AlreadyDone:
    """Result of a block whose group is saved already: a task run again, for its worker was lost, repeats no work."""


def _merge(parts: Sequence[Any]) -> Any:
    """Return the sum of objects; AlreadyDone where one of them is."""
    if any(isinstance(part, AlreadyDone) for part in parts):
        return AlreadyDone()
    first, *rest = parts
    plus_all = getattr(first, "plus_all", None)
    return sum(rest, start=first) if plus_all is None else plus_all(rest)


def count_tasks(delayed: Any) -> int:
    """Return how many tasks the graph of a Delayed has once dask has fused it."""
    (optimised,) = dask.optimize(delayed)
    return len(optimised.__dask_graph__())
