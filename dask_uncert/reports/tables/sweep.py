"""A sweep as text, CSV or JSON."""

from __future__ import annotations

import math
from typing import Any

from dask_uncert.metrics.sweep import WIDE, Sweep
from dask_uncert.reports.results.scene import to_json, undefined_as_null
from dask_uncert.reports.tables import csv

SHOWN = ("TP", "TN", "FP", "FN", "accuracy", "precision", "recall", "false_positive_rate", "f1")
HEADINGS = {"false_positive_rate": "FPR", "f1": "F1"}


def as_table(swept: Sweep) -> str:
    """Return a table with a line per setting; numbers have their error bound if it shows in four decimals."""
    lines = [["threshold", "sigma", "damping", "share", *(HEADINGS.get(name, name) for name in SHOWN)]]
    for row in swept.rows():
        settings = [f"{row[name]:g}" for name in ("threshold", "sigma", "damping")]
        shown = [_with_bound(row[name], row[f"{name}_bound"]) for name in SHOWN]
        lines.append([*settings, f"{100 * row['share']:.1f} %", *shown])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in lines)


def as_csv(swept: Sweep) -> str:
    """Return CSV with a row per setting and every digit; undefined numbers are empty."""
    return csv.as_csv(csv.with_header(_rows(swept)))


def as_json(swept: Sweep) -> str:
    """Return JSON with a mapping per setting and every digit; undefined numbers are null."""
    return to_json([undefined_as_null(row) for row in _rows(swept)])


def warning(swept: Sweep) -> str | None:
    """Return a warning if some bounds are wide, otherwise None."""
    if not swept.wide:
        return None
    return (
        f"at {swept.wide} of {swept.share.size} settings the error bound of a metric is above {WIDE:g}: the joint "
        f"histogram is too coarse there, or little weight is left. Add the threshold to `soft_confusion`, or set "
        f"`sweep: {{error: ..., memory: ...}}`, and run the job again."
    )


def _rows(swept: Sweep) -> list[dict[str, Any]]:
    return [{"class": swept.class_name, "uncertainty": swept.uncertainty, **row} for row in swept.rows()]


def _with_bound(value: float, bound: float) -> str:
    """Return a value with the digits that its error bound allows, at most four.

    >>> _with_bound(0.75, 1e-9), _with_bound(0.75, 0.0123), _with_bound(math.nan, math.nan)
    ('0.7500', '0.75±0.013', '–')
    """
    if math.isnan(value):
        return "–"
    if bound < 5e-5:
        return f"{value:,.4f}"
    digits = max(0, 1 - math.floor(math.log10(bound)))
    above = math.ceil(bound * 10**digits) / 10**digits  # never round a bound down
    return f"{value:,.{max(digits - 1, 1)}f}±{above:,.{digits}f}"
