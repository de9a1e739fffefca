"""One run at a time writes an output: a locked file beside it, which the system unlocks when the process ends."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dask_uncert.errors import InputError
from dask_uncert.io.paths import AnyPath

ENDING = ".lock"
LONGEST_ENDING = 90  # bytes that the names of folders beside an output add, besides the host's name
LONGEST_NAME = 255  # bytes, where a file system does not tell
MARKER_BYTES = 200
_held: set[Path] = set()


@contextmanager
def reserved(output: AnyPath) -> Iterator[None]:
    """Hold the lock of an output inside of the `with`: another run is told at its start.

    The lock of an output behind a URL is on this machine, so that runs on other machines are not seen.

    Raises InputError where another run holds it, and where nothing can be written beside the output.
    """
    is_local = isinstance(output, Path)
    path = output.with_name(f".{output.name}{ENDING}") if isinstance(output, Path) else _stand_in(output)
    made = [parent for parent in path.parents if not parent.exists()]
    try:
        descriptor = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _check_length(path)
            descriptor = _lock(path, output)
        except OSError as error:
            if is_local:
                raise InputError(f"the output folder {output} cannot be created: {error}.") from None
        try:
            yield
        finally:
            if descriptor is not None:
                _unlock(path, descriptor)
    finally:
        for parent in made:  # the nearest first; one that holds the result is kept
            with suppress(OSError):
                parent.rmdir()


def remove_locks() -> None:
    """Remove the files of all locks that this process holds: it is about to end."""
    for path in list(_held):
        path.unlink(missing_ok=True)


def _stand_in(output: AnyPath) -> Path:
    name = hashlib.sha256(str(output).encode()).hexdigest()[:24]
    return Path(tempfile.gettempdir()) / f"dask-uncert-{os.getuid()}-{name}{ENDING}"


def _check_length(path: Path) -> None:
    limit = LONGEST_NAME
    with suppress(OSError, ValueError):
        limit = os.pathconf(path.parent, "PC_NAME_MAX")
    longest = limit - LONGEST_ENDING - len(socket.gethostname())
    if len(os.fsencode(path.name)) > longest:
        raise OSError(f"its name is longer than {longest} bytes")


def _lock(path: Path, output: AnyPath) -> int:
    """Return the descriptor of the locked file; it is ours to remove if it holds our marker."""
    while True:
        if (descriptor := _new_lock(path)) is not None:
            _held.add(path)
            return descriptor
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:  # the run that held it has just ended
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(descriptor)
            os.close(descriptor)
            raise InputError(
                f"another run is writing to {output}{holder and f' ({holder})'}. Wait until it has ended, or name another "
                f"output."
            ) from None
        except OSError:
            pass  # a file system without locks
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                break
        os.close(descriptor)
    if _holder(descriptor):  # a run that was killed has left it
        os.pwrite(descriptor, _marker(), 0)
        _held.add(path)
    return descriptor


def _new_lock(path: Path) -> int | None:
    """Return the descriptor of a new file that is locked before it has its name; None if there is a file already."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", buffering=0) as file:
        with suppress(OSError):  # a full disk, or a file system without locks
            file.write(_marker())
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            with suppress(PermissionError):  # a file system without hard links
                os.link(file.name, path)
                return os.dup(file.fileno())
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return None
    os.pwrite(descriptor, _marker(), 0)
    return descriptor


def _marker() -> bytes:
    marker = {"made_by": "dask-uncert", "process": os.getpid(), "host": socket.gethostname()}
    return json.dumps(marker).encode().ljust(MARKER_BYTES)


def _unlock(path: Path, descriptor: int) -> None:
    if path in _held:
        _held.discard(path)
        path.unlink(missing_ok=True)
    os.close(descriptor)


def _holder(descriptor: int) -> str:
    """Return the process that a lock's file names; "" if it is not such a file."""
    try:
        marker = json.loads(os.pread(descriptor, MARKER_BYTES, 0))
        is_ours = marker["made_by"] == "dask-uncert"
        return f"process {marker['process']} on {marker['host']}" if is_ours else ""
    except (ValueError, TypeError, KeyError):
        return ""


def check_writable(folder: AnyPath, name: str = "") -> None:
    """Raise InputError if no file that will be called `name` can be written in a folder of this machine."""
    if not isinstance(folder, Path):
        return
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{uuid.uuid4().hex}-", suffix=name):
            pass
    except OSError as error:
        raise InputError(f"{folder / name} cannot be written: {error}.") from None
