"""Find the block that ends its worker's process, name it, and finish all others first.

The scheduler gives a task up after several deaths of its worker, but cannot tell it from tasks that shared the worker.
So the unfinished groups of blocks are computed with one task each. Groups that are given up again are computed block by
block, with no other task running: a block that ends a worker then is the cause. The first such block costs three times
as many deaths as the scheduler allows a task (4 by default), others eight each; after MOST_NAMED blocks the run ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters.task_pool import KilledError, map_items
from dask_uncert.errors import ClusterError, one_line
from dask_uncert.execution.checkpoints import GROUPS
from dask_uncert.execution.chunking import cut_in_groups
from dask_uncert.execution.graph import Reduction
from dask_uncert.execution.plan import Plan
from dask_uncert.summaries.registry import AnyEvaluation

if TYPE_CHECKING:
    from distributed import Client

MOST_NAMED = 3  # blocks after which the run ends
MOST_SUSPECTS = 16  # groups given up, after which all that are left are computed block by block
KEPT = "what was finished is kept"


def compute_isolating_faults(plan: Plan, client: Client) -> tuple[AnyEvaluation, int]:
    """Return a plan's evaluation, and the number of blocks that were then computed group by group (0 if none failed).

    The plan needs checkpoints. Raises ClusterError that names a block which ends every process that evaluates it.
    """
    try:
        return plan.compute(), 0
    except Exception as error:
        if not _is_killed_worker(error):
            raise
    cubes = plan.scene.cubes.items()
    inputs = ", ".join(f"{name}: {cube.where}" for name, cube in cubes if cube.gap is None)
    left = plan.unfinished_blocks()
    return plan.compute(partial(_compute_by_groups, client, inputs)), left


@contextmanager
def explain_killed_workers(inputs: str) -> Iterator[None]:
    """Raise ClusterError if a block of some inputs ends every process that reads it; the block is not identified."""
    try:
        yield
    except Exception as error:
        if not _is_killed_worker(error):
            raise
        raise ClusterError(
            f"a block of {inputs} ended its worker process every time it was read: the process crashed or ran out of "
            f"memory. A file may be damaged, or blocks may be too large for the workers ({one_line(error, 200)})."
        ) from None


def _is_killed_worker(error: Exception) -> bool:
    return type(error).__name__ == "KilledWorker"


def _compute_by_groups(client: Client, inputs: str, reduction: Reduction) -> Any:
    """Return the sum over all blocks; ClusterError once all but those that end their worker are finished."""
    grid, checkpoints = reduction.grid, reduction.checkpoints
    assert checkpoints is not None
    groups, finished = cut_in_groups(grid.blocks, GROUPS), checkpoints.finished()
    left = {number: blocks for number, blocks in enumerate(groups) if number not in finished}

    def region(block: int) -> str:
        return grid.describe(grid.index(block))

    def group_name(number: int) -> str:
        return f"{len(left[number])} blocks from {region(left[number][0])}"

    def compute_group(number: int) -> None:
        if not checkpoints.has(number):
            checkpoints.save(reduction.sum_blocks(left[number]), number)

    suspects = 0
    for _, result in map_items(
        client, compute_group, left, "evaluate-group", retry_killed=False, kept=KEPT, describe=group_name
    ):
        if isinstance(result, KilledError):
            suspects += 1
            if suspects > MOST_SUSPECTS:
                break
        elif isinstance(result, Exception):
            raise result
    alone, killers = [number for number in left if not checkpoints.has(number)], list[str]()
    while alone and len(killers) < MOST_NAMED:
        number = alone.pop(0)
        total: Any = 0
        killers_before = len(killers)
        for block, result in map_items(
            client,
            lambda block: reduction.sum_blocks([block]),
            left[number],
            "evaluate-alone",
            one_by_one=True,
            kept=KEPT,
            describe=lambda block: f"the block {region(block)}",
        ):
            if isinstance(result, KilledError):
                killers.append(f"{region(block)} ({result})")
            elif isinstance(result, Exception):
                raise result
            else:
                total = total + result
        if len(killers) == killers_before:
            checkpoints.save(total, number)
    if killers:
        raise ClusterError(_killers_message(killers, inputs, bool(alone)))
    total = sum(checkpoints.load(number) for number in range(len(groups)))
    return total if reduction.finalize is None else reduction.finalize(total)


def _killers_message(killers: list[str], inputs: str, more: bool) -> str:
    blocks, them, parts = (
        ("these blocks", "them", "those parts") if len(killers) > 1 else ("a block", "it", "that part")
    )
    rest = "Other blocks were not tried" if more else "All other groups of blocks are finished"
    return (
        f"{blocks} ended the worker's process every time, also with no other task beside {them}: {'; '.join(killers)}. "
        f"A file may be damaged there, or memory too small for a block. Inputs: {inputs}. {rest}; {KEPT}. Repair {parts}, "
        f"or give workers more memory, then run again."
    )
