"""The output folder: written under another name, renamed when complete, never overwritten by mistake.

An object store cannot rename. For one, the files are first written on this machine and copied when all are complete,
`run.json` last; if an earlier result is replaced, its `run.json` is removed first.

`run.json` holds a random id and lists the files: nothing else in the folder is ever replaced (see `owned_folder`).
"""

from __future__ import annotations

import errno
import glob
import json
import math
import os
import platform
import re
import resource
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from dask_uncert.errors import InputError, OutputError, listed, one_line
from dask_uncert.io.integrity import check_sealed, digest_of, sealed
from dask_uncert.io.owned_folder import (
    HEX,
    MARKER,
    NOTE,
    RECORD,
    check_owned,
    flat,
    id_of,
    make_folder,
    marker_of,
    nested,
    new_id,
    owned_files,
    remove_files,
    remove_owned,
)
from dask_uncert.io.paths import (
    AnyPath,
    check_not_special,
    copy_files,
    copy_tree,
    list_files,
    upload_files,
    write_atomic,
)
from dask_uncert.io.validation import read_json

if TYPE_CHECKING:
    from upath import UPath

RESULTS, DIGEST = "results.json", "digest"
UNFINISHED = "This evaluation is not finished; run the job again.\n"
REPLACED = "-replaced"
UNFINISHED_COPY = "copy"  # the kind of an output behind a URL while files are copied into it
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
VERSIONS = ("dask-uncert", "numpy", "scipy", "numba", "dask", "distributed", "zarr", "zarrs", "nibabel")
Progress = Callable[[str, int, int], None]
"""A function that shows progress: called with the stage, how much of it is done, and its total."""


class _CaseRecord(BaseModel, extra="allow"):
    patient: str = ""
    visit: str = ""
    groups: dict[str, str] = {}


class _Record(BaseModel, extra="allow"):
    fingerprint: str | None = None
    asked: str = ""
    job: dict[str, Any] = {}
    inputs: dict[str, dict[str, Any]] = {}
    about: dict[str, str] = {}
    maps: list[str] = []
    cases: dict[str, _CaseRecord] = {}
    failed: dict[str, str] = {}
    merged: list[str] = []
    without_checksum: list[str] = []


