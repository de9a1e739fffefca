"""Reading NetCDF-4 and HDF5, with h5py; dimensions by the rules of NetCDF and CF.

HDF5 is not thread-safe, so every call into it holds one lock. Nothing outside the file is ever read: external
links, external storage and virtual datasets are refused.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from operator import mul
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoded_size import decodes_within
from dask_uncert.io.file_cache import file_error, open_raw, open_stream
from dask_uncert.io.indexing import Span, spans_of
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.cf_variable import CFVariable, plain, plain_attributes
from dask_uncert.io.readers.stored_array import Coordinates, Label, StoredArray, labels_in, slabs
from dask_uncert.io.reference_systems import canonical_crs

_LOCK = threading.RLock()
NETCDF3 = (b"CDF\x01", b"CDF\x02")
NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
MATLAB = "MATLAB_class"
SHUFFLE, FLETCHER32, CHECKSUM = 2, 3, 4  # numbers of filters, and the bytes that the last adds
COMPRESSORS = {1: "zlib", 307: "bz2", 32001: "blosc", 32015: "zstd"}
"""Names of codecs by the registered numbers of filters."""


def open_netcdf(store: str, array: str, name: str, dims: Sequence[str] | None = None) -> StoredArray:
    """Open a variable of a NetCDF file of either version, or a dataset of an HDF5 file."""
    with open_stream(store, name) as file:
        start = file.read(4)
    if start in NETCDF3:
        from dask_uncert.io.readers.netcdf3 import NetCDF3Array

        return NetCDF3Array(store, array, name)
    return HDF5Array(store, array, name)


class HDF5Array(CFVariable):
    """A dataset of an HDF5 file, opened lazily in each process that slices it.

    Dimensions are those of NetCDF-4 or other dimension scales; None if they have no names. Axes of a dataset that
    MATLAB wrote are in MATLAB's order.
    """

    HANDLE = "_file"

    def __init__(self, store: str, array: str, name: str) -> None:
        super().__init__(store, array.strip("/"), name)
        self._file: Any = None
        with self._open() as data:
            self._matlab = MATLAB in data.attrs
            self.dims = None if self._matlab else _dims_of(data)
            self.describe(data.shape[::-1] if self._matlab else data.shape, data.dtype, dict(data.attrs))
            chunks = data.chunks or slabs(data.shape, data.dtype.itemsize)
            self.chunks = tuple(chunks[::-1] if self._matlab else chunks)
            self._chunked = data.chunks is not None
            self.has_checksum = data.fletcher32 or data.compression == "gzip"
            self.fill_value = np.asarray(data.fillvalue, self.stored).view(self.dtype)[()]
            self.crs = _crs_of(data, self.attributes)
            if _is_external(data):
                raise self.error(f"numbers of {self} are in other files. Copy all into one file.")

    def __getitem__(self, region: Any) -> NDArray[Any]:
        spans, rest = spans_of(region, self.shape)
        window = tuple(slice(a, b) for a, b in spans)
        if self._chunked and not is_remote(self.store):
            self._check_chunks(spans[::-1] if self._matlab else spans)
        with self._open() as data:
            values = np.asarray(data[window[::-1] if self._matlab else window])
        values = values.astype(self.stored, copy=False)
        return np.asarray((values.T if self._matlab else values).view(self.dtype)[rest])

    def absent_chunks(self) -> list[tuple[int, ...]]:
        """Return the chunks that were never written; HDF5 reads them as the fill value."""
        if not self._chunked:
            return []
        with self._open() as data:
            numbers = tuple(-(-n // c) for n, c in zip(data.shape, data.chunks, strict=True))
            if data.id.get_num_chunks() == math.prod(numbers):
                return []
            written: set[tuple[int, ...]] = set()
            data.id.chunk_iter(lambda info: written.add(tuple(info.chunk_offset)))
            chunks = data.chunks
        absent = [index for index in np.ndindex(*numbers) if tuple(map(mul, index, chunks)) not in written]
        return [index[::-1] for index in absent] if self._matlab else absent

    def coordinates(self, dims: Sequence[str]) -> Coordinates:
        coordinates: Coordinates = {}
        if self.dims is None:
            return coordinates
        with self._open() as data:
            for dim, key in zip(dims, self.dims, strict=True):
                variable = _dataset_in(data.parent, key)
                if variable is None or variable.ndim != 1 or variable.dtype.kind not in "iuf":
                    continue
                if not bytes(variable.attrs.get("NAME", b"")).startswith(NO_VARIABLE):
                    coordinates[dim] = (np.asarray(variable[...]), plain_attributes(variable.attrs))
        return coordinates

    def labels(self, dims: Sequence[str], axis: int) -> tuple[Label, ...] | None:
        """Return the coordinates of a dimension, also where they are text."""
        if self.dims is None:
            return None
        with self._open() as data:
            variable = _dataset_in(data.parent, self.dims[axis])
            if variable is None or variable.ndim not in (1, 2) or variable.shape[0] != self.shape[axis]:
                return None
            if bytes(variable.attrs.get("NAME", b"")).startswith(NO_VARIABLE):
                return None
            return labels_in(np.asarray(variable[...]))

    def _check_chunks(self, spans: Sequence[Span]) -> None:
        """Refuse a chunk that decodes to more than its dataset states: HDF5 would decode all of it."""
        with self._open() as data:
            chunks, nbytes = data.chunks, math.prod(data.chunks) * data.dtype.itemsize
            plan = data.id.get_create_plist()
            filters = [plan.get_filter(i)[0] for i in range(plan.get_nfilters())]
        if not set(filters) & set(COMPRESSORS):
            return
        for index in product(*(range(a // c, -(-b // c)) for (a, b), c in zip(spans, chunks, strict=True))):
            offset = tuple(map(mul, index, chunks))
            with self._open() as data:
                if data.id.get_chunk_info_by_coord(offset).byte_offset is None:
                    continue  # never written
                left_out, raw = data.id.read_direct_chunk(offset)
            used = [number for i, number in enumerate(filters) if not left_out >> i & 1 and number != SHUFFLE]
            checksums = CHECKSUM * used.count(FLETCHER32)
            codecs = [COMPRESSORS.get(number, "unknown") for number in reversed(used) if number != FLETCHER32]
            if not decodes_within(codecs, memoryview(raw)[: len(raw) - checksums], nbytes + checksums):
                raise self.error(
                    f"chunk {offset} of {self} decodes to more than the {nbytes} bytes that the file states for a chunk: it "
                    f"is damaged, or made to fill the memory. Copy it again."
                )

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Yield the dataset, under HDF5's lock."""
        with _LOCK:
            try:
                if self._file is None:
                    self._file = _open_file(self.store)
                yield self._dataset()
            except InputError:
                raise
            except Exception as error:  # HDF5 raises many kinds
                raise file_error(self.store, self.name, error) from None

    def _dataset(self) -> Any:
        """Return the dataset at a path of hard links, which cannot leave the file."""
        path, node = self.array, self._file
        if ".." in path.split("/"):
            raise self.error(f"array name {path!r} must not contain '..'.")
        for key in filter(None, path.split("/")):
            link = node.get(key, getlink=True) if isinstance(node, h5py.Group) and key in node else None
            if link is None:
                raise self.error(f"{self.store} has no array {path!r}; it has: {_dataset_names(self._file)}.")
            if not isinstance(link, h5py.HardLink):
                raise self.error(f"{path} in {self.store} is a link; name its target, or copy it there.")
            node = node[key]
        if isinstance(node, h5py.Dataset):
            return node
        if not path and len(single := [key for key in node if _dataset_in(node, key) is not None]) == 1:
            return node[single[0]]
        names = _dataset_names(self._file)
        raise self.error(f"{self.store} has several arrays; name one with `array`: {names}.")


