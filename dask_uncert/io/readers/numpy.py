"""Reading NumPy's own files: `.npy`, mapped, and the arrays of an `.npz`, read whole once a process.

Pickles are never read: arrays of Python objects are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.file_cache import EXPANSION, Bytes, file_name, open_stream
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.stored_array import FileArray, slabs

MAX_HEADER_BYTES = 1 << 16  # a header usually takes a hundred
VERSIONS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class NumpyArray(FileArray):
    """An array of a NumPy file, and its name in an `.npz`. Its dimensions have no names."""

    def __init__(self, store: str, array: str, name: str, dims: Sequence[str] | None = None) -> None:
        super().__init__(store, array, name)
        self._packed = self.has_checksum = file_name(store).endswith(".npz")
        if not self._packed:
            self.check_unnamed()
        self.open_file(store)
        self.read_whole = self._packed or is_remote(store)
        with self._open() as file:
            self._read_header(file)
        self._check_size()
        self.dtype = self.stored.newbyteorder("=")
        self.chunks = slabs(self.shape, self.stored.itemsize, axis=0 if self.order == "C" else -1)
        self.held = self.nbytes if self.read_whole else 0

    def __getitem__(self, region: Any) -> NDArray[Any]:
        return np.asarray(self.values()[region], self.dtype)

    def _read(self) -> Bytes:
        with self._open() as file:
            self._read_header(file)
            raw = np.frombuffer(file.read(self.nbytes + 1), np.uint8)
        if raw.size != self.nbytes:
            ends = "is longer" if raw.size > self.nbytes else f"ends after {raw.size}"
            raise self.error(f"the header of {self} states {self.nbytes} bytes, but it {ends}.")
        return raw

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with open_stream(self.store, self.name) as file:
            if not self._packed:
                yield file  # type: ignore[misc]
                return
            try:
                with zipfile.ZipFile(file) as archive:
                    names = [name.removesuffix(".npy") for name in archive.namelist()]
                    if self.array not in names and not (len(names) == 1 and not self.array):
                        has = ", ".join(names[:20])
                        raise self.error(f"{self.store} has no array {self.array!r}; it has: {has}.")
                    member = archive.infolist()[names.index(self.array) if self.array else 0]
                    self._size, self._compressed = member.file_size, member.compress_size
                    with archive.open(member) as inner:
                        yield inner
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
                raise self.damaged("a NumPy archive", error) from None

    def _read_header(self, file: IO[bytes]) -> None:
        """Set shape, order and dtype, and the byte at which the numbers begin."""
        try:
            version = npy.read_magic(file)
            if version not in VERSIONS:
                raise ValueError(f"version {version} of the format is not known")
            shape, fortran, dtype = VERSIONS[version](file, max_header_size=MAX_HEADER_BYTES)
        except (ValueError, SyntaxError, TypeError, KeyError) as error:
            raise self.damaged("a NumPy array", error) from None
        if dtype.hasobject:
            raise self.error(f"{self} holds Python objects, and reading them would run code. Save numbers.")
        self.check_numbers(dtype)
        if not all(isinstance(n, int) and n >= 0 for n in shape):
            raise self.error(f"{self} states the shape {shape} in its header.")
        self.shape = self.stored_shape = tuple(shape)
        self.order, self.stored = "F" if fortran else "C", dtype
        self.offset = 0 if self._packed else file.tell()

    def _check_size(self) -> None:
        needed = self.offset + self.nbytes
        if self._packed:
            if needed > self._size or self._size > EXPANSION * max(self._compressed, 1):
                raise self.error(
                    f"{self} states {needed} bytes in its header, but its archive states {self._size}, compressed to "
                    f"{self._compressed}: it is damaged."
                )
        elif not is_remote(self.store) and self.file_size != needed:
            raise self.error(
                f"{self} states {needed} bytes in its header, for shape {self.shape} of {self.stored}, but holds "
                f"{self.file_size}. Copy it again."
            )


def array_names(store: str, name: str) -> list[str]:
    """Return the names of the arrays of an `.npz`; [""] for an `.npy`. name: the input's, for messages."""
    if not file_name(store).endswith(".npz"):
        return [""]
    try:
        with open_stream(store, name) as file, zipfile.ZipFile(file) as archive:
            return [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]
    except zipfile.BadZipFile as error:
        raise InputError(f"{name}: {store} is not a NumPy archive, or is damaged ({exception_text(error)}).") from None
