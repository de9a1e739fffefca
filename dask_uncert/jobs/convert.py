"""Copy an input to a well-chunked Zarr store: block by block on a cluster, verified and resumable."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from dask_uncert.clusters import connect
from dask_uncert.clusters.task_pool import map_items
from dask_uncert.errors import InputError, listed, one_line
from dask_uncert.execution.chunking import Grid, reading_memory
from dask_uncert.inputs.cube import CLASS, RESERVED, Cube, make_cube
from dask_uncert.io.open import open_stored
from dask_uncert.io.output_folder import Progress, is_unfinished_copy, put_in_place
from dask_uncert.io.output_lock import reserved
from dask_uncert.io.owned_folder import check_outside, check_owned, remove_inside, remove_owned
from dask_uncert.io.paths import AnyPath, absolute, is_remote, named_path
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.validation import names_in
from dask_uncert.io.zarr_copy import DONE, Layout, Writer, copied_attributes, create, layout_of, source_of
from dask_uncert.jobs.provenance import digest, silent

if TYPE_CHECKING:
    from distributed import Client

REPLACE = "Name another target, or give --fresh to replace it."


def convert(
    source: str | Path,
    target: str | AnyPath,
    *,
    array: str = "",
    dims: str | Sequence[str] | None = None,
    name: str | None = None,
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
    cluster: str | Path | Client = "local",
    fresh: bool = False,
    progress: Progress | None = None,
) -> AnyPath:
    """Copy an input of any readable format to one array of a new Zarr store.

    Parameters
    ----------
    source : str or path
        A file or store of any readable format. May be a URL.
    target : str or path
        The new store; its name must end in ``.zarr``. May be a URL.
    array : str, optional
        Name of the array in the source, as in a job file.
    dims : sequence of str or str, optional
        Names of its dimensions, as in a job file, also as "class,y,x".
    name : str, optional
        Name of the new array; by default the old name, or ``data``.
    chunks, shards : sequence of int, optional
        Sides of a chunk and of a shard. By default chunks of about 2 MiB with all classes and bands, in shards of
        about 64 MiB if there would be more than 2000 files.
    cluster : str, path or distributed.Client, default "local"
        ``"local"``, a cluster file, an address or a client.
    fresh : bool, default False
        Replace an existing result.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` as work goes on.

    Returns
    -------
    path
        The new store.

    Raises
    ------
    InputError
        If the input cannot be read, changes while it is read or lacks chunks, if a chunk of it or a block of the new
        store does not fit the memory of a thread, or if the target exists and is something
        else; also with `fresh` if it holds anything that `convert` did not write.

    Notes
    -----
    Values are copied as stored: scale, offset and missing codes become attributes, as do coordinates and georeferencing.
    Every block is read back and compared. A conversion that was stopped resumes; a finished one is not repeated. The
    command is ``dask-uncert convert``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.convert("nothing.tif", "nothing.zarr")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: input: there is no file at ...nothing.tif. Check `store` under `inputs: input`.
    """
    path = named_path(source)
    goal = absolute(target)
    _check_apart(path, goal)
    dims = names_in(dims)
    stored = open_stored(path, array, "input", dims)
    cube = make_cube("input", stored, dims, stored.dims, stored.chunks, str(source))
    cube = replace(cube, held=stored.held)
    whole = [dim in RESERVED for dim in cube.dims]
    layout = layout_of(stored.shape, stored.dtype.itemsize, whole, chunks, shards)
    new_name = name or PurePosixPath(stored.array).name or "data"
    if new_name in cube.dims:
        raise InputError(f"name: {new_name!r} is the name of a dimension; give another `name`.")
    _check_complete(stored, str(source))
    before = stored.fingerprint()
    identity = path, stored.array, before, list(cube.dims), layout.chunks, layout.shards, new_name
    mark = None if before is None else digest(*identity, version("dask-uncert"))
    if _is_converted(goal, mark, fresh, source):
        return goal
    with reserved(goal), connect.connect(cluster) as client:
        if not _is_converted(goal, mark, fresh, source):  # by another run, in between
            _check_memory(cube, layout, connect.memory_per_thread(client))
            _copy(stored, before, cube, layout, new_name, goal, mark, fresh, client, progress or silent)
    return goal


def _copy(
    stored: StoredArray,
    before: str | None,
    cube: Cube,
    layout: Layout,
    name: str,
    goal: AnyPath,
    mark: str | None,
    fresh: bool,
    client: Client,
    report: Progress,
) -> None:
    """Copy an array block by block to a folder beside the target, and put that in place.

    before, mark: fingerprints of the input and of the conversion.
    """
    check_owned(goal)
    working = goal.with_name(f"{goal.name}.converting")
    check_owned(working)
    check_outside([working], {"input": stored.store})
    if fresh or mark is None or _conversion(working) != mark or not (working / DONE).is_dir():
        remove_owned(working)
        attributes = copied_attributes(stored.attributes, stored.decoding, stored.dtype, stored.geometry(cube.dims))
        coordinates = stored.coordinates(cube.dims)
        labels = stored.labels(cube.dims, cube.dims.index(CLASS)) if CLASS in cube.dims else None
        if labels is not None and CLASS not in coordinates:
            attributes["band_names"] = [*map(str, labels)]
        create(
            working, name, layout, stored.dtype, cube.dims, attributes, coordinates,
            {"conversion": mark or ""},
        )  # fmt: skip
    blocks = layout.blocks()
    report("blocks", 0, len(blocks))
    results = map_items(client, Writer(stored, str(working), name), blocks, "convert-block")
    for done, (_, result) in enumerate(results, 1):
        if isinstance(result, Exception):
            raise result
        report("blocks", done, len(blocks))
    if stored.fingerprint() != before:
        remove_owned(working)
        raise InputError(f"input: {stored} changed while it was read. Run again when it is complete.")
    remove_inside(working, working / DONE)
    put_in_place(working, goal, last="zarr.json")


def _is_converted(goal: AnyPath, mark: str | None, fresh: bool, source: str | Path) -> bool:
    """Return whether the target is this conversion already; InputError if it is something else."""
    if not goal.exists() or fresh or is_unfinished_copy(goal):
        return False
    if mark is not None and _conversion(goal) == mark:
        return True
    raise InputError(f"{goal} exists and is not this conversion of {source}. {REPLACE}")


def _check_memory(cube: Cube, layout: Layout, limit: float | None) -> None:
    """Raise InputError if a task needs more memory than `limit` bytes: to read a block, with chunks that are decoded whole.

    A block is compared with what is read back, so it is in memory a few times more.
    """
    need = reading_memory({"input": cube}, Grid(cube.dims, layout.shape, layout.block))
    need += 3 * cube.data.dtype.itemsize * math.prod(layout.block)
    if limit is None or need <= limit:
        return
    chunk = cube.chunks or layout.block
    sides = ", ".join(f"{d} {min(c, n)}" for (d, n), c in zip(cube.sizes.items(), chunk, strict=True))
    nbytes = cube.data.dtype.itemsize * math.prod(min(c, n) for c, n in zip(chunk, cube.data.shape, strict=True))
    whole = (
        f"all of {cube.where}, {cube.held / 2**20:.0f} MiB"
        if cube.held
        else (f"a chunk of {cube.where} ({sides}), {nbytes / 2**20:.0f} MiB")
    )
    raise InputError(
        f"{cube.name}: {whole}, is read at once, and written in blocks of "
        f"{cube.data.dtype.itemsize * math.prod(layout.block) / 2**20:.0f} MiB. A task needs {need / 2**20:.0f} MiB for "
        f"that, but a thread has {max(limit, 0) / 2**20:.0f} MiB besides Python's own. Name a cluster file with fewer "
        f"threads or more memory (`--cluster`), or smaller `--chunks` and `--shards`, or write the input in smaller "
        f"chunks with the program that made it."
    )


def _conversion(folder: AnyPath) -> str | None:
    """Return the fingerprint of the conversion that a folder holds; None if it holds none."""
    return (source_of(folder) or {}).get("conversion")


def _check_apart(source: str, target: AnyPath) -> None:
    """Raise InputError if the target is the source, is in it or around it, or does not end in .zarr."""
    if not target.name.endswith(".zarr"):
        raise InputError(f"the target {target} should be a new folder whose name ends in .zarr.")
    try:
        is_file = target.exists() and not target.is_dir()
    except OSError as error:
        raise InputError(f"the target {target} cannot be reached: {one_line(error)}.") from None
    if is_file:
        raise InputError(f"the target {target} is a file; name a new folder that ends in .zarr.")
    inner = source.split("::")[-1].removeprefix("file://").removeprefix("local://")
    if is_remote(inner) != is_remote(target):
        return
    paths = [inner, str(target)] if is_remote(target) else map(os.path.realpath, (inner, str(target)))
    short, long = sorted(paths, key=len)
    if short == long or long.startswith(short + os.sep):
        raise InputError(f"the target {target} is the input {source}, or one is inside the other. Name another.")


def _check_complete(stored: StoredArray, source: str) -> None:
    if absent := stored.absent_chunks():
        chunks = listed((f"({', '.join(map(str, chunk))})" for chunk in absent), 1)
        raise InputError(f"input: {source} lacks chunk {chunks}. Copy it again from where it is complete.")
