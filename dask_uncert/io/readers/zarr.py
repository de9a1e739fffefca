"""Reading arrays of Zarr stores, and opening our own arrays.

zarrs decodes local stores: it read 64 MiB of a posterior in .17 s, zarr's own pipeline in .58 s (one thread each).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.attributes import actual_dtype, decoding_in, read_geometry
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.file_cache import nothing_at
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.indexing import region_text
from dask_uncert.io.missing_chunks import MAX_CHUNKS, StrictStore, absent_chunks, stored_bytes
from dask_uncert.io.paths import UNLISTED, disable_retries, is_remote, read_options, url_fingerprint, write_options
from dask_uncert.io.quiet import quiet
from dask_uncert.io.readers import ome_zarr, zarr_chunks
from dask_uncert.io.readers.stored_array import Coordinates, Label, StoredArray, labels_in
from dask_uncert.io.readers.zarr_chunks import ChunkCheck, check_all_files, check_metadata, has_checksum, room_for
from dask_uncert.io.retries import is_transient

FAST = {"codec_pipeline.path": "zarrs.ZarrsCodecPipeline", "threading.max_workers": 1}
PLAIN = {"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}
WRITE_EMPTY = {"array.write_empty_chunks": True}
"""A missing chunk counts as lost, so chunks of nothing but the fill value are written too."""


@contextmanager
def opening(store: str, to_write: bool = False) -> Iterator[None]:
    """Open arrays inside this context: zarrs decodes those of local stores, zarr's own pipeline encodes.

    to_write: use zarr's own pipeline, whatever the user has set. It took as long in a trial of 16 chunks of 4 MiB, and
    only it writes chunks that hold nothing but the fill value (zarrs 0.2 always leaves them out).

    An array keeps the part of zarr's global configuration that it was opened with. Two threads that change it at once
    could leave it changed, and equal counts would be written as other bytes: so only one thread at a time opens arrays.
    """
    pipeline = PLAIN if to_write else FAST if is_folder(store) else {}
    with quiet(), zarr.config.set({**WRITE_EMPTY, **pipeline}):
        yield


def is_folder(store: str) -> bool:
    """Return whether the store is a local folder: neither behind a URL nor in an archive."""
    return not is_remote(store) and not store.lower().endswith(".zip")


def writable_store(store: str) -> Any:
    """Return what zarr opens to write our own output: a path, or a store behind a URL."""
    if not is_remote(store):
        return store
    return zarr.storage.FsspecStore.from_url(store, storage_options=write_options(store), read_only=False)


class ZarrArray(StoredArray):
    """A Zarr array, opened lazily in each process that slices it.

    For an OME-Zarr image `array` may be left out: its full resolution is read.
    """

    HANDLE = "_opened"

    def __init__(self, store: str, array: str, name: str, dims: Sequence[str] | None = None) -> None:
        super().__init__(store, array, name)
        self._absent: frozenset[str] | None = frozenset()
        self._opened: Any = None
        opened, self.array, self._image = self._open()
        self.shape = tuple(opened.shape)
        if min(opened.chunks, default=1) < 1 or max(opened.shape, default=0) >= 1 << 62:
            raise self.error(
                f"{self} states the shape {opened.shape} in chunks of {opened.chunks}: its metadata (zarr.json or "
                f".zarray) are damaged."
            )
        self._stored: np.dtype[Any] = np.dtype(opened.dtype).newbyteorder("=")
        self.attributes = dict(opened.attrs)
        self.dtype = actual_dtype(self._stored, self.attributes)
        self.chunks = tuple(opened.shards or opened.chunks)  # a shard is read at once
        self.has_checksum = has_checksum(opened) or (opened.shards is None and store.lower().endswith(".zip"))
        self.can_list_chunks = not store.startswith(UNLISTED) and opened.nchunks <= MAX_CHUNKS
        if opened.fill_value is not None:
            self.fill_value = np.asarray(opened.fill_value, self._stored).view(self.dtype)[()]
        self.dims = dimension_names(opened) if self._image is None else self._image.dims
        self.decoding = self._decoding(opened)
        good = self.attributes.get("bbl")  # of an ENVI raster that was converted
        if isinstance(good, list) and len(good) == self.shape[-1]:
            self.bad_bands = tuple(band for band, value in enumerate(good) if str(value).strip() in ("0", "0.0"))
        self._opened = opened

    def __getitem__(self, region: Any) -> NDArray[Any]:
        try:
            if self._opened is None:
                self._opened, _, _ = self._open()
            check = ChunkCheck(self._opened, str(self), self.name)
            if is_folder(self.store):
                check.check_files(os.path.join(self.store, self.array), region)
            else:
                self._opened.store.check = check.check
            try:
                room = room_for(self._opened, region) if is_folder(self.store) else None
                values = self._opened[region] if room is None else self._opened.get_basic_selection(region, out=room)
            except Exception:  # zarrs cannot read all that zarr can, such as foreign byte orders
                if not is_folder(self.store):
                    raise
                values = _open_with_zarr(os.path.join(self.store, self.array))[region]
            return np.asarray(values, self._stored).view(self.dtype)
        except InputError:
            raise
        except Exception as error:  # codecs and remote file systems raise many kinds
            raise self.error(
                f"{self} cannot be read at [{region_text(region)}] ({exception_text(error)}). Copy it again."
            ) from error

    def absent_chunks(self) -> list[tuple[int, ...]]:
        """Return the chunks (of a sharded array: shards) that the store does not hold, from one listing.

        After this call, a chunk that is missing when it is read is an error. An inner chunk that a shard lacks was left
        out when the shard was written: it is the fill value.
        """
        absent = absent_chunks(self._opened, self.array, self.store, self.name)
        if not is_folder(self.store):
            self._absent = frozenset(self._opened.metadata.encode_chunk_key(index) for index in absent)
            self._opened = None
        return absent

    def fill(self) -> None:
        """Read missing chunks as the fill value from now on, also behind a URL, where they are an error otherwise."""
        self._absent, self._opened = None, None

    def fingerprint(self) -> str | None:
        """Return a value that changes when a file of the array or its coordinates is written, added or removed.

        None if unknown; behind a URL, only the array counts.
        """
        if self.store.startswith(UNLISTED):
            return None
        if is_remote(self.store):
            return url_fingerprint(self.store, self.array)
        path = os.path.join(self.store, self.array)
        beside = [os.path.join(os.path.dirname(path), dim) for dim in self.dims or () if self.array and not self._image]
        walks = [walk for root in (path, *beside) for walk in os.walk(root)]
        files = [os.path.join(folder, name) for folder, _, names in walks for name in names]
        files = files if is_folder(self.store) else [self.store]
        entries = sorted(
            (os.path.relpath(file, path), status.st_size, status.st_mtime_ns)
            for file, status in ((file, os.stat(file)) for file in files)
        )
        return hashlib.sha256(json.dumps(entries).encode()).hexdigest()

    def stored_bytes(self) -> int | None:
        """Return about how many bytes the chunks take; None behind a URL."""
        return stored_bytes(self._opened, self.array, self.store) if is_folder(self.store) else None

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Return the positions of the voxels by OME-Zarr's metadata or the attributes of our own maps."""
        if self._image is not None:
            return self._image.geometry(dims)
        return read_geometry(self.attributes, dims, f"{self.name}: {self}")

    def coordinates(self, dims: Sequence[str]) -> Coordinates:
        """Return the coordinates in the array's group that have the names of its dimensions."""
        coordinates: Coordinates = {}
        if self._image is not None:
            return coordinates
        group = PurePosixPath(self.array).parent
        for dim, own in zip(dims, self.dims or tuple(dims), strict=True):
            place = os.path.join(self.store, group, own)
            if not self.array or (is_folder(self.store) and not zarr_chunks.may_be_one_dimension(place)):
                continue
            try:
                values = ZarrArray(self.store, str(group / own), own)
                if values.ndim == 1 and (values.dims or (own,)) == (own,) and values.dtype.kind in "iuf":
                    coordinates[dim] = (values[...], values.attributes)
            except InputError as error:  # there is no such array, or not of this kind
                if is_transient(error, is_remote(self.store)):
                    raise
        return coordinates

    def labels(self, dims: Sequence[str], axis: int) -> tuple[Label, ...] | None:
        """Return the coordinates of a dimension, also where they are text; else the names of bands or channels."""
        names = self.attributes.get("band_names") if self._image is None else self._image.labels(axis)
        named = tuple(map(str, names)) if isinstance(names, list | tuple) and len(names) == self.shape[axis] else None
        if self._image is not None or not self.array:
            return named
        path = str(PurePosixPath(self.array).parent / (self.dims or dims)[axis])
        place = os.path.join(self.store, path)
        if is_folder(self.store):
            check_all_files(place, self.name)
        try:
            with opening(self.store):
                if not is_folder(self.store):
                    found = zarr.open_group(self._zarr_store(), mode="r").get(path)
                else:
                    found = _node_at(place) if os.path.isdir(place) else None
                labels = labels_of(found, self.shape[axis])
                lost = labels is not None and absent_chunks(found, path, self.store, self.name)
        except InputError:
            raise
        except Exception as error:
            raise self.error(f"the labels of {self} in {path} cannot be read ({exception_text(error)}).") from error
        if lost:
            raise self.error(f"{path}, the labels of {self}, lacks a chunk. Copy the store again from a complete one.")
        return labels or named

    def _decoding(self, opened: Any) -> Decoding:
        attributes = self.attributes
        packed = {"scale_factor", "add_offset"} & set(attributes)
        if packed and opened.metadata.zarr_format == 2 and opened.fill_value:
            # xarray packs like this; version 2 has no other place for a missing code.
            attributes = {"_FillValue": opened.fill_value, **attributes}
        return decoding_in(attributes, self.dtype, f"{self.name}: {self}")

    def _open(self) -> tuple[Any, str, ome_zarr.Image | None]:
        """Return the zarr.Array, its path, and what OME-Zarr metadata say about it."""
        store, path = self.store, self.array.strip("/")
        if not is_remote(store) and not Path(store).exists():
            raise nothing_at(store, self.name, "store")
        if ".." in PurePosixPath(path).parts:
            raise self.error(f"array name {path!r} must not contain '..'.")
        if is_folder(store):
            check_metadata(store, path, self.name)
        with opening(store):
            if is_folder(store) and path:  # directly, at half the cost of opening its group first
                with suppress(Exception):
                    direct = zarr.open(os.path.join(store, path), mode="r")
                    if isinstance(direct, zarr.Array) and not ome_zarr.is_level(store, path):
                        return self._checked(direct, path), path, None
            try:
                group = zarr.open(self._zarr_store(), mode="r")
            except Exception as error:
                reason = exception_text(error)
                raise self.error(f"{store} is not a readable Zarr store ({reason}).") from error
            if not isinstance(group, zarr.Group):
                if path:
                    raise self.error(f"{store} is an array, not a group; leave out `array: {path}`.")
                return self._checked(group, path), path, None
            try:
                image = ome_zarr.image_of(group, path, f"{self.name}: {store}")
                path = path if image is None else image.path
                node = group[path] if path else group
            except KeyError:
                node = None
            except InputError:
                raise
            except Exception as error:
                raise self.error(
                    f"{store}:{path} is damaged, or its kind is not supported ({exception_text(error)})."
                ) from error
            if isinstance(node, zarr.Array):
                return self._checked(node, path), path, image
            has = f"no array {path!r}" if path else "several arrays or none; name one with `array`"
            raise self.error(f"{store} has {has}; it has: {_array_names(group)}.")

    def _zarr_store(self) -> Any:
        if is_folder(self.store):
            return self.store
        if not is_remote(self.store):
            return StrictStore(zarr.storage.ZipStore(self.store, mode="r"), None)
        options = read_options(self.store)
        remote = zarr.storage.FsspecStore.from_url(self.store, storage_options=options, read_only=True)
        disable_retries(remote.fs)
        return StrictStore(remote, self._absent)

    def _checked(self, array: Any, path: str) -> Any:
        where = f"{self.store}:{path}" if path else self.store
        pickled = "pickle" in str(array.metadata.to_dict()).lower()
        if pickled or np.dtype(array.dtype).hasobject:
            raise self.error(f"{where} holds Python objects, and reading them would run code. Store numbers.")
        if np.dtype(array.dtype).kind not in "biufc":
            raise self.error(f"{where} holds {array.dtype}; expected numbers.")
        return array


