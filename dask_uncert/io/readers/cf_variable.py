"""A variable of a NetCDF or HDF5 file, as its attributes describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dask_uncert.io.attributes import actual_dtype, decoding_in, read_geometry
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.readers.stored_array import StoredArray

HIDDEN = (
    "REFERENCE_LIST", "DIMENSION_LIST", "CLASS", "NAME", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties",
)  # fmt: skip


class CFVariable(StoredArray):
    """A variable with attributes by the conventions of NetCDF and CF."""

    def describe(self, shape: Sequence[int], stored: np.dtype[Any], attributes: Mapping[str, Any]) -> None:
        """Take over shape, dtype and attributes of the opened variable."""
        self.shape = tuple(int(n) for n in shape)
        self.check_numbers(stored)
        self.attributes = plain_attributes(attributes)
        self.stored = stored.newbyteorder("=")
        self.dtype = actual_dtype(self.stored, self.attributes)
        self.decoding = decoding_in(self.attributes, self.dtype, f"{self.name}: {self}")

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Return the positions of the voxels by the attributes of our own maps; CF uses coordinates instead."""
        return read_geometry(self.attributes, dims, f"{self.name}: {self}")


def plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as plain data, without those that only organise the file."""
    return {key: plain(value) for key, value in attributes.items() if key not in HIDDEN}


def plain(value: Any) -> Any:
    """Return an attribute as plain data: HDF5 stores one number as an array of one."""
    if type(value).__name__ == "Empty":  # h5py's, of an attribute without a value
        return None
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
