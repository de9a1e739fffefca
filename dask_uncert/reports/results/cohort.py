"""Results of a cohort: its pooled numbers, its cases, failed cases, and statistics over patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.metrics.advice import Advice, with_failed_cases
from dask_uncert.metrics.cohort import GroupStatistics, case_scalars, case_table
from dask_uncert.metrics.cohort import cohort as statistics_of
from dask_uncert.metrics.cohort import cohort_by as statistics_by
from dask_uncert.metrics.comparison import TESTS, Comparison
from dask_uncert.metrics.resampling_units import patients
from dask_uncert.metrics.scalars import QUANTILES
from dask_uncert.reports.results.headline import Metric, headline
from dask_uncert.reports.results.intervals import INTERVAL, Intervals
from dask_uncert.reports.results.scene import scene_results, undefined_as_null
from dask_uncert.summaries.case import Case
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Stack

MOST_GROUPS = 24
"""A grouping column with more values is only in `tables/groups.csv`, without intervals."""


@dataclass(frozen=True)
class OtherModel:
    """Another model on the same cases: its name, its cases, the comparison, and the level of the intervals."""

    name: str
    stack: Stack
    comparison: Comparison
    level: float


@dataclass(frozen=True)
class Cohort:
    """Cases of a finished evaluation, and what else a report shows about them.

    failed: reason of each failed case, by name. confidence: options of intervals, as in the job. lost: failed
    cases whose patient, visit and groups are known. pictures: returns the subsampled maps of a case. against: another
    model to compare with. raters: the same cases against each rater, by the rater's name.
    """

    stack: Stack
    failed: Mapping[str, str] = field(default_factory=dict)
    confidence: Mapping[str, Any] | None = None
    lost: Mapping[str, Case] = field(default_factory=dict)
    pictures: Callable[[str], Mapping[str, Any]] | None = None
    against: OtherModel | None = None
    raters: Mapping[str, Stack] = field(default_factory=dict)

    def intervals(self) -> Confidence | None:
        """Return the options of intervals; None without intervals, and for a single patient."""
        if self.confidence is None or len(set(self.stack.patients)) < 2:
            return None
        return Confidence(*(self.confidence[key] for key in ("replicates", "level", "seed")))


@dataclass(frozen=True)
class CohortStatistics:
    """Statistics of the cases of a cohort.

    whole: every metric over all cases, with intervals. groups: every metric by column and value, without intervals.
    shown: the headline metrics with intervals, for columns with few values. sizes: number of cases by column and
    value. table: a row per case. raters: the headline metrics against each rater, with intervals.
    """

    cohort: Cohort
    headline: tuple[Metric, ...]
    whole: GroupStatistics
    groups: dict[str, dict[str, GroupStatistics]]
    shown: dict[str, dict[str, GroupStatistics]]
    sizes: dict[str, dict[str, int]]
    table: dict[str, Sequence[Any]]
    raters: dict[str, GroupStatistics] = field(default_factory=dict)


def cohort_statistics(cohort: Cohort, evaluation: Evaluation) -> CohortStatistics:
    """Return the statistics of the cases; evaluation: their sum."""
    stack, confidence, shown = cohort.stack, cohort.intervals(), headline(evaluation)
    names, by_case = [metric.name for metric in shown], case_scalars(stack)
    sizes = {column: dict(sorted(Counter(values).items())) for column, values in stack.groups.items()}
    few = [column for column, groups in sizes.items() if len(groups) <= MOST_GROUPS]
    return CohortStatistics(
        cohort,
        shown,
        whole=statistics_of(stack, confidence, None, by_case),
        groups={column: statistics_by(stack, column, None, None, by_case) for column in sizes},
        shown={column: statistics_by(stack, column, confidence, names, by_case) for column in few},
        sizes=sizes,
        table=case_table(stack, by_case),
        raters={name: statistics_of(rated, confidence, names) for name, rated in cohort.raters.items()},
    )


def cohort_intervals(statistics: CohortStatistics) -> Intervals | None:
    """Return the intervals of the pooled numbers of a cohort; None without intervals."""
    whole, confidence = statistics.whole, statistics.cohort.intervals()
    if confidence is None or whole.pooled_interval is None:
        return None
    ends = zip(whole.metrics, *whole.pooled_interval, strict=True)
    by_name = {name: Interval(*interval) for name, *interval in ends}
    return Intervals(by_name, {"unit": "patient", "units": len(whole.patients)}, confidence)


def cohort_results(evaluation: Evaluation, statistics: CohortStatistics) -> dict[str, Any]:
    """Return the results of a cohort: those of its pooled evaluation, and the statistics of its cases."""
    cohort, whole = statistics.cohort, statistics.whole
    results = scene_results(evaluation, cohort_intervals(statistics), patients(cohort.stack))
    sentences = [Advice(**sentence) for sentence in results["advice"]]
    told = with_failed_cases(sentences, len(cohort.failed), len(cohort.failed) + len(cohort.stack))
    results["advice"] = [sentence._asdict() for sentence in told]
    confidence = {"confidence": results.pop("confidence")} if "confidence" in results else {}
    results["cohort"] = {
        "cases": len(cohort.stack),
        "patients": len(whole.patients),
        "groups": statistics.sizes,
        "headline": [metric.name for metric in statistics.headline],
        "metrics": _metrics(whole),
        "by_group": {
            column: {value: _group(statistics.sizes[column][value], group) for value, group in groups.items()}
            for column, groups in statistics.shown.items()
        },
    }
    if statistics.raters:
        results["cohort"]["by_rater"] = {
            name: _group(len(cohort.raters[name]), rated) for name, rated in statistics.raters.items()
        }
    results["failed"] = [{"case": name, "reason": reason} for name, reason in cohort.failed.items()]
    results |= confidence
    if cohort.against is not None:
        results["comparison"] = comparison_results(cohort.against.comparison, "this", cohort.against.name)
    return undefined_as_null(results)


def _group(cases: int, group: GroupStatistics) -> dict[str, Any]:
    return {"cases": cases, "patients": len(group.patients), "metrics": _metrics(group)}


def _metrics(group: GroupStatistics) -> dict[str, Any]:
    """Return the statistics of every metric, by its name."""
    metrics = {}
    for i, name in enumerate(group.metrics):
        row: dict[str, Any] = {}
        for key in ("pooled", "mean"):
            row[key], interval = getattr(group, key)[i], getattr(group, f"{key}_interval")
            if interval is not None:
                row[f"{key}{INTERVAL}"] = [interval.low[i], interval.high[i]]
        metrics[name] = row | {
            "std": group.std[i],
            "median": group.quantiles[QUANTILES.index(0.5), i],
            "quantiles": {f"{q:g}": group.quantiles[k, i] for k, q in enumerate(QUANTILES)},
            "at": {f"{q:g}": group.at[k][i] or None for k, q in enumerate(QUANTILES)},
            "n": group.n[i],
            "undefined": group.undefined[i],
        }
    return metrics


def comparison_results(comparison: Comparison, first: str, second: str) -> dict[str, Any]:
    """Return the comparison of two models as in `results.json` and in the output of `compare --json`."""
    metrics, differences = {}, comparison.differences()
    for i, name in enumerate(comparison.metrics):
        row: dict[str, Any] = {}
        for key in ("mean", "pooled"):
            both, difference, interval = differences[key]
            row |= {key: both[:, i], f"{key}_difference": difference[i]}
            row[f"{key}_difference{INTERVAL}"] = [interval.low[i], interval.high[i]]
        for test in TESTS:
            tested, holm = getattr(comparison, test), comparison.holm[test][i]
            row[test] = {"statistic": tested.statistic[i], "p_value": tested.p_value[i], "p_holm": holm}
        metrics[name] = row | {"n": comparison.t_test.n[i], "undefined": comparison.t_test.undefined[i]}
    head = {"first": first, "second": second, f"{comparison.unit}s": len(comparison.patients), "only": comparison.only}
    return undefined_as_null({**head, "all_swaps": comparison.exact, "metrics": metrics})


def best_first(metric: Metric, values: Any) -> Any:
    """Return the order of cases by a metric, the worst first, undefined ones last."""
    key = np.asarray(values, np.float64)
    return np.argsort(key if metric.best > 0 else -key, kind="stable")
