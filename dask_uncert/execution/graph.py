"""The dask graph of a pass: a task for each block, and a tree that sums their results.

Only this module of the pass imports dask. Scheduling a task costs about a millisecond, so a task reads many chunks and
takes hundreds of milliseconds.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import add, getitem
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.execution.checkpoints import GROUPS, Checkpoints
from dask_uncert.execution.chunking import Grid, cut_for_tasks, cut_in_groups
from dask_uncert.formulas.array_dispatch import is_dask
from dask_uncert.inputs.cube import Cube

SPLIT_EVERY = 4  # Summaries that a merge task adds: few are held at a time, and little is left to add at the end
SPLIT_MANY = 16  # of blocks, where there are more than `MANY`: the pass then still has at most 2000 tasks
MANY = 1000
MOST_TASKS = 1600  # of blocks; the scheduler then feeds hundreds of workers, and a pass has at most 2000 tasks in all
MOST_BLOCKS = 256  # of a task, about: minutes of work, which are lost with a worker; more tasks where that needs them
BlockFunction = Callable[[dict[str, NDArray[Any]], tuple[int, ...]], Any]
"""Takes the arrays of a block by input name, each with its own dimensions in its own order, and the block's offset
along the grid's dimensions; returns an object that can be added."""


@dataclass(frozen=True)
class Reduction:
    """The sum of a function's results for the blocks of a grid; `finalize` is called on the sum.

    name: prefix of the names of the blocks' tasks. checkpoints: keep the sums of groups of blocks; groups that they
    hold are read back instead of computed.
    """

    function: BlockFunction
    cubes: Mapping[str, Cube]
    grid: Grid
    name: str = "evaluate-block"
    finalize: Callable[[Any], Any] | None = None
    checkpoints: Checkpoints | None = None

    def delayed(self, split_every: int | None = None) -> Any:
        """Return the sum as a dask Delayed; each task of its tree adds `split_every` parts."""
        ranges = self.ranges()
        width = split_every or (SPLIT_EVERY if len(ranges) <= MANY else SPLIT_MANY)
        parts = self._parts(ranges)
        if self.checkpoints is not None:
            parts = _groups(dict(zip(ranges, parts, strict=True)), self.checkpoints, self.grid.blocks, width)
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
        """Return the sum over the blocks with these numbers, computed one by one in this thread."""
        read_all = dict.fromkeys(self.cubes)
        return reduce(add, (self._compute_block(self.grid.index(number), read_all) for number in blocks))

    def ranges(self) -> list[range]:
        """Return the numbers of the blocks of each task, which reads one after the other.

        Parts of arrays in memory or of dask arrays come with the task, so it has one block. No task is of two groups of
        checkpoints.
        """
        if any(isinstance(cube.data, np.ndarray) or is_dask(cube.data) for cube in self.cubes.values()):
            return [range(number, number + 1) for number in range(self.grid.blocks)]
        groups = [range(self.grid.blocks)] if self.checkpoints is None else cut_in_groups(self.grid.blocks, GROUPS)
        tasks = max(MOST_TASKS - len(groups), 3 * self.grid.blocks // (2 * MOST_BLOCKS))
        parts = [*groups, *cut_for_tasks(self.grid.blocks, tasks)]
        return [range(a, b) for a, b in pairwise(sorted({self.grid.blocks, *(part.start for part in parts)}))]

    def sizes(self) -> dict[tuple[int, ...], int]:
        """Return the number of blocks of each task of several, by the index of its first, as in the task's name."""
        return {self.grid.index(blocks.start): len(blocks) for blocks in self.ranges() if len(blocks) > 1}

    def _parts(self, ranges: Sequence[range]) -> list[Any]:
        """Return a Delayed for each range of blocks. Its task reads stored arrays itself: values are not sent or held.

        The task holds its part of arrays in memory, and depends on its part of dask arrays.
        """
        name = f"{self.name}-{uuid.uuid4().hex}"  # identity is never inferred from the content of inputs
        stored = {n: c for n, c in self.cubes.items() if not (isinstance(c.data, np.ndarray) or is_dask(c.data))}
        task = dask.delayed(replace(self, cubes=stored)._compute_unless_saved, pure=False)
        parts, found = {n: _parts(cube, self.grid) for n, cube in self.cubes.items()}, []
        for place, blocks in enumerate(ranges):
            index = self.grid.index(blocks.start)
            # dask would start them in any order, but the longer ones must come first
            order = {"priority": -place / len(ranges)} if len(ranges) < self.grid.blocks else {}
            with dask.annotate(**order):
                given = [] if len(stored) == len(parts) else [{n: part(index) for n, part in parts.items()}]
                found.append(task(blocks, *given, dask_key_name=(name, *index)))
        return found

    def _compute_unless_saved(self, blocks: range, parts: Mapping[str, Any] | None = None) -> Any:
        """Return the sum over blocks; parts: of inputs in memory and of dask arrays, None for one that is read."""
        parts = dict.fromkeys(self.cubes) if parts is None else parts
        indices = [self.grid.index(number) for number in blocks]
        if self.checkpoints is not None and self.checkpoints.has(self.grid.group(indices[0], GROUPS)):
            return AlreadyDone()
        return reduce(add, (self._compute_block(index, parts) for index in indices))

    def _compute_block(self, index: tuple[int, ...], parts: Mapping[str, Any]) -> Any:
        """Return the function's result for a block; an input whose part is None is read."""
        region = self.grid.region(index)
        read = {n: _region(self.cubes[n], region) if part is None else part for n, part in parts.items()}
        for name, part in read.items():
            if np.ma.is_masked(part):  # an array that says so was split before
                raise InputError(
                    f"{name}: a chunk of the dask array is a masked array, but the dask array itself is none. Make it one, "
                    f"by `x.map_blocks(np.ma.asarray, meta=np.ma.masked_array([], dtype=x.dtype))`."
                )
        return self.function({n: np.asarray(part) for n, part in read.items()}, self.grid.offset(index))


def is_in_threads() -> bool:
    """Return whether dask computes in threads of this process, as it does unless told otherwise."""
    return dask.base.get_scheduler() is None


def _delayed(function: Callable[..., Any], name: str, *args: Any) -> Any:
    return dask.delayed(function, pure=False)(*args, dask_key_name=f"{name}-{uuid.uuid4().hex}")


def _tree(parts: list[Any], width: int) -> Any:
    while True:
        parts = [_delayed(_merge, "merge-summaries", *parts[i : i + width]) for i in range(0, len(parts), width)]
        if len(parts) == 1:
            return parts[0]
        width = min(width, SPLIT_EVERY)


def _groups(parts: Mapping[range, Any], checkpoints: Checkpoints, blocks: int, width: int) -> list[Any]:
    finished = checkpoints.finished()
    return [
        _delayed(checkpoints.load, "read-checkpoint", number)
        if number in finished
        else _delayed(
            _save,
            "keep-checkpoint",
            checkpoints,
            _tree([part for r, part in parts.items() if r.start in group], width),
            number,
        )
        for number, group in enumerate(cut_in_groups(blocks, GROUPS))
    ]


def _save(checkpoints: Checkpoints, total: Any, number: int) -> Any:
    """Save a group's sum and return it; read it back if an earlier run of the task has saved it."""
    return checkpoints.load(number) if isinstance(total, AlreadyDone) else checkpoints.save(total, number)


def _parts(cube: Cube, grid: Grid) -> Callable[[tuple[int, ...]], Any]:
    """Return a function from a block's index to its part of an array in memory or a dask array, or None if stored."""
    if isinstance(cube.data, np.ndarray):
        return lambda index: _region(cube, grid.region(index))
    if not is_dask(cube.data):
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
    """Return `combine` of all blocks' first pieces, of all second ones, ...; `function` returns `parts` pieces a block.

    A piece stays on its worker until the task that combines it needs it.
    """
    reading = Reduction(function, cubes, grid, f"{name}-read")
    blocks = reading._parts([range(number, number + 1) for number in range(grid.blocks)])
    pieces = [[_delayed(getitem, f"{name}-piece", block, i) for block in blocks] for i in range(parts)]
    return list(dask.compute(*(_delayed(combine, name, part) for part in pieces)))


class AlreadyDone:
    """Result of a block whose group is saved: a task that runs again after its worker was lost repeats no work."""


def _merge(*parts: Any) -> Any:
    """Return the sum of the parts; AlreadyDone if one of them is."""
    if any(isinstance(part, AlreadyDone) for part in parts):
        return AlreadyDone()
    first, *rest = parts
    plus_all = getattr(first, "plus_all", None)
    return sum(rest, start=first) if plus_all is None else plus_all(rest)


def count_tasks(delayed: Any) -> int:
    """Return the number of tasks of a Delayed after dask has fused them."""
    (optimised,) = dask.optimize(delayed)
    return len(optimised.__dask_graph__())