def _open_file(store: str) -> Any:
    if is_remote(store):
        return h5py.File(open_raw(store), "r")
    with open(store, "rb"):  # HDF5's own messages for missing or forbidden files are less clear
        pass
    return h5py.File(store, "r")


def _dataset_names(file: Any, most: int = 20) -> str:
    names: list[str] = []

    def collect(key: str, node: Any) -> bool | None:
        if isinstance(node, h5py.Dataset) and node.ndim:
            names.append(key)
        return True if len(names) > most else None

    file.visititems(collect)
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") or "none"


def _dataset_in(group: Any, key: str) -> Any:
    """Return the dataset of this name in a group; None if there is none in this file."""
    link = group.get(key, getlink=True) if key in group else None
    node = group[key] if isinstance(link, h5py.HardLink) else None
    return node if isinstance(node, h5py.Dataset) and not _is_external(node) else None


def _is_external(data: Any) -> bool:
    return bool(data.is_virtual or data.external)


def _dims_of(data: Any) -> tuple[str, ...] | None:
    if data.is_scale and data.ndim == 1:
        return (data.name.rpartition("/")[2],)
    names = [str(axis[0].name.rpartition("/")[2] if len(axis) else axis.label) for axis in data.dims]
    return tuple(names) if all(names) and len(set(names)) == len(names) and names else None


def _crs_of(data: Any, attributes: Mapping[str, Any]) -> str | None:
    """Return the reference system of CF's grid mapping; None if there is none."""
    key = attributes.get("grid_mapping")
    mapping = _dataset_in(data.parent, str(key)) if key else None
    if mapping is None:
        return None
    texts = (mapping.attrs[key] for key in ("crs_wkt", "spatial_ref") if key in mapping.attrs)
    return next((canonical_crs(str(plain(text))) for text in texts), None)
