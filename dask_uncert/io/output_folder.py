"""The output folder: written under another name, renamed when complete, never overwritten by mistake.

An object store cannot rename. For one, the files are first written on this machine and copied when all are complete,
`run.json` last; if an earlier result is replaced, its `run.json` is removed first.
"""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import platform
import resource
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError, OutputError, one_line
from dask_uncert.io.paths import (
    AnyPath,
    copy_files,
    copy_tree,
    is_remote,
    list_files,
    remove,
    upload_files,
    write_atomic,
)

RECORD = "run.json"
NOTE = "UNFINISHED.txt"
UNFINISHED = "This evaluation is not finished; run the job again.\n"
REPLACED = "-replaced"
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
VERSIONS = ("dask-uncert", "numpy", "scipy", "numba", "dask", "distributed", "zarr", "zarrs", "nibabel")
Progress = Callable[[str, int, int], None]
"""A function that shows progress: called with the stage, how much of it is done, and its total."""


def read_record(folder: AnyPath) -> dict[str, Any]:
    """Return the `run.json` of a finished folder; raise InputError if there is none."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}.")
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} holds no {RECORD}: it is unfinished, or not an output of dask-uncert."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / RECORD} cannot be read: {error}.") from None
    if not isinstance(record, dict):
        raise InputError(f"{folder / RECORD} is not a record of a run.")
    return record


def is_finished(folder: AnyPath, fingerprint: str | None, fresh: bool) -> bool:
    """Return whether the folder already holds this evaluation, so that nothing needs to be run.

    fingerprint: of the job and its inputs, or None if inputs cannot be compared. Raises InputError if the folder holds
    something else that would be lost: another job's results (unless `fresh`), or files that dask-uncert did not write.
    """
    try:
        exists = folder.exists()
    except Exception as error:  # object stores and their credentials raise many kinds
        if not is_remote(folder):
            raise
        raise InputError(f"the output {folder} cannot be reached: {one_line(error)}.") from error
    if not exists:
        return False
    if not folder.is_dir():
        raise InputError(f"the output {folder} is a file; name a folder.")
    if not (folder / RECORD).exists():
        if any(folder.iterdir()) and not (folder / NOTE).exists():
            raise InputError(
                f"the output folder {folder} is not empty and holds no {RECORD}: it is not ours to replace. "
                f"Name another with --out, or empty it."
            )
        return False
    if fresh:
        return False
    if fingerprint is not None and read_record(folder).get("fingerprint") == fingerprint:
        return True
    raise InputError(
        f"{folder} holds a finished evaluation of another job, other inputs or another version. Give --fresh to "
        f"replace it, or another folder with --out."
    )


@contextmanager
def being_written(folder: AnyPath, elsewhere: Mapping[str, AnyPath] | None = None) -> Iterator[Path]:
    """Yield a local folder that becomes the output when the `with` ends well, and is removed when it does not.

    An earlier result stays complete until the new one is. elsewhere: for an output behind a URL, folders that are in
    its store already, by their names in the output, to be copied there. It may be filled inside of the `with`.
    """
    try:
        with (
            _renamed(folder)
            if isinstance(folder, Path)
            else _copied(folder, {} if elsewhere is None else elsewhere) as working
        ):
            yield working
    except OSError as error:
        if error.errno not in UNWRITABLE and not isinstance(error, PermissionError):
            raise
        reason = os.strerror(error.errno) if error.errno in UNWRITABLE else one_line(error)
        raise OutputError(
            f"{folder} could not be written: {reason}. An earlier result is unchanged. Run again when the folder can be "
            f"written: finished work was kept as far as there was room."
        ) from error


@contextmanager
def rewritten(folder: AnyPath) -> Iterator[Path]:
    """Yield a local folder; files written to it are added to the finished output or replace its files."""
    if isinstance(folder, Path):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="dask-uncert-") as local:
        yield Path(local)
        upload_files(Path(local), folder, list_files(Path(local)))


@contextmanager
def _copied(folder: AnyPath, elsewhere: Mapping[str, AnyPath]) -> Iterator[Path]:
    """Yield a temporary folder that is copied behind the URL at the end, with the folders `elsewhere` in its store."""
    with tempfile.TemporaryDirectory(prefix="dask-uncert-") as local:
        working = Path(local)
        yield working
        names = list_files(working)
        write_atomic(folder / NOTE, UNFINISHED.encode())
        remove(folder / RECORD)
        for name, source in elsewhere.items():
            if source != folder / name:
                remove(folder / name)
                copy_tree(source, folder / name)
        upload_files(working, folder, [name for name in names if name != RECORD])
        kept = {*names, NOTE}
        for name in list_files(folder):
            if name not in kept and not any(name.startswith(f"{other}/") for other in elsewhere):
                remove(folder / name)
        upload_files(working, folder, [RECORD])
        remove(folder / NOTE)


@contextmanager
def _renamed(folder: Path) -> Iterator[Path]:
    """Yield a folder beside the final one that is renamed to it at the end.

    Its name holds this process's number, so two runs to the same output do not disturb each other. Folders left by runs
    that were killed on this machine are removed.
    """
    prefix = f"{folder.name}.unfinished-{socket.gethostname()}-"
    working = folder.with_name(f"{prefix}{os.getpid()}")
    made = [parent for parent in working.parents if not parent.exists()]
    try:
        for left in folder.parent.glob(f"{glob.escape(prefix)}*") if folder.parent.is_dir() else ():
            if left.name.endswith(REPLACED) and not folder.exists():
                left.rename(folder)  # a run was killed between two renames: put the earlier result back
            elif left == working or not _is_running(left.name.removeprefix(prefix).removesuffix(REPLACED)):
                shutil.rmtree(left, ignore_errors=True)
        working.mkdir(parents=True)
        (working / NOTE).write_text(UNFINISHED, encoding="utf-8")
    except OSError as error:
        raise InputError(f"the output folder {working} cannot be created: {error}.") from None
    try:
        yield working
        (working / NOTE).unlink()
        put_in_place(working, folder)
    finally:
        shutil.rmtree(working, ignore_errors=True)
        for parent in made:  # the nearest first; one that holds the result is kept
            with suppress(OSError):
                parent.rmdir()


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:  # another user's
        return True
    return True


def put_in_place(working: AnyPath, folder: AnyPath, last: str = RECORD) -> None:
    """Rename a complete folder to its final name; an earlier one stays until that is done.

    Behind a URL it is copied, the file `last` after all others.
    """
    if not (isinstance(working, Path) and isinstance(folder, Path)):
        assert not isinstance(working, Path)
        assert not isinstance(folder, Path)
        remove(folder / last)
        remove(folder)
        copy_files(working, folder, [name for name in list_files(working) if name != last])
        copy_files(working, folder, [last])
        remove(working)
        return
    if not folder.exists():
        working.rename(folder)
        return
    earlier = working.with_name(f"{working.name}{REPLACED}")
    folder.rename(earlier)
    try:
        working.rename(folder)
    except OSError:
        earlier.rename(folder)
        raise
    shutil.rmtree(earlier, ignore_errors=True)


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write `run.json`, the last file of a folder: if it exists, the folder is complete."""
    text = json.dumps(_finite(record), indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def _finite(value: Any) -> Any:
    """Return the value with infinities, which JSON lacks, as text."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute the numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in VERSIONS}}


def peak_memory() -> int:
    """Return the largest resident size this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
