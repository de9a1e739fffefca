"""The strips of a cohort: of each number over all cases, over those of each group, and of two models' differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dask_uncert.metrics import cohort as cohort_metrics
from dask_uncert.metrics.cohort import patient_values
from dask_uncert.reports.figures.strip_plot import Axis, Strip, axis_of, strip, three
from dask_uncert.reports.results.cohort import CohortStatistics, OtherModel
from dask_uncert.reports.results.headline import Metric

HEIGHT, LOW_HEIGHT = 58.0, 36.0  # pixels across a strip; across one of a group


def axes_of(numbers: CohortStatistics) -> dict[str, Axis]:
    """By the name of a metric its axis, which it may share; it holds every case and every interval."""
    held: dict[str, list[float]] = {}
    ends: dict[str, tuple[float, float]] = {}
    groups = [of for parts in numbers.shown.values() for of in parts.values()]
    for metric in numbers.headline:
        values = held.setdefault(metric.axis, [])
        values += [float(value) for value in numbers.table[metric.name]]
        for of in (numbers.whole, *groups):
            i = of.metrics.index(metric.name)
            for value, interval in ((of.pooled, of.pooled_interval), (of.mean, of.mean_interval)):
                values += [v for v in three(value[i], interval, i) if v is not None]
        ends[metric.axis] = metric.low, metric.high
    axes = {name: axis_of(values, *ends[name]) for name, values in held.items()}
    return {metric.name: axes[metric.axis] for metric in numbers.headline}


def whole_strips(numbers: CohortStatistics) -> Iterator[tuple[Metric, Strip]]:
    """Of each metric the strip of all cases."""
    axes, cases = axes_of(numbers), range(len(numbers.cohort.stack))
    for metric in numbers.headline:
        yield metric, _strip(numbers, numbers.whole, metric, axes[metric.name], cases, HEIGHT)


def group_strips(numbers: CohortStatistics, column: str, metric: Metric) -> dict[str, Strip]:
    """Of one metric the strips of the groups of a column, by their value."""
    axis, labels = axes_of(numbers)[metric.name], np.asarray(numbers.cohort.stack.groups[column], object)
    return {
        value: _strip(numbers, of, metric, axis, np.flatnonzero(labels == value).tolist(), LOW_HEIGHT)
        for value, of in numbers.shown[column].items()
    }


def difference_strips(numbers: CohortStatistics, against: OtherModel) -> Iterator[tuple[Metric, Strip]]:
    """Of each metric the strip of patients' differences, this model less the other; 0 is on its axis."""
    one = against.comparison
    metrics = [metric for metric in numbers.headline if metric.name in one.metrics]
    names = [metric.name for metric in metrics]
    common = sorted(set(numbers.cohort.stack.names) & set(against.stack.names))
    stacks = (numbers.cohort.stack.select(common), against.stack.select(common))
    first, second = (patient_values(stack, names)[1] for stack in stacks)
    number = {name: i for i, name in enumerate(numbers.whole.patients)}
    patients = [number[name] for name in one.patients]
    with np.errstate(invalid="ignore"):
        differences = first - second
    for k, metric in enumerate(metrics):
        i = one.metrics.index(metric.name)
        mean = three(one.mean_difference[i], one.mean_interval, i)
        pooled = three(one.pooled_difference[i], one.pooled_interval, i)
        ends = [0.0, *(value for value in (*mean, *pooled) if value is not None)]
        axis = axis_of([*differences[:, k].tolist(), *ends])
        yield metric, strip(axis, patients, differences[:, k], np.full(5, np.nan), mean, pooled, HEIGHT)


def _strip(
    numbers: CohortStatistics,
    of: cohort_metrics.GroupStatistics,
    metric: Metric,
    axis: Axis,
    cases: Sequence[int],
    height: float,
) -> Strip:
    """The strip of a metric over these cases, which are those of `of`."""
    i = of.metrics.index(metric.name)
    values = np.asarray(numbers.table[metric.name], np.float64)[list(cases)]
    mean = three(of.mean[i], of.mean_interval, i)
    pooled = three(of.pooled[i], of.pooled_interval, i)
    return strip(axis, cases, values, of.quantiles[:, i], mean, pooled, height)
