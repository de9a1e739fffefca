"""CSV as this project writes it: `\\n` line ends, floats with every digit (`repr`), undefined numbers empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

import numpy as np


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    r"""Rows, the header first, as text.

    >>> as_csv([["name", "mean (1)"], ["a, b", 0.1], ["c", float("nan")]])
    'name,mean (1)\n"a, b",0.1\nc,\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return text.getvalue()


def cell(value: Any) -> Any:
    """A value as a cell holds it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else value
