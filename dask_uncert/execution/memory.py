"""Whether a pass fits the memory that a thread of a worker has: in smaller blocks, else in other chunks, or not at all.

A block is at least a chunk of its largest input, so chunks decide how little memory will do. What a refusal tells to
store anew has been planned itself, and fits.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.execution import chunking
from dask_uncert.execution.plan import Plan
from dask_uncert.execution.regression_plan import RegressionPlan
from dask_uncert.inputs.cube import Cube

AnyPlan = TypeVar("AnyPlan", bound=Plan | RegressionPlan)
Chunks = Mapping[str, tuple[int, ...]]


def fitted(plan: AnyPlan, room: float | None) -> AnyPlan:
    """The plan, in smaller blocks where it needs them to fit `room` bytes a thread; None for no limit.

    Raises InputError where no blocks of whole chunks fit; it says which chunks would.
    """
    found = _smaller(plan, room)
    if room is None or found.block_memory() <= room:
        return found
    here = ", ".join(f"{d} {n}" for d, n in zip(found.grid.dims, found.grid.block, strict=True))
    advice = _advice(plan, _chunks(plan, found.grid.block, room))
    raise InputError(
        f"a block of {here} needs {found.block_memory() / 2**20:.0f} MiB, but a thread has "
        f"{max(room, 0) / 2**20:.0f} MiB beside Python's own. {advice} fewer threads or more memory."
    )


def _smaller(plan: AnyPlan, room: float | None) -> AnyPlan:
    """The largest blocks of whole chunks that fit, of half the size each time; the smallest where none do."""
    pixels = np.prod(plan.scene.shape, dtype=np.float64)
    target = int(sum(plan.nbytes().values()) * np.prod(plan.grid.block, dtype=np.float64) / pixels)
    target = min(target, plan.target)
    while room is not None and plan.block_memory() > room and target > 1:
        target //= 2
        grid = chunking.plan_grid(plan.sources, plan.scene.dims, target=target, many=1)
        plan = replace(plan, grid=grid, target=target)
    return plan


def _advice(plan: AnyPlan, chunks: Chunks) -> str:
    if not chunks:
        return "No chunks would do: use"
    said = []
    for name, sides in chunks.items():
        data = plan.scene.cubes[name].data
        words = ["dask-uncert", "convert", data.store, f"{name}.zarr"]
        words += ["--array", data.array] if getattr(data, "array", "") else []
        words += ["--dims", ",".join(plan.scene.cubes[name].dims)] if data.dims is None else []
        words += ["--chunks", ",".join(map(str, sides))]
        said.append(f"{name} by `{shlex.join(words)}`")
    return f"Store {', '.join(said)} and name what it writes in the job, or use"


def _chunks(plan: AnyPlan, smallest: tuple[int, ...], room: float) -> Chunks:
    """Chunks to store inputs in, by their names, with which the plan fits; none where no chunks do.

    smallest: the block that is too large still, whose longest side is halved until it is not.
    """
    dims, block = plan.grid.dims, list(smallest)
    while True:
        chunks = {}
        for name, cube in plan.scene.cubes.items():
            sides = {**cube.sizes, **{d: b for d, b in zip(dims, block, strict=True) if d in cube.sizes}}
            if _is_coarse(cube, sides):
                chunks[name] = tuple(sides.values())
        if chunks and _smaller(_stored_in(plan, chunks), room).block_memory() <= room:
            return chunks
        longest = max(range(len(block)), key=lambda i: block[i])
        if block[longest] == 1:
            return {}
        block[longest] = -(-block[longest] // 2)


def _is_coarse(cube: Cube, sides: Mapping[str, int]) -> bool:
    """Whether an input that could be stored anew is read in more than blocks with these sides."""
    if not hasattr(cube.data, "store"):
        return False
    long = cube.chunks is not None and any(c > sides[d] for d, c in zip(cube.dims, cube.chunks, strict=True))
    return long or cube.held > 0


def _stored_in(plan: AnyPlan, chunks: Chunks) -> AnyPlan:
    """The same plan as if inputs were stored in these chunks."""

    def anew(cube: Cube, sides: tuple[int, ...]) -> Cube:
        data: Any = np.broadcast_to(np.empty((), cube.data.dtype), cube.data.shape)
        return replace(cube, data=data, chunks=sides)

    cubes = {
        name: anew(cube, chunks[name]) if name in chunks else cube for name, cube in plan.scene.cubes.items()
    }
    return replace(plan, scene=replace(plan.scene, cubes=cubes))  # type: ignore[arg-type]  # of its kind
