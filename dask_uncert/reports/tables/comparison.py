"""A comparison of two models as text, CSV or JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dask_uncert.errors import plural
from dask_uncert.metrics.comparison import Comparison
from dask_uncert.reports.results.cohort import comparison_results
from dask_uncert.reports.results.scene import to_json
from dask_uncert.reports.tables import csv

TESTS = {"t_test": "t-test", "signed_rank": "Wilcoxon", "permutation": "permutation"}
TESTED = {"mean": ("t_test", "signed_rank"), "pooled": ("permutation",)}
NOTE = (
    "Differences are A minus B. mean: over {units}; pooled: all pixels together. p: probability of a difference this "
    "large or larger if the models perform equally; in brackets Holm-adjusted for {comparisons}."
)


def as_table(comparison: Comparison, level: float) -> str:
    """Return a table with two lines per metric: means over patients and pooled numbers, each with its tests."""
    heads = [f"{100 * level:g} % interval", *(f"p {name}" for name in TESTS.values())]
    lines: list[list[str]] = [["", "A", "B", "difference", *heads]]
    differences = comparison.differences()
    for i in range(len(comparison.metrics)):
        for key in ("mean", "pooled"):
            both, difference, interval = differences[key]
            numbers = [_number(both[0, i]), _number(both[1, i]), _number(difference[i], "+")]
            ends = f"{_number(interval.low[i], '+')} to {_number(interval.high[i], '+')}"
            tests = [_p_values(comparison, test, i) if test in TESTED[key] else "" for test in TESTS]
            lines.append([f"  {key}", *numbers, ends, *tests])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    header, *rows = (_line(line, widths) for line in lines)
    named = [line for i, metric in enumerate(comparison.metrics) for line in (metric, *rows[2 * i : 2 * i + 2])]
    note = NOTE.format(units=f"{comparison.unit}s", comparisons=plural(len(comparison.metrics), "comparison"))
    return "\n".join([header, *named, "", note])


def about(comparison: Comparison, first: str, second: str) -> str:
    """Return which model is A, which is B, how many patients they share, and which cases were left out."""
    swaps = ", all swaps listed" if comparison.exact else ""
    lines = [f"A  {first}", f"B  {second}", f"{plural(len(comparison.patients), comparison.unit)}{swaps}"]
    for model, only in zip("AB", comparison.only, strict=True):
        if only:
            lines.append(f"left out, in {model} alone: {', '.join(only)}")
    return "\n".join(lines)


def as_csv(comparison: Comparison) -> str:
    """Return CSV with a row per metric and every digit; undefined numbers are empty."""
    return csv.as_csv(csv.with_header(comparison.rows()))


def as_json(comparison: Comparison, first: str, second: str) -> str:
    """Return the section `comparison` of `results.json`; undefined numbers are null."""
    return to_json(comparison_results(comparison, first, second))


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(texts, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]).rstrip()


def _number(value: float, sign: str = "") -> str:
    """Return a number with four decimals.

    >>> _number(0.25, "+"), _number(math.nan)
    ('+0.2500', '–')
    """
    return "–" if math.isnan(value) else f"{value:{sign if value else ''},.4f}"


def _p_values(comparison: Comparison, test: str, i: int) -> str:
    """Return a p-value, and the adjusted p-value in brackets."""
    return f"{p_text(getattr(comparison, test).p_value[i])} ({p_text(comparison.holm[test][i])})"


def p_text(value: float | None) -> str:
    """Return a p-value with two digits and at least three decimals; tiny ones as a bound.

    >>> p_text(0.0312), p_text(0.5), p_text(1.0), p_text(2e-7), p_text(None)
    ('0.031', '0.500', '1.000', '<0.0001', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if value < 1e-4:
        return "<0.0001"
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"