def array_names(store: str, name: str) -> list[str]:
    """Return the names of the arrays of a group; [""] for one array and for an image, whose full resolution is read.

    name: the input's, for messages. Raises InputError for anything else.
    """
    with opening(store):
        try:
            group = zarr.open(store, mode="r")
            if isinstance(group, zarr.Array) or ome_zarr.image_of(group, "", f"{name}: {store}") is not None:
                return [""]
            return sorted(member for member, _ in group.arrays())
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{name}: {store} is not a readable Zarr store ({exception_text(error)}).") from None


def _node_at(path: str) -> Any:
    """Return the zarr.Array or zarr.Group of a local folder; None if it is neither."""
    try:
        return zarr.open(path, mode="r")
    except FileNotFoundError:
        return None


def labels_of(array: Any, size: int) -> tuple[Label, ...] | None:
    """Return the numbers or texts of a one-dimensional zarr.Array of this size; None of anything else."""
    if not isinstance(array, zarr.Array) or array.shape != (size,) or "pickle" in str(array.metadata.to_dict()).lower():
        return None
    return labels_in(np.asarray(array[...]))


def labels_beside(array: Any, axis: int) -> tuple[Label, ...] | None:
    """Return the coordinates along an axis of a zarr.Array, from its group; else the names of its bands."""
    dims, size = dimension_names(array), array.shape[axis]
    if dims is not None and array.path:
        path = str(PurePosixPath(array.path).parent / dims[axis])
        with opening(""), suppress(FileNotFoundError, KeyError):  # as it was opened, without zarrs
            found = labels_of(zarr.open_array(array.store, path=path, mode="r"), size)
            if found is not None:
                return found
    names = array.attrs.get("band_names")
    return tuple(map(str, names)) if isinstance(names, list) and len(names) == size else None


def dimension_names(array: Any) -> tuple[str, ...] | None:
    """Return the names of the dimensions of a zarr.Array; None if it does not name all."""
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if not isinstance(names, list | tuple) or None in names or len(names) != array.ndim:
        return None
    return tuple(str(name) for name in names)


def _open_with_zarr(path: str) -> Any:
    with quiet():
        return zarr.open_array(path, mode="r")


def _array_names(group: Any) -> str:
    with suppress(Exception):
        return ", ".join(sorted(name for name, _ in group.arrays())) or "none"
    return "nothing that can be listed"
