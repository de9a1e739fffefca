"""What is said of a cohort beside its pooled numbers: who is in it, who failed, and what is read off the cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.metrics import cohort as cohort_metrics
from dask_uncert.metrics.comparison import TESTS, Comparison
from dask_uncert.metrics.scalars import QUANTILES
from dask_uncert.reports.results.headline import Metric, headline
from dask_uncert.reports.results.intervals import INTERVAL, Intervals
from dask_uncert.reports.results.scene import results, undefined_as_null
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Case, Stack

MOST_GROUPS = 24
"""Values of a grouping column; one with more is in `tables/groups.csv` alone, without intervals."""


@dataclass(frozen=True)
class OtherModel:
    """Another model on the same cases: what it is called, its cases, the comparison, this model the first, its level."""

    name: str
    stack: Stack
    comparison: Comparison
    level: float


@dataclass(frozen=True)
class Cohort:
    """The cases of a finished evaluation; why others failed, by name; how intervals are asked for, as in the job.

    lost: who they are that failed, as far as it is known. pictures: gives the maps of a case, of a size to show.
    raters: the same cases against each rater alone, by the rater's name.
    """

    stack: Stack
    failed: Mapping[str, str] = field(default_factory=dict)
    confidence: Mapping[str, Any] | None = None
    lost: Mapping[str, Case] = field(default_factory=dict)
    pictures: Callable[[str], Mapping[str, Any]] | None = None
    against: OtherModel | None = None
    raters: Mapping[str, Stack] = field(default_factory=dict)

    def how(self) -> Confidence | None:
        """How intervals are made; None without any, also where one patient says nothing of how patients differ."""
        if self.confidence is None or len(set(self.stack.patients)) < 2:
            return None
        return Confidence(*(self.confidence[word] for word in ("replicates", "level", "seed")))


@dataclass(frozen=True)
class CohortStatistics:
    """All that is read off the cases. groups: every metric, without intervals, by column and value.

    shown: the metrics of the headline, with intervals; columns of few values alone. table: a row a case. raters: the
    metrics of the headline against each rater, with intervals.
    """

    cohort: Cohort
    headline: tuple[Metric, ...]
    whole: cohort_metrics.GroupStatistics
    groups: dict[str, dict[str, cohort_metrics.GroupStatistics]]
    shown: dict[str, dict[str, cohort_metrics.GroupStatistics]]
    sizes: dict[str, dict[str, int]]
    table: dict[str, Sequence[Any]]
    raters: dict[str, cohort_metrics.GroupStatistics] = field(default_factory=dict)


def cohort_statistics(cohort: Cohort, evaluation: Evaluation) -> CohortStatistics:
    """Read everything off the cases; evaluation: their sum."""
    stack, how, shown = cohort.stack, cohort.how(), headline(evaluation)
    names, each = [metric.name for metric in shown], cohort_metrics.case_scalars(stack)
    sizes = {column: dict(sorted(Counter(values).items())) for column, values in stack.groups.items()}
    few = [column for column, parts in sizes.items() if len(parts) <= MOST_GROUPS]
    return CohortStatistics(
        cohort,
        shown,
        cohort_metrics.cohort(stack, how, None, each),
        {column: cohort_metrics.cohort_by(stack, column, None, None, each) for column in sizes},
        {column: cohort_metrics.cohort_by(stack, column, how, names, each) for column in few},
        sizes,
        cohort_metrics.case_table(stack, each),
        {name: cohort_metrics.cohort(of, how, names) for name, of in cohort.raters.items()},
    )


def cohort_intervals(statistics: CohortStatistics) -> Intervals | None:
    """Return the intervals of the pooled numbers of a cohort; None where there are none."""
    whole, confidence = statistics.whole, statistics.cohort.how()
    if confidence is None or whole.pooled_interval is None:
        return None
    ends = zip(whole.metrics, *whole.pooled_interval, strict=True)
    by_name = {name: Interval(*interval) for name, *interval in ends}
    return Intervals(by_name, {"unit": "patient", "units": len(whole.patients)}, confidence)


def cohort_results(evaluation: Evaluation, statistics: CohortStatistics) -> dict[str, Any]:
    """Return the results of a cohort: those of its pooled evaluation, and what is read off its cases."""
    cohort, whole = statistics.cohort, statistics.whole
    found = results(evaluation, cohort_intervals(statistics))
    by_rater = {name: _group(len(cohort.raters[name]), of) for name, of in statistics.raters.items()}
    found["cohort"] = {
        "cases": len(cohort.stack),
        "patients": len(whole.patients),
        "groups": statistics.sizes,
        "headline": [metric.name for metric in statistics.headline],
        "metrics": _metrics(whole),
        "by_group": {
            column: {value: _group(statistics.sizes[column][value], of) for value, of in groups.items()}
            for column, groups in statistics.shown.items()
        },
        **({"by_rater": by_rater} if by_rater else {}),
    }
    found["failed"] = [{"case": name, "reason": reason} for name, reason in cohort.failed.items()]
    if "confidence" in found:
        found["confidence"] = found.pop("confidence")
    if cohort.against is not None:
        found["comparison"] = comparison_results(cohort.against.comparison, "this", cohort.against.name)
    plain: dict[str, Any] = undefined_as_null(found)
    return plain


def _group(cases: int, of: cohort_metrics.GroupStatistics) -> dict[str, Any]:
    return {"cases": cases, "patients": len(of.patients), "metrics": _metrics(of)}


def _metrics(of: cohort_metrics.GroupStatistics) -> dict[str, Any]:
    found = {}
    for i, name in enumerate(of.metrics):
        one: dict[str, Any] = {}
        for key, values, ends in (
            ("pooled", of.pooled, of.pooled_interval),
            ("mean", of.mean, of.mean_interval),
        ):
            one[key] = values[i]
            if ends is not None:
                one[f"{key}{INTERVAL}"] = [ends.low[i], ends.high[i]]
        found[name] = one | {
            "std": of.std[i],
            "median": of.quantiles[QUANTILES.index(0.5), i],
            "quantiles": {f"{q:g}": of.quantiles[k, i] for k, q in enumerate(QUANTILES)},
            "at": {f"{q:g}": of.at[k][i] or None for k, q in enumerate(QUANTILES)},
            "n": of.n[i],
            "undefined": of.undefined[i],
        }
    return found


def comparison_results(found: Comparison, first: str, second: str) -> dict[str, Any]:
    """Two models compared, as plain data: the part `comparison` of results, and what `compare --json` prints."""
    metrics = {}
    for i, name in enumerate(found.metrics):
        one: dict[str, Any] = {}
        for key, both, difference, ends in (
            ("mean", found.mean, found.mean_difference, found.mean_interval),
            ("pooled", found.pooled, found.pooled_difference, found.pooled_interval),
        ):
            interval = [ends.low[i], ends.high[i]]
            one |= {
                key: both[:, i],
                f"{key}_difference": difference[i],
                f"{key}_difference{INTERVAL}": interval,
            }
        for test in TESTS:
            of = getattr(found, test)
            one[test] = {
                "statistic": of.statistic[i],
                "p_value": of.p_value[i],
                "p_holm": found.holm[test][i],
            }
        metrics[name] = one | {"n": found.t_test.n[i], "undefined": found.t_test.undefined[i]}
    plain: dict[str, Any] = undefined_as_null(
        {
            "first": first,
            "second": second,
            "patients": len(found.patients),
            "only": [list(names) for names in found.only],
            "all_swaps": found.exact,
            "metrics": metrics,
        }
    )
    return plain


def best_first(metric: Metric, values: Any) -> Any:
    """Order of cases by a metric, the worst first; undefined ones last."""
    key = np.asarray(values, np.float64)
    return np.argsort(key if metric.best > 0 else -key, kind="stable")
