"""What a variable of a NetCDF or HDF5 file says of itself, once its attributes are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.io.attributes import decoding_in, meant, place_in
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.indexing import file_fingerprint

HIDDEN = (
    "REFERENCE_LIST",
    "DIMENSION_LIST",
    "CLASS",
    "NAME",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
)


class Described:
    """What both kinds know of a variable once it has been opened."""

    store: str
    array: str
    what: str
    dims: tuple[str, ...] | None
    shape: tuple[int, ...]
    attributes: dict[str, Any]

    def describe(self, shape: Sequence[int], stored: np.dtype[Any], attributes: Mapping[str, Any]) -> None:
        self.shape, self.ndim = tuple(int(n) for n in shape), len(shape)
        if stored.kind not in "biuf" or stored.itemsize > 8:
            raise InputError(f"{self.what}: {self} holds {stored}; expected real numbers of at most 64 bits.")
        self.attributes = {key: plain(value) for key, value in attributes.items() if key not in HIDDEN}
        self.stored = stored.newbyteorder("=")
        self.dtype = meant(self.stored, self.attributes)
        self.decoding = decoding_in(self.attributes, self.dtype, f"{self.what}: {self}")
        self.held = 0

    def __repr__(self) -> str:
        return f"{self.store}:{self.array}" if self.array else self.store

    def fingerprint(self) -> str | None:
        """Changes whenever a local file is written; None for remote ones."""
        return file_fingerprint(self.store, self.what)

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where voxels lie, by the attributes that our own maps have; CF says it by coordinates."""
        return place_in(self.attributes, dims, self.what, str(self))

    @property
    def crs(self) -> str | None:
        """The reference system of the coordinates, by CF's grid mapping; None where there is none."""
        return None


def plain(value: Any) -> Any:
    """An attribute as plain data: HDF5 has one number as an array of one."""
    if isinstance(value, bytes | np.bytes_):
        return value.decode("utf-8", "replace")
    if type(value).__name__ == "Empty":  # h5py's, of an attribute without a value
        return None
    if isinstance(value, np.ndarray):
        listed = value.tolist()
        value = listed[0] if isinstance(listed, list) and len(listed) == 1 else listed
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return value.item() if isinstance(value, np.generic) else value
