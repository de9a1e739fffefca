"""Two models on the same cases: the folders of two cohorts, or their Stacks, compared case by case."""

from __future__ import annotations

from collections.abc import Sequence

from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.io.paths import AnyPath, as_path
from dask_uncert.jobs.cohort.case import MAIN
from dask_uncert.jobs.cohort.output import finished_cohort
from dask_uncert.metrics import comparison
from dask_uncert.metrics.comparison import Comparison
from dask_uncert.reports.results.headline import headline
from dask_uncert.summaries.stack import Stack

SHOWN = 5  # cases that a message names


def compare(
    one: Stack | str | AnyPath,
    other: Stack | str | AnyPath,
    *,
    metrics: str | Sequence[str] | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    permutations: int = 2000,
    common: bool = False,
) -> Comparison:
    """Compare two models on the same cases: Stacks, or finished folders of cohorts; no pixel is read.

    Differences are of the first less the second: of the means over patients, with Student's paired t-test [A22]
    and Wilcoxon's signed ranks, and of the pooled numbers, with a permutation test that swaps the two models
    patient by patient. Intervals come from drawing patients, the same for both models. `holm` holds the p-values
    corrected (Holm) over the metrics asked for; `rows()` gives a row a metric.

    metrics: names or patterns such as ``classes/*/f1``; ``*`` is every number; by default those that reports show
    first. replicates, level, seed: of the intervals. permutations: all swaps are listed where there are no more
    than so many. common: compare over the cases that both have, where they differ.

    Raises InputError where a folder is unfinished or no cohort, where the cases differ, naming them, and where the
    two were not evaluated alike.

    >>> import dask_uncert as du
    >>> good, poor = (du.evaluate([[0.9, 0.1], [p, 1 - p]], [0, 1]) for p in (0.2, 0.7))
    >>> one = du.Stack.of({"P1": good, "P2": good, "P3": poor})
    >>> other = du.Stack.of({"P1": poor, "P2": poor, "P3": poor})
    >>> found = du.compare(one, other, metrics="overall/accuracy")
    >>> found.mean.T.round(4).tolist(), found.mean_difference.round(4).tolist()
    ([[0.8333, 0.5]], [0.3333])
    >>> found.permutation.p_value.tolist(), found.exact
    ([0.5], True)
    """
    if replicates < 1 or permutations < 1:
        raise InputError("replicates and permutations are 1 or more.")
    if not 0 < level < 1:
        raise InputError(f"the level of an interval lies in (0, 1), found {level:g}.")
    if seed < 0:
        raise InputError(f"a seed is 0 or more, found {seed}.")
    first, second = _stack(one), _stack(other)
    if not common:
        _check_cases(first, second, *(_called(place, i) for i, place in enumerate((one, other))))
    wanted = [metrics] if isinstance(metrics, str) else metrics
    if wanted is None:
        wanted = [metric.name for metric in headline(first.total())]
    return comparison.compare(first, second, Confidence(replicates, level, seed), wanted, permutations)


def _stack(given: Stack | str | AnyPath) -> Stack:
    return given if isinstance(given, Stack) else finished_cohort(as_path(given)).stacks[MAIN]


def _called(given: Stack | str | AnyPath, number: int) -> str:
    return f"the {('first', 'second')[number]}" if isinstance(given, Stack) else str(given)


def _check_cases(first: Stack, second: Stack, *called: str) -> None:
    """Refuse two models that were not evaluated on the same cases."""
    names = set(first.names), set(second.names)
    said = []
    for mine, theirs, name in zip(names, reversed(names), called, strict=True):
        only = sorted(mine - theirs)
        if only:
            more = f" and {len(only) - SHOWN} more" if len(only) > SHOWN else ""
            said.append(f"{name} alone has {', '.join(only[:SHOWN])}{more}")
    if said:
        both = len(names[0] & names[1])
        raise InputError(
            f"the two models were not evaluated on the same cases: {'; '.join(said)}. Evaluate both on the same "
            f"manifest" + (f", or ask for the {both} cases that both have (--common)." if both else ".")
        )
