"""Fit a pass to the memory of a worker's thread: by smaller blocks, or with advice on smaller chunks.

A block is at least a chunk of its largest input, so chunks determine the least memory that is needed. Chunks that an
error advises have been planned, and fit.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.execution import chunking
from dask_uncert.execution.plan import Plan
from dask_uncert.inputs.cube import Cube

Chunks = Mapping[str, tuple[int, ...]]


def fit_to_memory(plan: Plan, limit: float | None) -> Plan:
    """Return the plan, in smaller blocks if it does not fit `limit` bytes a thread; None for no limit.

    Raises InputError if no block of whole chunks fits; it names chunks that would.
    """
    fitting = _in_smaller_blocks(plan, limit)
    if limit is None or fitting.block_memory() <= limit:
        return fitting
    block = ", ".join(f"{d} {n}" for d, n in zip(fitting.grid.dims, fitting.grid.block, strict=True))
    advice = _advice(plan, _fitting_chunks(plan, fitting.grid.block, limit))
    raise InputError(
        f"a block of {block} needs {fitting.block_memory() / 2**20:.0f} MiB, but a thread has "
        f"{max(limit, 0) / 2**20:.0f} MiB besides Python's own. {advice} fewer threads or more memory."
    )


def _in_smaller_blocks(plan: Plan, limit: float | None) -> Plan:
    """Return the plan in the largest blocks of whole chunks that fit, or else the smallest blocks."""
    pixels = np.prod(plan.scene.shape, dtype=np.float64)
    target = int(sum(plan.nbytes().values()) * np.prod(plan.grid.block, dtype=np.float64) / pixels)
    target = min(target, plan.target_bytes)
    while limit is not None and plan.block_memory() > limit and target > 1:
        target //= 2
        grid = chunking.plan_grid(plan.sources, plan.scene.dims, target_bytes=target, min_blocks=1)
        plan = replace(plan, grid=grid, target_bytes=target)
    return plan


def _advice(plan: Plan, chunks: Chunks) -> str:
    if not chunks:
        return "No chunks would do: use"
    commands = []
    for name, sides in chunks.items():
        stored = plan.scene.cubes[name].stored
        assert stored is not None
        command = ["dask-uncert", "convert", stored.store, f"{name}.zarr"]
        command += ["--array", stored.array] if stored.array else []
        command += ["--dims", ",".join(plan.scene.cubes[name].dims)] if stored.dims is None else []
        command += ["--chunks", ",".join(map(str, sides))]
        commands.append(f"{name} by `{shlex.join(command)}`")
    return f"Store {', '.join(commands)} and name what it writes in the job, or use"


def _fitting_chunks(plan: Plan, block: tuple[int, ...], limit: float) -> Chunks:
    """Return chunks for inputs by name with which the plan fits, or none.

    block: one that is still too large; its longest side is halved until the plan fits.
    """
    sides = dict(zip(plan.grid.dims, block, strict=True))
    while True:
        chunks = {}
        for name, cube in plan.scene.cubes.items():
            shape = {d: sides.get(d, n) for d, n in cube.sizes.items()}
            if _is_coarse(cube, shape):
                chunks[name] = tuple(shape.values())
        if chunks and _in_smaller_blocks(_stored_in(plan, chunks), limit).block_memory() <= limit:
            return chunks
        longest = max(sides, key=lambda d: sides[d])
        if sides[longest] == 1:
            return {}
        sides[longest] = -(-sides[longest] // 2)


def _is_coarse(cube: Cube, sides: Mapping[str, int]) -> bool:
    """Return whether an input could be rechunked and is read in larger parts than blocks of these sides."""
    if cube.stored is None:
        return False
    long = cube.chunks is not None and any(c > sides[d] for d, c in zip(cube.dims, cube.chunks, strict=True))
    return long or cube.held > 0


def _stored_in(plan: Plan, chunks: Chunks) -> Plan:
    """Return the plan as if inputs were stored in these chunks."""
    cubes = dict(plan.scene.cubes)
    for name, sides in chunks.items():
        cube = cubes[name]
        data: Any = np.broadcast_to(np.empty((), cube.data.dtype), cube.data.shape)
        cubes[name] = replace(cube, data=data, chunks=sides, stored=None, held=0)
    return replace(plan, scene=replace(plan.scene, cubes=cubes))
