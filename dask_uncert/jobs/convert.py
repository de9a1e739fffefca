"""Any readable input written anew as a well-chunked Zarr store: block by block on a cluster, resumable, verified."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters import connect
from dask_uncert.clusters.task_pool import stream
from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import RESERVED, make_cube
from dask_uncert.io.open import open_stored
from dask_uncert.io.output_folder import Report, put_in_place
from dask_uncert.io.paths import AnyPath, absolute, is_remote, remove
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.zarr_copy import DONE, Layout, Writer, about, create, layout_of, mark_of

if TYPE_CHECKING:
    from distributed import Client


def convert(
    source: str | Path,
    target: str | AnyPath,
    *,
    array: str = "",
    dims: Sequence[str] | None = None,
    name: str | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    cluster: str | Path | Client = "local",
    fresh: bool = False,
    progress: Report | None = None,
) -> AnyPath:
    """Write an input of any format as one array of a new Zarr store; returns the store's path.

    Stored numbers stay as they are: packing and missing codes go along as attributes, as do coordinates and geometry.
    Every block is read back and compared. A conversion that was stopped goes on where it was when it is asked for
    again; one that is finished is not done again. Nothing else at `target` is overwritten without `fresh`.

    array, dims: as in a job file. name: of the new array; by default the old one's, or `data`. chunks, shards: by
    default chunks of about 2 MiB with all classes and bands, in shards of about 64 MiB where there would be more than
    2000 files. report(what, done, total) is called as work goes on.

    Raises InputError for an input that cannot be read, and for a target that is something else.

    >>> import dask_uncert as du
    >>> du.convert("nothing.tif", "nothing.zarr")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: input: there is no file at nothing.tif. Check `store` under `inputs: input`.
    """
    place = str(source) if "://" in str(source) else str(Path(source).resolve())
    goal = absolute(target)
    _check_apart(place, goal)
    stored = open_stored(str(source) if "://" not in place else place, array, "input", dims)
    cube = make_cube("input", stored, dims, stored.dims, stored.chunks, str(source))
    whole = [dim in RESERVED for dim in cube.dims]
    layout = layout_of(stored.shape, stored.dtype.itemsize, whole, chunks, shards)
    called = name or PurePosixPath(stored.array).name or "data"
    if called in cube.dims:
        raise InputError(
            f"name: an array called {called!r} cannot have a dimension of that name; give another `name`."
        )
    _check_whole(stored, str(source))
    before = stored.fingerprint()
    mark = _mark(stored, place, cube.dims, layout, called)
    if goal.exists() and not fresh:
        if mark is not None and (mark_of(goal) or {}).get("conversion") == mark:
            return goal
        raise InputError(
            f"{goal} exists and is no such conversion of {source}. Name another target, or give --fresh to replace it."
        )
    working = goal.with_name(f"{goal.name}.converting")
    if (
        fresh
        or mark is None
        or (mark_of(working) or {}).get("conversion") != mark
        or not (working / DONE).is_dir()
    ):
        remove(working)
        if isinstance(working, Path):
            working.parent.mkdir(parents=True, exist_ok=True)
        attributes = about(stored.attributes, stored.decoding, stored.dtype, stored.geometry(cube.dims))
        coordinates = stored.coordinates(cube.dims)
        create(
            working,
            called,
            layout,
            stored.dtype,
            cube.dims,
            attributes,
            coordinates,
            {"conversion": mark or ""},
        )
    _write(Writer(stored, str(working), called), layout, cluster, progress)
    if stored.fingerprint() != before:
        remove(working)
        raise InputError(f"input: {source} has changed while it was read. Run again when it is whole.")
    remove(working / DONE)
    put_in_place(working, goal, last="zarr.json")
    return goal


def _check_apart(place: str, goal: AnyPath) -> None:
    """Refuse a target that is its source, or lies in it, or the other way round, or is no store's name."""
    if not goal.name.endswith(".zarr"):
        raise InputError(f"the target {goal} should be a new folder whose name ends in .zarr.")
    if goal.exists() and not goal.is_dir():
        raise InputError(f"the target {goal} is a file; name a new folder that ends in .zarr.")
    local = place.split("::")[-1].removeprefix("file://").removeprefix("local://")
    if is_remote(local) != is_remote(goal):
        return
    one, other = (
        (local, str(goal)) if is_remote(goal) else (os.path.realpath(local), os.path.realpath(str(goal)))
    )
    if one == other or other.startswith(one + os.sep) or one.startswith(other + os.sep):
        raise InputError(
            f"the target {goal} is the input {place}, or one lies in the other. Name another target."
        )


def _check_whole(stored: StoredArray, source: str) -> None:
    absent = stored.absent_chunks()
    if absent:
        first = ", ".join(map(str, absent[0]))
        raise InputError(
            f"input: chunk ({first}){f' and {len(absent) - 1} more' if len(absent) > 1 else ''} of {source} "
            f"{'are' if len(absent) > 1 else 'is'} not in the store. Copy it again from where it is whole."
        )


def _mark(stored: StoredArray, place: str, dims: Sequence[str], layout: Layout, name: str) -> str | None:
    """Of the input as it is stored and of how it is written; None where the input cannot tell whether it changed."""
    fingerprint = stored.fingerprint()
    if fingerprint is None:
        return None
    said = [
        place,
        stored.array,
        fingerprint,
        list(dims),
        layout.chunks,
        layout.shards,
        name,
        version("dask-uncert"),
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _write(writer: Writer, layout: Layout, cluster: str | Path | Client, progress: Report | None) -> None:
    tell: Any = progress or (lambda what, done, total: None)
    blocks = layout.blocks()
    tell("blocks", 0, len(blocks))
    with connect.connect(cluster) as client:
        for done, (_, found) in enumerate(stream(client, writer, blocks, "convert-block"), 1):
            if isinstance(found, Exception):
                raise found
            tell("blocks", done, len(blocks))
