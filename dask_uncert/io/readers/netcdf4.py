"""Reading NetCDF-4 and HDF5, by h5py; dimensions by the rules of NetCDF and CF.

HDF5 is not safe under threads, so every call into it holds one lock. Nothing outside the file is ever read: external
links, external storage and virtual datasets are refused.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Role
from dask_uncert.io.file_cache import opened as opened_file
from dask_uncert.io.file_cache import refusal, stamp_of
from dask_uncert.io.geometry import canonical_crs
from dask_uncert.io.indexing import slabs, spans_of
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.cf_variable import HIDDEN, Described, plain

_LOCK = threading.RLock()
MAGIC = b"\x89HDF\r\n\x1a\n"
CLASSIC = (b"CDF\x01", b"CDF\x02")
NO_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
MATLAB = "MATLAB_class"


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> Any:
    """A variable or dataset by its file's address and its path in it; see `StoredDataset`."""
    try:
        with opened_file(store) as file:
            start = file.read(4)
    except Exception as error:
        raise refusal(store, what, error) from None
    if start in CLASSIC:
        from dask_uncert.io.readers.netcdf3 import StoredClassic

        return StoredClassic(store, array, what)
    return StoredDataset(store, array, what)


class StoredDataset(Described):
    """A dataset of an HDF5 file, opened lazily in whichever process slices it; it pickles as its address.

    Dimensions are those of NetCDF-4 or other dimension scales; None where they have no names. Axes of a dataset
    written by MATLAB are in MATLAB's order.
    """

    def __init__(self, store: str, array: str, what: str) -> None:
        """what: the input's name, for messages. Raises InputError for a file or dataset that cannot be used."""
        self.store, self.array, self.what = store, array.strip("/"), what
        self._stamp = stamp_of(store, what)
        self._file: Any = None
        with self._dataset() as data:
            self._matlab = MATLAB in data.attrs
            self.dims = None if self._matlab else _dims_of(data)
            self.describe(data.shape[::-1] if self._matlab else data.shape, data.dtype, dict(data.attrs))
            chunks = data.chunks or slabs(data.shape, data.dtype.itemsize)
            self.chunks: tuple[int, ...] = tuple(chunks[::-1] if self._matlab else chunks)
            self._chunked = data.chunks is not None
            self._crs = _crs_of(data, self.attributes)
            _check_storage(data, what, repr(self))

    def __getitem__(self, region: Any) -> NDArray[Any]:
        spans, rest = spans_of(region, self.shape)
        window = tuple(slice(a, b) for a, b in spans)
        with self._dataset() as data:
            found = np.asarray(data[window[::-1] if self._matlab else window]).astype(self.stored, copy=False)
        return np.asarray((found.T if self._matlab else found).view(self.dtype)[rest])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None}

    def absent_chunks(self) -> list[tuple[int, ...]]:
        """Chunks that were never written; HDF5 reads them as the fill value."""
        if not self._chunked:
            return []
        with self._dataset() as data:
            numbers = tuple(-(-n // c) for n, c in zip(data.shape, data.chunks, strict=True))
            if data.id.get_num_chunks() == math.prod(numbers):
                return []
            there: set[tuple[int, ...]] = set()
            data.id.chunk_iter(
                lambda info: there.add(
                    tuple(o // c for o, c in zip(info.chunk_offset, data.chunks, strict=True))
                )
            )
        absent = [number for number in np.ndindex(*numbers) if number not in there]
        return [number[::-1] for number in absent] if self._matlab else absent

    def coordinates(self, dims: Sequence[str]) -> dict[str, tuple[NDArray[Any], Mapping[str, Any]]]:
        """The coordinate variables of its dimensions, with their attributes."""
        found: dict[str, tuple[NDArray[Any], Mapping[str, Any]]] = {}
        if self.dims is None:
            return found
        with self._dataset() as data:
            for dim, name in zip(dims, self.dims, strict=True):
                one = _inside(data.parent, name)
                if one is not None and one.ndim == 1 and one.dtype.kind in "iuf" and not _is_bare(one):
                    attributes = {key: plain(value) for key, value in one.attrs.items() if key not in HIDDEN}
                    found[dim] = (np.asarray(one[...]), attributes)
        return found

    @property
    def crs(self) -> str | None:
        """The reference system of the coordinates, by CF's grid mapping; None where there is none."""
        return self._crs

    @contextmanager
    def _dataset(self) -> Iterator[Any]:
        """The dataset, under HDF5's lock."""
        with _LOCK:
            try:
                if self._file is None:
                    self._file = _open(self.store)
                yield _found(self._file, self.array, self.what, self.store)
            except InputError:
                raise
            except Exception as error:  # of HDF5, many kinds
                raise refusal(self.store, self.what, error) from None


def _open(store: str) -> Any:
    if is_remote(store):
        return h5py.File(opened_file(store), "r")
    with open(store, "rb"):  # else HDF5 would word what is missing or forbidden
        pass
    return h5py.File(store, "r")


def _found(file: Any, path: str, what: str, store: str) -> Any:
    """The dataset at a path of hard links, which cannot leave the file."""
    if ".." in path.split("/"):
        raise InputError(f"{what}: array name {path!r} must not contain '..'.")
    here = file
    for name in filter(None, path.split("/")):
        link = here.get(name, getlink=True) if isinstance(here, h5py.Group) and name in here else None
        if link is None:
            raise InputError(f"{what}: {store} holds no array {path!r}; it holds: {_listed(file)}.")
        if not isinstance(link, h5py.HardLink):
            raise InputError(
                f"{what}: {path} in {store} is a link to another place; name that, or copy it there."
            )
        here = here[name]
    if isinstance(here, h5py.Dataset):
        return here
    if not path and len(single := [name for name in file if _inside(file, name) is not None]) == 1:
        return file[single[0]]
    raise InputError(f"{what}: {store} holds several arrays; name one with `array`: {_listed(file)}.")


def _listed(file: Any, most: int = 20) -> str:
    names: list[str] = []

    def note(name: str, one: Any) -> bool | None:
        if isinstance(one, h5py.Dataset) and one.ndim:
            names.append(name)
        return True if len(names) > most else None

    file.visititems(note)
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") or "none"


def _inside(group: Any, name: str) -> Any:
    """The dataset of this name in a group, if it lies in the file itself; else None."""
    link = group.get(name, getlink=True) if name in group else None
    one = group[name] if isinstance(link, h5py.HardLink) else None
    return one if isinstance(one, h5py.Dataset) and not _is_elsewhere(one) else None


def _is_elsewhere(data: Any) -> bool:
    """Whether the numbers of a dataset lie in other files."""
    return bool(data.is_virtual or data.external)


def _check_storage(data: Any, what: str, where: str) -> None:
    if _is_elsewhere(data):
        raise InputError(f"{what}: {where} lies in other files, which are not read. Copy it into one.")


def _is_bare(data: Any) -> bool:
    """Whether this is a dimension of NetCDF-4 that has no coordinates."""
    return bytes(data.attrs.get("NAME", b"")).startswith(NO_DIMENSION)


def _dims_of(data: Any) -> tuple[str, ...] | None:
    if data.is_scale and data.ndim == 1:
        return (data.name.rpartition("/")[2],)
    names = []
    for axis in data.dims:
        scale = axis[0].name.rpartition("/")[2] if len(axis) else axis.label
        names.append(str(scale))
    return tuple(names) if all(names) and len(set(names)) == len(names) and names else None


def _crs_of(data: Any, attributes: Mapping[str, Any]) -> str | None:
    name = attributes.get("grid_mapping")
    one = _inside(data.parent, str(name)) if name else None
    if one is None:
        return None
    for key in ("crs_wkt", "spatial_ref"):
        if key in one.attrs:
            return canonical_crs(str(plain(one.attrs[key])))
    return None
