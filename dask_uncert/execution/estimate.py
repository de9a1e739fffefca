"""How long a pass takes, from a probe: a few of its blocks are read, evaluated and written for about a second."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from dask_uncert.errors import InputError, UnusableBlockError
from dask_uncert.execution import chunking
from dask_uncert.execution.class_distances import DistancePlan, GatherLabelled, MeasureBands
from dask_uncert.execution.evaluate import with_maps
from dask_uncert.execution.graph import MOST_TASKS, Reduction
from dask_uncert.execution.plan import Plan

BUDGET = 1.0  # seconds of a probe, besides those to load the kernels
SMALL = 1 << 20  # bytes of the first blocks
ROUNDS = 5  # at most, of the larger blocks
SCHEDULING = 0.001  # seconds that the task of a block costs the scheduler
GOLDEN = (math.sqrt(5) - 1) / 2  # multiples of it, modulo 1, are spread evenly


@dataclass(frozen=True)
class Estimate:
    """What a pass costs. thread_seconds: of all its blocks, summed over threads; blocks: their number."""

    thread_seconds: float
    blocks: int

    def seconds(self, threads: int) -> float:
        """Return the seconds of the pass on so many threads: the last of them wait for the others."""
        turns = math.ceil(self.blocks / threads)
        return max(self.thread_seconds / self.blocks * turns, min(self.blocks, MOST_TASKS) * SCHEDULING)


def probe(plan: Plan, threads: int = 1, budget: float = BUDGET) -> Estimate:
    """Return what a pass costs on this machine; some of its blocks are evaluated, `threads` of them at a time.

    Blocks are cut smaller where whole ones would take longer than `budget` seconds, but not below a chunk. Maps are
    written to a temporary folder.

    Raises InputError or UnusableBlockError for a block that cannot be evaluated.
    """
    pixels = math.prod(plan.scene.shape)
    distances = plan.distances
    seconds = 0.0 if distances is None else _distance_seconds(distances)
    if distances is not None:
        classes = len(distances.request.classes)
        plan = replace(plan, metric=None, request=distances.request.with_distances(1 - np.eye(classes)))
    plan, threads = replace(plan, checkpoints=None), max(1, min(threads, os.cpu_count() or 1, plan.grid.blocks))
    with tempfile.TemporaryDirectory(prefix="dask-uncert-") as folder, ThreadPoolExecutor(threads) as pool:
        spread = _spread()

        def turn(part: Plan) -> tuple[float, float]:
            """Return the pixels of a block and its seconds, while other threads evaluate others."""
            reduction, numbers = part.reduction(), [int(next(spread) * part.grid.blocks) for _ in range(threads)]
            begin = time.perf_counter()
            found = list(pool.map(lambda number: reduction.sum_blocks([number]), numbers))
            taken = time.perf_counter() - begin
            return sum(one.ledger.pixels for one in found) / threads, taken

        small = _in_pieces(plan, SMALL, Path(folder, "small"))
        turn(small)  # loads or compiles the kernels
        begin = time.perf_counter()
        few, short = turn(small)
        large = _in_pieces(plan, int(SMALL * max(1.0, budget / 3 / short)), Path(folder, "large"))
        turns = [turn(large)]
        while len(turns) < ROUNDS and time.perf_counter() - begin + turns[-1][1] < budget:
            turns.append(turn(large))
    many, longer = (median(values) for values in zip(*turns, strict=True))
    fixed, per_pixel = 0.0, longer / many
    if many > 1.5 * few and longer > short:
        per_pixel = (longer - short) / (many - few)
        fixed = max(0.0, short - few * per_pixel)
    return Estimate(seconds + fixed * plan.grid.blocks + per_pixel * pixels, plan.grid.blocks)


def estimated(probing: Callable[[], Estimate], threads: int | None) -> dict[str, Any]:
    """Return an estimate as plain data, or why there is none. threads: of the whole cluster, None if not known."""
    try:
        estimate = probing()
    except UnusableBlockError:
        return {"reason": "a block that was probed cannot be evaluated; a run says why."}
    except InputError as error:
        return {"reason": str(error)}
    seconds = None if threads is None else estimate.seconds(threads)
    return {"seconds": seconds, "threads": threads, "core_hours": estimate.thread_seconds / 3600}


def _spread() -> Iterator[float]:
    """Yield numbers in [0, 1) that lie apart."""
    number = 0.5
    while True:
        yield number
        number = (number + GOLDEN) % 1.0


def _in_pieces(plan: Plan, target_bytes: int, folder: Path) -> Plan:
    """Return the plan in smaller blocks of whole chunks, if there are such, that writes its maps to a folder."""
    grid = chunking.plan_grid(plan.sources, plan.scene.dims, target_bytes=target_bytes, min_blocks=1)
    if math.prod(grid.block) < math.prod(plan.grid.block):
        plan = replace(plan, grid=grid)
    return with_maps(plan, str(folder)) if plan.request.layers else plan


def _distance_seconds(plan: DistancePlan) -> float:
    """Return the seconds of a thread for class distances: those to read and measure a block, times the blocks."""
    small = replace(plan, target_bytes=SMALL)
    gather = Reduction(GatherLabelled(plan.request, plan.scene, [(0, plan.bands)]), small.cubes, small.grid)
    durations = []
    for place in islice(_spread(), 3):
        begin = time.perf_counter()
        ((features, index),) = gather.sum_blocks([int(place * small.grid.blocks)])
        present, index = np.unique(index, return_inverse=True)
        if len(present):
            MeasureBands(len(present), plan.metric)([(features, index)])
        durations.append(time.perf_counter() - begin)
    return median(durations) * small.grid.blocks
