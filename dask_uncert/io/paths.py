"""Local paths and URLs (for example of object stores), with the same few operations on both.

The only module that opens fsspec. Its libraries find credentials in the environment or in the usual profile files;
credentials are never part of an address. Listings are never cached, because other machines write too.

S3 is read with s3fs. obstore takes .06 s of processor time to read 64 MB in 16 chunks, s3fs .10 s (.20 and .43 s in
256 chunks), compared with about 1 s to evaluate such a block. But a process that is forked after obstore was used
hangs in it, and obstore does not read profile files.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from dask_uncert.errors import InputError, one_line, without_secrets

if TYPE_CHECKING:
    from upath import UPath

AnyPath: TypeAlias = "Path | UPath"
NO_CACHE = {"use_listings_cache": False}
WHOLE_CHUNKS = {"max_concurrency": 1}
"""Option of s3fs for chunks: otherwise it first asks for the size of each, to read large ones in parts."""
NO_RETRIES = {"config_kwargs": {"retries": {"total_max_attempts": 1}, "connect_timeout": 10, "read_timeout": 30}}
"""Option of s3fs for inputs: `retries` repeats every failed read and counts the attempts."""
EXTRAS = {"s3": "s3", "s3a": "s3"}
UNLISTED = ("http://", "https://")
"""Such servers cannot list files, only say whether one exists."""
TAGS = ("ETag", "etag", "md5Hash", "content_md5", "mtime", "LastModified", "last_modified", "Last-Modified")
"""Keys under which file systems report a value that changes when a file is written."""

SPECIAL = {stat.S_ISFIFO: "FIFO", stat.S_ISSOCK: "socket", stat.S_ISCHR: "device", stat.S_ISBLK: "device"}


def is_remote(path: str | AnyPath) -> bool:
    """Return whether this is a URL."""
    return "://" in str(path)


def url_scheme(url: str) -> str:
    """Return the part of a URL before `://`."""
    return url.partition("://")[0]


def check_not_special(path: str | Path, what: str = "") -> None:
    """Raise InputError for a FIFO, socket or device, also behind a link: reading one may wait or go on for ever.

    what: begins the message, such as an input's name and ": ". A URL passes, unless it is of a local file.
    """
    inner = str(path).split("::")[-1]
    inner = inner.partition("://")[2] if inner.startswith(("file://", "local://")) else inner
    try:
        mode = 0 if is_remote(inner) else os.stat(inner).st_mode
    except (OSError, ValueError):
        return  # whoever opens it says what is wrong
    kind = next((name for test, name in SPECIAL.items() if test(mode)), None)
    if kind is not None:
        raise InputError(f"{what}{path} is a {kind}, so reading it may never end. Name a file, or write it to one.")


def as_path(path: str | AnyPath) -> AnyPath:
    """Return the path object of a path or URL; raise InputError for a URL whose library is not installed.

    >>> as_path("s3://bucket/results") / "run.json"
    S3Path('bucket/results/run.json', protocol='s3')
    """
    text = str(path)
    if not is_remote(text) or text.startswith(("file://", "local://")):
        return Path(text.partition("://")[2] or text)
    check_no_password(text)
    if without_secrets(text) != text:
        raise InputError(
            f"the address {text} of a folder has a user part or a query string. Leave it out: credentials come from the "
            f"environment or the usual profile files."
        )
    from upath import UPath

    options: Any = NO_CACHE
    try:
        remote: UPath = UPath(text.rstrip("/"), **options)
        _ = remote.fs
    except (ImportError, ValueError) as error:
        raise InputError(_missing_library_message(text, error)) from None
    return remote


def absolute(path: str | AnyPath) -> AnyPath:
    """Return the absolute path without links; raise InputError for a whole bucket: nothing can be written beside it."""
    result = as_path(path)
    if isinstance(result, Path):
        return Path(os.path.realpath(result))
    if not result.name:
        raise InputError(f"{path} is a whole bucket. Name a folder in it.")
    return result


def named_path(path: str | Path, folder: str | Path = "") -> str:
    """Return an absolute path whose last name is the one that the user wrote; a URL is unchanged.

    Links are followed in its folders only. The last name tells the format, and the target's name may not: git-annex,
    for example, names files by their content. folder: the one that a relative path starts from.

    >>> named_path("s3://bucket/p.zarr"), named_path("b/../p.nii.gz", "/data")
    ('s3://bucket/p.zarr', '/data/p.nii.gz')
    """
    if is_remote(str(path)):
        return str(path)
    parent, name = os.path.split(os.path.join(folder, path).rstrip(os.sep))
    return (
        os.path.realpath(os.path.join(parent, name))
        if name in ("", os.curdir, os.pardir)
        else os.path.join(os.path.realpath(parent), name)
    )


def read_options(url: str) -> dict[str, Any]:
    """Return fsspec's options for reading inputs; raise InputError for a URL with a password in it."""
    check_no_password(url)
    return {} if "::" in url else NO_CACHE | (WHOLE_CHUNKS | NO_RETRIES if url_scheme(url) in EXTRAS else {})


def write_options(url: str) -> dict[str, Any]:
    """Return fsspec's options for writing arrays: here the library repeats what fails."""
    return NO_CACHE | (WHOLE_CHUNKS if url_scheme(url) in EXTRAS else {})


