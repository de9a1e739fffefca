"""What the page shows of a cohort, as plain data for its templates: strips, groups, cases, a model comparison."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
from markupsafe import Markup

from dask_uncert.reports.figures.cohort_strips import difference_strips, group_strips, whole_strips
from dask_uncert.reports.figures.maps import map_names
from dask_uncert.reports.figures.thumbnails import legend, thumbnail
from dask_uncert.reports.page.payload import text
from dask_uncert.reports.results.cohort import CohortStatistics, OtherModel, best_first
from dask_uncert.summaries.evaluation import Evaluation

MOST_ROWS = 100  # cases of the page's table
PRINTED = 30  # of them, on paper
MOST_CARDS = 12  # cases with pictures
MOST_PICTURES = 4  # of a case
MOST_GROUP_DOTS = 8000
"""Of all groups and metrics; where there would be more, groups are shown by the first metric alone."""


def cohort_words(numbers: CohortStatistics, found: dict[str, Any], evaluation: Evaluation) -> dict[str, Any]:
    """Everything that `page/cohort.html.jinja` and `page/against.html.jinja` say; found: the results."""
    cohort, first = numbers.cohort, numbers.headline[0]
    order = best_first(first, numbers.table[first.name])
    return {
        "metrics": numbers.headline,
        "several": len(cohort.stack) > len(numbers.whole.patients),
        "interval": found.get("confidence"),
        "failed": cohort.failed,
        "of": found["cohort"],
        "strips": [{"metric": metric, "strip": one} for metric, one in whole_strips(numbers)],
        "groups": _groups(numbers),
        "rows": _rows(numbers, order[:MOST_ROWS]),
        "printed": PRINTED,
        "columns": list(cohort.stack.groups),
        "cards": _cards(numbers, evaluation, order[:MOST_CARDS]),
        "against": None if cohort.against is None else _against(numbers, cohort.against, found),
        "cases": cohort.stack.names,
        "patients": numbers.whole.patients,
        "names": Markup(
            text({"cohort-cases": cohort.stack.names, "cohort-patients": numbers.whole.patients})
        ),
    }


def _groups(numbers: CohortStatistics) -> list[dict[str, Any]]:
    """By column, for each metric a strip a group."""
    dots = len(numbers.cohort.stack) * len(numbers.shown) * len(numbers.headline)
    metrics = numbers.headline if dots <= MOST_GROUP_DOTS else numbers.headline[:1]
    found = []
    for column in numbers.shown:
        shown = [{"metric": metric, "parts": group_strips(numbers, column, metric)} for metric in metrics]
        found.append({"column": column, "shown": shown})
    return found


def _rows(numbers: CohortStatistics, order: Iterable[int]) -> list[dict[str, Any]]:
    """Cases for the table."""
    table, stack = numbers.table, numbers.cohort.stack
    found = []
    for i in order:
        values = {m.name: _defined(table[m.name][i]) for m in numbers.headline}
        found.append(
            {
                "number": int(i),
                "case": stack.names[i],
                "groups": [table[column][i] for column in stack.groups],
                "counted": table["counted"][i],
                **values,
            }
        )
    return found


def _cards(numbers: CohortStatistics, evaluation: Evaluation, order: Iterable[int]) -> dict[str, Any] | None:
    """Pictures of the worst cases, and what their colours mean; None without maps."""
    give, stack, first = numbers.cohort.pictures, numbers.cohort.stack, numbers.headline[0]
    if give is None:
        return None
    cards, legends = [], {}
    for i in order:
        maps = give(stack.names[i])
        names = list(map_names(maps))[:MOST_PICTURES]
        pictures = []
        for name in names:
            values, dims = maps[name]
            legends[name] = legend(evaluation, name, values)
            content = base64.b64encode(thumbnail(evaluation, name, values)).decode("ascii")
            pictures.append(
                {
                    "title": legends[name].title,
                    "source": f"data:image/png;base64,{content}",
                    "dims": " × ".join(dims[:2]),
                }
            )
        value = _defined(numbers.table[first.name][i])
        groups = [f"{column} {values[i]}" for column, values in stack.groups.items()]
        cards.append(
            {
                "number": int(i),
                "case": stack.names[i],
                "value": value,
                "groups": ", ".join(groups),
                "pictures": pictures,
            }
        )
    return {"cards": cards, "legends": list(legends.values())}


def _against(numbers: CohortStatistics, against: OtherModel, found: dict[str, Any]) -> dict[str, Any]:
    """Differences of two models: a strip a metric, every patient a dot."""
    rows = []
    for metric, one in difference_strips(numbers, against):
        of = found["comparison"]["metrics"][metric.name]
        rows.append({"metric": metric, "strip": one, "zero": one.axis.at(0.0), "of": of})
    return {"name": against.name, "rows": rows, "of": found["comparison"], "level": against.level}


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
