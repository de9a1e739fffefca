"""Reading NetCDF-3, with SciPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.file_cache import file_error
from dask_uncert.io.readers.cf_variable import CFVariable, plain_attributes
from dask_uncert.io.readers.stored_array import Coordinates, Label, labels_in, slabs


class NetCDF3Array(CFVariable):
    """A variable of a local NetCDF-3 file."""

    def __init__(self, store: str, array: str, name: str) -> None:
        super().__init__(store, array.strip("/"), name)
        self.check_local("NetCDF-3")
        with self._open() as file:
            variables = [key for key, variable in file.variables.items() if variable.shape]
            if not self.array and len(variables) == 1:
                self.array = variables[0]
            if self.array not in file.variables:
                raise self.error(f"{store} has no array {array!r}; it has: {', '.join(variables[:20])}.")
            variable = file.variables[self.array]
            self.dims = tuple(variable.dimensions)
            self.describe(variable.shape, np.dtype(variable.data.dtype), variable._attributes)
        self.chunks = slabs(self.shape, self.stored.itemsize)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        with self._open() as file:
            return np.array(file.variables[self.array].data[region], self.stored).view(self.dtype)

    def coordinates(self, dims: Sequence[str]) -> Coordinates:
        coordinates: Coordinates = {}
        with self._open() as file:
            for dim, key in zip(dims, self.dims or (), strict=True):
                variable = file.variables.get(key)
                if variable is None or variable.dimensions != (key,) or variable.data.dtype.kind not in "iuf":
                    continue
                values = np.array(variable.data, variable.data.dtype.newbyteorder("="))
                coordinates[dim] = (values, plain_attributes(variable._attributes))
        return coordinates

    def labels(self, dims: Sequence[str], axis: int) -> tuple[Label, ...] | None:
        """Return the coordinates of a dimension, also where they are text."""
        dim = (self.dims or ())[axis]
        with self._open() as file:
            variable = file.variables.get(dim)
            if variable is None or variable.dimensions[:1] != (dim,):
                return None
            return labels_in(np.array(variable.data))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        try:
            with scipy.io.netcdf_file(self.store, "r", mmap=False, maskandscale=False) as file:
                yield file
        except InputError:
            raise
        except Exception as error:  # SciPy's parser raises many kinds
            raise file_error(self.store, self.name, error) from None