def file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for reading a URL, and the path in it.

    Raises InputError where its library is not installed.
    """
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url, **read_options(url))
    except (ImportError, ValueError) as error:
        raise InputError(_missing_library_message(url, error)) from None
    disable_retries(system)
    return system, str(path)


def disable_retries(system: Any) -> None:
    """Stop a file system of s3fs from repeating requests by itself."""
    if hasattr(system, "retries"):
        system.retries = 1


def url_fingerprint(url: str, inside: str = "") -> str | None:
    """Return a value that changes when the file, or a file in the folder, is written; None where servers do not tell.

    inside: a folder in what the URL names.
    """
    try:
        files, cause = files_below(url, inside), None
    except FileNotFoundError as error:
        files, cause = {}, error.__cause__
    if cause is not None and getattr(cause, "status", None) != 404:
        raise cause  # fsspec says "not found" whatever a web server answered
    if not files:
        return None
    entries = []
    for name, facts in sorted(files.items()):
        tag = next((str(facts[key]) for key in TAGS if facts.get(key)), None)
        if tag is None:
            return None
        entries.append((name, facts.get("size"), tag))
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def files_below(url: str, inside: str = "") -> dict[str, Mapping[str, Any]]:
    """Return what is known of each file in a folder, by its path in it; of the file itself, by "", if it is one.

    inside: a folder in what the URL names. A folder that cannot be listed is an error; most file systems' own `find` would
    pass over it. Web servers cannot list: there the URL is always a file's.
    """
    system, root = file_system(url)
    path = "/".join(part for part in (root.rstrip("/"), inside.rstrip("/")) if part)
    if url.startswith(UNLISTED):
        return {"": system.info(path)}
    files: dict[str, Mapping[str, Any]] = {}
    if url_scheme(url) in EXTRAS:  # one flat listing
        files = system.find(path, detail=True)
    folders = [] if files else [path]
    while folders:
        for facts in system.ls(folders.pop(), detail=True):
            if facts["type"] == "directory":
                folders.append(facts["name"])
            else:
                files[facts["name"]] = facts
    return {name[len(path) :].lstrip("/"): facts for name, facts in files.items()}


def write_atomic(path: AnyPath, content: bytes) -> None:
    """Write a file completely or not at all, on the disk when this returns; make its folders."""
    if not isinstance(path, Path):
        path.fs.pipe_file(path.path, content)  # object stores write whole objects
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    working = path.with_name(f"{path.name}.{uuid.uuid4().hex}.unfinished")
    try:
        with working.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(working, path)
    finally:
        working.unlink(missing_ok=True)


def list_files(folder: AnyPath) -> list[str]:
    """Return the paths of all files below a folder, relative to it."""
    if isinstance(folder, Path):
        return [str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()]
    with suppress(FileNotFoundError):
        return [str(path)[len(folder.path) :].lstrip("/") for path in folder.fs.find(folder.path)]
    return []


def list_names(folder: AnyPath) -> set[str]:
    """Return the names of the files and folders directly in a folder; none if it does not exist."""
    with suppress(FileNotFoundError):
        if isinstance(folder, Path):
            return set(os.listdir(folder))
        return {str(path).rstrip("/").rpartition("/")[2] for path in folder.fs.ls(folder.path, detail=False)}
    return set()


def copy_tree(source: AnyPath, target: AnyPath) -> None:
    """Copy a folder to one that does not exist yet; within an object store no data passes through this machine."""
    if isinstance(source, Path):
        if isinstance(target, Path):
            shutil.copytree(source, target, copy_function=_link_or_copy)
        else:
            upload_files(source, target, list_files(source))
        return
    names = list_files(source)
    if not isinstance(target, Path):
        copy_files(source, target, names)
        return
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
    source.fs.get([f"{source.path}/{name}" for name in names], [str(target / name) for name in names])


def copy_files(source: UPath, target: UPath, names: Iterable[str]) -> None:
    """Copy these files from one folder behind a URL to another folder of the same store."""
    names = list(names)
    if names:
        source.fs.copy([f"{source.path}/{n}" for n in names], [f"{target.path}/{n}" for n in names])


def upload_files(folder: Path, target: AnyPath, names: Iterable[str]) -> None:
    """Copy these files from a local folder to a folder behind a URL."""
    assert not isinstance(target, Path)
    names = list(names)
    if names:
        target.fs.put([str(folder / name) for name in names], [f"{target.path}/{name}" for name in names])


def _link_or_copy(source: str, target: str) -> None:
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)


def check_no_password(url: str) -> None:
    """Raise InputError, without repeating the URL, if it has a password in it."""
    for part in url.split("::"):
        if urlsplit(part).password is not None:
            raise InputError(
                f"a {url_scheme(part)}:// address holds a password. Leave it out, because jobs are copied to "
                f"`run.json`: credentials come from the environment or the usual profile files."
            )


def _missing_library_message(url: str, error: Exception) -> str:
    extra = EXTRAS.get(url_scheme(url))
    how = f"`python -m pip install 'dask-uncert[{extra}]'`" if extra else "with pip"
    return f"{url} cannot be reached: {one_line(error)}. Install what it needs, {how}."
