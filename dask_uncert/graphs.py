"""Blocks to a dask graph, and the tree that sums what they leave; the one place that knows dask.

A task is a block of many store chunks: scheduling costs about a millisecond a task, so a task should be worth
hundreds. Only public dask is used: `blockwise` for the pass, `delayed` for the tree.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

TARGET_BYTES = 64 << 20  # of input a block: 1 Mpixel of 16 float32 classes, about a second of work
MANY_BLOCKS = 16  # a scene is cut into at least so many blocks where its chunks allow: work for all cores
SPLIT_EVERY = 16  # Summaries a merge task adds
BlockFunction = Callable[[dict[str, NDArray[Any]], tuple[int, ...]], Any]


class Groups(Protocol):
    """Keeps what groups of blocks sum to: at most `most` of them, by their number."""

    @property
    def most(self) -> int: ...
    def has(self, group: int) -> bool: ...
    def fetch(self, group: int) -> Any: ...
    def keep(self, summary: Any, group: int) -> Any: ...


class Source(Protocol):
    """One input of a pass: anything with shape, dtype and slicing, the names of its dimensions, its chunks."""

    @property
    def data(self) -> Any: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def chunks(self) -> tuple[int, ...] | None: ...


def sizes_of(source: Source) -> dict[str, int]:
    """Dimension names and their sizes."""
    return dict(zip(source.dims, source.data.shape, strict=True))


def _itemsize(source: Source) -> int:
    return int(np.dtype(source.data.dtype).itemsize)


@dataclass(frozen=True)
class Grid:
    """How a pass is cut: block sizes over the shared dimensions, in their order."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """How many blocks along each dimension."""
        return tuple(math.ceil(n / b) for n, b in zip(self.shape, self.block, strict=True))

    @property
    def blocks(self) -> int:
        """How many blocks in all."""
        return math.prod(self.numbers)


def plan_grid(
    sources: Mapping[str, Source],
    dims: tuple[str, ...],
    block: tuple[int, ...] | None = None,
    target: int = TARGET_BYTES,
    many: int = MANY_BLOCKS,
) -> Grid:
    """Blocks made of whole chunks of every input where that fits `target` bytes, else of the largest input's.

    At least `many` of them where chunks allow. `block` overrides it.
    """
    sizes: dict[str, int] = {}
    for source in sources.values():
        sizes.update(sizes_of(source))
    shape = tuple(sizes[d] for d in dims)
    if block is not None:
        if len(block) != len(dims) or any(b < 1 for b in block):
            raise ValueError(f"block must hold {len(dims)} positive sizes, for {dims}, found {block}")
        return Grid(dims, shape, tuple(min(b, n) for b, n in zip(block, shape, strict=True)))
    cost = sum(
        _itemsize(s) * math.prod(n for d, n in sizes_of(s).items() if d not in dims) for s in sources.values()
    )
    largest = max(sources.values(), key=lambda s: _itemsize(s) * math.prod(s.data.shape))
    unit = [
        min(n, math.lcm(*(_chunk(s, d) for s in sources.values() if d in s.dims)))
        for d, n in zip(dims, shape, strict=True)
    ]
    if math.prod(unit) * cost > target:
        unit = [min(n, _chunk(largest, d)) for d, n in zip(dims, shape, strict=True)]
    size = list(unit)
    pixels = max(1, min(target // max(cost, 1), math.prod(shape) // many))
    while True:
        # Double the shortest side that is not whole yet, as long as the block stays within the target.
        sides = [i for i in range(len(size)) if size[i] < shape[i]]
        grown = None
        for i in sorted(sides, key=lambda i: size[i]):
            longer = min(2 * size[i], math.ceil(shape[i] / unit[i]) * unit[i])
            if math.prod(size) // size[i] * longer <= pixels:
                grown = i, longer
                break
        if grown is None:
            return Grid(dims, shape, tuple(min(b, n) for b, n in zip(size, shape, strict=True)))
        size[grown[0]] = grown[1]


def _chunk(source: Source, dim: str) -> int:
    return int(source.chunks[source.dims.index(dim)]) if source.chunks is not None else 1


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
    summaries = _blocks(function, sources, grid, label)
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


def cut_in_groups(blocks: int, most: int) -> list[range]:
    """Neighbouring blocks, by number, in at most so many groups of about equal size."""
    edges = [round(i * blocks / min(blocks, most)) for i in range(min(blocks, most) + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def _grouped(summaries: list[Any], groups: Groups, width: int) -> list[Any]:
    read, keep = dask.delayed(groups.fetch, pure=False), dask.delayed(groups.keep, pure=False)
    made = []
    for number, part in enumerate(cut_in_groups(len(summaries), groups.most)):
        if groups.has(number):
            made.append(read(number, dask_key_name=f"read-checkpoint-{uuid.uuid4().hex}"))
        else:
            total = _tree([summaries[i] for i in part], width)
            made.append(keep(total, number, dask_key_name=f"keep-checkpoint-{uuid.uuid4().hex}"))
    return made


def sum_here(function: BlockFunction, sources: Mapping[str, Source], grid: Grid) -> Any:
    """The same sum, block by block in this thread, and nothing of dask: for work that is one task itself."""
    total: Any = None
    for number in np.ndindex(*grid.numbers):
        offset = tuple(i * b for i, b in zip(number, grid.block, strict=True))
        region = {d: slice(o, o + b) for d, o, b in zip(grid.dims, offset, grid.block, strict=True)}
        arrays = {
            name: np.asarray(source.data[tuple(region.get(d, slice(None)) for d in source.dims)])
            for name, source in sources.items()
        }
        left = function(arrays, offset)
        total = left if total is None else total + left
    return total


def _blocks(function: BlockFunction, sources: Mapping[str, Source], grid: Grid, label: str) -> list[Any]:
    """One Delayed a block, each a one-element array that holds what the function returned."""
    letters = {d: i for i, d in enumerate(grid.dims)}
    arguments: list[Any] = []
    for name, source in sources.items():
        for d in source.dims:
            letters.setdefault(d, len(letters))
        chunks = tuple(
            grid.block[grid.dims.index(d)] if d in grid.dims else n for d, n in sizes_of(source).items()
        )
        arguments += [_array(name, source, chunks), [letters[d] for d in source.dims]]
    for i, (n, b) in enumerate(zip(grid.shape, grid.block, strict=True)):
        arguments += [da.arange(n, chunks=b, dtype=np.int64), [i]]
    index = list(range(len(grid.dims)))
    left = da.blockwise(
        _Block(function, tuple(sources), len(grid.dims)),
        index,
        *arguments,
        name=f"{label}-{uuid.uuid4().hex}",  # identity is never inferred from the content of inputs
        dtype=object,
        adjust_chunks=dict.fromkeys(index, 1),
        align_arrays=False,
        meta=np.empty((0,) * len(index), dtype=object),
    )
    return list(left.to_delayed().ravel())


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


def _piece(block: NDArray[Any], number: int) -> Any:
    return block.item()[number]


def _merge(blocks: Sequence[Any]) -> Any:
    """The sum of objects, each perhaps the one element of an array."""
    first, *rest = (b.item() if isinstance(b, np.ndarray) else b for b in blocks)
    at_once = getattr(first, "plus_all", None)
    return sum(rest, start=first) if at_once is None else at_once(rest)


def _array(name: str, source: Source, chunks: tuple[int, ...]) -> Any:
    if isinstance(source.data, da.Array):
        return source.data.rechunk(chunks)
    return da.from_array(
        source.data, chunks=chunks, name=f"read-{name}-{uuid.uuid4().hex}", asarray=False, inline_array=True
    )


@dataclass(frozen=True)
class _Block:
    """Calls the function with named arrays; contracted dimensions arrive as nested lists of one array."""

    function: BlockFunction
    names: tuple[str, ...]
    dims: int

    def __call__(self, *blocks: Any) -> NDArray[Any]:
        *arrays, positions = [*blocks[: len(self.names)], blocks[len(self.names) :]]
        offset = tuple(int(p[0]) for p in positions)
        named = {name: np.asarray(_only(block)) for name, block in zip(self.names, arrays, strict=True)}
        found = np.empty((1,) * self.dims, dtype=object)
        found[(0,) * self.dims] = self.function(named, offset)
        return found


def _only(block: Any) -> Any:
    while isinstance(block, list):
        (block,) = block
    return block


def tasks(lazy: Any) -> int:
    """How many tasks the graph has once dask has fused it."""
    (optimised,) = dask.optimize(lazy)
    return len(optimised.__dask_graph__())


def is_dask(data: Any) -> bool:
    """Whether this is a dask array."""
    return isinstance(data, da.Array)


def compute_all(made: Sequence[Any]) -> list[Any]:
    """The values of several Delayed, on the current dask scheduler or cluster."""
    return list(dask.compute(*made))
