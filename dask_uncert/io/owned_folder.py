"""Folders that dask-uncert makes: only files that it wrote there are ever removed, one by one.

Every such folder has a marker with a random id. A folder that is being written, or kept for the next run, holds
`dask-uncert.json`; the marker's kind says which files are ours. The `run.json` of a finished output lists its files;
the attributes of a converted store name its arrays. Anything else in such a folder is the user's: `check_owned` stops a
run that would replace it, and `remove_owned` leaves it where it is.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from dask_uncert.errors import InputError, listed
from dask_uncert.io.paths import AnyPath, check_not_special, is_remote, list_files, write_atomic

MARKER = "dask-uncert.json"
RECORD = "run.json"
NOTE = "UNFINISHED.txt"
SHOWN = 3  # files that a message names
CONVERTED = "converted"
MAP_STORE = "maps"
EXPORTED = "a map of dask-uncert"
"""What a file of an exported map says of itself in its metadata: only such a file is replaced."""
HEX = "[0-9a-f]{32}"
WORKING = rf"(?:\.{HEX}\.unfinished)?"  # of `write_atomic`, while a file is being written
PARTIAL = rf"(?:\.{HEX}\.partial)?"  # of zarr
NODE = rf"(?:zarr\.json|zarr\.{HEX}\.partial)"
STORED = rf"(?:{NODE}|digest\.json{WORKING}|c(?:/\d+)*{PARTIAL})"
ZARR = rf"(?:[^/]+/)*{STORED}"
CASES = rf"[^/]+\.[0-9a-f]{{24}}\.case{WORKING}|{HEX}\.frame{WORKING}|workers\.log{WORKING}|running\.json{WORKING}"
KINDS = {
    "checkpoints": rf"{CASES}|checkpoints\.json{WORKING}|maps\.zarr/{ZARR}",
    "cases": rf"{CASES}|[^/]+\.[0-9a-f]{{24}}\.maps{WORKING}/{ZARR}",
    "submission": rf"(?:(?:submission|progress|end)\.json|log\.txt|cancel){WORKING}",
    "output": rf"(?:raters/[^/]+/)?(?:summary|parts)\.zarr/{ZARR}|maps\.zarr/{ZARR}|tables/.+\.csv|figures/.+\.(?:png|svg|npz)"
    r"|run\.json|results\.json|report\.html|workers\.log|UNFINISHED\.txt",
}
"""The files that a folder with a marker may hold, by its kind."""
LEFT_BY_A_KILL = re.compile(rf"{re.escape(MARKER)}\.{HEX}\.unfinished")


def new_id() -> str:
    """Return a random id."""
    return uuid.uuid4().hex


def make_folder(folder: AnyPath, kind: str, key: str | None = None, files: Iterable[str] = ()) -> None:
    """Make a folder with a marker; key: its id; files: its files if `kind` does not say so."""
    if isinstance(folder, Path):
        folder.mkdir(parents=True, exist_ok=True)
    marker: dict[str, Any] = {
        "made_by": "dask-uncert",
        "kind": kind,
        "name": folder.name,
        "id": key or new_id(),
    }
    if kind not in KINDS:
        marker["files"] = nested(files)
    write_atomic(folder / MARKER, json.dumps(marker).encode())


def marker_of(folder: AnyPath) -> dict[str, Any]:
    """Return the marker in a folder; an empty one if there is none, if it is damaged, or if the folder was copied."""
    marker = _read(folder / MARKER)
    valid = (
        marker.get("made_by") == "dask-uncert"
        and marker.get("name") == folder.name
        and isinstance(marker.get("kind"), str)
    )
    return marker if valid and _is_id(marker.get("id")) else {}


def id_of(folder: AnyPath) -> str | None:
    """Return the id of a folder that dask-uncert made, from its marker or, once it is complete, its `run.json`."""
    key = marker_of(folder).get("id") or _read(folder / RECORD).get("id")
    return key if _is_id(key) else None


def owned_files(folder: AnyPath) -> tuple[list[str], list[str]]:
    """Return the files in a folder that dask-uncert wrote, and all others."""
    is_owned = _owned_names(folder)
    owned: list[str] = []
    foreign: list[str] = []
    for name, is_plain in _entries(folder):
        (owned if is_plain and is_owned(name) else foreign).append(name)
    return owned, foreign


def check_owned(folder: AnyPath) -> None:
    """Raise InputError if replacing a folder would lose something that dask-uncert did not write."""
    if isinstance(folder, Path) and os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        kind = "a link" if folder.is_symlink() else "a file"
        raise InputError(f"{folder} is {kind} and not ours to replace. Move it, or name another output.")
    owned, foreign = owned_files(folder)
    if foreign:
        why = "which dask-uncert did not write" if owned else "and no marker of dask-uncert"
        raise InputError(
            f"{folder} holds {listed(sorted(foreign), SHOWN)}, {why}: it is not ours to replace. Move it, or name "
            f"another output; nothing was changed."
        )


def store_attributes(arrays: Iterable[str], kind: str = CONVERTED) -> dict[str, Any]:
    """Return the attributes that mark a Zarr group with these arrays as one that dask-uncert wrote."""
    arrays = list(arrays)
    groups = {str(parent) for array in arrays for parent in PurePosixPath(array).parents} - {"."}
    return {"dask_uncert": kind, "id": new_id(), "arrays": sorted({*arrays, *groups})}


def check_exported(path: Path) -> None:
    """Raise InputError if a file or folder is not a map that dask-uncert exported."""
    if path.is_dir() or path.is_symlink():
        check_owned(path)
        return
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        last = b""
        try:
            while block := file.read(1 << 24):
                if EXPORTED.encode() in last + block:
                    return
                last = block[-len(EXPORTED) :]
        except (OSError, EOFError):  # not compressed
            pass
    raise InputError(f"{path} is not a map that dask-uncert exported: it is not ours to replace. Name another file.")


def remove_owned(folder: AnyPath, keep: Iterable[str] = ()) -> None:
    """Remove the files that dask-uncert wrote in a folder, as far as they can be, and folders that are empty then.

    keep: files to leave. The marker goes last, so that a removal that is stopped can go on.
    """
    if isinstance(folder, Path) and folder.is_symlink():
        return
    kept = set(keep)
    owned = [name for name in owned_files(folder)[0] if name not in kept]
    last = [name for name in owned if name in (MARKER, RECORD, "zarr.json")]
    remove_files(folder, [name for name in owned if name not in last])
    remove_files(folder, last)


def remove_inside(folder: AnyPath, part: AnyPath) -> None:
    """Remove the files below `part` that dask-uncert wrote in a folder, and folders that are empty then."""
    is_owned = _owned_names(folder)
    inside = part.name
    remove_files(part, [name for name, plain in _entries(part) if plain and is_owned(f"{inside}/{name}")])


def remove_files(folder: AnyPath, names: Iterable[str]) -> None:
    """Remove these files of a folder, as far as they can be, and folders that are empty then."""
    names = list(names)
    if not isinstance(folder, Path):
        paths = [f"{folder.path}/{name}" for name in names]
        plain = [path for path in paths if not set(path) & set("*?[]")]  # else fsspec takes it for a pattern
        with suppress(FileNotFoundError):
            if plain:
                folder.fs.rm(plain)
        for path in set(paths) - set(plain):
            with suppress(FileNotFoundError):
                folder.fs.rm_file(path)
        return
    for name in names:
        with suppress(OSError):
            (folder / name).unlink()
    for parent, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(parent)


def nested(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of files by the folder that holds them: a short list of many files."""
    folders: dict[str, list[str]] = {}
    for name in sorted(files):
        parent, _, last = name.rpartition("/")
        folders.setdefault(parent, []).append(last)
    return folders


