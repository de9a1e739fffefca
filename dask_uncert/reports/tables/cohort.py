"""Tables of a cohort: its cases, its metrics, its metrics by group and by rater, and a comparison of models."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.reports.tables.csv import with_header
from dask_uncert.summaries.case import Case

COUNTS = ("counted", "excluded/", "repaired/")


def cohort_tables(statistics: CohortStatistics) -> dict[str, list[list[Any]]]:
    """Return the rows of every table of a cohort, a header first, by name."""
    cohort = statistics.cohort
    headline = {metric.name for metric in statistics.headline}
    tables = {
        "patients": _patients(statistics, {"counted", *headline}),
        "patients_all": _patients(statistics),
        "cohort": with_header(statistics.whole.rows()),
    }
    if statistics.groups:
        tables["groups"] = with_header(_groups(statistics))
    if statistics.raters:
        raters = statistics.raters.items()
        rows = [{"rater": name, **row} for name, rated in raters for row in rated.rows()]
        tables["raters"] = with_header(rows)
    if cohort.failed:
        tables["failed"] = [["case", "reason"], *map(list, cohort.failed.items())]
    if cohort.against is not None:
        tables["comparison"] = with_header(cohort.against.comparison.rows())
    return tables


def _patients(statistics: CohortStatistics, only: Container[str] | None = None) -> list[list[Any]]:
    """Return a row per case, sorted by name: patient and groups, status and reason, counts and scalars.

    only: names of the counts and scalars to show; by default all.
    """
    cohort, table = statistics.cohort, statistics.table
    visits = "visit" in table or any(case.visit for case in cohort.lost.values())
    head = ["case", "patient", *(["visit"] if visits else []), *cohort.stack.groups]
    numbers = [name for name in table if name not in head and (only is None or name in only)]
    header = [*head, "status", "reason"]
    header += [f"{name} (pixels)" if name.startswith(COUNTS) else name for name in numbers]
    rows: dict[str, list[Any]] = {}
    for i, name in enumerate(table["case"]):
        values = [table[key][i] if key in table else "" for key in head]
        rows[name] = [*values, "evaluated", "", *(table[key][i] for key in numbers)]
    for name, reason in cohort.failed.items():
        case = cohort.lost.get(name, Case(""))
        known = {"case": name, "patient": case.patient, "visit": case.visit, **dict(case.groups)}
        rows[name] = [*(known.get(key, "") for key in head), "failed", reason, *([""] * len(numbers))]
    return [header, *(rows[name] for name in sorted(rows))]


def _groups(statistics: CohortStatistics) -> list[dict[str, Any]]:
    """Return a row per grouping column, value and metric; headline metrics of few groups have intervals."""
    rows, keys = [], list(statistics.whole.rows()[0])
    for column, groups in statistics.groups.items():
        for value, group in groups.items():
            shown = statistics.shown.get(column, {}).get(value)
            with_intervals = {} if shown is None else {row["metric"]: row for row in shown.rows()}
            sizes = {"cases": statistics.sizes[column][value], "patients": len(group.patients)}
            for row in group.rows():
                numbers = with_intervals.get(row["metric"], row)
                numbers = {key: numbers.get(key, "") for key in keys}
                rows.append({"group": column, "value": value, **sizes, **numbers})
    return rows
