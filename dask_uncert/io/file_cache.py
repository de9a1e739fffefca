"""Files that can only be read whole: compressed files and files behind a URL. Each process reads and caches them once.

A block needs a part of a volume, but a gzip stream can only be read from its start. So the bytes of the files used
last stay in this process, shared by all that read them.
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

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.paths import check_not_special, file_system, is_remote

CACHED_FILES, CACHED_BYTES = 4, 512 << 20
"""The last four files are cached, and more as long as all together take no more than these bytes."""
EXPANSION = 1032  # bytes that one byte of a deflate stream can expand to (zlib's technical details)
STEP = 1 << 20  # bytes decompressed at a time

Bytes = NDArray[np.uint8]
Stamp = tuple[Hashable, ...]


def file_name(store: str) -> str:
    """Return the address in lower case, without a URL's query, so that it ends like the file's name."""
    return store.split("::")[0].split("?")[0].lower() if is_remote(store) else store.lower()


def is_gzip(store: str) -> bool:
    """Return whether the name is that of a gzip file."""
    return file_name(store).endswith(".gz")


def file_stamp(store: str, name: str) -> Stamp:
    """Return size, time and inode of a local file, which change when it is written; a new stamp for a remote file.

    Raises InputError where there is no such file.
    """
    if is_remote(store):
        return (uuid.uuid4().hex,)
    try:
        check_not_special(store, f"{name}: ")
        status = os.stat(store)
    except OSError as error:
        raise file_error(store, name, error) from None
    return status.st_size, status.st_mtime_ns, status.st_ino


def file_error(store: str, name: str, error: Exception) -> InputError:
    """Return the error to raise when the file of input `name` cannot be opened or read to its end."""
    if isinstance(error, FileNotFoundError):
        return nothing_at(store, name, "file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name}: {store} is a folder, not a file as its name suggests.")
    if isinstance(error, gzip.BadGzipFile) and "Not a gzipped file" in str(error):
        return InputError(f"{name}: {store} is not compressed by gzip. Rename it without `.gz`.")
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return InputError(f"{name}: {store} is damaged ({exception_text(error)}). Copy it again.")
    return InputError(f"{name}: {store} cannot be read ({exception_text(error)}).")


def nothing_at(store: str, name: str, kind: str) -> InputError:
    """Return the error to raise when there is no file or store (the kind) of input `name`, or only a link."""
    if os.path.islink(store):
        return InputError(
            f"{name}: {store} is a link to {os.readlink(store)}, which is not there. Fetch it, in a dataset of git-annex "
            f"or DataLad with `git annex get {os.path.basename(store)}`."
        )
    return InputError(f"{name}: there is no {kind} at {store}. Check `store` under `inputs: {name}`.")


def open_raw(store: str) -> Any:
    """Return the open file, not decompressed."""
    if not is_remote(store):
        return open(store, "rb")
    system, path = file_system(store)
    return system.open(path, "rb")


@contextmanager
def open_stream(store: str, name: str) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Yield the open file, decompressed if it is a gzip file; raise InputError for every error inside."""
    try:
        with open_raw(store) as file:
            if is_gzip(store):
                with gzip.GzipFile(fileobj=file) as plain:
                    yield plain
            else:
                yield file
    except InputError:
        raise
    except Exception as error:  # remote file systems raise many kinds
        raise file_error(store, name, error) from None


def read_to_end(store: str, name: str, start: int, count: int) -> Bytes:
    """Return the `count` bytes from `start` to the end of the file; raise InputError if it ends elsewhere.

    gzip's checksum is verified only when a file is read to its end.
    """
    content = np.empty(count, np.uint8)
    view = content.data
    with open_stream(store, name) as file:
        skipped = len(file.read(start))
        done = 0
        while done < count and (piece := file.read(min(STEP, count - done))):
            view[done : done + len(piece)] = piece
            done += len(piece)
        if done < count or file.read(1):
            ends = f"ends after {skipped + done}" if done < count else "is longer"
            raise InputError(f"{name}: the header of {store} states {start + count} bytes, but it {ends}.")
    content.flags.writeable = False
    return content


def forget_beyond(nbytes: float) -> None:
    """Drop the files used longest ago until all that are cached take at most `nbytes`."""
    with _LOCK:
        while _CACHE and sum(content.nbytes for content in _CACHE.values()) > nbytes:
            _CACHE.popitem(last=False)


_CACHE: OrderedDict[Hashable, Bytes] = OrderedDict()
_READING: dict[Hashable, threading.Lock] = {}
_LOCK = threading.Lock()


def cached(key: Hashable, read: Callable[[], Bytes]) -> Bytes:
    """Return the cached bytes for this key, or read them now; other threads that need them wait."""
    with _LOCK:
        lock = _READING.setdefault(key, threading.Lock())
    with lock:
        try:
            with _LOCK:
                if key in _CACHE:
                    _CACHE.move_to_end(key)
                    return _CACHE[key]
            content = read()
            with _LOCK:
                _CACHE[key] = content
                while len(_CACHE) > CACHED_FILES and sum(c.nbytes for c in _CACHE.values()) > CACHED_BYTES:
                    _CACHE.popitem(last=False)
            return content
        finally:
            with _LOCK:
                _READING.pop(key, None)
