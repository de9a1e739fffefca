"""A sweep as text for people and as CSV or JSON for machines."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import Any

from dask_uncert.metrics.sweep import WIDE, Sweep

SHOWN = ("TP", "TN", "FP", "FN", "accuracy", "precision", "recall", "false_positive_rate", "f1")
HEADS = {"false_positive_rate": "FPR", "f1": "F1"}


def as_table(found: Sweep) -> str:
    """Settings down, numbers across; behind each the most it may be off, where that shows."""
    head = ["threshold", "sigma", "damping", "share", *(HEADS.get(name, name) for name in SHOWN)]
    lines = [head]
    for row in found.rows():
        settings = [f"{row[name]:g}" for name in ("threshold", "sigma", "damping")]
        shown = [_with_bound(row[name], row[f"{name}_bound"]) for name in SHOWN]
        lines.append([*settings, f"{100 * row['share']:.1f} %", *shown])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in lines
    )


def _with_bound(value: float, bound: float) -> str:
    """With the digits that the bound leaves, four at most.

    >>> _with_bound(0.75, 1e-9), _with_bound(0.75, 0.0123), _with_bound(math.nan, math.nan)
    ('0.7500', '0.75±0.013', '–')
    """
    if math.isnan(value):
        return "–"
    if bound < 5e-5:
        return f"{value:,.4f}"
    digits = max(0, 1 - math.floor(math.log10(bound)))
    above = math.ceil(bound * 10**digits) / 10**digits  # a bound is never rounded down
    return f"{value:,.{max(digits - 1, 1)}f}±{above:,.{digits}f}"


def as_csv(found: Sweep) -> str:
    """A row a setting, every digit; undefined numbers are empty."""
    rows = found.rows()
    text = io.StringIO()
    writer = csv.DictWriter(text, ["class", "uncertainty", *rows[0]], lineterminator="\n")
    writer.writeheader()
    about = {"class": found.class_name, "uncertainty": found.uncertainty or ""}
    for row in rows:
        writer.writerow(
            {**about, **{k: "" if math.isnan(v) else repr(v) for k, v in row.items()}},
        )
    return text.getvalue()


def as_json(found: Sweep) -> str:
    """A list of mappings, every digit; undefined numbers are null."""
    about: dict[str, Any] = {"class": found.class_name, "uncertainty": found.uncertainty}
    rows = [{**about, **{k: v if math.isfinite(v) else None for k, v in row.items()}} for row in found.rows()]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def warning(found: Sweep) -> str | None:
    """What to say where bounds are wide; None where none is."""
    number = found.wide
    if not number:
        return None
    return (
        f"at {number} of {found.share.size} settings the bound of a metric is above {WIDE:g}: the joint histogram is "
        f"too coarse there, or little weight is left. Name the threshold under `soft_confusion`, or give "
        f"`sweep: {{error: ..., memory: ...}}`, and run the job again."
    )
