"""The output folder: written under another name, renamed when whole, never overwritten by mistake."""

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError, OutputError

RECORD = "run.json"
NOTE = "UNFINISHED.txt"
REPLACED = "-replaced"
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
VERSIONS = ("dask-uncert", "numpy", "scipy", "numba", "dask", "distributed", "zarr", "zarrs", "nibabel")
Report = Callable[[str, int, int], None]
"""What is told of progress: what is done, how many of it, of how many."""


def read_record(folder: Path) -> dict[str, Any]:
    """The `run.json` of a finished folder; InputError where there is none."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}.")
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{folder} holds no {RECORD}: it is unfinished, or no output of dask-uncert."
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / RECORD} cannot be read: {error}.") from None
    if not isinstance(found, dict):
        raise InputError(f"{folder / RECORD} is no record of a run.")
    return found


def is_finished(folder: Path, fingerprint: str | None, fresh: bool) -> bool:
    """Whether the folder already holds this very evaluation, so that nothing needs to be run.

    fingerprint: of the job and its inputs, or None where inputs cannot be compared. Raises InputError where
    the folder holds something else that would be lost: another job's results (unless `fresh`), or files that
    are not ours.
    """
    if not folder.exists():
        return False
    if not folder.is_dir():
        raise InputError(f"the output {folder} is a file; name a folder.")
    if not (folder / RECORD).exists():
        if any(folder.iterdir()):
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
def being_written(folder: Path) -> Iterator[Path]:
    """A folder beside the final one; renamed to it when the `with` ends well, removed when it does not.

    Its name is this process's own, so that two runs to the same output do not disturb each other. An earlier
    result stays whole until the new one is. What runs that were killed on this machine left is removed.
    """
    mine = f"{folder.name}.unfinished-{socket.gethostname()}-"
    working = folder.with_name(f"{mine}{os.getpid()}")
    made = [parent for parent in working.parents if not parent.exists()]
    try:
        for left in folder.parent.glob(f"{glob.escape(mine)}*") if folder.parent.is_dir() else ():
            if left.name.endswith(REPLACED) and not folder.exists():
                left.rename(folder)  # a run was killed between two renames: put the earlier result back
            elif left == working or not _is_running(left.name.removeprefix(mine).removesuffix(REPLACED)):
                shutil.rmtree(left, ignore_errors=True)
        working.mkdir(parents=True)
        (working / NOTE).write_text("This evaluation is not finished; run the job again.\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"the output folder {working} cannot be made: {error}.") from None
    try:
        yield working
        (working / NOTE).unlink()
        put_in_place(working, folder)
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        raise OutputError(
            f"{folder} could not be written: {os.strerror(error.errno)}. What was there before stands; run again when "
            f"its disk can be written to: what is finished is kept where it found room."
        ) from error
    finally:
        shutil.rmtree(working, ignore_errors=True)
        for parent in made:  # the nearest first; with the result in it, it stays
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


def put_in_place(working: Path, folder: Path) -> None:
    """Rename a whole folder to its final name; what was there stays until that is done."""
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
    """Write `run.json`, the last file of a folder: where it is, the folder is whole."""
    text = json.dumps(_finite(record), indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")


def _finite(value: Any) -> Any:
    """With infinities, which JSON lacks, as text."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def versions() -> dict[str, str]:
    """Of Python and of the packages that the numbers pass through."""
    return {"python": platform.python_version(), **{name: version(name) for name in VERSIONS}}


def peak_memory() -> int:
    """The largest resident size this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
