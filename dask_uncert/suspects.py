"""A block that ends the process of its worker: found among its neighbours, and named; all others are finished first.

The scheduler gives a task up after a number of deaths, but may blame one that only shared the worker. So what is
left is computed group by group, a task each, and the groups given up once more block by block, with nothing beside
them: who then ends a worker does so by itself. One such block costs three times as many deaths as the scheduler
allows a task (4 by default); others cost eight more each, and after MOST of them the run ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dask_uncert.checkpoints import GROUPS
from dask_uncert.errors import ClusterError
from dask_uncert.gaps import gap_of
from dask_uncert.graphs import Work
from dask_uncert.grids import cut_in_groups, sum_here
from dask_uncert.plan import Plan
from dask_uncert.regression_plan import RegressionPlan
from dask_uncert.streams import KilledError, stream
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.regression import RegressionEvaluation

if TYPE_CHECKING:
    from distributed import Client

MOST = 3  # blocks that are named before the run ends
DOUBTFUL = 16  # groups that are given up before all others are tried alone as well
KEPT = "what was finished is kept"


def computed(plan: Plan | RegressionPlan, client: Client) -> tuple[Evaluation | RegressionEvaluation, int]:
    """The plan's Evaluation, and how many blocks were left where it went on group by group, else 0.

    ClusterError, which names the block, where one ends every process that evaluates it.
    """
    try:
        return plan.compute(), 0
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
    left = sum(map(len, _unfinished(plan.work()).values()))
    return plan.compute(partial(_by_groups, client, _inputs(plan))), left


def _inputs(plan: Plan | RegressionPlan) -> str:
    cubes = plan.scene.cubes.items()
    return ", ".join(f"{name}: {cube.where}" for name, cube in cubes if gap_of(name) is None)


def _unfinished(work: Work) -> dict[int, range]:
    """The blocks of each group that is not kept."""
    finished = work.groups.finished() if work.groups is not None else frozenset()
    groups = enumerate(cut_in_groups(work.grid.blocks, GROUPS))
    return {i: part for i, part in groups if i not in finished}


def _by_groups(client: Client, inputs: str, work: Work) -> Any:
    """The sum over all blocks; ClusterError once all but those that end their worker are finished."""
    left, sums, doubtful, killers = _unfinished(work), dict[int, Any](), 0, list[str]()
    for group, found in stream(
        client, _Group(work), left, "evaluate-group", again=False, kept=KEPT, named=_words(work, left)
    ):
        if isinstance(found, KilledError):
            doubtful += 1
            if doubtful > DOUBTFUL:
                break
        else:
            sums[group] = _result(found)
    alone = [group for group in left if group not in sums]
    while alone and len(killers) < MOST:
        group = alone.pop(0)
        if work.groups is not None and work.groups.has(group):
            continue
        total, ended = None, len(killers)
        one = partial(_one, work)
        blocks = stream(client, one, left[group], "single-block", alone=True, kept=KEPT, named=_words(work))
        for block, found in blocks:
            if isinstance(found, KilledError):
                killers.append(f"{work.grid.words(work.grid.at(block))} ({found})")
            else:
                total = _result(found) if total is None else total + _result(found)
        if ended == len(killers):
            sums[group] = total if work.groups is None else work.groups.keep(total, group)
    if killers:
        raise ClusterError(_said(killers, inputs, bool(alone), work.groups is not None))
    every = range(min(work.grid.blocks, GROUPS))
    parts = (sums[i] if work.groups is None else work.groups.fetch(i) for i in every)
    total = sum(parts, start=next(parts))
    return total if work.finish is None else work.finish(total)


def _result(found: Any) -> Any:
    if isinstance(found, Exception):
        raise found
    return found


def _said(killers: list[str], inputs: str, more: bool, kept: bool) -> str:
    """One paragraph that names the blocks."""
    several = len(killers) > 1
    rest = "All other groups of blocks are finished and kept." if kept else "Nothing else was found wrong."
    if more:
        rest = "Others were not looked at any more" + (", what was finished is kept." if kept else ".")
    return (
        f"{'these blocks' if several else 'a block'} ended the worker's process every time, also with nothing beside "
        f"{'them' if several else 'it'}: {'; '.join(killers)}. A file may be damaged there, or memory too small for a "
        f"block. Inputs: {inputs}. {rest} Mend {'those parts' if several else 'that part'}, or give workers more "
        f"memory, then run again."
    )


def _words(work: Work, groups: dict[int, range] | None = None) -> Callable[[int], str]:
    """Says which blocks a task works on."""

    def words(number: int) -> str:
        first = work.grid.words(work.grid.at(number if groups is None else groups[number][0]))
        return f"the block {first}" if groups is None else f"{len(groups[number])} blocks from {first}"

    return words


@dataclass(frozen=True)
class _Group:
    """What a task does with a group: evaluate its blocks, keep their sum; it gives it on where nothing can be kept."""

    work: Work

    def __call__(self, group: int) -> Any:
        work = self.work
        if work.groups is not None and work.groups.has(group):
            return None
        part = cut_in_groups(work.grid.blocks, GROUPS)[group]
        total = sum_here(work.function, work.sources, work.grid, part)
        if work.groups is None:
            return total
        work.groups.keep(total, group)
        return None


def _one(work: Work, block: int) -> Any:
    return sum_here(work.function, work.sources, work.grid, [block])
