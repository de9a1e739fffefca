"""Which chunks a Zarr store holds; and a remote store in which a missing one is an error, not its fill value."""

from __future__ import annotations

import math
import os
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from zarr.storage import WrapperStore

from dask_uncert.errors import InputError
from dask_uncert.io.paths import file_system, is_remote

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
UNLISTED = ("http://", "https://")  # servers that say of a file whether it is there, and no more
MOST_ASKED = 1 << 14
MOST_CHUNKS = 1 << 24  # a second of listing for every million
AT_ONCE = 16


def absent_of(array: Any, prefix: str, store: str, what: str) -> list[tuple[int, ...]]:
    """Numbers of the chunks, or shards, of a zarr.Array that its store does not hold, in C order.

    store, prefix: its address, and the array's path in it. Raises InputError where the store can neither be listed nor asked for so many.
    """
    chunks = array.shards or array.chunks
    numbers = tuple(-(-n // c) for n, c in zip(array.shape, chunks, strict=True))
    if math.prod(numbers) > MOST_CHUNKS:
        raise InputError(
            f"{what}: {store}:{prefix} states {math.prod(numbers):.3g} chunks, of shape {tuple(chunks)} for the shape "
            f"{tuple(array.shape)}: its metadata are damaged, or its chunks too small to be worked with. Convert it, or "
            f"say `missing_chunks: fill`."
        )
    encode = array.metadata.encode_chunk_key
    if store.startswith(UNLISTED):
        return _asked(store, prefix, numbers, encode, what)
    there = _listed(store, prefix)
    return [number for number in np.ndindex(*numbers) if encode(number) not in there]


def _listed(store: str, prefix: str) -> set[str]:
    """Paths of all files of an array, relative to it."""
    if is_remote(store):
        system, root = file_system(store)
        place = f"{root.rstrip('/')}/{prefix}".rstrip("/")
        return {str(path)[len(place) :].lstrip("/") for path in system.find(place)}
    if store.lower().endswith(".zip"):
        with zipfile.ZipFile(store) as packed:
            start = f"{prefix}/" if prefix else ""
            return {name[len(start) :] for name in packed.namelist() if name.startswith(start)}
    place = os.path.join(store, prefix)
    found = set()
    for folder, _, names in os.walk(place):
        inside = os.path.relpath(folder, place).replace(os.sep, "/")
        found.update(names if inside == "." else [f"{inside}/{name}" for name in names])
    return found


def _asked(
    store: str, prefix: str, numbers: tuple[int, ...], encode: Any, what: str
) -> list[tuple[int, ...]]:
    """The same from a server that cannot be listed: every chunk is asked for."""
    wanted = list(np.ndindex(*numbers))
    if len(wanted) > MOST_ASKED:
        raise InputError(
            f"{what}: {store} cannot be listed, and asking for each of its {len(wanted)} chunks would take too long. Say "
            f"`missing_chunks: fill` if those it lacks are the fill value, or read it from where it can be listed."
        )
    system, root = file_system(store)
    place = "/".join(part for part in (root.rstrip("/"), prefix) if part)
    with ThreadPoolExecutor(AT_ONCE) as several:
        there = several.map(lambda number: system.exists(f"{place}/{encode(number)}"), wanted)
        return [number for number, found in zip(wanted, there, strict=True) if not found]


class Strict(WrapperStore[Any]):
    """A store in which a chunk that is not found is an error, but for those known to be absent."""

    def __init__(self, store: Any, absent: frozenset[str] | None = frozenset()) -> None:
        """absent: keys of chunks within their array; None where any may be missing, and is the fill value."""
        super().__init__(store)
        self.absent = absent

    def _with_store(self, store: Any) -> Strict:
        return type(self)(store, self.absent)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """The value of a key; FileNotFoundError for a chunk that is not there."""
        found = await self._store.get(key, prototype, byte_range)
        if found is not None or self.absent is None or key.endswith(METADATA):
            return found
        if not any(key == one or key.endswith(f"/{one}") for one in self.absent):
            raise FileNotFoundError(f"chunk {key} is not in the store any more")
        return None


def runs_code(array: Any) -> bool:
    """Whether decoding the array would unpickle objects."""
    return np.dtype(array.dtype).hasobject or "pickle" in str(array.metadata.to_dict()).lower()
