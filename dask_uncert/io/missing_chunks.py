"""Which chunks a Zarr store holds, and a remote store that refuses to read a missing one as its fill value."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from zarr.core.sync import sync
from zarr.storage import LocalStore, WrapperStore, ZipStore

from dask_uncert.errors import InputError, exception_text, without_secrets
from dask_uncert.io.paths import UNLISTED, file_system, files_below, is_remote
from dask_uncert.io.retries import with_retries

METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
MAX_REQUESTS = 1 << 14
MAX_CHUNKS = 1 << 24  # listing takes a second for every million
THREADS = 16
SAMPLED = 64  # chunks whose sizes tell what an array takes on disk
Index = tuple[int, ...]


def absent_chunks(array: Any, path: str, store: str, name: str) -> list[Index]:
    """Return the indices of the chunks, or shards, of a zarr.Array that its store does not hold, in C order.

    Raises InputError where there are too many to list, or to ask for one by one.
    """
    chunks = array.shards or array.chunks
    numbers = tuple(-(-n // c) for n, c in zip(array.shape, chunks, strict=True))
    if math.prod(numbers) > MAX_CHUNKS:
        raise InputError(
            f"{name}: {store}:{path} states {math.prod(numbers):.3g} chunks, of shape {tuple(chunks)} for the shape "
            f"{tuple(array.shape)}: its metadata are damaged, or its chunks are too small to work with. Convert it, or "
            f"use `missing_chunks: fill`."
        )
    encode = array.metadata.encode_chunk_key
    if store.startswith(UNLISTED):
        return _absent_by_requests(store, path, list(np.ndindex(*numbers)), encode, name)
    files = _list_files(store, path)
    absent = [number for number, key in enumerate(_keys(numbers, encode)) if key not in files]
    if not (absent and numbers):
        return [()] * len(absent)
    return list(zip(*(axis.tolist() for axis in np.unravel_index(absent, numbers)), strict=True))


def _keys(numbers: Sequence[int], encode: Callable[[Index], str]) -> Iterator[str]:
    """Yield the keys of all chunks in C order; where a key is its index joined, at a fifth of the time of `encode`."""
    if not math.prod(numbers):
        return
    last = tuple(n - 1 for n in numbers)
    for separator, prefix in product("/.", ("c", "")):
        if encode(last) == separator.join([prefix] * bool(prefix) + [str(i) for i in last]):
            parts = [[prefix]] * bool(prefix) + [[str(i) for i in range(n)] for n in numbers]
            yield from map(separator.join, product(*parts))
            return
    yield from map(encode, np.ndindex(*numbers))


def stored_bytes(array: Any, path: str, store: str) -> int:
    """Return about how many bytes the chunks of a local zarr.Array take, from the sizes of some of them."""
    numbers = tuple(-(-n // c) for n, c in zip(array.shape, array.shards or array.chunks, strict=True))
    chunks, sizes = math.prod(numbers), []
    for number in np.unique(np.linspace(0, chunks - 1, min(chunks, SAMPLED)).astype(int)):
        key = array.metadata.encode_chunk_key(tuple(int(i) for i in np.unravel_index(number, numbers)))
        file = os.path.join(store, path, key)
        sizes.append(os.path.getsize(file) if os.path.isfile(file) else 0)
    return int(np.mean(sizes) * chunks) if sizes else 0


def absent_chunks_of(array: Any, name: str) -> list[Index]:
    """Return the absent chunks of a zarr.Array that a caller has opened, as `absent_chunks` does."""
    store, path = array.store, array.path
    if isinstance(store, LocalStore | ZipStore):
        return absent_chunks(array, path, str(store.root if isinstance(store, LocalStore) else store.path), name)
    numbers = tuple(-(-n // c) for n, c in zip(array.shape, array.shards or array.chunks, strict=True))
    keys = {index: f"{path}/{array.metadata.encode_chunk_key(index)}".lstrip("/") for index in np.ndindex(*numbers)}
    if {"http", "https"} & set(_protocols(store)):
        places = {index: f"{store.path.rstrip('/')}/{key}" for index, key in keys.items()}
        return [i for i, place in places.items() if not with_retries(partial(_exists, store.fs, place), remote=True)]

    async def listed() -> set[str]:
        return {key async for key in store.list_prefix(f"{path}/".lstrip("/"))}

    files = with_retries(lambda: sync(listed()), remote=True)
    return [index for index, key in keys.items() if key not in files]


def _protocols(store: Any) -> tuple[str, ...]:
    """Return the protocols of a store's file system; none of another store."""
    protocol = getattr(getattr(store, "fs", None), "protocol", ())
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _exists(system: Any, place: str) -> bool:
    return bool(sync(system._exists(place, strict=True)))


