"""New arrays in pages of 2 MiB: the system hands out memory page by page, and small ones cost more than what fills them."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

PAGE = 2 << 20
LEAST = 1 << 20  # bytes of an array that gets pages of its own


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros (shape) that has pages of its own and gives them back; of any kind if it is small.

    Of the allocator's memory, an array of some MiB is often in pages of 4096 bytes that are new each time.
    """
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes < LEAST or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, -(-nbytes // PAGE) * PAGE + PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE)
    held = np.frombuffer(pages, np.uint8)
    start = -held.ctypes.data % PAGE
    return held[start : start + nbytes].view(dtype).reshape(shape)
