"""Reading variables of MATLAB files: version 5 by SciPy, whole, once a process; 7.3, which is HDF5, by its reader."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
import scipy.io
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import AS_STORED, Role
from dask_uncert.io.file_cache import EXPANSION, kept, stamp_of, stream
from dask_uncert.io.indexing import Unplaced, slabs
from dask_uncert.io.paths import is_remote

NUMBERS = {
    **{
        f"{sign}int{8 * n}": np.dtype(f"{'u' if sign else 'i'}{n}")
        for sign in ("", "u")
        for n in (1, 2, 4, 8)
    },
    "single": np.dtype("f4"),
    "double": np.dtype("f8"),
    "logical": np.dtype("u1"),
}
"""MATLAB's classes of numbers."""
HDF5 = b"\x89HDF\r\n\x1a\n"


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> Any:
    """A variable by its file's address and its name; see `StoredMatlab`."""
    with stream(store, what) as file:
        start = file.read(520)
    if HDF5 in (start[:8], start[512:520]):
        try:
            from dask_uncert.io.readers import netcdf4

            return netcdf4.opened(store, array, what, dims, role)
        except ModuleNotFoundError as error:
            raise InputError(
                f"{what}: {store} is a MATLAB file of version 7.3, and reading it needs {error.name}, which is not "
                f"installed. Run `python -m pip install 'dask-uncert[netcdf]'`."
            ) from None
    return StoredMatlab(store, array, what)


class StoredMatlab(Unplaced):
    """A numeric variable of a MATLAB file of version 5; it pickles as its address.

    Axes are in MATLAB's order and have no names. What is asked of it first reads all of the variable.
    """

    def __init__(self, store: str, array: str, what: str) -> None:
        """what: the input's name, for messages. Raises InputError for a file that cannot be used."""
        self.store, self.array, self.what = store, array, what
        self._stamp = stamp_of(store, what)
        found = {name: (shape, kind) for name, shape, kind in self._asked(scipy.io.whosmat)}
        numeric = [name for name, (_, kind) in found.items() if kind in NUMBERS]
        if not array and len(numeric) == 1:
            self.array = array = numeric[0]
        if array not in found:
            raise InputError(
                f"{what}: {store} holds no variable {array!r}; it holds: {', '.join(numeric[:20]) or 'no numbers'}. "
                f"Name it with `array`."
            )
        shape, kind = found[array]
        if kind not in NUMBERS:
            raise InputError(f"{what}: {array} in {store} is a {kind}; expected numbers.")
        self.shape: tuple[int, ...] = tuple(int(n) for n in shape)
        self.ndim, self.dtype, self.dims = len(self.shape), NUMBERS[kind], None
        self.held = math.prod(self.shape) * self.dtype.itemsize
        # Numbers may be stored narrower than they are, an eighth at most, and are compressed.
        if not is_remote(store) and (
            min(self.shape) < 0 or self.held > 8 * EXPANSION * int(str(self._stamp[0]))
        ):
            raise InputError(
                f"{what}: {array} in {store} is stated to be {self.shape} numbers, which cannot be in so small a file."
            )
        self.chunks = slabs(self.shape[::-1], self.dtype.itemsize)[::-1]
        self.decoding, self.attributes = AS_STORED, dict[str, Any]()

    def __getitem__(self, region: Any) -> NDArray[Any]:
        raw = kept((self.store, self.array, *self._stamp), self._read)
        return np.array(raw.view(self.dtype).reshape(self.shape, order="F")[region])

    def __repr__(self) -> str:
        return f"{self.store}:{self.array}"

    def _read(self) -> NDArray[np.uint8]:
        found = self._asked(lambda file: scipy.io.loadmat(file, variable_names=[self.array]))[self.array]
        values = np.asarray(found)
        if values.shape != self.shape or values.dtype.kind not in "biuf":
            raise InputError(
                f"{self.what}: {self} is not what its header states: {values.shape}, {values.dtype}."
            )
        flat = np.asfortranarray(values.astype(self.dtype, copy=False)).ravel(order="K").view(np.uint8)
        flat.flags.writeable = False
        return flat

    def _asked(self, ask: Any) -> Any:
        def answer(file: IO[bytes] | Any) -> Any:
            try:
                return ask(file)
            except Exception as error:  # of SciPy's parser, many kinds
                text = " ".join(str(error).split())[:200]
                raise InputError(
                    f"{self.what}: {self.store} is no MATLAB file of version 5, or damaged ({type(error).__name__}: {text})."
                ) from None

        with stream(self.store, self.what) as file:
            return answer(file)
