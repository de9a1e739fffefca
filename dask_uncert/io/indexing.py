"""What is asked of an array in brackets, as starts and stops: for readers that know no more than windows."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.file_cache import stamp_of
from dask_uncert.io.paths import is_remote, url_fingerprint

Span = tuple[int, int]
SLAB = 1 << 20  # bytes of a chunk at least, where there are so many


def spans_of(region: Any, shape: Sequence[int]) -> tuple[list[Span], tuple[Any, ...]]:
    """Start and stop along every axis, and what remains to be asked of what lies between.

    region: slices with positive steps or numbers, an Ellipsis for those left out.
    """
    parts = list(region) if isinstance(region, tuple) else [region]
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    gap = parts.index(Ellipsis)
    parts[gap : gap + 1] = [slice(None)] * (len(shape) - len(parts) + 1)
    spans: list[Span] = []
    rest: list[Any] = []
    for part, n in zip(parts, shape, strict=True):
        if isinstance(part, slice):
            start, stop, step = part.indices(n)
            if step < 1:
                raise IndexError(f"steps must be positive, found {step}")
            spans.append((start, max(start, stop)))
            rest.append(slice(None, None, step))
        else:
            at = range(n)[part]
            spans.append((at, at + 1))
            rest.append(0)
    return spans, tuple(rest)


def file_fingerprint(store: str, what: str) -> str | None:
    """Changes whenever the file is written; None for a remote one whose server does not tell."""
    if is_remote(store):
        return url_fingerprint(store)
    size, time, _ = stamp_of(store, what)
    return hashlib.sha256(json.dumps([size, time]).encode()).hexdigest()


class Unplaced:
    """What is the same of every file that holds numbers and does not say where they lie."""

    store: str
    what: str

    def absent_chunks(self) -> tuple[tuple[int, ...], ...]:
        """None: a file is whole or refused."""
        return ()

    def fingerprint(self) -> str | None:
        """Changes whenever a local file is written; None for remote ones."""
        return file_fingerprint(self.store, self.what)

    def geometry(self, dims: Sequence[str]) -> None:
        """None: such a file does not say where it lies."""

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside it."""
        return {}


def one_array(store: str, array: str, what: str) -> None:
    """Refuse the name of an array where a file holds one without a name."""
    if array:
        raise InputError(f"{what}: {store} is one array; leave out `array: {array}`.")


def slabs(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Chunks of whole slices along the first axis, of about 1 MiB: for what lies in rows, one after the other."""
    if not shape:
        return ()
    row = max(1, itemsize * math.prod(shape[1:]))
    return (max(1, min(shape[0], -(-SLAB // row))), *(max(1, n) for n in shape[1:]))
