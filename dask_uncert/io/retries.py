"""Retries of reads, a few times: a network drops or a server is busy for a moment, but "not found" is final."""

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
from dask_uncert.io.lazy_array import ArrayView
from dask_uncert.io.paths import is_remote

MAX_ATTEMPTS = {True: 6, False: 3}
"""Attempts of one read, behind a URL and on a disk."""
FIRST_WAIT, LONGEST_WAIT = 0.2, 10.0  # seconds; each wait is twice the last, shortened at random
FINAL = (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError)
TRANSIENT = (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.ECONNRESET, errno.EREMOTEIO)
"""Errors of local reads that network file systems raise for a moment."""
BUSY = (
    "slowdown",
    "throttl",
    "503",
    "500",
    "502",
    "504",
    "429",
    "403",
    "connect",
    "payload",
    "timeout",
    "timed out",
    "reduce your request",
)
"""Words in messages of servers that are busy, refuse for a moment (403) or end a connection early."""
_LOCK = threading.Lock()
_PROCESS = uuid.uuid4().hex
_retries = 0
Value = TypeVar("Value")


def retry_count() -> tuple[str, int]:
    """Return a name of this process, and how many reads it has retried so far."""
    return _PROCESS, _retries


def with_retries(read: Callable[[], Value], remote: bool, wait: Callable[[float], Any] = time.sleep) -> Value:
    """Return what `read` returns; repeat it while it fails for a moment, and raise its last error."""
    global _retries
    for attempt in range(1, MAX_ATTEMPTS[remote] + 1):
        try:
            return read()
        except Exception as error:
            if attempt == MAX_ATTEMPTS[remote] or not is_transient(error, remote):
                raise
            with _LOCK:
                _retries += 1
            wait(random.uniform(0.5, 1.0) * min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)))
    raise AssertionError("unreachable")


def is_transient(error: BaseException, remote: bool) -> bool:
    """Return whether an error, or its cause, may be gone the next time."""
    chain = list(_causes(error))
    if any(isinstance(cause, FINAL) for cause in chain):
        return False
    if not remote:  # a disk's PermissionError stays
        return any(isinstance(cause, OSError) and cause.errno in TRANSIENT for cause in chain)
    return any(
        isinstance(cause, ConnectionError | TimeoutError | OSError)
        or (not isinstance(cause, InputError) and any(word in str(cause).lower() for word in BUSY))
        for cause in chain
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


READING = ("absent_chunks", "fingerprint", "geometry", "coordinates", "labels")


class Retried(ArrayView):
    """A stored array whose reads are retried: of its values, and in the methods named in READING."""

    def __init__(self, data: Any) -> None:
        super().__init__(data.shape, data.dtype)
        self.data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "data":
            raise AttributeError(name)
        value = getattr(self.data, name)
        return (lambda *args: self._retry(lambda: value(*args))) if name in READING else value

    def __repr__(self) -> str:
        return repr(self.data)

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        return np.asarray(self._retry(lambda: self.data[region]))

    def _retry(self, read: Callable[[], Value]) -> Value:
        try:
            return with_retries(read, is_remote(self.data.store))
        except InputError as error:
            message = str(error)
        raise InputError(message)  # without its cause, which other processes may not be able to unpickle
