"""Tables of a cohort: a row a case, a metric, a metric and group, or a metric of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.summaries.stack import Case

COUNTS = ("counted", "excluded/", "repaired/")


def cohort_tables(statistics: CohortStatistics) -> dict[str, list[Sequence[Any]]]:
    """Return the rows of every table of a cohort by its name, a header first."""
    cohort = statistics.cohort
    tables = {"patients": _patients(statistics), "cohort": with_header(statistics.whole.rows())}
    if statistics.groups:
        tables["groups"] = with_header(_groups(statistics))
    if statistics.raters:
        raters = statistics.raters.items()
        tables["raters"] = with_header([{"rater": name, **row} for name, of in raters for row in of.rows()])
    if cohort.failed:
        tables["failed"] = [("case", "reason"), *cohort.failed.items()]
    if cohort.against is not None:
        tables["comparison"] = with_header(cohort.against.comparison.rows())
    return tables


def with_header(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """Return the keys of the rows, which all have the same, and their values."""
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def _patients(statistics: CohortStatistics) -> list[Sequence[Any]]:
    """Return a row a case, sorted by name: who it is, whether it failed and why, its counts and all its numbers."""
    cohort, table = statistics.cohort, statistics.table
    visits = "visit" in table or any(case.visit for case in cohort.lost.values())
    who = ["case", "patient", *(["visit"] if visits else []), *cohort.stack.groups]
    numbers = [name for name in table if name not in who]
    header = [*who, "status", "reason"]
    header += [f"{name} (pixels)" if name.startswith(COUNTS) else name for name in numbers]
    rows: dict[str, Sequence[Any]] = {}
    for i, name in enumerate(table["case"]):
        known = [table[key][i] if key in table else "" for key in who]
        rows[name] = [*known, "evaluated", "", *(table[key][i] for key in numbers)]
    for name, reason in cohort.failed.items():
        case = cohort.lost.get(name, Case(""))
        values = {"case": name, "patient": case.patient, "visit": case.visit, **dict(case.groups)}
        rows[name] = [*(values.get(key, "") for key in who), "failed", reason, *([""] * len(numbers))]
    return [header, *(rows[name] for name in sorted(rows))]


def _groups(statistics: CohortStatistics) -> list[dict[str, Any]]:
    """Return a row a grouping column, value and metric; intervals of the headline, where there are few groups."""
    rows, keys = [], list(statistics.whole.rows()[0])
    for column, groups in statistics.groups.items():
        for value, of in groups.items():
            shown = statistics.shown.get(column, {}).get(value)
            better = {} if shown is None else {row["metric"]: row for row in shown.rows()}
            head = {"group": column, "value": value, "cases": statistics.sizes[column][value]}
            for row in of.rows():
                numbers = better.get(row["metric"], row)
                rows.append(
                    {**head, "patients": len(of.patients), **{key: numbers.get(key, "") for key in keys}}
                )
    return rows