def flat(files: Any) -> set[str]:
    """Return the names of files that `nested` made a short list of."""
    if not isinstance(files, dict):
        return set()
    return {f"{parent}/{name}" if parent else name for parent, names in files.items() for name in names}


def check_outside(folders: Iterable[AnyPath], paths: Mapping[str, str]) -> None:
    """Raise InputError if one of these paths is in a folder that is about to be replaced.

    paths: of inputs and other files that are read, by what a message calls them. Links are followed.
    """
    _folders_above.cache_clear()
    local: dict[tuple[int, int], Path] = {}
    remote: dict[str, AnyPath] = {}
    for folder in folders:
        if not isinstance(folder, Path):
            remote[_bare(str(folder))] = folder
        elif (identity := _identity(str(folder))) is not None:
            local[identity] = folder
    for label, path in paths.items():
        inner = path.rpartition("::")[2]
        if is_remote(inner) and not inner.startswith(("file://", "local://")):
            place = f"{_bare(inner)}/"
            found = next((folder for bare, folder in remote.items() if place.startswith(f"{bare}/")), None)
        else:
            found = next((local[i] for i in _ancestors(_real(inner)) if i in local), None) if local else None
        if found is not None:
            raise InputError(f"{label}: {path} is in {found}, which this run would replace. Name another output.")


