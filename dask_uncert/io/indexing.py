"""Regions of arrays, as users type them in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dask_uncert.io.lazy_array import whole_region

Span = tuple[int, int]


def spans_of(region: Any, shape: Sequence[int]) -> tuple[list[Span], tuple[Any, ...]]:
    """Return start and stop along every axis, and how to index the numbers read between them.

    region: slices with positive steps or numbers, an Ellipsis for axes left out.
    """
    spans: list[Span] = []
    rest: list[Any] = []
    for part, n in zip(whole_region(region, len(shape)), shape, strict=True):
        if isinstance(part, slice):
            start, stop, step = part.indices(n)
            if step < 1:
                raise IndexError(f"steps must be positive, found {step}")
            spans.append((start, max(start, stop)))
            rest.append(slice(None, None, step))
        else:
            index = range(n)[part]
            spans.append((index, index + 1))
            rest.append(0)
    return spans, tuple(rest)


def region_text(region: Any) -> str:
    """Return the text of a region, as typed in brackets.

    >>> region_text((slice(0, 4), slice(None), 2))
    '0:4, 0:, 2'
    """
    parts = region if isinstance(region, tuple) else (region,)
    texts = (
        f"{part.start or 0}:{'' if part.stop is None else part.stop}" if isinstance(part, slice) else str(part)
        for part in parts
    )
    return ", ".join(texts).replace("Ellipsis", "...")
