"""Arrays that a thread uses again from batch to batch and from block to block.

The system hands out new memory in pages of 4096 bytes and clears each when it is first touched: with new arrays for each
batch that took an eighth of the time of a full evaluation.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Memory:
    """Named arrays; one is overwritten when the next of its name is asked for."""

    def __init__(self) -> None:
        self._buffers: dict[str, NDArray[np.uint8]] = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array (shape) with any contents; that of the same name before it is of no use any more."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._buffers or self._buffers[name].size < size:
            self._buffers[name] = np.empty(size, np.uint8)
        return self._buffers[name][:size].view(dtype).reshape(shape)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.memory = Memory()


_of_thread = _OfThread()


def thread_memory() -> Memory:
    """Return the Memory of the running thread."""
    return _of_thread.memory
