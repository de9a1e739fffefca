"""Two models on the same patients: differences with intervals, and whether they are more than chance.

Differences are of the first less the second. Pooled differences are resampled with the same patients drawn for
both models, and tested by swapping the two models' Summaries patient by patient; differences per patient are
tested by Student's t ([A22]) and by Wilcoxon's signed ranks. Each test's p-values are also given corrected over
the metrics (Holm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.paired_tests import (
    Significance,
    holm,
    paired_t_test,
    permutation_test,
    signed_rank_test,
)
from dask_uncert.formulas.resampling import all_swaps, swaps
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.bootstrap import bootstrap_replicates, mean_interval, without_ends
from dask_uncert.metrics.cohort import matching_metrics, mean_of_defined, patient_values
from dask_uncert.metrics.resampling_units import (
    RestrictedUnits,
    Units,
    jackknife,
    parts,
    patients,
    swapped_totals,
)
from dask_uncert.metrics.scalars import Scalars, scalars
from dask_uncert.summaries.stack import Stack, check_equal

ROWS = 1000  # permutations worked out at a time
TESTS = ("permutation", "t_test", "signed_rank")


@dataclass(frozen=True)
class Comparison:
    """Differences of two models, a metric a column, in the order of `metrics`; the first less the second.

    only: cases that one of the models lacks, which took no part, by model. pooled, mean: (2, metrics). Fields of
    tests are of (metrics,); `exact`: all swaps were listed, not drawn. holm: corrected p-values by test.
    """

    metrics: tuple[str, ...]
    patients: tuple[str, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    pooled: Floats
    mean: Floats
    pooled_difference: Floats
    pooled_interval: Interval
    mean_difference: Floats
    mean_interval: Interval
    permutation: Significance
    t_test: Significance
    signed_rank: Significance
    exact: bool
    holm: dict[str, Floats]

    def rows(self) -> list[dict[str, Any]]:
        """One row a metric: every number beside its name, for a table."""
        found = []
        for i, metric in enumerate(self.metrics):
            row: dict[str, Any] = {"metric": metric}
            for name, both, difference, interval in (
                ("pooled", self.pooled, self.pooled_difference, self.pooled_interval),
                ("mean", self.mean, self.mean_difference, self.mean_interval),
            ):
                row |= {f"{name} 1": both[0, i], f"{name} 2": both[1, i], f"{name} difference": difference[i]}
                row |= {f"{name} low": interval.low[i], f"{name} high": interval.high[i]}
                row[f"{name} undefined replicates"] = interval.undefined[i]
            for test in TESTS:
                one: Significance = getattr(self, test)
                row |= {f"{test} p": one.p_value[i], f"{test} p holm": self.holm[test][i]}
            row |= {"t": self.t_test.statistic[i], "w": self.signed_rank.statistic[i]}
            found.append({**row, "n": self.t_test.n[i], "undefined": self.t_test.undefined[i]})
        return found


def compare(
    one: Stack,
    other: Stack,
    confidence: Confidence | None = None,
    metrics: Sequence[str] | None = None,
    permutations: int = 2000,
) -> Comparison:
    """Two models' Stacks over the cases that both have; the others are named in `only`.

    metrics: names or patterns, by default every scalar; Holm's correction is over these. All swaps are listed
    where there are at most as many as `permutations`, else so many are drawn.

    Raises InputError where no case is in both, or where the two were not evaluated alike.
    """
    how = confidence or Confidence()
    common = sorted(set(one.names) & set(other.names))
    if not common:
        raise InputError(
            f"the two evaluations have no case in common: the first has {one.names[0]}, ..., the second "
            f"{other.names[0]}, ...; `compare` needs two models on the same cases."
        )
    only = tuple(tuple(sorted(set(a.names) - set(common))) for a in (one, other))
    a, b = one.select(common), other.select(common)
    if a.patients != b.patients:
        raise InputError(
            "the two evaluations name other patients for the same cases; use one manifest for both."
        )
    try:
        check_equal(a.frame, b.frame, common[0])
    except ValueError as error:
        raise InputError(f"the second evaluation does not compare with the first: {error}.") from None
    whole = patients(a), patients(b)
    pooled = [scalars(u.like) for u in whole]
    chosen = matching_metrics(tuple(pooled[0]), metrics)
    both = [RestrictedUnits(u, chosen) for u in whole]
    (names, first), (_, second) = (patient_values(stack, chosen) for stack in (a, b))
    values = (first, second)
    estimates = [_columns(p, chosen) for p in pooled]
    with np.errstate(invalid="ignore"):  # inf - inf: undefined
        differences = values[0] - values[1]
        difference = estimates[0] - estimates[1]
        replicates = _difference([bootstrap_replicates(u, how) for u in both], chosen)
        left_out = _difference([jackknife(u) for u in both], chosen)
    permuted, exact = _permuted(both[0], both[1], chosen, permutations, how.seed)
    tests = {
        "permutation": permutation_test(difference, permuted, exact),
        "t_test": paired_t_test(differences),
        "signed_rank": signed_rank_test(differences),
    }
    defined = ~np.isnan(differences)
    means = np.stack([mean_of_defined(np.where(defined, v, np.nan)) for v in values])
    pooled_interval = how.interval(difference, replicates, left_out)
    return Comparison(
        metrics=chosen,
        patients=names,
        only=(only[0], only[1]),
        pooled=np.stack(estimates),
        mean=means,
        pooled_difference=difference,
        pooled_interval=pooled_interval if len(names) > 1 else without_ends(pooled_interval),
        mean_difference=mean_of_defined(differences),
        mean_interval=mean_interval(differences, names, how),
        exact=exact,
        holm={name: holm(test.p_value) for name, test in tests.items()},
        **tests,
    )


def _permuted(
    one: Units, other: Units, metrics: Sequence[str], number: int, seed: int
) -> tuple[Floats, bool]:
    """Pooled differences with patients swapped, (permutations, metrics), and whether they are all there are."""
    n = len(one.names)
    exact = n <= 20 and 2 ** (n - 1) <= number
    pieces = []
    for a, b in parts(2 ** (n - 1) if exact else number, ROWS):
        drawn = all_swaps(one.names)[a:b] if exact else swaps(one.names, range(a, b), seed)
        reads = swapped_totals(one, other, drawn.astype(np.int64))
        with np.errstate(invalid="ignore"):
            pieces.append(_difference([scalars(one.like, read) for read in reads], metrics))
    return np.concatenate(pieces), exact


def _columns(found: Scalars, metrics: Sequence[str]) -> Floats:
    return np.stack([found[name] for name in metrics], axis=-1)


def _difference(both: Sequence[Scalars], metrics: Sequence[str]) -> Floats:
    return np.asarray(_columns(both[0], metrics) - _columns(both[1], metrics))