def check_saved(folder: AnyPath) -> None:
    """Raise InputError if a saved Evaluation has anything else in its folder."""
    is_saved = re.compile(rf"{NODE}|total/{ZARR}").fullmatch
    foreign = [name for name, plain in _entries(folder) if not (plain and is_saved(name))]
    if foreign:
        raise InputError(f"{folder} holds {listed(sorted(foreign), SHOWN)} beside an Evaluation. Name another group.")


def check_new_file_outside(file: Path, folders: Iterable[AnyPath]) -> None:
    """Raise InputError if a file that is about to be written is in a folder of results, or is one."""
    path = os.path.realpath(file)
    for folder in folders:
        if isinstance(folder, Path) and Path(path).is_relative_to(os.path.realpath(folder)):
            raise InputError(f"{file} is in the output {folder}, where only its own files belong. Name another.")


def _owned_names(folder: AnyPath) -> Callable[[str], bool]:
    """Return whether a name is of a file that dask-uncert wrote in this folder, as a function."""
    if marker := marker_of(folder):
        if marker["kind"] in KINDS:
            pattern = re.compile(rf"{KINDS[marker['kind']]}|{re.escape(MARKER)}{WORKING}")
            return lambda name: pattern.fullmatch(name) is not None
        files = flat(marker.get("files"))
        return lambda name: name in files or name == MARKER
    record = _read(folder / RECORD)
    if _is_id(record.get("id")) and isinstance(record.get("files"), dict):
        files = {*flat(record["files"]), RECORD}
        return lambda name: re.sub(rf"\.{HEX}\.unfinished$", "", name) in files
    attributes = _read(folder / "zarr.json").get("attributes")
    attributes = attributes if isinstance(attributes, dict) else {}
    if attributes.get("dask_uncert") in (CONVERTED, MAP_STORE) and _is_id(attributes.get("id")):
        arrays = "|".join(map(re.escape, attributes.get("arrays", ())))
        store = re.compile(rf"done/[\w-]+{WORKING}|{NODE}|(?:{arrays})/{STORED}")
        return lambda name: store.fullmatch(name) is not None
    return lambda name: LEFT_BY_A_KILL.fullmatch(name) is not None


def _entries(folder: AnyPath) -> Iterable[tuple[str, bool]]:
    """Yield every file below a folder by its relative path, and whether it is a plain one; links are not followed."""
    if not isinstance(folder, Path):
        yield from ((name, True) for name in list_files(folder) if name)
        return
    for parent, folders, files in os.walk(folder):
        inside = os.path.relpath(parent, folder)
        for name in files:
            path = os.path.join(parent, name)
            yield os.path.normpath(os.path.join(inside, name)), stat.S_ISREG(os.lstat(path).st_mode)
        for name in folders:
            if os.path.islink(os.path.join(parent, name)):
                yield os.path.normpath(os.path.join(inside, name)), False


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(HEX, value) is not None


def _read(path: AnyPath) -> dict[str, Any]:
    check_not_special(str(path))
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _bare(url: str) -> str:
    return url.replace("s3a://", "s3://").rstrip("/")


def _real(path: str) -> str:
    return os.path.realpath(path.removeprefix("file://").removeprefix("local://"))


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@lru_cache(maxsize=4096)
def _folders_above(path: str) -> frozenset[tuple[int, int]]:
    parent = os.path.dirname(path)
    above = _folders_above(parent) if parent != path else frozenset()
    identity = _identity(path)
    return above if identity is None else above | {identity}


def _ancestors(path: str) -> frozenset[tuple[int, int]]:
    """Return the identities of a path and of every folder above it: a name in other letters has the same."""
    identity = _identity(path)
    above = _folders_above(os.path.dirname(path))
    return above if identity is None else above | {identity}
