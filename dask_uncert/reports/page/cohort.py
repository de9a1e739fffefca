"""Data for the cohort's templates: strips, groups, cases, and a comparison of models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from markupsafe import Markup

from dask_uncert.reports.figures.cohort_strips import difference_strips, group_strips, whole_strips
from dask_uncert.reports.figures.maps import map_figure_names
from dask_uncert.reports.figures.thumbnails import legend, thumbnail
from dask_uncert.reports.page.payload import json_text
from dask_uncert.reports.page.templates import image_source
from dask_uncert.reports.results.cohort import CohortStatistics, OtherModel, best_first
from dask_uncert.summaries.evaluation import Evaluation

MOST_ROWS = 100  # cases in the table
PRINTED = 30  # cases in the printed table
MOST_CARDS = 12  # cases with pictures
MOST_PICTURES = 4  # per case
MOST_GROUP_DOTS = 8000  # with more dots, groups are shown for the first metric only


def cohort_context(statistics: CohortStatistics, results: Mapping[str, Any], evaluation: Evaluation) -> dict[str, Any]:
    """Return the context of `cohort.html.jinja` and `comparison.html.jinja`."""
    cohort, first = statistics.cohort, statistics.headline[0]
    names, patients = cohort.stack.names, statistics.whole.patients
    order = best_first(first, statistics.table[first.name])
    return {
        "metrics": statistics.headline,
        "several": len(cohort.stack) > len(patients),
        "interval": results.get("confidence"),
        "failed": cohort.failed,
        "results": results["cohort"],
        "strips": [{"metric": metric, "strip": strip} for metric, strip in whole_strips(statistics)],
        "groups": _groups(statistics),
        "rows": [_row(statistics, i) for i in order[:MOST_ROWS]],
        "printed": PRINTED,
        "columns": list(cohort.stack.groups),
        "cards": _cards(statistics, evaluation, order[:MOST_CARDS]),
        "comparison": None if cohort.against is None else _comparison(statistics, cohort.against, results),
        "cases": names,
        "patients": patients,
        "names": Markup(json_text({"cohort-cases": names, "cohort-patients": patients})),
    }


def _groups(statistics: CohortStatistics) -> list[dict[str, Any]]:
    """Return a strip for each group, by column and metric."""
    dots = len(statistics.cohort.stack) * len(statistics.shown) * len(statistics.headline)
    metrics = statistics.headline if dots <= MOST_GROUP_DOTS else statistics.headline[:1]
    groups = []
    for column in statistics.shown:
        shown = [{"metric": metric, "parts": group_strips(statistics, column, metric)} for metric in metrics]
        groups.append({"column": column, "shown": shown})
    return groups


def _row(statistics: CohortStatistics, i: int) -> dict[str, Any]:
    table, stack = statistics.table, statistics.cohort.stack
    return {
        "number": int(i),
        "case": stack.names[i],
        "groups": [table[column][i] for column in stack.groups],
        "counted": table["counted"][i],
        **{metric.name: _defined(table[metric.name][i]) for metric in statistics.headline},
    }


def _cards(statistics: CohortStatistics, evaluation: Evaluation, order: Iterable[int]) -> dict[str, Any] | None:
    """Return pictures of the worst cases and their legends; None without maps."""
    load_maps, stack = statistics.cohort.pictures, statistics.cohort.stack
    if load_maps is None:
        return None
    cards, legends = [], {}
    for i in order:
        maps, pictures = load_maps(stack.names[i]), []
        for name in list(map_figure_names(maps))[:MOST_PICTURES]:
            values, dims = maps[name]
            legends[name] = legend(evaluation, name, values)
            source = image_source("png", thumbnail(evaluation, name, values))
            pictures.append({"title": legends[name].title, "source": source, "dims": " × ".join(dims[:2])})
        value = _defined(statistics.table[statistics.headline[0].name][i])
        groups = ", ".join(f"{column} {values[i]}" for column, values in stack.groups.items())
        card = {"number": int(i), "case": stack.names[i], "value": value, "groups": groups}
        cards.append({**card, "pictures": pictures})
    return {"cards": cards, "legends": list(legends.values())}


def _comparison(statistics: CohortStatistics, against: OtherModel, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the differences of two models: a strip per metric with a dot per patient."""
    comparison = results["comparison"]
    rows = []
    for metric, strip in difference_strips(statistics, against):
        numbers = comparison["metrics"][metric.name]
        rows.append({"metric": metric, "strip": strip, "zero": strip.axis.percent(0.0), "numbers": numbers})
    return {"name": against.name, "rows": rows, "results": comparison, "level": against.level}


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
