"""Where things lie: local paths and places behind URLs, such as object stores, with the same few operations on both.

The only door to fsspec. Credentials are found by its libraries, in the environment or the usual files of a profile,
and are never part of an address of ours. Listings are never cached: other machines write as well.

S3 is spoken by s3fs. obstore takes .06 s of the processor to read 64 MB in 16 chunks, s3fs .10 s (.20 and .43 s in 256
chunks), beside about 1 s that such a block takes to evaluate; but a process that was forked after obstore had been
used hangs in it, and it does not read the files of a profile.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from dask_uncert.errors import InputError

if TYPE_CHECKING:
    from upath import UPath

Place: TypeAlias = "Path | UPath"
UNCACHED = {"use_listings_cache": False}
WHOLE = {"max_concurrency": 1}
"""Of s3fs where chunks are read: it would ask for the size of each first, to read large ones in parts."""
ONCE = {"config_kwargs": {"retries": {"total_max_attempts": 1}, "connect_timeout": 10, "read_timeout": 30}}
"""Of s3fs where inputs are read: whatever fails is tried again in one place, `retries`, and counted there."""
EXTRAS = {"s3": "s3", "s3a": "s3"}
TAGS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "Last-Modified")
"""Of a file behind a URL, what changes when it is written, by the names that file systems have for it."""


def is_remote(place: str | Place) -> bool:
    """Whether this is a URL."""
    return "://" in str(place)


def scheme_of(url: str) -> str:
    """What stands before `://`."""
    return url.partition("://")[0]


def place_of(given: str | Place) -> Place:
    """The place that a path or URL names; InputError for a URL whose library is not installed.

    >>> place_of("s3://bucket/results") / "run.json"
    S3Path('bucket/results/run.json', protocol='s3')
    """
    text = str(given)
    if not is_remote(text):
        return Path(text)
    check_no_secret(text)
    from upath import UPath

    words: Any = UNCACHED
    try:
        found: UPath = UPath(text.rstrip("/"), **words)
        _ = found.fs
    except (ImportError, ValueError) as error:
        raise InputError(_no_library(text, error)) from None
    return found


def absolute(given: str | Place) -> Place:
    """The same place whatever the working directory is; InputError for a bucket, beside which nothing can lie."""
    found = place_of(given)
    if isinstance(found, Path):
        return found.absolute()
    if not found.name:
        raise InputError(f"{given} is a whole bucket. Name a folder in it.")
    return found


def read_options(url: str) -> dict[str, Any]:
    """Options of fsspec's file system for reading inputs; InputError for a URL with a password in it."""
    check_no_secret(url)
    return {} if "::" in url else UNCACHED | (WHOLE | ONCE if scheme_of(url) in EXTRAS else {})


def map_options(url: str) -> dict[str, Any]:
    """The same for arrays that are written: what fails is tried again by the library."""
    return UNCACHED | (WHOLE if scheme_of(url) in EXTRAS else {})


def file_system(url: str) -> tuple[Any, str]:
    """fsspec's file system for reading what a URL names, and the path in it.

    Raises InputError where its library is not installed.
    """
    import fsspec

    try:
        found, path = fsspec.core.url_to_fs(url, **read_options(url))
    except (ImportError, ValueError) as error:
        raise InputError(_no_library(url, error)) from None
    try_once(found)
    return found, str(path)


def try_once(system: Any) -> None:
    """Have a file system of s3fs try nothing again by itself."""
    if hasattr(system, "retries"):
        system.retries = 1


def mark_of(url: str) -> str | None:
    """Changes whenever the file, or a file in the folder, is written; None where that cannot be told."""
    system, path = file_system(url)
    path = path.rstrip("/")
    try:
        found = {} if url.startswith(("http://", "https://")) else system.find(path, detail=True)
        found = found or {path: system.info(path)}
    except FileNotFoundError:
        return None
    listed = []
    for name, facts in sorted(found.items()):
        tag = next((str(facts[word]) for word in TAGS if facts.get(word)), None)
        if tag is None:
            return None
        listed.append((name[len(path) :], facts.get("size"), tag))
    return hashlib.sha256(json.dumps(listed).encode()).hexdigest()


def write_whole(place: Place, content: bytes) -> None:
    """Write a file that is whole or not there, and on the disk when this returns; its folders are made."""
    if not isinstance(place, Path):
        place.fs.pipe_file(place.path, content)  # an object is whole or not there
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    working = place.with_name(f"{place.name}.{uuid.uuid4().hex}.unfinished")
    try:
        with working.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(working, place)
    finally:
        working.unlink(missing_ok=True)


def remove(place: Place) -> None:
    """Remove a file or a folder with all in it, if it is there; a local one as far as that can be done."""
    if isinstance(place, Path):
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):
        place.fs.rm(place.path, recursive=True)


def files_below(place: Place) -> list[str]:
    """Paths of all files in a folder, relative to it."""
    if isinstance(place, Path):
        return [str(file.relative_to(place)) for file in place.rglob("*") if file.is_file()]
    with suppress(FileNotFoundError):
        return [str(path)[len(place.path) :].lstrip("/") for path in place.fs.find(place.path)]
    return []


def names_in(place: Place) -> set[str]:
    """Names of what lies in a folder itself; none where it is not there."""
    with suppress(FileNotFoundError):
        if isinstance(place, Path):
            return set(os.listdir(place))
        return {str(path).rstrip("/").rpartition("/")[2] for path in place.fs.ls(place.path, detail=False)}
    return set()


def copy_tree(source: Place, target: Place) -> None:
    """Copy a folder into one that is not there; within an object store nothing travels through this machine."""
    if isinstance(source, Path):
        if isinstance(target, Path):
            shutil.copytree(source, target, copy_function=_link)
        else:
            upload(source, target, files_below(source))
        return
    names = files_below(source)
    if not isinstance(target, Path):
        copy_within(source, target, names)
        return
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
    source.fs.get([f"{source.path}/{name}" for name in names], [str(target / name) for name in names])


def copy_within(source: UPath, target: UPath, names: Iterable[str]) -> None:
    """Copy these files of a folder behind a URL to the same names in another of the same store."""
    listed = list(names)
    if listed:
        source.fs.copy([f"{source.path}/{n}" for n in listed], [f"{target.path}/{n}" for n in listed])


def upload(folder: Path, target: Place, names: Iterable[str]) -> None:
    """Copy these files of a local folder to the same names below a place behind a URL."""
    assert not isinstance(target, Path)
    listed = list(names)
    if listed:
        target.fs.put([str(folder / name) for name in listed], [f"{target.path}/{name}" for name in listed])


def _link(source: str, target: str) -> None:
    """Where the file system can link, nothing is copied."""
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)


def check_no_secret(url: str) -> None:
    """InputError, which does not repeat it, for a URL with a password in it."""
    for part in url.split("::"):
        if urlsplit(part).password is not None:
            raise InputError(
                f"a {scheme_of(part)}:// address holds a password. Leave it out, for jobs are copied to `run.json`: "
                f"credentials come from the environment or the usual files of a profile."
            )


def _no_library(url: str, error: Exception) -> str:
    extra = EXTRAS.get(scheme_of(url))
    how = f"`python -m pip install 'dask-uncert[{extra}]'`" if extra else "with pip"
    return f"{url} cannot be reached: {' '.join(str(error).split())}. Install what it needs, {how}."
