"""Large arrays in pages of 2 MiB, which are used again: the system hands out memory page by page and clears each.

Of the allocator's memory, an array of some MiB is often in pages of 4096 bytes that are new each time. What that cost
was an eighth of the time of a full evaluation.
"""

from __future__ import annotations

import math
import mmap
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

PAGE = 2 << 20
LEAST = 1 << 20  # bytes of an array that gets pages of its own
IDLE = 128 << 20  # most bytes of a process that are kept for the next array
_idle: deque[mmap.mmap] = deque()


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array (shape) with any contents, whose pages are used again when it and all its views are gone."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LEAST or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(shape, dtype)
    size = -(-nbytes // PAGE) * PAGE + PAGE
    pages = _take(size)
    if pages is None:
        try:
            pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"no {size} bytes for an array") from error
        with suppress(OSError):  # of a system without large pages
            pages.madvise(mmap.MADV_HUGEPAGE)
    held = np.frombuffer(pages, np.uint8)  # the base of all views
    weakref.finalize(held, _give_back, pages).atexit = False
    start = -held.ctypes.data % PAGE
    return held[start : start + nbytes].view(dtype).reshape(shape)


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros in memory as that of `empty`."""
    array = empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 0  # in half the time
    return array


def _take(size: int) -> mmap.mmap | None:
    for _ in range(len(_idle)):
        try:
            pages = _idle.popleft()
        except IndexError:  # another thread was first
            return None
        if len(pages) == size:
            return pages
        _idle.append(pages)
    return None


def _give_back(pages: mmap.mmap) -> None:
    """Keep pages; no lock, since this may run at any point of any thread."""
    if sum(map(len, tuple(_idle))) + len(pages) <= IDLE:
        _idle.append(pages)
