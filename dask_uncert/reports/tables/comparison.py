"""Two models compared, as text for people and as CSV or JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from dask_uncert.metrics.comparison import Comparison
from dask_uncert.reports.results.cohort import comparison_results
from dask_uncert.reports.tables.cohort import header_and
from dask_uncert.reports.tables.csv import as_csv as written

TESTS = {"t_test": "t-test", "signed_rank": "Wilcoxon", "permutation": "permutation"}
OF = {"mean": ("t_test", "signed_rank"), "pooled": ("permutation",)}
"""Of which difference each test is."""
NOTE = (
    "difference: A less B. mean: over patients; pooled: of all pixels together. p-values, in brackets corrected for "
    "asking {number} questions (Holm)."
)


def as_table(found: Comparison, level: float) -> str:
    """Of each metric the means over patients with their tests, and the pooled numbers with theirs."""
    head = [
        "",
        "A",
        "B",
        "difference",
        f"{100 * level:g} % interval",
        *(f"p {name}" for name in TESTS.values()),
    ]
    lines: list[list[str]] = []
    for i in range(len(found.metrics)):
        for of, both, difference, ends in (
            ("mean", found.mean, found.mean_difference, found.mean_interval),
            ("pooled", found.pooled, found.pooled_difference, found.pooled_interval),
        ):
            tested = [_p(found, test, i) if test in OF[of] else "" for test in TESTS]
            shown = [_number(both[0, i]), _number(both[1, i]), _number(difference[i], "+")]
            interval = f"{_number(ends.low[i], '+')} to {_number(ends.high[i], '+')}"
            lines.append([f"  {of}", *shown, interval, *tested])
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    rows = [_line(head, widths)]
    for i, metric in enumerate(found.metrics):
        rows += [metric, *(_line(line, widths) for line in lines[2 * i : 2 * i + 2])]
    return "\n".join([*rows, "", NOTE.format(number=len(found.metrics))])


def about(found: Comparison, first: str, second: str) -> str:
    """Which is A, which is B, on how many patients."""
    lines = [f"A  {first}", f"B  {second}"]
    lines.append(f"{len(found.patients)} patients" + (", all swaps listed" if found.exact else ""))
    for who, only in zip("AB", found.only, strict=True):
        if only:
            lines.append(f"left out, for {who} alone has them: {', '.join(only)}")
    return "\n".join(lines)


def as_csv(found: Comparison) -> str:
    """A row a metric, every digit; undefined numbers are empty."""
    return written(header_and(found.rows()))


def as_json(found: Comparison, first: str, second: str) -> str:
    """What `results.json` holds as `comparison`; undefined numbers are null."""
    plain: dict[str, Any] = comparison_results(found, first, second)
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(texts, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(text.rjust(width) for text, width in rest)]).rstrip()


def _number(value: float, sign: str = "") -> str:
    """With four decimals.

    >>> _number(0.25, "+"), _number(math.nan)
    ('+0.2500', '–')
    """
    return "–" if math.isnan(value) else f"{value:{sign if value else ''},.4f}"


def _p(found: Comparison, test: str, i: int) -> str:
    """A p-value, and the corrected one in brackets."""
    return f"{p_text(getattr(found, test).p_value[i])} ({p_text(found.holm[test][i])})"


def p_text(value: float | None) -> str:
    """A p-value with two digits, at least three decimals; tiny ones as a bound.

    >>> p_text(0.0312), p_text(0.5), p_text(1.0), p_text(2e-7), p_text(None)
    ('0.031', '0.500', '1.000', '<0.0001', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if value < 1e-4:
        return "<0.0001"
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"
