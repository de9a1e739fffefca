"""Reading NetCDF-3, by SciPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.file_cache import refusal
from dask_uncert.io.indexing import slabs
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.cf_variable import Described, plain


class StoredClassic(Described):
    """A variable of a NetCDF-3 file, mapped; it pickles as its address."""

    def __init__(self, store: str, array: str, what: str) -> None:
        """what: the input's name, for messages. Raises InputError for a file or variable that cannot be used."""
        self.store, self.array, self.what = store, array.strip("/"), what
        if is_remote(store):
            raise InputError(f"{what}: NetCDF-3 files are read from local disks only; copy {store} here.")
        with self._variable() as one:
            self.dims = tuple(one.dimensions)
            self.describe(one.shape, np.dtype(one.data.dtype), one._attributes)
        self.chunks = slabs(self.shape, self.stored.itemsize)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        with self._variable() as one:
            return np.array(one.data[region], self.stored).view(self.dtype)

    def absent_chunks(self) -> tuple[tuple[int, ...], ...]:
        """None: a file is whole or refused."""
        return ()

    def coordinates(self, dims: Sequence[str]) -> dict[str, tuple[NDArray[Any], Mapping[str, Any]]]:
        """The coordinate variables of its dimensions, with their attributes."""
        found: dict[str, tuple[NDArray[Any], Mapping[str, Any]]] = {}
        with self._variable() as _, self._reading() as file:
            for dim, name in zip(dims, self.dims or (), strict=True):
                one = file.variables.get(name)
                if one is not None and one.dimensions == (name,) and one.data.dtype.kind in "iuf":
                    values = np.array(one.data, one.data.dtype.newbyteorder("="))
                    found[dim] = (values, {key: plain(value) for key, value in one._attributes.items()})
        return found

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        try:
            with scipy.io.netcdf_file(self.store, "r", mmap=False, maskandscale=False) as file:
                yield file
        except InputError:
            raise
        except Exception as error:  # of SciPy's parser, many kinds
            raise refusal(self.store, self.what, error) from None

    @contextmanager
    def _variable(self) -> Iterator[Any]:
        with self._reading() as file:
            known = [name for name, one in file.variables.items() if one.shape]
            name = self.array or (known[0] if len(known) == 1 else "")
            if name not in file.variables:
                raise InputError(
                    f"{self.what}: {self.store} holds no array {self.array!r}; it holds: {', '.join(known[:20])}."
                )
            self.array = name
            yield file.variables[name]
