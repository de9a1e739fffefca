"""The tables of a cohort: a row a case, a row a metric, a row a metric and group, a row a metric of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dask_uncert.metrics import cohort as cohort_metrics
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.summaries.stack import Case

WHO = ("case", "patient", "visit")
PIXELS = (" (pixels)", ("counted", "excluded/", "repaired/"))
INTERVALS = tuple(
    f"{name}_{end}" for name in ("pooled", "mean") for end in ("low", "high", "undefined_replicates")
)


def cohort_tables(numbers: CohortStatistics) -> dict[str, list[Sequence[Any]]]:
    """Return the rows of every table of a cohort by its name, the header first."""
    cohort = numbers.cohort
    made: dict[str, list[Sequence[Any]]] = {
        "patients": patient_rows(numbers),
        "cohort": header_and(numbers.whole.rows()),
    }
    if numbers.groups:
        made["groups"] = header_and(group_rows(numbers))
    if numbers.raters:
        by_rater = [{"rater": name, **row} for name, of in numbers.raters.items() for row in of.rows()]
        made["raters"] = header_and(by_rater)
    if cohort.failed:
        made["failed"] = [("case", "reason"), *cohort.failed.items()]
    if cohort.against is not None:
        made["comparison"] = header_and(cohort.against.comparison.rows())
    return made


def patient_rows(numbers: CohortStatistics) -> list[Sequence[Any]]:
    """A row a case, sorted by name: who it is, whether it failed and why, its counts and all its numbers."""
    table, failed, lost = numbers.table, numbers.cohort.failed, numbers.cohort.lost
    groups = list(numbers.cohort.stack.groups)
    about = [name for name in WHO if name in table or any(case.visit for case in lost.values())]
    counts = [name for name in table if name not in (*about, *groups)]
    unit, counted = PIXELS
    head = [*about, *groups, "status", "reason"]
    head += [f"{name}{unit}" if name.startswith(counted) else name for name in counts]
    known = {column: table.get(column, [""] * len(table["case"])) for column in (*about, *groups)}
    rows: dict[str, Sequence[Any]] = {}
    for i, name in enumerate(table["case"]):
        who = [known[column][i] for column in (*about, *groups)]
        rows[name] = [*who, "evaluated", "", *(table[column][i] for column in counts)]
    for name, reason in failed.items():
        case = lost.get(name, Case(""))
        said = {"case": name, "patient": case.patient, "visit": case.visit, **dict(case.groups)}
        who = [said.get(column, "") for column in (*about, *groups)]
        rows[name] = [*who, "failed", reason, *([""] * len(counts))]
    return [head, *(rows[name] for name in sorted(rows))]


def group_rows(numbers: CohortStatistics) -> list[dict[str, Any]]:
    """A row a grouping column, value and metric; intervals of the metrics of the headline, where there are few groups."""
    found = []
    intervals = INTERVALS if numbers.whole.pooled_interval is not None else ()
    for column, parts in numbers.groups.items():
        for value, of in parts.items():
            shown = by_metric(numbers.shown.get(column, {}).get(value))
            sizes = {"cases": numbers.sizes[column][value], "patients": len(of.patients)}
            for row in of.rows():
                with_ends = shown.get(row["metric"], row)
                order = ["metric", *(key for key in row if key != "metric")]
                at = order.index("std")
                keys = [*order[:at], *intervals, *order[at:]]
                found.append(
                    {
                        "group": column,
                        "value": value,
                        **sizes,
                        **{key: with_ends.get(key, "") for key in keys},
                    }
                )
    return found


def by_metric(of: cohort_metrics.GroupStatistics | None) -> dict[str, dict[str, Any]]:
    """The rows of a Cohort by their metric."""
    return {} if of is None else {row["metric"]: row for row in of.rows()}


def header_and(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The keys of the rows, which are the same of all, and their values."""
    return [list(rows[0]), *(list(row.values()) for row in rows)]
