"""The last lines of a run: how good, how sure, what was left out, and where everything is."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath

MOST_MEASURES, MOST_REASONS, MOST_DICE = 3, 4, 6
LABELS = {"accuracy": "accuracy", "kappa": "kappa", "macro_f1": "mean F1"}
SCORES = {"ece": "calibration error (ECE)", "mce": "largest gap (MCE)"}
FILES = {
    "report.html": "page",
    "results.json": "every number",
    "tables": "tables",
    "figures": "figures",
    "maps.zarr": "maps",
    "run.json": "how it was run",
}


def show(folder: AnyPath, as_json: bool = False) -> None:
    """Print the summary of an output folder; as_json: its results instead."""
    from dask_uncert.io.output_folder import read_record
    from dask_uncert.jobs.provenance import read_results

    text = read_results(folder)
    if as_json:
        click.echo(text, nl=False)
        return
    there = [f"{name} ({what})" for name, what in FILES.items() if (folder / name).exists()]
    where = "where", f"{folder}: {', '.join(there)}"
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else None
    for label, line in (*lines(json.loads(text), f"{read_record(folder).get('unit', 'pixel')}s"), where):
        click.echo(row(label, line, width))


def row(label: str, line: str, width: int | None) -> str:
    """Return a line behind its label; on a terminal of a width, what does not fit stands below, behind the labels.

    >>> print(row("counted", "9 pixels counted, 12,345 pixels left out", 40))
      counted  9 pixels counted, 12,345
               pixels left out
    """
    head = f"{label:>9}  "
    if width is None:
        return head + line
    wrapper = textwrap.TextWrapper(
        max(width, 40), head, " " * len(head), break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(line)


def lines(results: Mapping[str, Any], unit: str) -> Iterator[tuple[str, str]]:
    """Yield a label and a line; unit: what is counted, "pixels" or "voxels"."""
    yield from _cohort(results)
    excluded = {reason: n for reason, n in results["excluded"].items() if n}
    reasons = [f"{n:,} {reason.replace('_', ' ')}" for reason, n in sorted(excluded.items(), key=lambda item: -item[1])]
    if len(reasons) > MOST_REASONS:
        reasons = [*reasons[:MOST_REASONS], f"{len(reasons) - MOST_REASONS} more reasons"]
    left_out, counted = sum(excluded.values()), results["counted"]
    yield "counted", f"{counted:,} {unit} counted, {left_out:,} left out{': ' * bool(reasons)}{', '.join(reasons)}"
    if "regression" in results:
        regression = results["regression"]
        side = f" ({regression['side']})" if regression["side"] else ""
        area, distance = regression["area"], regression["distance"]
        yield (
            "how sure",
            f"Area under the calibration curve {_number(area)}{side}, squared distance {_number(distance)}",
        )
        levels = ", ".join(f"{row['level']:g}: {_number(row['observed'])}" for row in regression["coverage"])
        yield "", f"coverage at {levels}"
        return
    yield from _zones(results)
    yield "how good", ", ".join(_metrics(results["overall"], LABELS))
    sure = list(_metrics(results["calibration"], SCORES)) if "calibration" in results else []
    for name, numbers in [*results["selective"].items()][:MOST_MEASURES]:
        sure += _metrics(numbers, {"error_auroc": f"error AUROC of {name}"})
    if sure:
        yield "how sure", ", ".join(sure)
    if "confidence" in results:
        confidence = results["confidence"]
        yield (
            "",
            f"in brackets: {100 * confidence['level']:g} % intervals from {confidence['units']} {confidence['unit']}s",
        )
    for i, sentence in enumerate(results.get("advice", ())):
        yield "" if i else "what next", sentence["text"]


def _cohort(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the first headline metrics of a cohort: means over patients, with the failed cases."""
    cohort = results.get("cohort")
    if cohort is None:
        return
    failed = f", {len(results['failed'])} failed" if results["failed"] else ""
    yield "cases", f"{cohort['cases']} of {cohort['patients']} patients{failed}"
    shown = cohort["headline"][:MOST_DICE]
    for name in shown[:MOST_MEASURES] + [name for name in shown[MOST_MEASURES:] if "Dice" in _label(name)]:
        row = cohort["metrics"][name]
        pooled, worst = _number(row["pooled"]), row["at"]["0.05"]
        over = f"{_with_interval(row, 'mean')} over patients, {pooled} pooled"
        yield "", f"{_label(name)}: {over}{f', low at {worst}' if worst else ''}"


def _label(name: str) -> str:
    """Return what a metric is called: that of a class, the mean Dice of several; any other by its name.

    >>> _label("classes/lesion/f1"), _label("classes/a/b/recall"), _label("overall/kappa")
    ('Dice of lesion', 'recall of a/b', 'overall/kappa')
    """
    if name.startswith("classes/"):
        class_name, _, metric = name.removeprefix("classes/").rpartition("/")
        return f"{'Dice' if metric == 'f1' else metric} of {class_name}"
    return {"overall/foreground_f1": "mean Dice of the foreground", "overall/macro_f1": "mean Dice of the classes"}.get(
        name, name
    )


def _zones(results: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the number of zones, and those of lowest and highest accuracy."""
    known = {name: zone["overall"]["accuracy"] for name, zone in results.get("zones", {}).items()}
    values = {name: value for name, value in known.items() if value is not None}
    if values:
        ends = [min(values, key=lambda name: values[name]), max(values, key=lambda name: values[name])]
        between = " to ".join(f"{_number(values[name])} ({name})" for name in dict.fromkeys(ends))
        yield "zones", f"{len(known)} zones: accuracy {between}"


def _metrics(numbers: Mapping[str, Any], labels: Mapping[str, str]) -> Iterator[str]:
    for key, label in labels.items():
        yield f"{label} {_with_interval(numbers, key)}"


def _with_interval(numbers: Mapping[str, Any], key: str) -> str:
    low, high = numbers.get(f"{key}_interval", (None, None))
    return _number(numbers[key]) + ("" if low is None or high is None else f" ({_number(low)} to {_number(high)})")


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"
