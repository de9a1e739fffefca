"""Arrays for kernels: at the start of a line of the cache, and used again by a thread from block to block.

NumPy starts arrays at multiples of 16 bytes; every other SIMD load of 32 then touches two lines, which takes 3 % of a full
evaluation. The system hands out new memory in pages of 4096 bytes and clears each when it is first touched: with new
arrays for each batch that took an eighth of the time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE = 64  # bytes of a line of the cache
MOST = 64  # sets of arrays that a thread keeps


def empty(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return an array (shape) that starts with a line of the cache, with any contents."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    found = np.empty(size + LINE, np.uint8)
    start = -found.__array_interface__["data"][0] % LINE
    return found[start : start + size].view(dtype).reshape(shape)


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return an array (shape) of zeros that starts with a line of the cache."""
    found = empty(shape, dtype)
    found[...] = 0
    return found


def strips(number: int, size: int, dtype: DTypeLike = np.float64) -> tuple[NDArray[Any], ...]:
    """Return arrays (size,) of zeros, each of which starts with another line of a page.

    Else a load from one waits for a store to another that is a whole number of pages away.
    """
    rows = zeros((number, size + LINE // np.dtype(dtype).itemsize), dtype)
    return tuple(row[:size] for row in rows)


class Memory:
    """Named arrays; one is overwritten when the next of its name is asked for."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array (shape) with any contents; that of the same name before it is of no use any more."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = empty((size,), np.uint8)
        return self._buffers[name][:size].view(dtype).reshape(shape)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.memory = Memory()
        self.kept: dict[Any, Any] = {}


_of_thread = _OfThread()


def thread_memory() -> Memory:
    """Return the Memory of the running thread."""
    return _of_thread.memory


def kept(make: Callable[..., Any], *sizes: int) -> Any:
    """Return the arrays that `make` makes of these sizes, once for each thread: kernels overwrite them."""
    arrays = _of_thread.kept
    if (make, sizes) not in arrays:
        if len(arrays) >= MOST:
            arrays.clear()
        arrays[make, sizes] = make(*sizes)
    return arrays[make, sizes]
