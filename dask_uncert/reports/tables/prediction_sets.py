"""The table of prediction sets: a row per wanted coverage for all pixels, then one for those of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dask_uncert.reports.results.intervals import INTERVAL

SHARES = ("coverage", "mean_size", "empty")
UNITS = {
    "n": "patients or tiles",
    "mean": "mean of their coverage",
    "lowest": "lowest",
    "quantile_0.05": "quantile 0.05",
}
BELOW = "below the wanted coverage"


def prediction_sets_table(rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return the table, a header first; cells that do not apply are empty."""
    ends = [f"{key}{end}" for key in SHARES for end in ("", " low", " high")]
    header = ["wanted coverage", "class", "threshold", "own threshold", *ends, *UNITS.values(), BELOW]
    table: list[list[Any]] = [header]
    for row in rows:
        units = row["by_unit"]
        of_units = [None] * (len(UNITS) + 1) if units is None else [units[key] for key in (*UNITS, "below_wanted")]
        table.append([row["coverage_wanted"], "", row["threshold"], None, *_shares(row), *of_units])
        for c in row["classes"]:
            head = [row["coverage_wanted"], c["name"], row["threshold"], c["own_threshold"]]
            table.append([*head, *_shares(c), *[None] * (len(UNITS) + 1)])
    return table


def _shares(row: Mapping[str, Any]) -> list[Any]:
    return [x for key in SHARES for x in (row.get(key), *(row.get(f"{key}{INTERVAL}") or (None, None)))]
