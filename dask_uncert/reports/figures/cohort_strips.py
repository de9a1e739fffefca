"""The strips of a cohort: each metric over all cases and over each group, and its difference from another model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dask_uncert.metrics import cohort as cohort_metrics
from dask_uncert.metrics.cohort import patient_values
from dask_uncert.reports.figures.strips import Axis, Strip, axis_of, strip, with_interval
from dask_uncert.reports.results.cohort import CohortStatistics, OtherModel
from dask_uncert.reports.results.headline import Metric

HEIGHT, LOW_HEIGHT = 58.0, 36.0  # pixels, of a strip and of the strip of a group


def axes_of(statistics: CohortStatistics) -> dict[str, Axis]:
    """Return the axis of each metric, which holds every case and interval; some metrics share one."""
    held: dict[str, list[float]] = {}
    ends: dict[str, tuple[float, float]] = {}
    groups = [group for parts in statistics.shown.values() for group in parts.values()]
    for metric in statistics.headline:
        values = held.setdefault(metric.axis, [])
        values += [float(value) for value in statistics.table[metric.name]]
        for cohort in (statistics.whole, *groups):
            values += [value for mark in mean_and_pooled(cohort, metric) for value in mark if value is not None]
        ends[metric.axis] = metric.low, metric.high
    axes = {name: axis_of(values, *ends[name]) for name, values in held.items()}
    return {metric.name: axes[metric.axis] for metric in statistics.headline}


def whole_strips(statistics: CohortStatistics) -> Iterator[tuple[Metric, Strip]]:
    """Yield each metric with the strip of all cases."""
    axes, cases = axes_of(statistics), range(len(statistics.cohort.stack))
    for metric in statistics.headline:
        yield metric, _strip(statistics, statistics.whole, metric, axes[metric.name], cases, HEIGHT)


def group_strips(statistics: CohortStatistics, column: str, metric: Metric) -> dict[str, Strip]:
    """Return the strips of the groups of a column, by the column's value."""
    axis = axes_of(statistics)[metric.name]
    labels = np.asarray(statistics.cohort.stack.groups[column], object)
    return {
        value: _strip(statistics, group, metric, axis, np.flatnonzero(labels == value).tolist(), LOW_HEIGHT)
        for value, group in statistics.shown[column].items()
    }


def difference_strips(statistics: CohortStatistics, against: OtherModel) -> Iterator[tuple[Metric, Strip]]:
    """Yield each metric with the strip of its differences, this model minus the other; the axis includes 0."""
    comparison, stack = against.comparison, statistics.cohort.stack
    metrics = [metric for metric in statistics.headline if metric.name in comparison.metrics]
    names = [metric.name for metric in metrics]
    common = sorted(set(stack.names) & set(against.stack.names))
    first, second = (patient_values(part.select(common), names)[1] for part in (stack, against.stack))
    number = {name: i for i, name in enumerate(statistics.whole.patients)}
    patients = [number[name] for name in comparison.patients]
    with np.errstate(invalid="ignore"):
        differences = first - second
    for k, metric in enumerate(metrics):
        i = comparison.metrics.index(metric.name)
        mean = with_interval(comparison.mean_difference, comparison.mean_interval, i)
        pooled = with_interval(comparison.pooled_difference, comparison.pooled_interval, i)
        ends = [0.0, *(value for value in (*mean, *pooled) if value is not None)]
        axis = axis_of([*differences[:, k].tolist(), *ends])
        yield metric, strip(axis, patients, differences[:, k], np.full(5, np.nan), mean, pooled, HEIGHT)


def mean_and_pooled(
    cohort: cohort_metrics.GroupStatistics, metric: Metric
) -> tuple[list[float | None], list[float | None]]:
    """Return the mean over patients and the pooled number of a metric, each with the ends of its interval."""
    i = cohort.metrics.index(metric.name)
    return (
        with_interval(cohort.mean, cohort.mean_interval, i),
        with_interval(cohort.pooled, cohort.pooled_interval, i),
    )


def _strip(
    statistics: CohortStatistics,
    cohort: cohort_metrics.GroupStatistics,
    metric: Metric,
    axis: Axis,
    cases: Sequence[int],
    height: float,
) -> Strip:
    """Return the strip of a metric over the cases of a cohort."""
    values = np.asarray(statistics.table[metric.name], np.float64)[list(cases)]
    quantiles = cohort.quantiles[:, cohort.metrics.index(metric.name)]
    return strip(axis, cases, values, quantiles, *mean_and_pooled(cohort, metric), height)
