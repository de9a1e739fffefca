"""How results show themselves: as text in a terminal, as HTML in a notebook, as a DataFrame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any

LINES = 10
"""Lines of a result in a terminal, at most."""
SHOWN = 50
"""Rows of a table in a notebook, at most."""
WIDEST = 32  # characters of a name
STYLE = (
    "<style>.dask-uncert table{border-collapse:collapse;margin:.5em 0}.dask-uncert td,.dask-uncert th"
    "{padding:.1em .6em;text-align:right}.dask-uncert th:first-child{text-align:left}.dask-uncert svg"
    "{color:inherit;max-width:100%}</style>"
)


def dataframe(index: str, labels: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a pandas DataFrame of these columns, with an index of this name."""
    import xarray as xr

    variables = {name: (index, [*values]) for name, values in columns.items()}
    return xr.Dataset(variables, coords={index: [*labels]}).to_dataframe()


def number(value: Any) -> str:
    """Return a value as a person reads it: counts with commas, other numbers with four digits, text as it is.

    >>> number(12345), number(0.25), number(math.nan), number("Corn")
    ('12,345', '0.2500', '–', 'Corn')
    """
    if isinstance(value, str) or value is None:
        return value or ""
    if not isinstance(value, float) and float(value).is_integer() and "float" not in str(getattr(value, "dtype", "")):
        return f"{int(value):,}"
    return "–" if math.isnan(value) else f"{float(value):,.4f}"


def text_table(rows: Iterable[Sequence[Any]], most: int, more: str) -> list[str]:
    """Return a header and rows as at most this many lines; more: how to see the rows that are not shown.

    >>> text_table([["class", "F1"], ["a", 0.5], ["b", 1.0], ["c", 1.0]], 3, "all: ...")
    ['class      F1', 'a      0.5000', '2 more rows; all: ...']
    """
    lines = [[number(value) for value in row] for row in rows]
    shown = lines if len(lines) <= most else lines[: most - 1]
    shown = [[text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…" for text in line] for line in shown]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    texts = [
        "  ".join([line[0].ljust(widths[0]), *(t.rjust(w) for t, w in zip(line[1:], widths[1:], strict=True))]).rstrip()
        for line in shown
    ]
    left = len(lines) - len(shown)
    return [*texts, f"{left} more rows; {more}"] if left else texts


def html(title: str, *parts: str) -> str:
    """Return a piece of a page that needs nothing else."""
    return f'<div class="dask-uncert">{STYLE}<p><strong>{escape(title)}</strong></p>{"".join(parts)}</div>'


def html_text(text: str) -> str:
    """Return a paragraph."""
    return f"<p>{escape(text)}</p>"


def html_table(rows: Iterable[Sequence[Any]], caption: str, most: int = SHOWN) -> str:
    """Return a header and rows as a table; rows beyond `most` are only counted."""
    header, *body = ([escape(number(value)) for value in row] for row in rows)
    head = "".join(f'<th scope="col">{text}</th>' for text in header)
    cells = (
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{t}</td>" for t in rest)}</tr>'
        for first, *rest in islice(body, most)
    )
    left = f"<p>{len(body) - most:,} more rows.</p>" if len(body) > most else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(cells)}</tbody></table>{left}"
    )


def html_curve(points: Iterable[tuple[float, float]], x: str, y: str, title: str) -> str:
    """Return points of the unit square as a small picture, with the diagonal; undefined points are left out."""
    defined = [(a, b) for a, b in points if not (math.isnan(a) or math.isnan(b))]
    places = " ".join(f"{40 + 150 * a:.1f},{160 - 150 * b:.1f}" for a, b in defined)
    dots = "".join(f'<circle cx="{40 + 150 * a:.1f}" cy="{160 - 150 * b:.1f}" r="2.5"/>' for a, b in defined[:40])
    return (
        f'<svg role="img" aria-label="{escape(title)}" width="220" height="200" viewBox="0 0 220 200" '
        'fill="currentColor" font-size="11" text-anchor="middle">'
        '<rect x="40" y="10" width="150" height="150" fill="none" stroke="currentColor" opacity=".5"/>'
        '<line x1="40" y1="160" x2="190" y2="10" stroke="currentColor" stroke-dasharray="3" opacity=".6"/>'
        f'<polyline points="{places}" fill="none" stroke="currentColor" stroke-width="1.5"/>{dots}'
        f'<text x="115" y="190">{escape(x)}</text><text x="40" y="173">0</text><text x="190" y="173">1</text>'
        f'<text x="20" y="85" transform="rotate(-90 20 85)">{escape(y)}</text></svg>'
    )