def _list_files(store: str, path: str) -> set[str]:
    """Return the paths of all files of an array, relative to it."""
    if is_remote(store):
        return set(files_below(store, path))
    if store.lower().endswith(".zip"):
        with zipfile.ZipFile(store) as archive:
            prefix = f"{path}/" if path else ""
            return {name[len(prefix) :] for name in archive.namelist() if name.startswith(prefix)}
    root = os.path.join(store, path)
    files: set[str] = set()
    for folder, _, names in os.walk(root, onerror=_raise):
        inside = folder[len(root) :].replace(os.sep, "/").lstrip("/")
        files.update([f"{inside}/{name}" for name in names] if inside else names)
    return files


def _raise(error: OSError) -> None:
    """A folder that cannot be listed may hold chunks."""
    raise error


def _absent_by_requests(
    store: str, path: str, indices: list[Index], encode: Callable[[Index], str], name: str
) -> list[Index]:
    """Return the absent chunks of a server that cannot be listed, with a request for every chunk.

    Only "not found" means that a chunk is absent; any other failure is tried again, and then an error.
    """
    if len(indices) > MAX_REQUESTS:
        raise InputError(
            f"{name}: {store} cannot be listed, and asking for each of its {len(indices)} chunks would take too long. Use "
            f"`missing_chunks: fill` if a missing chunk is the fill value, or copy the store to where it can be listed."
        )
    system, root = file_system(store)
    folder = "/".join(part for part in (root.rstrip("/"), path) if part)

    def exists(index: Index) -> bool:
        return bool(with_retries(lambda: system.exists(f"{folder}/{encode(index)}", strict=True), remote=True))

    with ThreadPoolExecutor(THREADS) as pool:
        try:
            present = list(pool.map(exists, indices))
        except Exception as error:  # web servers and their libraries fail in many ways
            reason = without_secrets(exception_text(error))
        else:
            return [index for index, there in zip(indices, present, strict=True) if not there]
    raise InputError(  # without its cause: it was tried again often enough
        f"{name}: {without_secrets(store)} does not say whether it holds every chunk of {path or 'its array'} "
        f"({reason}). Run again when it answers, or copy the store to where it can be listed."
    )


class StrictStore(WrapperStore[Any]):
    """A store in which a missing chunk is an error, except for those known to be absent.

    check: called with the key and the bytes of every whole chunk that is read, to refuse it.
    """

    check: Callable[[str, memoryview], None] | None = None

    def __init__(self, store: Any, absent: frozenset[str] | None = frozenset()) -> None:
        """absent: keys of chunks within their array; None if any may be missing and is the fill value."""
        super().__init__(store)
        self.absent = absent

    def _with_store(self, store: Any) -> StrictStore:
        return type(self)(store, self.absent)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Return the value of a key; raise FileNotFoundError for a missing chunk."""
        value = await self._store.get(key, prototype, byte_range)
        if value is not None and byte_range is None and self.check is not None and not key.endswith(METADATA):
            self.check(key, memoryview(value.to_bytes()))
        if value is not None or self.absent is None or key.endswith(METADATA):
            return value
        if not any(key == absent or key.endswith(f"/{absent}") for absent in self.absent):
            raise FileNotFoundError(f"chunk {key} is no longer in the store")
        return None
