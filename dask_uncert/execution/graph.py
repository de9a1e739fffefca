"""Blocks to a dask graph, and the tree that sums what they leave; the one place that knows dask.

A task is a block of many store chunks: scheduling costs about a millisecond a task, so a task should be worth
hundreds. Only public dask is used: `delayed`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import dask
import dask.array as da
import numpy as np

from dask_uncert.execution.chunking import BlockFunction, Grid, Source, cut_in_groups, part_of, sizes_of

SPLIT_EVERY = 16  # Summaries a merge task adds


class Groups(Protocol):
    """Keeps what groups of blocks sum to: at most `most` of them, by their number."""

    @property
    def most(self) -> int: ...
    def has(self, group: int) -> bool: ...
    def finished(self) -> frozenset[int]: ...
    def fetch(self, group: int) -> Any: ...
    def keep(self, summary: Any, group: int) -> Any: ...


@dataclass(frozen=True)
class Work:
    """What a pass is, however it is run: a function of blocks to sum, what is done with the sum, and what is kept."""

    function: BlockFunction
    sources: Mapping[str, Source]
    grid: Grid
    finish: Callable[[Any], Any] | None = None
    groups: Groups | None = None
    label: str = "evaluate-block"

    def lazy(self, split_every: int | None = None) -> Any:
        """The sum as a dask Delayed."""
        given = (self.function, self.sources, self.grid, self.label, split_every)
        return sum_over_blocks(*given, self.finish, self.groups)


def label_of(writes_maps: bool) -> str:
    """How the tasks of a pass are named, for people who watch them: a block's task writes its part of the maps itself."""
    return "evaluate-block-write-map" if writes_maps else "evaluate-block"


def sum_over_blocks(
    function: BlockFunction,
    sources: Mapping[str, Source],
    grid: Grid,
    label: str = "evaluate-block",
    split_every: int | None = None,
    finish: Callable[[Any], Any] | None = None,
    groups: Groups | None = None,
) -> Any:
    """The sum of `function` over all blocks, as a dask Delayed; `finish` is called on it, where given.

    groups: keeps what groups of blocks sum to, and has those that are finished already, which are not computed.

    function(arrays, offset): arrays of one block by input name, each with its own dimensions in its own
    order; offset: where the block starts, along `grid.dims`. It returns an object that adds.
    """
    summaries = _blocks(function, sources, grid, label, groups)
    width = split_every or SPLIT_EVERY
    if width < 2:
        raise ValueError(f"split_every must be at least 2, found {width}")
    if groups is not None:
        summaries = _grouped(summaries, groups, width)
    total = _tree(summaries, width)
    if finish is None:
        return total
    return dask.delayed(finish, pure=False)(total, dask_key_name=f"finish-summary-{uuid.uuid4().hex}")


def _tree(summaries: list[Any], width: int) -> Any:
    merge = dask.delayed(_merge, pure=False)
    while True:
        parts = [summaries[i : i + width] for i in range(0, len(summaries), width)]
        summaries = [merge(part, dask_key_name=f"merge-summaries-{uuid.uuid4().hex}") for part in parts]
        if len(summaries) == 1:
            return summaries[0]


def _grouped(summaries: list[Any], groups: Groups, width: int) -> list[Any]:
    read, keep = dask.delayed(groups.fetch, pure=False), dask.delayed(_keep, pure=False)
    made = []
    finished = groups.finished()
    for number, part in enumerate(cut_in_groups(len(summaries), groups.most)):
        if number in finished:
            made.append(read(number, dask_key_name=f"read-checkpoint-{uuid.uuid4().hex}"))
        else:
            total = _tree([summaries[i] for i in part], width)
            made.append(keep(groups, total, number, dask_key_name=f"keep-checkpoint-{uuid.uuid4().hex}"))
    return made


def _keep(groups: Groups, total: Any, number: int) -> Any:
    """A group's sum, kept now or found."""
    return groups.fetch(number) if isinstance(total, AlreadyDone) else groups.keep(total, number)


