"""Base classes of the readers: what opened inputs of every format have in common."""

from __future__ import annotations

import hashlib
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError, exception_text, without_secrets
from dask_uncert.io.decoding import AS_STORED, Decoding
from dask_uncert.io.file_cache import Bytes, cached, file_error, file_stamp
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.paths import is_remote, url_fingerprint

MIN_CHUNK_BYTES = 1 << 20
Coordinates = dict[str, tuple[NDArray[Any], Mapping[str, Any]]]
"""Values and attributes of one-dimensional coordinates, by dimension."""

Label = str | float
"""What a file calls one index along an axis: a name or a number."""


class StoredArray(ABC):
    """An array in a file or store: slicing reads it, and pickles hold its address only.

    Slices hold numbers as stored, in this machine's byte order; nothing is scaled or masked.
    name: the input's name, for messages. dims: names in the file, None if it has none. decoding: how the file says
    that stored numbers become values. fill_value: of chunks that are not there, as stored; None where the format does not
    define it. can_list_chunks: `absent_chunks` costs few requests. bad_bands: indices along the last axis that the file
    marks as bad. held: bytes that stay in memory while it is read. crs: the reference system of
    its coordinates. has_checksum: every stored chunk has a checksum that is verified whenever any of it is read.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    dims: tuple[str, ...] | None = None
    decoding: Decoding = AS_STORED
    bad_bands: tuple[int, ...] = ()
    held: int = 0
    crs: str | None = None
    has_checksum: bool = False
    fill_value: Any = None
    can_list_chunks: bool = True
    HANDLE: ClassVar[str] = ""
    """Name of the attribute with the open file, which is opened again after pickling."""

    def __init__(self, store: str, array: str, name: str) -> None:
        self.store, self.array, self.name = store, array, name
        self.attributes: dict[str, Any] = {}

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @abstractmethod
    def __getitem__(self, region: Any) -> NDArray[Any]: ...

    def __getstate__(self) -> dict[str, Any]:
        return {key: None if key == self.HANDLE else value for key, value in self.__dict__.items()}

    def __repr__(self) -> str:
        return without_secrets(self.store) + (f":{self.array}" if self.array else "")

    def absent_chunks(self) -> Sequence[tuple[int, ...]]:
        """Return the indices of chunks that the store does not hold and that would be read as the fill value."""
        return []

    def fill(self) -> None:
        """Read missing chunks as the fill value from now on; nothing to do for a file without such chunks."""
        return

    def fingerprint(self) -> str | None:
        """Return a value that changes when the input is written; None where a server does not tell."""
        return file_fingerprint(self.store, self.name)

    def stored_bytes(self) -> int | None:
        """Return about how many bytes the store holds of the array, or the file in all; None where that is not known."""
        return None if is_remote(self.store) else os.path.getsize(self.store)

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Return the positions of the voxels, with these names of the dimensions; None if the file has none."""
        return None

    def coordinates(self, dims: Sequence[str]) -> Coordinates:
        """Return the one-dimensional coordinates in the file and their attributes, by these names of the dimensions."""
        return {}

    def labels(self, dims: Sequence[str], axis: int) -> tuple[Label, ...] | None:
        """Return what the file calls each index along an axis, such as the names of bands; None if it does not.

        dims: names of the dimensions, as in `coordinates`.
        """
        return None

    def class_table(self) -> dict[int, str] | None:
        """Return the names of the classes by code, as the file's attributes have them; None if they do not."""
        return class_table_in(self.attributes)

    def error(self, message: str) -> InputError:
        """Return the error to raise for this input."""
        return InputError(f"{self.name}: {message}")

    def damaged(self, kind: str, error: Exception) -> InputError:
        """Return the error to raise when a library cannot read the file: not of this kind, or damaged."""
        return self.error(f"{self} is not {kind}, or is damaged ({exception_text(error)}). Copy it again.")

    def check_unnamed(self) -> None:
        """Refuse the name of an array where a file holds one array without a name."""
        if self.array:
            raise self.error(f"{self.store} is one array; leave out `array: {self.array}`.")

    def check_local(self, format_name: str) -> None:
        """Refuse a URL for a format that is read from local files only."""
        if is_remote(self.store):
            raise self.error(f"{format_name} files are read from local disks only; copy {self.store} here.")

    def check_numbers(self, stored: np.dtype[Any], kinds: str = "biuf") -> None:
        """Refuse anything but real numbers of up to 64 bits."""
        if stored.kind not in kinds or stored.itemsize > 8 or stored.subdtype is not None:
            raise self.error(f"{self} holds {stored}; expected real numbers of at most 64 bits.")


