"""CSV with `\\n` as line end, every digit of floats (`repr`), and empty cells for undefined numbers.

Text that a spreadsheet would read as a formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first characters of formulas


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    r"""Return rows, a header first, as text.

    >>> as_csv([["name", "mean (1)"], ["a, b", 0.1], ["c", float("nan")]])
    'name,mean (1)\n"a, b",0.1\nc,\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


def with_header(rows: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Return rows, which all have the same keys, as a table whose header are the keys."""
    return [[*rows[0]], *([*row.values()] for row in rows)]


def cell(value: Any) -> Any:
    """Return a value as the content of a cell.

    >>> cell("=1+1"), cell("-3"), cell(-0.5)
    ("'=1+1", '-3', '-0.5')
    """
    if type(value) is int:  # most are numbers
        return value
    if type(value) is float:
        return repr(value) if value == value else ""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, float):
        return repr(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) and not _is_number(value) else value


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return bool(float(text) or True)
    return False
