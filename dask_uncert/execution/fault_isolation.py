"""A block that ends the process of its worker: found among its neighbours, and named; all others are finished first.

The scheduler gives a task up after a number of deaths, but may blame one that only shared the worker. So what is
left is computed group by group, a task each, and the groups given up once more block by block, with nothing beside
them: who then ends a worker does so by itself. One such block costs three times as many deaths as the scheduler
allows a task (4 by default); others cost eight more each, and after MOST of them the run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters.task_pool import KilledError, stream
from dask_uncert.errors import ClusterError
from dask_uncert.execution.checkpoints import Checkpoints
from dask_uncert.execution.chunking import cut_in_groups, sum_here
from dask_uncert.execution.graph import Work
from dask_uncert.execution.plan import Plan
from dask_uncert.execution.regression_plan import RegressionPlan
from dask_uncert.inputs.names import gap_of
from dask_uncert.summaries.registry import AnyEvaluation

if TYPE_CHECKING:
    from distributed import Client

AnyPlan = Plan | RegressionPlan
MOST = 3  # blocks that are named before the run ends
DOUBTFUL = 16  # groups that are given up before all others are tried alone as well
KEPT = "what was finished is kept"


def computed(plan: AnyPlan, client: Client) -> tuple[AnyEvaluation, int]:
    """The Evaluation of a plan with checkpoints, and how many blocks were left where it went on group by group, else 0.

    ClusterError, which names the block, where one ends every process that evaluates it.
    """
    try:
        return plan.compute(), 0
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
    left, kept = plan.left(), plan.checkpoints
    assert kept is not None
    return plan.compute(partial(_by_groups, client, _inputs(plan), kept)), left


@contextmanager
def bearing(what: str) -> Iterator[None]:
    """ClusterError where a task inside of the `with` ends every process that computes it; it is not looked for."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise ClusterError(
            f"a block of {what} ended its worker process every time it was read, by a crash or for want of memory: a "
            f"file may be damaged, or blocks be too large for the workers ({' '.join(str(error).split())[:200]})."
        ) from None


def _inputs(plan: AnyPlan) -> str:
    cubes = plan.scene.cubes.items()
    return ", ".join(f"{name}: {cube.where}" for name, cube in cubes if gap_of(name) is None)


def _by_groups(client: Client, inputs: str, kept: Checkpoints, work: Work) -> Any:
    """The sum over all blocks; ClusterError once all but those that end their worker are finished."""
    groups, finished = cut_in_groups(work.grid.blocks, kept.most), kept.finished()
    left = {i: part for i, part in enumerate(groups) if i not in finished}
    doubtful, killers = 0, list[str]()
    tried = stream(
        client, _Group(work, kept), left, "evaluate-group", again=False, kept=KEPT, named=_words(work, left)
    )
    for _, found in tried:
        if isinstance(found, KilledError):
            doubtful += 1
            if doubtful > DOUBTFUL:
                break
        else:
            _result(found)
    alone = [group for group in left if not kept.has(group)]
    while alone and len(killers) < MOST:
        group = alone.pop(0)
        total: Any = None
        ended = len(killers)
        one, words = partial(_one, work), _words(work)
        blocks = stream(client, one, left[group], "evaluate-alone", alone=True, kept=KEPT, named=words)
        for block, found in blocks:
            if isinstance(found, KilledError):
                killers.append(f"{work.grid.words(work.grid.at(block))} ({found})")
            else:
                total = _result(found) if total is None else total + _result(found)
        if ended == len(killers):
            kept.keep(total, group)
    if killers:
        raise ClusterError(_said(killers, inputs, bool(alone)))
    total = sum((kept.fetch(i) for i in range(1, len(groups))), start=kept.fetch(0))
    return total if work.finish is None else work.finish(total)


def _result(found: Any) -> Any:
    if isinstance(found, Exception):
        raise found
    return found


def _said(killers: list[str], inputs: str, more: bool) -> str:
    """One paragraph that names the blocks."""
    several = len(killers) > 1
    rest = (
        "Others were not looked at any more; what was finished is kept."
        if more
        else "All other groups of blocks are finished and kept."
    )
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
    """What a task does with a group: evaluate its blocks and keep their sum."""

    work: Work
    kept: Checkpoints

    def __call__(self, group: int) -> None:
        if not self.kept.has(group):
            part = cut_in_groups(self.work.grid.blocks, self.kept.most)[group]
            self.kept.keep(sum_here(self.work.function, self.work.sources, self.work.grid, part), group)


def _one(work: Work, block: int) -> Any:
    return sum_here(work.function, work.sources, work.grid, [block])
