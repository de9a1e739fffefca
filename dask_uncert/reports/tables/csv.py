"""CSV as this project writes it: `\\n` line ends, floats with every digit (`repr`), undefined numbers empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a formula."""


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    r"""Rows, the header first, as text.

    >>> as_csv([["name", "mean (1)"], ["a, b", 0.1], ["c", float("nan")]])
    'name,mean (1)\n"a, b",0.1\nc,\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


def cell(value: Any) -> Any:
    """Return a value as a cell holds it.

    >>> cell("=1+1"), cell("-3"), cell(-0.5)
    ("'=1+1", '-3', '-0.5')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, str) and value.startswith(FORMULA) and not _is_number(value):
        return f"'{value}"
    return repr(value) if isinstance(value, float) else value


def _is_number(text: str) -> bool:
    with suppress(ValueError):
        return bool(float(text) or True)
    return False
