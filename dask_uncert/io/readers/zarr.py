"""Reading arrays of Zarr stores, and how every array of ours is opened.

Local stores are decoded by zarrs: reading 64x64x16 chunks of a 16-class float32 posterior took less than a
third of the time of zarr's own pipeline (.17 s against .58 s for 64 MiB, one thread each).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.attributes import decoding_in, meant, place_in
from dask_uncert.io.decoding import AS_STORED, Decoding, Role
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.missing_chunks import Strict, absent_of, runs_code
from dask_uncert.io.paths import disable_retries, is_remote, read_options, url_fingerprint, write_options
from dask_uncert.io.readers import ome_zarr

FAST = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": 1}
WHOLE = {"array.write_empty_chunks": True}
"""A chunk that is not there is lost, so one that is all fill value is written as well."""
_OPENING = threading.RLock()


@contextmanager
def opening(store: str, to_write: bool = False) -> Iterator[None]:
    """Arrays opened inside are decoded by zarrs where the store is local, and coded by zarr's own pipeline.

    to_write: for the latter, which took as long in a trial of 16 chunks of 4 MiB, and which alone writes chunks that
    are all fill value (zarrs 0.2 leaves them out whatever it is told).

    The choice is part of zarr's global configuration, and an array keeps the one it was opened under. Two
    threads changing it at once would leave it changed for all, and the same counts in other bytes: so one at
    a time, and every array of ours is opened in here.
    """
    with (
        _OPENING,
        zarr.config.set({**WHOLE, **(FAST if is_folder(store) and not to_write else {})}),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def is_folder(store: str) -> bool:
    """Whether the store is a local folder: neither behind a URL nor in an archive."""
    return not is_remote(store) and not store.lower().endswith(".zip")


def located(store: str) -> Any:
    """What zarr opens of an output of ours: a path, or a store behind a URL."""
    if not is_remote(store):
        return store
    return zarr.storage.FsspecStore.from_url(store, storage_options=write_options(store), read_only=False)


class StoredArray:
    """A Zarr array, opened lazily in whichever process slices it; it pickles as its address.

    Of an OME-Zarr image, `array` may be left out: its full resolution is read.
    """

    def __init__(self, store: str, array: str, what: str) -> None:
        """what: the input's name, for messages. Raises InputError where there is no such store or array."""
        self.store, self.what = store, what
        found, self.array, self._image = _open(store, array, what)
        self.shape: tuple[int, ...] = tuple(found.shape)
        if min(found.chunks, default=1) < 1 or max(found.shape, default=0) >= 1 << 62:
            raise InputError(
                f"{what}: {self} states the shape {found.shape} in chunks of {found.chunks}: its metadata (zarr.json or "
                f".zarray) are damaged."
            )
        self._stored: np.dtype[Any] = np.dtype(found.dtype).newbyteorder("=")
        self.dtype: np.dtype[Any] = meant(self._stored, found.attrs)
        self.ndim = len(self.shape)
        # A shard is what is read at once.
        self.chunks: tuple[int, ...] = tuple(found.shards or found.chunks)
        self.attributes: dict[str, Any] = dict(found.attrs)
        self.dims = dimension_names(found) if self._image is None else self._image.dims
        self.decoding = self._decoding(found)
        self.held = 0
        self._whole: frozenset[str] | None = frozenset()
        self._opened: Any = found

    def __getitem__(self, region: Any) -> NDArray[Any]:
        try:
            if self._opened is None:
                self._opened, _, _ = _open(self.store, self.array, self.what, self._whole)
            try:
                found = self._opened[region]
            except Exception:  # zarrs does not read all that zarr does, such as foreign byte orders
                if not is_folder(self.store):
                    raise
                found = _slowly(os.path.join(self.store, self.array))[region]
            return np.asarray(found, self._stored).view(self.dtype)
        except InputError:
            raise
        except Exception as error:  # of codecs and of remote file systems, many kinds
            raise InputError(
                f"{self.what}: {self} cannot be read at {_said(region)} ({brief(error)}). Copy it again from where it "
                f"is whole."
            ) from error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def __repr__(self) -> str:
        return f"{self.store}:{self.array}" if self.array else self.store

    def absent_chunks(self) -> list[tuple[int, ...]]:
        """Chunks (of a sharded array: shards) that the store does not hold, by one listing of it.

        From now on a chunk that is not found while it is read is an error. An inner chunk that a shard lacks was left
        out by whoever wrote the shard: it is the fill value.
        """
        found = absent_of(self._opened, self.array, self.store, self.what)
        if not is_folder(self.store):
            self._whole = frozenset(self._opened.metadata.encode_chunk_key(number) for number in found)
            self._opened = None
        return found

    def fill(self) -> None:
        """From now on a chunk that is not there is its fill value, also behind a URL, where it is an error otherwise."""
        self._whole, self._opened = None, None

    def fingerprint(self) -> str | None:
        """Changes whenever a file of the array is written, added or removed; None where a server does not tell."""
        if is_remote(self.store):
            return url_fingerprint(f"{self.store.rstrip('/')}/{self.array}".rstrip("/"))
        place = os.path.join(self.store, self.array)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names]
        files = files if is_folder(self.store) else [self.store]
        listed = sorted(
            (os.path.relpath(file, place), stat.st_size, stat.st_mtime_ns)
            for file, stat in ((file, os.stat(file)) for file in files)
        )
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where voxels lie: by an OME-Zarr image's metadata, or by the attributes that our own maps have."""
        if self._image is not None:
            return self._image.geometry(dims)
        return place_in(self.attributes, dims, self.what, str(self))

    def coordinates(self, dims: Sequence[str]) -> dict[str, tuple[NDArray[Any], Mapping[str, Any]]]:
        """The coordinates that stand beside the array under its dimensions' names, with their attributes."""
        found: dict[str, tuple[NDArray[Any], Mapping[str, Any]]] = {}
        if self._image is not None:
            return found
        own = self.dims or tuple(dims)
        group = PurePosixPath(self.array).parent
        for dim, name in zip(dims, own, strict=True):
            if not self.array or (
                is_folder(self.store) and not os.path.isdir(os.path.join(self.store, group, name))
            ):
                continue
            try:
                one = StoredArray(self.store, str(group / name), name)
            except InputError:
                continue
            if one.ndim == 1 and (one.dims or (name,)) == (name,) and one.dtype.kind in "iuf":
                found[dim] = (one[...], one.attributes)
        return found

    def _decoding(self, found: Any) -> Decoding:
        if found.metadata.zarr_format == 2 and found.fill_value and "_FillValue" not in found.attrs:
            # xarray packs so, and has no other place for a missing code in version 2.
            packed = {"scale_factor", "add_offset"} & set(found.attrs)
            filled = {"_FillValue": found.fill_value} if packed else {}
            return decoding_in({**found.attrs, **filled}, self.dtype, f"{self.what}: {self}")
        return decoding_in(found.attrs, self.dtype, f"{self.what}: {self}") if found.attrs else AS_STORED


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> StoredArray:
    """A Zarr array by its address; see `StoredArray`."""
    return StoredArray(store, array, what)


