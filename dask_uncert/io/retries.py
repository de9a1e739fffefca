"""Reads that failed in passing, tried again a bounded number of times; what is not there is never tried again.

A network drops and a server says that it is busy; a file that does not exist does not come to be. So errors of a
transfer are tried again, and "not found" or "not allowed" is final.
"""

from __future__ import annotations

import errno
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.lazy_array import Wrapped
from dask_uncert.io.paths import is_remote

TRIES = {True: 6, False: 3}
"""Of one read, behind a URL and on a disk."""
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0  # seconds; each wait is twice the one before, and shortened at random
FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, KeyError)
PASSING = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ECONNRESET, errno.EREMOTEIO)
"""Of local reads, what network file systems say in passing."""
BUSY = (
    "slowdown",
    "throttl",
    "503",
    "500",
    "502",
    "504",
    "429",
    "timeout",
    "timed out",
    "reduce your request rate",
)
"""In what clients of object stores say."""
_LOCK = threading.Lock()
_PROCESS = uuid.uuid4().hex
_taken = 0
Found = TypeVar("Found")


def taken() -> tuple[str, int]:
    """A name of this process, and how many reads it has tried again so far."""
    return _PROCESS, _taken


def persistently(
    read: Callable[[], Found], remote: bool, wait: Callable[[float], None] = time.sleep
) -> Found:
    """What `read` gives, tried again while it fails in passing; raises what it raised the last time."""
    global _taken
    for attempt in range(1, TRIES[remote] + 1):
        try:
            return read()
        except Exception as error:
            if attempt == TRIES[remote] or not is_passing(error, remote):
                raise
            with _LOCK:
                _taken += 1
            wait(random.uniform(0.5, 1.0) * min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)))
    raise AssertionError("unreachable")


def is_passing(error: BaseException, remote: bool) -> bool:
    """Whether an error, or what caused it, may be gone the next time."""
    chain = list(_causes(error))
    if any(isinstance(one, FINAL) for one in chain):
        return False
    if not remote:
        return any(isinstance(one, OSError) and one.errno in PASSING for one in chain)
    return any(
        isinstance(one, ConnectionError | TimeoutError | OSError)
        or (not isinstance(one, InputError) and any(word in str(one).lower() for word in BUSY))
        for one in chain
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


class Retried(Wrapped):
    """A stored array whose reads are tried again, also of what stands beside its values."""

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        self.shape: tuple[int, ...] = tuple(data.shape)
        self.ndim, self.dtype = len(self.shape), np.dtype(data.dtype)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        return np.asarray(self._persistently(lambda: self.data[region]))

    def absent_chunks(self) -> Any:
        """As of the array."""
        return self._persistently(self.data.absent_chunks)

    def fingerprint(self) -> Any:
        """As of the array."""
        return self._persistently(self.data.fingerprint)

    def geometry(self, dims: Any) -> Any:
        """As of the array."""
        return self._persistently(lambda: self.data.geometry(dims))

    def coordinates(self, dims: Any) -> Any:
        """As of the array."""
        return self._persistently(lambda: self.data.coordinates(dims))

    def _persistently(self, read: Callable[[], Found]) -> Found:
        try:
            return persistently(read, is_remote(self.data.store))
        except InputError as error:
            said = str(error)
        raise InputError(
            said
        )  # alone: what caused it, of a library's own kind, may not travel between processes