def _blocks(
    function: BlockFunction,
    sources: Mapping[str, Source],
    grid: Grid,
    label: str,
    groups: Groups | None = None,
) -> list[Any]:
    """One Delayed a block. Its task slices what is stored itself, so that nothing read travels or waits.

    Of arrays in memory it holds its own part, of dask arrays it gets it.
    """
    name = f"{label}-{uuid.uuid4().hex}"  # identity is never inferred from the content of inputs
    stored = {n: s for n, s in sources.items() if not isinstance(s.data, (np.ndarray, da.Array))}
    block = dask.delayed(_Block(function, tuple(sources), stored, grid, groups), pure=False)
    parts = {n: _parts(s, grid) for n, s in sources.items() if n not in stored}
    return [
        block(at, {n: part(at) for n, part in parts.items()}, dask_key_name=(name, *at))
        for at in np.ndindex(*grid.numbers)
    ]


def _parts(source: Source, grid: Grid) -> Callable[[tuple[int, ...]], Any]:
    """What a block holds of an array in memory, or gets of a dask array."""
    if isinstance(source.data, np.ndarray):
        return lambda at: part_of(source, grid.region(at))
    whole = sizes_of(source)
    chunks = tuple(grid.block[grid.dims.index(d)] if d in grid.dims else n for d, n in whole.items())
    made = source.data.rechunk(chunks).to_delayed()
    axes = [grid.dims.index(d) if d in grid.dims else None for d in whole]
    return lambda at: made[tuple(0 if axis is None else at[axis] for axis in axes)]


def regroup_blocks(
    function: BlockFunction,
    sources: Mapping[str, Source],
    grid: Grid,
    parts: int,
    combine: Callable[[Sequence[Any]], Any],
    label: str,
) -> list[Any]:
    """`function` returns `parts` pieces a block; `combine` gets all blocks' first pieces, all second, ...

    The pieces stay where they were made and meet only in the task that combines them. One Delayed a part.
    """
    blocks = _blocks(function, sources, grid, f"{label}-read")
    pick, join = dask.delayed(_piece, pure=False), dask.delayed(combine, pure=False)
    made = []
    for i in range(parts):
        pieces = [pick(block, i, dask_key_name=f"{label}-piece-{uuid.uuid4().hex}") for block in blocks]
        made.append(join(pieces, dask_key_name=f"{label}-{uuid.uuid4().hex}"))
    return made


def _piece(pieces: Sequence[Any], number: int) -> Any:
    return pieces[number]


def _merge(parts: Sequence[Any]) -> Any:
    """The sum of objects; Kept where the group of one is finished already."""
    if any(isinstance(part, AlreadyDone) for part in parts):
        return AlreadyDone()
    first, *rest = parts
    at_once = getattr(first, "plus_all", None)
    return sum(rest, start=first) if at_once is None else at_once(rest)


class AlreadyDone:
    """What a block's task leaves once its group is kept: a worker that is lost takes along results, not the work."""


@dataclass(frozen=True)
class _Block:
    """What a block's task does, by where its block lies: read, and call the function with arrays by name."""

    function: BlockFunction
    names: tuple[str, ...]
    stored: Mapping[str, Source]
    grid: Grid
    groups: Groups | None

    def __call__(self, at: tuple[int, ...], given: Mapping[str, Any]) -> Any:
        if self.groups is not None and self.groups.has(self.grid.group(at, self.groups.most)):
            return AlreadyDone()
        region = self.grid.region(at)
        found = {name: part_of(source, region) for name, source in self.stored.items()} | dict(given)
        arrays = {name: np.asarray(found[name]) for name in self.names}
        return self.function(arrays, self.grid.offset(at))


def tasks(lazy: Any) -> int:
    """How many tasks the graph has once dask has fused it."""
    (optimised,) = dask.optimize(lazy)
    return len(optimised.__dask_graph__())


def compute_all(made: Sequence[Any]) -> list[Any]:
    """The values of several Delayed, on the current dask scheduler or cluster."""
    return list(dask.compute(*made))
