"""How much memory it takes to read a block, whatever is done with it then."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dask_uncert.execution.chunking import Grid
from dask_uncert.inputs.cube import Cube

SLACK = 16 << 20  # bytes that a pass leaves in a process whatever its blocks are, such as the allocator's


def reading_memory(cubes: Mapping[str, Cube], grid: Grid) -> int:
    """Bytes at most, beside Python's own: three times what a block holds, for its chunks are decoded into it, and the
    block before may not be gone yet (both measured); and chunks that are decoded whole though a part is wanted.
    """
    sides = dict(zip(grid.dims, grid.block, strict=True))
    total = SLACK
    for cube in cubes.values():
        item = cube.data.dtype.itemsize
        total += 3 * item * math.prod(min(sides.get(d, n), n) for d, n in cube.sizes.items())
        chunks = dict(zip(cube.dims, cube.chunks or (1,) * len(cube.dims), strict=True))
        if any(sides.get(d, n) % chunks[d] and sides.get(d, n) < n for d, n in cube.sizes.items()):
            total += 2 * item * math.prod(min(chunks[d], n) for d, n in cube.sizes.items())
        total += cube.held
    return total
