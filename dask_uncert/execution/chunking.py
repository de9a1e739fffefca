"""Blocks of whole chunks over the grid of a pass, and groups of neighbouring blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import Cube

TARGET_BYTES = 64 << 20  # of input in a block: 1 Mpixel of 16 float32 classes, about a second of work
MOST_PIXELS = 1 << 22  # of a block; what a pass keeps for a pixel is more than a binary prediction's few bytes
MIN_BLOCKS = 16  # blocks of a scene where its chunks allow: work for all cores
LEAST_PIXELS = 1 << 12  # of a block where its chunks allow: fewer take less time to evaluate than to hand out
LEAST_IN_MEMORY = 1 << 17  # of arrays in memory: counting fewer takes little more than to add up what was counted
LEAST_BYTES = 2 << 20  # of them: pixels of few bytes are soon counted
PROCESS_BYTES = 16 << 20  # that a pass costs a process whatever its blocks are, such as the allocator's


@dataclass(frozen=True)
class Grid:
    """Blocks over the dimensions that all inputs share. A block has an index along `dims` and a number in C order."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    block: tuple[int, ...]

    @property
    def numblocks(self) -> tuple[int, ...]:
        """Number of blocks along each dimension."""
        return tuple(math.ceil(n / b) for n, b in zip(self.shape, self.block, strict=True))

    @property
    def blocks(self) -> int:
        """Number of all blocks."""
        return math.prod(self.numblocks)

    def index(self, number: int) -> tuple[int, ...]:
        """Return the index of the block with this number."""
        return tuple(int(i) for i in np.unravel_index(number, self.numblocks))

    def group(self, index: Sequence[int], groups: int) -> int:
        """Return the number of the group that a block belongs to; there are at most `groups`."""
        number = int(np.ravel_multi_index(tuple(index), self.numblocks))
        return next(i for i, group in enumerate(cut_in_groups(self.blocks, groups)) if number in group)

    def offset(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the first pixel of a block along each dimension."""
        return tuple(i * b for i, b in zip(index, self.block, strict=True))

    def region(self, index: Sequence[int]) -> dict[str, slice]:
        """Return the slice of each dimension that a block covers."""
        sides = zip(self.dims, self.offset(index), self.block, self.shape, strict=True)
        return {d: slice(o, min(o + b, n)) for d, o, b, n in sides}

    def describe(self, index: Sequence[int]) -> str:
        """Return a block's region as text, such as `y 200:300, x 0:100`."""
        return ", ".join(f"{d} {part.start}:{part.stop}" for d, part in self.region(index).items())


def plan_grid(
    cubes: Mapping[str, Cube],
    dims: tuple[str, ...],
    block: Sequence[int] | None = None,
    target_bytes: int = TARGET_BYTES,
    min_blocks: int | None = None,
) -> Grid:
    """Return blocks of whole chunks of every input if they fit `target_bytes`, else of the largest input's chunks.

    There are at least `min_blocks` blocks if the chunks allow it; by default MIN_BLOCKS, unless they were smaller than
    LEAST_PIXELS, or of arrays in memory, LEAST_IN_MEMORY and LEAST_BYTES. block: the size of a block, instead of all
    that; InputError if it is invalid.
    """
    sizes = {d: n for cube in cubes.values() for d, n in cube.sizes.items()}
    shape = tuple(sizes[d] for d in dims)
    if block is not None:
        if len(block) != len(dims) or any(b < 1 for b in block):
            raise InputError(f"block must hold {len(dims)} positive sizes, for {dims}, found {tuple(block)}.")
        return Grid(dims, shape, tuple(min(b, n) for b, n in zip(block, shape, strict=True)))
    pixel_bytes = sum(
        cube.data.dtype.itemsize * math.prod(n for d, n in cube.sizes.items() if d not in dims)
        for cube in cubes.values()
    )
    unit = [
        min(n, math.lcm(*(_chunk(cube, d) for cube in cubes.values() if d in cube.dims)))
        for d, n in zip(dims, shape, strict=True)
    ]
    if math.prod(unit) * pixel_bytes > target_bytes:
        largest = max(cubes.values(), key=lambda cube: cube.nbytes)
        unit = [min(n, _chunk(largest, d)) for d, n in zip(dims, shape, strict=True)]
    size = list(unit)
    in_memory = all(cube.chunks is None for cube in cubes.values())
    least = max(LEAST_IN_MEMORY, LEAST_BYTES // max(pixel_bytes, 1)) if in_memory else LEAST_PIXELS
    even = math.prod(shape) // min_blocks if min_blocks else max(math.prod(shape) // MIN_BLOCKS, least)
    pixels = max(1, min(target_bytes // max(pixel_bytes, 1), even, MOST_PIXELS))
    if in_memory:  # pixels that follow each other need no copy
        for i in reversed(range(len(size))):
            size[i] = max(1, min(shape[i], pixels // math.prod(size[i + 1 :])))
        return Grid(dims, shape, tuple(size))
    while True:
        # Double the shortest side that is not whole yet, as long as the block stays within the target.
        for i in sorted((i for i in range(len(size)) if size[i] < shape[i]), key=lambda i: size[i]):
            longer = min(2 * size[i], math.ceil(shape[i] / unit[i]) * unit[i])
            if math.prod(size) // size[i] * longer <= pixels:
                size[i] = longer
                break
        else:
            return Grid(dims, shape, tuple(min(b, n) for b, n in zip(size, shape, strict=True)))


def _chunk(cube: Cube, dim: str) -> int:
    return int(cube.chunks[cube.dims.index(dim)]) if cube.chunks is not None else 1


def chunk_reads(cubes: Mapping[str, Cube], grid: Grid) -> int:
    """Return the number of stored chunks that all blocks together read; for a sharded array, of shards."""
    sides, total = dict(zip(grid.dims, grid.block, strict=True)), 0
    for cube in cubes.values():
        if cube.stored is None:
            continue
        reads = 1
        for d, n in cube.sizes.items():
            ends = [min(start + sides.get(d, n), n) for start in range(0, n, sides.get(d, n))]
            starts = range(0, n, sides.get(d, n))
            reads *= sum(-(-b // _chunk(cube, d)) - a // _chunk(cube, d) for a, b in zip(starts, ends, strict=True))
        # a dimension of the grid that the input lacks: every block along it reads the input again
        reads *= math.prod(n for d, n in zip(grid.dims, grid.numblocks, strict=True) if d not in cube.sizes)
        total += reads
    return total


def cut_in_groups(blocks: int, groups: int) -> list[range]:
    """Return the numbers of `blocks` blocks in at most `groups` ranges of about equal size."""
    groups = min(blocks, groups)
    edges = [round(i * blocks / groups) for i in range(groups + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def cut_for_tasks(blocks: int, tasks: int) -> list[range]:
    """Return the numbers of blocks in at most `tasks` ranges: one block each if that does, or long ranges, then short ones.

    The longest are 1.5 times the mean; they shrink towards the end, so that workers end together. Simulated, 256 workers
    compute 95 % of the time for 10^6 chunks of 256 x 256 pixels, and 88 % with equal ranges.
    """
    if blocks <= tasks:
        return [range(number, number + 1) for number in range(blocks)]
    edges = sorted({blocks - round(blocks * (1 - i / tasks) ** 1.5) for i in range(tasks + 1)})
    return [range(a, b) for a, b in pairwise(edges)]


def reading_memory(cubes: Mapping[str, Cube], grid: Grid) -> int:
    """Return the most bytes that reading a block takes, without Python's own memory.

    That is three times what a block holds, because its chunks are decoded into it while the block before it may still be
    in memory (both measured); and chunks that are decoded whole although the block needs only a part of them.
    """
    sides = dict(zip(grid.dims, grid.block, strict=True))
    total = PROCESS_BYTES
    for cube in cubes.values():
        itemsize = cube.data.dtype.itemsize
        total += 3 * itemsize * math.prod(min(sides.get(d, n), n) for d, n in cube.sizes.items())
        chunks = dict(zip(cube.dims, cube.chunks or (1,) * len(cube.dims), strict=True))
        if any(sides.get(d, n) % chunks[d] and sides.get(d, n) < n for d, n in cube.sizes.items()):
            total += 2 * itemsize * math.prod(min(chunks[d], n) for d, n in cube.sizes.items())
        total += cube.held
    return total