def read_record(folder: AnyPath) -> dict[str, Any]:
    """Return the `run.json` of a finished folder; raise InputError if there is none."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}.")
    path = folder / RECORD
    check_not_special(str(path))
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{folder} holds no {RECORD}: it is unfinished, or not an output of dask-uncert.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}.") from None
    record = read_json(_Record, text, path, "It was changed, or is not an output of dask-uncert.")
    check_sealed(json.loads(text), DIGEST, path)
    return record.model_dump(exclude_unset=True, exclude={DIGEST})


def is_finished(folder: AnyPath, fingerprint: str | None, fresh: bool) -> bool:
    """Return whether the folder already holds this evaluation, so that nothing needs to be run.

    fingerprint: of the job and its inputs, or None if inputs cannot be compared. Raises InputError if the folder holds
    something else that would be lost: another job's results (unless `fresh`), or files that dask-uncert did not write.
    """
    try:
        exists = folder.exists()
    except Exception as error:  # object stores and their credentials raise many kinds
        raise InputError(f"the output {folder} cannot be reached: {one_line(error)}.") from error
    if not exists:
        return False
    if not folder.is_dir():
        raise InputError(f"the output {folder} is a file; name a folder.")
    if fresh or not (folder / RECORD).exists():
        check_owned(folder)
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
    """Yield a local folder; files written to it are added to the finished output or replace files that it lists.

    Raises InputError, and writes nothing, if a file would replace one that dask-uncert did not write.
    """
    with tempfile.TemporaryDirectory(prefix="dask-uncert-") as local:
        working = Path(local)
        yield working
        names = list_files(working)
        foreign = set(owned_files(folder)[1])
        in_the_way = [name for name in (RECORD, *names) if name in foreign or (folder / name).is_dir()]
        if in_the_way:
            raise InputError(
                f"{folder} holds {listed(sorted(in_the_way), 3)}, which dask-uncert did not write and which the report "
                f"would replace. Move it; nothing was changed."
            )
        _list_in_record(folder, names, working)
        if not isinstance(folder, Path):
            upload_files(working, folder, names)
            return
        for name in names:
            write_atomic(folder / name, (working / name).read_bytes())


def _list_in_record(folder: AnyPath, names: Iterable[str], written: Path, key: str | None = None) -> None:
    """Add files, just written to another folder, to those that `run.json` lists; give it an id, `key`, if it has none."""
    record = read_record(folder)
    files = {*flat(record.get("files")), *names} - {RECORD}
    record = {"id": key or new_id(), **record, "files": nested(files)}
    if (written / RESULTS).is_file():
        record["results"] = digest_of((written / RESULTS).read_bytes())
    write_atomic(folder / RECORD, _json(record))


@contextmanager
def _copied(folder: AnyPath, elsewhere: Mapping[str, AnyPath]) -> Iterator[Path]:
    """Yield a temporary folder that is copied behind the URL at the end, with the folders `elsewhere` in its store."""
    assert not isinstance(folder, Path)
    with tempfile.TemporaryDirectory(prefix="dask-uncert-") as local:
        working = Path(local)
        yield working
        copied = {f"{name}/{file}": source / file for name, source in elsewhere.items() for file in list_files(source)}
        _list_in_record(working, [*list_files(working), *copied], working)
        with _unfinished_copy(folder, [*list_files(working), *copied]) as stale:
            remove_files(folder, [RECORD])
            for name, source in elsewhere.items():
                if source != folder / name:
                    copy_tree(source, folder / name)
            upload_files(working, folder, [name for name in list_files(working) if name != RECORD])
            remove_files(folder, stale)
            upload_files(working, folder, [RECORD])


@contextmanager
def _unfinished_copy(folder: UPath, names: Sequence[str]) -> Iterator[list[str]]:
    """Mark a folder behind a URL as unfinished inside of the `with`; yield the earlier files that are not replaced."""
    _check_still_owned(folder)
    earlier = owned_files(folder)[0]
    make_folder(folder, UNFINISHED_COPY, files={*earlier, *names, NOTE})
    write_atomic(folder / NOTE, UNFINISHED.encode())
    yield [name for name in earlier if name not in {*names, NOTE, MARKER}]
    remove_files(folder, [NOTE, MARKER])


def is_unfinished_copy(folder: AnyPath) -> bool:
    """Return whether a folder behind a URL is one that was not copied completely."""
    return marker_of(folder).get("kind") == UNFINISHED_COPY


def _check_still_owned(folder: AnyPath) -> None:
    """Raise OutputError if something came into an earlier result while its replacement was computed."""
    try:
        check_owned(folder)
    except InputError as error:
        raise OutputError(f"{error} Then run again: finished work was kept.") from None


@contextmanager
def _renamed(folder: Path) -> Iterator[Path]:
    """Yield a folder beside the final one that is renamed to it at the end.

    Its name holds this process's number and a random id, so two runs to the same output do not disturb each other.
    Folders left by runs that were killed on this machine are removed.
    """
    key = new_id()
    prefix = f"{folder.name}.unfinished-{socket.gethostname()}-"
    working = folder.with_name(f"{prefix}{os.getpid()}-{key}")
    made = [parent for parent in working.parents if not parent.exists()]
    try:
        restore_replaced(folder, prefix)
        working.mkdir(parents=True)
        make_folder(working, "output", key)
        (working / NOTE).write_text(UNFINISHED, encoding="utf-8")
    except OSError as error:
        raise InputError(f"the output folder {working} cannot be created: {error}.") from None
    try:
        yield working
        _list_in_record(working, {*owned_files(working)[0]} - {NOTE, MARKER}, working, key)
        (working / NOTE).unlink()
        (working / MARKER).unlink()
        put_in_place(working, folder)
    finally:
        remove_owned(working)
        for parent in made:  # the nearest first; one that holds the result is kept
            with suppress(OSError):
                parent.rmdir()


def restore_replaced(folder: Path, prefix: str) -> None:
    """Remove what killed runs left beside a folder; put its earlier result back if one was killed between renames."""
    for left in folder.parent.glob(f"{glob.escape(prefix)}*") if folder.parent.is_dir() else ():
        match = re.fullmatch(rf"(\d+)-({HEX})({REPLACED})?", left.name.removeprefix(prefix))
        if match is None or _is_running(match[1]) or left.is_symlink():
            continue
        if match[3]:
            owned, foreign = owned_files(left)
            if RECORD in owned and os.path.lexists(folder):
                remove_owned(left)
            elif RECORD in owned and not foreign:
                left.rename(folder)
        elif id_of(left) == match[2] or (id_of(left) is None and not owned_files(left)[1]):
            remove_owned(left)


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's; no number of a process
        return True
    return True


def put_in_place(working: AnyPath, folder: AnyPath, last: str = RECORD) -> None:
    """Rename a complete folder to its final name; an earlier one stays until that is done.

    Behind a URL it is copied, the file `last` after all others.
    """
    if not (isinstance(working, Path) and isinstance(folder, Path)):
        assert not isinstance(working, Path)
        assert not isinstance(folder, Path)
        names = [name for name in owned_files(working)[0] if name != MARKER]
        with _unfinished_copy(folder, names) as stale:
            remove_files(folder, [last])
            copy_files(working, folder, [name for name in names if name != last])
            remove_files(folder, stale)
            copy_files(working, folder, [last])
        remove_owned(working)
        return
    with suppress(OSError):
        folder.rmdir()  # an empty one
    if not os.path.lexists(folder):
        working.rename(folder)
        return
    _check_still_owned(folder)
    earlier = working.with_name(f"{working.name}{REPLACED}")
    folder.rename(earlier)
    try:
        working.rename(folder)
    except OSError:
        earlier.rename(folder)
        raise
    remove_owned(earlier)


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write `run.json`, the last file of a folder: if it exists, the folder is complete."""
    (folder / RECORD).write_bytes(_json(record))


def _json(record: dict[str, Any]) -> bytes:
    plain = json.loads(json.dumps(_finite(record), allow_nan=False, default=str))
    text = json.dumps(sealed(plain, DIGEST), indent=1, ensure_ascii=False)
    return f"{text}\n".encode()


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
