"""Data for the template of zones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dask_uncert.metrics.scalars import scalars_by_path
from dask_uncert.reports.figures.strips import Axis, Mark, axis_of
from dask_uncert.reports.page.formatting import number
from dask_uncert.reports.results.headline import Metric, headline
from dask_uncert.reports.results.intervals import INTERVAL
from dask_uncert.reports.tables.zones import at_path
from dask_uncert.summaries.evaluation import Evaluation

MOST_ROWS, MOST_COLUMNS = 60, 6


def zones_context(evaluation: Evaluation, results: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the context of `zones.html.jinja`; None without zones."""
    sections: Mapping[str, Any] = results.get("zones", {})
    if not sections:
        return None
    paths, by_name = {"/".join(path): path for path in scalars_by_path(evaluation)}, scalars_by_path(evaluation)
    metrics = _columns(headline(evaluation))
    largest = sorted(sections, key=lambda name: -sections[name]["counted"])[:MOST_ROWS]
    rows = [name for name in sections if name in set(largest)]
    columns, heads = [], []
    for metric in metrics:
        *before, last = paths[metric.name]
        ends = (*before, f"{last}{INTERVAL}")
        cells = [
            (at_path(sections[n], paths[metric.name]), *(at_path(sections[n], ends) or (None, None))) for n in rows
        ]
        axis = axis_of([x for cell in cells for x in cell if x is not None], metric.low, metric.high)
        heads.append({"short": metric.short, "axis": f"{axis.low:g} to {axis.high:g}, best {metric.best:g}"})
        columns.append([_cell(axis, *cell) for cell in cells])
    intervals = any("tiles" in section for section in sections.values())
    level = results.get("confidence", {}).get("level")
    return {
        "number": len(sections),
        "outside": sum(n for reason, n in results["excluded"].items() if reason.startswith("zones_")),
        "sentences": [s for metric in metrics[:2] for s in _extremes(metric, paths[metric.name], sections)],
        "metrics": heads,
        "intervals": intervals,
        "note": f", with {100 * level:g} % intervals from the tiles in it" if intervals and level else "",
        "rows": [
            {"name": name, "code": sections[name]["code"], "counted": sections[name]["counted"], "cells": cells}
            for name, cells in zip(rows, zip(*columns, strict=True), strict=True)
        ],
        "all": [float(by_name[paths[metric.name]]) for metric in metrics],
        "hidden": len(sections) > len(rows),
    }


def _columns(metrics: tuple[Metric, ...]) -> list[Metric]:
    """Return the metrics that are shown: those of all classes first."""
    whole = [metric for metric in metrics if not metric.name.startswith(("classes/", "soft_confusion/"))]
    return [*whole, *(metric for metric in metrics if metric not in whole)][:MOST_COLUMNS]


def _cell(axis: Axis, value: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "mark": Mark(*map(axis.percent, (value, low, high)))}


def _extremes(metric: Metric, path: tuple[str, ...], sections: Mapping[str, Any]) -> list[str]:
    """Return a sentence about the lowest and the highest value of a metric, with fewer than two defined none."""
    values = {name: value for name, section in sections.items() if (value := at_path(section, path)) is not None}
    if len(values) < 2:
        return []
    least, most = min(values, key=lambda name: values[name]), max(values, key=lambda name: values[name])
    return [f"{metric.label}: from {number(values[least], 3)} in {least} to {number(values[most], 3)} in {most}."]
