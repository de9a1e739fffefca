"""Reading NumPy's own files: `.npy`, mapped, and the arrays of an `.npz`, read whole once a process.

No pickle is ever read: an array of Python objects is refused.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import AS_STORED, Role
from dask_uncert.io.file_cache import EXPANSION, file_name, kept, refusal, stamp_of, stream
from dask_uncert.io.indexing import Unplaced, one_array, slabs
from dask_uncert.io.paths import is_remote

LONGEST_HEADER = 1 << 16  # bytes: an array's takes a hundred


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> StoredNumpy:
    """An array by its file's address, and its name in an `.npz`; see `StoredNumpy`."""
    return StoredNumpy(store, array, what)


class StoredNumpy(Unplaced):
    """An array of a NumPy file, opened lazily in whichever process slices it; it pickles as its address.

    Its dimensions have no names.
    """

    def __init__(self, store: str, array: str, what: str) -> None:
        """what: the input's name, for messages. Raises InputError for a file that cannot be used."""
        self.store, self.array, self.what = store, array, what
        self._packed = file_name(store).endswith(".npz")
        if not self._packed:
            one_array(store, array, what)
        self._stamp = stamp_of(store, what)
        with self._file() as file:
            self.shape, self._fortran, stored, self._offset = self._header(file)
            self._check_size(file, stored)
        self._stored, self.dtype = stored, stored.newbyteorder("=")
        self.ndim, self.dims = len(self.shape), None
        self.chunks = slabs(self.shape, stored.itemsize)
        if self._fortran:
            self.chunks = slabs(self.shape[::-1], stored.itemsize)[::-1]
        self.held = self._nbytes if self._is_whole else 0
        self.decoding, self.attributes = AS_STORED, dict[str, Any]()
        self._mapped: NDArray[Any] | None = None

    @property
    def _nbytes(self) -> int:
        return math.prod(self.shape) * self._stored.itemsize

    @property
    def _is_whole(self) -> bool:
        return self._packed or is_remote(self.store)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        return np.asarray(self._values()[region], self.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mapped": None}

    def __repr__(self) -> str:
        return f"{self.store}:{self.array}" if self.array else self.store

    def _values(self) -> NDArray[Any]:
        """All of it as stored; not to be written to."""
        order = "F" if self._fortran else "C"
        if self._is_whole:
            raw = kept((self.store, self.array, *self._stamp), self._read)
            return raw.view(self._stored).reshape(self.shape, order=order)  # type: ignore[call-overload,no-any-return]
        if self._mapped is None:
            if stamp_of(self.store, self.what) != self._stamp:
                raise InputError(
                    f"{self.what}: {self.store} has changed since it was opened. Run again when it is whole."
                )
            if not self._nbytes:
                return np.empty(self.shape, self._stored)
            try:
                self._mapped = np.memmap(self.store, self._stored, "r", self._offset, self.shape, order)  # type: ignore[call-overload]
            except (OSError, ValueError) as error:
                raise refusal(self.store, self.what, error) from None
        assert self._mapped is not None
        return self._mapped

    def _read(self) -> NDArray[np.uint8]:
        with self._file() as file:
            self._header(file)
            raw = np.frombuffer(file.read(self._nbytes + 1), np.uint8)
        if raw.size != self._nbytes:
            kind = "is longer" if raw.size > self._nbytes else f"ends after {raw.size}"
            raise InputError(f"{self.what}: the header of {self} states {self._nbytes} bytes, but it {kind}.")
        return raw

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        with stream(self.store, self.what) as file:
            if not self._packed:
                yield file  # type: ignore[misc]
                return
            try:
                with zipfile.ZipFile(file) as packed:
                    names = [name.removesuffix(".npy") for name in packed.namelist()]
                    if self.array not in names and not (len(names) == 1 and not self.array):
                        raise InputError(
                            f"{self.what}: {self.store} holds no array {self.array!r}; it holds: {', '.join(names[:20])}."
                        )
                    member = packed.infolist()[names.index(self.array) if self.array else 0]
                    self._size, self._compressed = member.file_size, member.compress_size
                    with packed.open(member) as inner:
                        yield inner
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
                raise InputError(f"{self.what}: {self.store} is damaged ({error}). Copy it again.") from None

    def _header(self, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
        """Shape, whether the first axis runs fastest, dtype, and where the values begin."""
        try:
            version = npy.read_magic(file)
            reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if reader is None:
                raise ValueError(f"version {version} of the format is not known")
            shape, fortran, dtype = reader(file, max_header_size=LONGEST_HEADER)
        except (ValueError, SyntaxError, TypeError, KeyError) as error:
            text = " ".join(str(error).split())[:200]
            raise InputError(f"{self.what}: {self} is no array of NumPy, or damaged ({text}).") from None
        if dtype.hasobject:
            raise InputError(
                f"{self.what}: {self} holds Python objects, whose reading would run code. Save it as numbers."
            )
        if dtype.kind not in "biuf" or dtype.itemsize > 8 or dtype.subdtype is not None:
            raise InputError(f"{self.what}: {self} holds {dtype}; expected real numbers of at most 64 bits.")
        if not all(isinstance(n, int) and n >= 0 for n in shape):
            raise InputError(f"{self.what}: {self} states the shape {shape} in its header.")
        return tuple(shape), bool(fortran), dtype, 0 if self._packed else file.tell()

    def _check_size(self, file: IO[bytes], dtype: np.dtype[Any]) -> None:
        needed = self._offset + math.prod(self.shape) * dtype.itemsize
        if self._packed:
            if needed > self._size or self._size > EXPANSION * max(self._compressed, 1):
                raise InputError(
                    f"{self.what}: {self} states {needed} bytes in its header, but its archive says {self._size}, packed "
                    f"in {self._compressed}: it is damaged."
                )
        elif not is_remote(self.store) and self._stamp[0] != needed:
            raise InputError(
                f"{self.what}: {self.store} states {needed} bytes in its header, for shape {self.shape} of {dtype}, but "
                f"holds {self._stamp[0]}. Copy it again from where it is whole."
            )