def dimension_names(array: Any) -> tuple[str, ...] | None:
    """The names that a zarr.Array gives its dimensions; None where it does not name all."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if not isinstance(names, list | tuple) or None in names or len(names) != array.ndim:
        return None
    return tuple(str(name) for name in names)


def _open(
    store: str, array: str, what: str, whole: frozenset[str] | None = frozenset()
) -> tuple[Any, str, ome_zarr.Image | None]:
    """The zarr.Array, its path, and what an OME-Zarr image says of it; `whole` as for `Strict`."""
    if not is_remote(store) and not Path(store).exists():
        raise InputError(f"{what}: there is no store at {store}. Check `store` under `inputs: {what}`.")
    if ".." in PurePosixPath(array).parts:
        raise InputError(f"{what}: array name {array!r} must not contain '..'.")
    path = array.strip("/")
    with opening(store):
        place = _place(store, what, whole)
        if is_folder(store) and path:  # straight to it, at half the cost of opening its group first
            with suppress(Exception):
                direct = zarr.open(os.path.join(store, path), mode="r")
                if isinstance(direct, zarr.Array) and not ome_zarr.is_level(store, path):
                    return _usable(direct, what, f"{store}:{path}"), path, None
        try:
            group = zarr.open(place, mode="r")
        except Exception as error:
            raise InputError(f"{what}: {store} is not a readable Zarr store ({brief(error)}).") from error
        if not isinstance(group, zarr.Group):
            if path:
                raise InputError(f"{what}: {store} is an array, not a group; leave out `array: {array}`.")
            return _usable(group, what, store), "", None
        try:
            image = ome_zarr.image_of(group, path, f"{what}: {store}")
            path = path if image is None else image.path
            found = group[path] if path else group
        except KeyError:
            found = None
        except InputError:
            raise
        except Exception as error:
            raise InputError(
                f"{what}: {store}:{path} is damaged, or not of a kind that is read ({brief(error)})."
            ) from error
        if isinstance(found, zarr.Array):
            return _usable(found, what, f"{store}:{path}"), path, image
        named = f"no array {array!r}" if path else "several arrays or none; name one with `array`"
        raise InputError(f"{what}: {store} holds {named}; it holds: {_arrays_in(group)}.")


def _slowly(place: str) -> Any:
    """A local array under zarr's own pipeline."""
    with _OPENING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(place, mode="r")


def _arrays_in(group: Any) -> str:
    with suppress(Exception):
        return ", ".join(sorted(name for name, _ in group.arrays())) or "none"
    return "what cannot be listed"


def _place(store: str, what: str, whole: frozenset[str] | None) -> Any:
    """What zarr opens: a folder's path, an archive, or a remote store."""
    try:
        if is_remote(store):
            options = read_options(store)
            remote = zarr.storage.FsspecStore.from_url(store, storage_options=options, read_only=True)
            disable_retries(remote.fs)
            return Strict(remote, whole)
        return store if is_folder(store) else zarr.storage.ZipStore(store, mode="r")
    except Exception as error:
        raise InputError(f"{what}: {store} is not a readable Zarr store ({brief(error)}).") from error


def _usable(array: Any, what: str, where: str) -> Any:
    if runs_code(array):
        raise InputError(
            f"{what}: {where} holds Python objects, whose reading would run code. Store numbers."
        )
    if np.dtype(array.dtype).kind not in "biufc":
        raise InputError(f"{what}: {where} holds {array.dtype}; expected numbers.")
    return array


def brief(error: Exception) -> str:
    """An exception in a few words."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


def _said(region: Any) -> str:
    parts = region if isinstance(region, tuple) else (region,)
    said = [
        f"{p.start or 0}:{'' if p.stop is None else p.stop}" if isinstance(p, slice) else str(p)
        for p in parts
    ]
    return f"[{', '.join(said)}]"


def describe(data: Any) -> tuple[tuple[str, ...] | None, tuple[int, ...] | None] | None:
    """Dimension names and chunks of a zarr.Array a caller opened; None for anything else."""
    if not isinstance(data, zarr.Array):
        return None
    return dimension_names(data), tuple(data.shards or data.chunks)
