"""Files that can only be read whole: compressed ones, and those behind a URL. Read once a process, then kept.

A block needs a part of a volume, and gzip has no parts. So the bytes stay while their file is among the last
used in this process, shared by all that read it.
"""

from __future__ import annotations

import gzip
import os
import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.paths import file_system, is_remote

KEPT, KEPT_BYTES = 4, 512 << 20
"""The last four files stay, more of them while all together hold at most so many bytes."""
EXPANSION = 1032  # bytes that a byte of a deflate stream can become at most (zlib's technical details)
STEP = 1 << 20  # bytes decompressed at a time

Bytes = NDArray[np.uint8]
Stamp = tuple[Hashable, ...]


def file_name(store: str) -> str:
    """The address without what may follow a URL's path, in lower case: what its ending is read off."""
    return store.split("::")[0].split("?")[0].lower() if is_remote(store) else store.lower()


def is_gzip(store: str) -> bool:
    """Whether the name says gzip."""
    return file_name(store).endswith(".gz")


def stamp_of(store: str, what: str) -> Stamp:
    """Changes whenever a local file is written: size, time, number; of a remote one new each time.

    Raises InputError where there is no such file.
    """
    if is_remote(store):
        return (uuid.uuid4().hex,)
    try:
        found = os.stat(store)
    except OSError as error:
        raise refusal(store, what, error) from None
    return found.st_size, found.st_mtime_ns, found.st_ino


def refusal(store: str, what: str, error: Exception) -> InputError:
    """What to say of a file that could not be opened or read to its end."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{what}: there is no file at {store}. Check `store` under `inputs: {what}`.")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{what}: {store} is a folder, not the file its name says.")
    if isinstance(error, gzip.BadGzipFile) and "Not a gzipped file" in str(error):
        return InputError(f"{what}: {store} is not compressed by gzip. Name it without `.gz` if it is whole.")
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return InputError(
            f"{what}: {store} is damaged ({_brief(error)}). Copy it again from where it is whole."
        )
    return InputError(f"{what}: {store} cannot be read ({_brief(error)}).")


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:120]}" if text else type(error).__name__


def opened(store: str) -> Any:
    """The file, to be read as it is stored."""
    if not is_remote(store):
        return open(store, "rb")
    system, path = file_system(store)
    return system.open(path, "rb")


@contextmanager
def stream(store: str, what: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The file's bytes, decompressed where its name says gzip; InputError for whatever goes wrong inside."""
    try:
        with opened(store) as file:
            if is_gzip(store):
                with gzip.GzipFile(fileobj=file) as plain:
                    yield plain
            else:
                yield file
    except InputError:
        raise
    except Exception as error:  # of remote file systems, many kinds
        raise refusal(store, what, error) from None


def read_whole(store: str, what: str, start: int, count: int) -> Bytes:
    """The `count` bytes from `start` to the very end, not to be written to; InputError for another end.

    Reading to the end is what verifies gzip's checksum.
    """
    found = np.empty(count, np.uint8)
    view = found.data
    with stream(store, what) as file:
        skipped = len(file.read(start))
        done = 0
        while done < count and (piece := file.read(min(STEP, count - done))):
            view[done : done + len(piece)] = piece
            done += len(piece)
        if done < count or file.read(1):
            ends = f"ends after {skipped + done}" if done < count else "is longer"
            raise InputError(f"{what}: the header of {store} states {start + count} bytes, but it {ends}.")
    found.flags.writeable = False
    return found


_KEPT: OrderedDict[Hashable, Bytes] = OrderedDict()
_READING: dict[Hashable, threading.Lock] = {}
_LOCK = threading.Lock()


def kept(key: Hashable, read: Callable[[], Bytes]) -> Bytes:
    """What `read` gave for this key, read now unless it is still there; threads that ask meanwhile wait for it."""
    with _LOCK:
        lock = _READING.setdefault(key, threading.Lock())
    with lock:
        with _LOCK:
            if key in _KEPT:
                _KEPT.move_to_end(key)
                _READING.pop(key, None)
                return _KEPT[key]
        try:
            found = read()
        except BaseException:
            with _LOCK:
                _READING.pop(key, None)
            raise
        with _LOCK:
            _READING.pop(key, None)
            _KEPT[key] = found
            while len(_KEPT) > KEPT and sum(one.nbytes for one in _KEPT.values()) > KEPT_BYTES:
                _KEPT.popitem(last=False)
    return found


def as_volume(raw: Bytes, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Bytes as an array whose first axis runs fastest."""
    return raw.view(dtype).reshape(shape, order="F")
