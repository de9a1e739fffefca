"""Reading ENVI rasters, a header and a file of numbers.

Numbers are mapped, whatever their interleave, byte order and offset, and given as line, sample and band.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Role
from dask_uncert.io.file_cache import file_name, refusal, stamp_of
from dask_uncert.io.geometry import Geometry, geometry_of
from dask_uncert.io.indexing import SLAB, file_fingerprint, one_array
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.envi_header import decoding_of, layout_of, lies_of, words_of

LOGICAL = ("y", "x", "band")
DATA = (
    "",
    ".img",
    ".dat",
    ".bil",
    ".bip",
    ".bsq",
    ".raw",
    ".bin",
)  # endings of a file of numbers beside x.hdr
KEPT = (
    "description",
    "wavelength",
    "wavelength units",
    "fwhm",
    "band names",
    "class names",
    "reflectance scale factor",
)


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> StoredEnvi:
    """A raster by the address of its header or of its numbers; see `StoredEnvi`."""
    one_array(store, array, what)
    return StoredEnvi(store, what, dims)


class StoredEnvi:
    """An ENVI raster, mapped in whichever process slices it; it pickles as its address.

    Dimensions are y (lines), x (samples) and band; a single band has none, unless `dims` names three. Numbers are as
    stored; `data ignore value`, and `data gain values` and `data offset values` where all bands have the same, are in
    `decoding`. A `reflectance scale factor` is only told, in `attributes`.
    """

    def __init__(self, store: str, what: str, dims: Sequence[str] | None = None) -> None:
        """what: the input's name, for messages. Raises InputError for a raster that cannot be used."""
        self.store, self.array, self.what = store, "", what
        if is_remote(store):
            raise InputError(
                f"{what}: ENVI rasters are read from local disks only; copy {store} here, or convert it."
            )
        self.header, self.data = _pair(store, what)
        words = words_of(self.header, what)
        order, sizes, stored, offset = layout_of(words, self.header, what)
        self._order, self._stored, self._offset = order, stored, offset
        self._sizes = tuple(sizes[axis] for axis in order)
        self._flat = sizes["band"] == 1 and (dims is None or len(dims) == 2)
        self.dims: tuple[str, ...] = LOGICAL[:2] if self._flat else LOGICAL
        self.shape: tuple[int, ...] = tuple(sizes[axis] for axis in self.dims)
        self.ndim, self.dtype, self.held = len(self.shape), stored.newbyteorder("="), 0
        self._stamp = stamp_of(self.data, what)
        size, needed = int(str(self._stamp[0])), offset + math.prod(self._sizes) * stored.itemsize
        if size != needed:
            raise InputError(
                f"{what}: {self.header} states {needed} bytes ({sizes['y']} lines, {sizes['x']} samples, {sizes['band']} "
                f"bands of {stored.name}, offset {offset}), but {self.data} holds {size}. One of the two is not the "
                f"other's, or was not copied whole."
            )
        self.chunks = _chunks(order, sizes, stored.itemsize)[: self.ndim]
        self.decoding = decoding_of(words, self.header, what)
        self._affine, self._crs, self._unit = lies_of(words, self.header, what)
        self.attributes: dict[str, Any] = {key.replace(" ", "_"): words[key] for key in KEPT if key in words}
        self._mapped: NDArray[Any] | None = None

    def __getitem__(self, region: Any) -> NDArray[Any]:
        whole = np.transpose(self._map(), [self._order.index(axis) for axis in LOGICAL])
        return np.asarray((whole[..., 0] if self._flat else whole)[region], self.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mapped": None}

    def __repr__(self) -> str:
        return self.store

    def absent_chunks(self) -> tuple[tuple[int, ...], ...]:
        """None: a file is whole or refused."""
        return ()

    def fingerprint(self) -> str | None:
        """Changes whenever header or numbers are written."""
        return f"{file_fingerprint(self.header, self.what)}{file_fingerprint(self.data, self.what)}"

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where pixel centres lie, under the names the dimensions go by; None where the header does not say."""
        if self._affine is None:
            return None
        return geometry_of(self._affine, tuple(dims[:2]), self._crs, self._unit)

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside it; its map information says where it lies."""
        return {}

    def _map(self) -> NDArray[Any]:
        if self._mapped is None:
            if stamp_of(self.data, self.what) != self._stamp:
                raise InputError(
                    f"{self.what}: {self.data} has changed since it was opened. Run again when it is whole."
                )
            try:
                self._mapped = np.memmap(self.data, self._stored, "r", self._offset, self._sizes)
            except (OSError, ValueError) as error:
                raise refusal(self.data, self.what, error) from None
        return self._mapped


def _pair(store: str, what: str) -> tuple[str, str]:
    """Header and numbers, from the name of either."""
    stamp_of(store, what)
    if file_name(store).endswith(".hdr"):
        stem = store[: -len(".hdr")]
        found = [stem + end for end in DATA if os.path.isfile(stem + end)]
        found += [stem + end.upper() for end in DATA[1:] if os.path.isfile(stem + end.upper())]
        kind, header = "numbers", [store]
    else:
        stem = os.path.splitext(store)[0]
        found = [store]
        names = dict.fromkeys((store + ".hdr", stem + ".hdr", store + ".HDR", stem + ".HDR"))
        kind, header = "header", [name for name in names if os.path.isfile(name)]
    if len(found) == len(header) == 1:
        return header[0], found[0]
    several = found if len(found) > 1 else header if len(header) > 1 else []
    if several:
        raise InputError(
            f"{what}: several files may be the {kind} of {store}: {', '.join(Path(one).name for one in several)}. Name "
            f"the file of numbers as `store`, with one header beside it."
        )
    raise InputError(f"{what}: there is no file of {kind} beside {store}.")


def _chunks(order: Sequence[str], sizes: dict[str, int], itemsize: int) -> tuple[int, ...]:
    """Chunks of about 1 MiB of lines, all bands of each together: what a block of pixels reads."""
    line = max(1, sizes["x"] * sizes["band"] * itemsize)
    return max(1, min(sizes["y"], -(-SLAB // line))), sizes["x"], sizes["band"]
