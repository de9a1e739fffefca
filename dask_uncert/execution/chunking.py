"""How a pass is cut: blocks of whole chunks over the grid that its inputs share, and groups of neighbouring blocks."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

TARGET_BYTES = 64 << 20  # of input a block: 1 Mpixel of 16 float32 classes, about a second of work
MANY_BLOCKS = 16  # a scene is cut into at least so many blocks where its chunks allow: work for all cores
BlockFunction = Callable[[dict[str, NDArray[Any]], tuple[int, ...]], Any]


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

    def at(self, block: int) -> tuple[int, ...]:
        """Where a block lies among the others along each dimension, by its number in C order."""
        return tuple(int(i) for i in np.unravel_index(block, self.numbers))

    def number(self, at: Sequence[int]) -> int:
        """The number of the block that lies there."""
        return int(np.ravel_multi_index(tuple(at), self.numbers))

    def group(self, at: Sequence[int], most: int) -> int:
        """The number of its group, of at most so many."""
        edges = [part.stop for part in cut_in_groups(self.blocks, most)]
        return bisect_right(edges, self.number(at))

    def offset(self, at: Sequence[int]) -> tuple[int, ...]:
        """Where it starts, along `dims`."""
        return tuple(i * b for i, b in zip(at, self.block, strict=True))

    def region(self, at: Sequence[int]) -> dict[str, slice]:
        """What it covers, by dimension."""
        cut = zip(self.dims, self.offset(at), self.block, self.shape, strict=True)
        return {d: slice(o, min(o + b, n)) for d, o, b, n in cut}

    def words(self, at: Sequence[int]) -> str:
        """The same as people read it, such as `y 200:300, x 0:100`."""
        return ", ".join(f"{d} {part.start}:{part.stop}" for d, part in self.region(at).items())


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


def cut_in_groups(blocks: int, most: int) -> list[range]:
    """Neighbouring blocks, by number, in at most so many groups of about equal size."""
    edges = [round(i * blocks / min(blocks, most)) for i in range(min(blocks, most) + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def part_of(source: Source, region: Mapping[str, slice]) -> Any:
    """What an input has in a region of the grid."""
    return source.data[tuple(region.get(d, slice(None)) for d in source.dims)]


def sum_here(
    function: BlockFunction, sources: Mapping[str, Source], grid: Grid, blocks: Iterable[int] | None = None
) -> Any:
    """The sum of `function` over all blocks, or those given, one by one in this thread: for work that is one task."""
    total: Any = None
    for block in range(grid.blocks) if blocks is None else blocks:
        at = grid.at(block)
        region = grid.region(at)
        arrays = {name: np.asarray(part_of(source, region)) for name, source in sources.items()}
        left = function(arrays, grid.offset(at))
        total = left if total is None else total + left
    return total
