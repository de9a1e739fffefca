"""Reading variables of MATLAB files: version 5 with SciPy, whole, once a process; 7.3, which is HDF5, with h5py."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.io
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoded_size import decodes_within
from dask_uncert.io.file_cache import EXPANSION, Bytes, open_stream
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.stored_array import FileArray, StoredArray, slabs

NUMBERS = {f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
NUMBERS |= {"single": np.dtype("f4"), "double": np.dtype("f8"), "logical": np.dtype("u1")}
"""MATLAB's classes of numbers."""
HEADER, COMPRESSED = 128, 15  # bytes before the first variable; the type of one that zlib compressed
SLACK = 1 << 12  # bytes of a variable's name, shape and flags
HDF5 = b"\x89HDF\r\n\x1a\n"


def open_matlab(store: str, array: str, name: str, dims: Sequence[str] | None = None) -> StoredArray:
    """Open a variable of a MATLAB file of either version."""
    with open_stream(store, name) as file:
        start = file.read(520)
    if HDF5 not in (start[:8], start[512:520]):
        return MatlabArray(store, array, name)
    try:
        from dask_uncert.io.readers.netcdf4 import open_netcdf
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name}: {store} is a MATLAB file of version 7.3, and reading it needs {error.name}, which is not "
            f"installed. Run `python -m pip install 'dask-uncert[netcdf]'`."
        ) from None
    return open_netcdf(store, array, name, dims)


class MatlabArray(FileArray):
    """A numeric variable of a MATLAB file of version 5. The first slice reads all of it.

    Axes are in MATLAB's order and have no names.
    """

    order = "F"
    read_whole = True

    def __init__(self, store: str, array: str, name: str) -> None:
        super().__init__(store, array, name)
        self.open_file(store)
        variables = {variable: (shape, kind) for variable, shape, kind in self._parse(scipy.io.whosmat)}
        numeric = [variable for variable, (_, kind) in variables.items() if kind in NUMBERS]
        if not array and len(numeric) == 1:
            self.array = array = numeric[0]
        if array not in variables:
            raise self.error(
                f"{store} has no variable {array!r}; it has: {', '.join(numeric[:20]) or 'no numbers'}. Name one with "
                f"`array`."
            )
        self._number = list(variables).index(array)
        shape, kind = variables[array]
        if kind not in NUMBERS:
            raise self.error(f"{array} in {store} is a {kind}; expected numbers.")
        self.shape = self.stored_shape = tuple(int(n) for n in shape)
        self.dtype = self.stored = NUMBERS[kind]
        self.held = self.nbytes
        # Numbers may be stored in an eighth of their bytes, and are compressed.
        if not is_remote(store) and (min(self.shape) < 0 or self.nbytes > 8 * EXPANSION * self.file_size):
            raise self.error(f"{array} in {store} states the shape {self.shape}: its file is too small.")
        with open_stream(store, name) as file:
            self.has_checksum = self._find(file)[0] == COMPRESSED
        self.chunks = slabs(self.shape, self.dtype.itemsize, axis=-1)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        return np.array(self.values()[region])

    def _read(self) -> Bytes:
        with open_stream(self.store, self.name) as file:
            self._check_decoded(file)
        variables = self._parse(lambda file: scipy.io.loadmat(file, variable_names=[self.array]))
        values = np.asarray(variables[self.array])
        if values.shape != self.shape or values.dtype.kind not in "biuf":
            raise self.error(f"{self} is not what its header states: {values.shape}, {values.dtype}.")
        flat = np.asfortranarray(values.astype(self.dtype, copy=False)).ravel(order="K").view(np.uint8)
        flat.flags.writeable = False
        return flat

    def _check_decoded(self, file: Any) -> None:
        """Refuse a variable that decodes to more than its shape states: SciPy would decode all of it."""
        kind, size = self._find(file)
        limit = 2 * self.nbytes + SLACK  # complex numbers have two parts
        if kind == COMPRESSED and not decodes_within(["zlib"], file.read(size), limit):
            raise self.error(
                f"{self} decodes to more than the {self.nbytes} bytes of its shape {self.shape}: it is damaged, or made "
                f"to fill the memory. Copy it again."
            )

    def _find(self, file: Any) -> tuple[int, int]:
        """Go to the bytes of the variable; return their type and number, 0 if the file ends before."""
        order = ">" if file.read(HEADER)[-2:] == b"MI" else "<"
        number = 0
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            if number == self._number:
                return kind, size
            file.seek(size, 1)
            number += 1
        return 0, 0

    def _parse(self, parse: Callable[[Any], Any]) -> Any:
        with open_stream(self.store, self.name) as file:
            try:
                return parse(file)
            except Exception as error:  # SciPy's parser raises many kinds
                raise self.damaged("a MATLAB file of version 5", error) from None