class FileArray(StoredArray):
    """All numbers of one file, or the last of them: mapped in a local file, otherwise read whole once a process."""

    HANDLE = "_mapped"
    path: str
    """Local path or URL of the file with the numbers."""
    stored: np.dtype[Any]
    offset: int = 0
    stored_shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"
    read_whole: bool = False

    def open_file(self, path: str) -> None:
        """Remember size and time of the file with the numbers: it must not change until it is read."""
        self.path, self._stamp = path, file_stamp(path, self.name)
        self._mapped: NDArray[Any] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers as stored."""
        return math.prod(self.stored_shape) * self.stored.itemsize

    @property
    def file_size(self) -> int:
        """Bytes of a local file when it was opened."""
        return int(str(self._stamp[0]))

    def stored_bytes(self) -> int | None:
        return None if is_remote(self.path) else self.file_size

    def values(self) -> NDArray[Any]:
        """Return all numbers as stored, read-only; refuse a file that has changed since it was opened."""
        if not is_remote(self.path) and file_stamp(self.path, self.name) != self._stamp:
            raise self.error(f"{self.path} has changed since it was opened. Run again when it is complete.")
        if self.read_whole:
            raw = cached((self.store, self.array, *self._stamp), self._read)
            return np.ndarray(self.stored_shape, self.stored, raw, order=self.order)
        if not self.nbytes:
            return np.empty(self.stored_shape, self.stored)
        if self._mapped is None:
            layout = (self.offset, self.stored_shape, self.order)
            try:
                self._mapped = np.memmap(self.path, self.stored, "r", *layout)
            except (OSError, ValueError) as error:
                raise file_error(self.path, self.name, error) from None
        return self._mapped

    def _read(self) -> Bytes:
        raise NotImplementedError


def file_fingerprint(store: str, name: str) -> str | None:
    """Return a value that changes when the file is written; None for a remote one whose server does not tell."""
    if is_remote(store):
        return url_fingerprint(store)
    size, time, _ = file_stamp(store, name)
    return hashlib.sha256(json.dumps([size, time]).encode()).hexdigest()


def labels_in(values: NDArray[Any]) -> tuple[Label, ...] | None:
    """Return labels from an array of numbers or text, or of characters along a second axis; None of anything else."""
    if values.ndim == 2 and values.dtype == np.dtype("S1"):
        values = np.array([b"".join(row) for row in values.tolist()], "O")
    if values.ndim != 1 or values.dtype.kind not in "biufSUOT":
        return None
    labels = [v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in values.tolist()]
    return tuple(labels) if all(isinstance(label, str | int | float) for label in labels) else None


def class_table_in(attributes: Mapping[str, Any]) -> dict[int, str] | None:
    """Return the class table in an array's attributes: `classes` or `class_names`, or CF's flags; None without one.

    >>> class_table_in({"flag_values": [1, 2], "flag_meanings": "water forest"})
    {1: 'water', 2: 'forest'}
    >>> class_table_in({"classes": ["water", "forest"]})
    {0: 'water', 1: 'forest'}
    """
    names = attributes.get("classes", attributes.get("class_names"))
    if "flag_meanings" in attributes and "flag_values" in attributes:
        names = dict(
            zip(
                np.ravel(attributes["flag_values"]).tolist(),
                str(attributes["flag_meanings"]).split(),
                strict=False,
            )
        )
    pairs = names.items() if isinstance(names, Mapping) else enumerate(names) if isinstance(names, list | tuple) else ()
    try:
        return {int(code): str(name) for code, name in pairs} or None
    except (TypeError, ValueError):
        return None


def slabs(shape: Sequence[int], itemsize: int, axis: int = 0) -> tuple[int, ...]:
    """Return chunks of whole slices across an axis, the slowest in the file, of about 1 MiB."""
    if not shape:
        return ()
    sizes = [max(1, n) for n in shape]
    slice_bytes = max(1, itemsize * math.prod(shape[:axis]) * math.prod(shape[axis:][1:]))
    sizes[axis] = max(1, min(shape[axis], -(-MIN_CHUNK_BYTES // slice_bytes)))
    return tuple(sizes)
