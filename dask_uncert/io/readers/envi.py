"""Reading ENVI rasters: a header and a file of numbers.

Numbers are mapped, whatever their interleave, byte order and offset, and returned as line, sample and band.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.file_cache import file_name, file_stamp
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.readers.envi_header import EnviHeader
from dask_uncert.io.readers.stored_array import FileArray, Label, file_fingerprint, slabs

DIMS = ("y", "x", "band")
DATA_ENDINGS = ("", ".img", ".dat", ".bil", ".bip", ".bsq", ".raw", ".bin")
ATTRIBUTES = (
    "description", "wavelength", "wavelength units", "fwhm", "band names", "class names", "bbl",
)  # fmt: skip


class EnviArray(FileArray):
    """An ENVI raster, given by its header or its file of numbers.

    Dimensions are y (lines), x (samples) and band; a single band has no band dimension unless `dims` names three.
    Numbers are as stored; `decoding` has `data ignore value`, `reflectance scale factor`, and `data gain values` and
    `data offset values` if they are the same for all bands. `bad_bands` are those that `bbl` marks with 0.
    """

    def __init__(self, store: str, array: str, name: str, dims: Sequence[str] | None = None) -> None:
        super().__init__(store, array, name)
        self.check_unnamed()
        self.check_local("ENVI")
        self.header, path = _header_and_data(store, name)
        header = EnviHeader(self.header, name)
        sizes, self.stored, self.offset = header.sizes(), header.dtype(), header.offset()
        self._axes = header.axes()
        self.stored_shape = tuple(sizes[axis] for axis in self._axes)
        self._drop_band = sizes["band"] == 1 and (dims is None or len(dims) == 2)
        self.dims = DIMS[:2] if self._drop_band else DIMS
        self.shape = tuple(sizes[axis] for axis in self.dims)
        self.dtype = self.stored.newbyteorder("=")
        self.open_file(path)
        needed = self.offset + self.nbytes
        if self.file_size != needed:
            raise self.error(
                f"{self.header} states {needed} bytes ({sizes['y']} lines, {sizes['x']} samples, {sizes['band']} bands "
                f"of {self.stored.name}, offset {self.offset}), but {path} holds {self.file_size}. The two files do "
                f"not belong together, or one was not copied completely."
            )
        self.chunks = slabs([sizes[axis] for axis in DIMS], self.stored.itemsize)[: self.ndim]
        self.decoding, self.bad_bands = header.decoding(), header.bad_bands()
        self._geometry = header.geometry()
        fields = header.fields
        self.attributes = {key.replace(" ", "_"): fields[key] for key in ATTRIBUTES if key in fields}

    def __getitem__(self, region: Any) -> NDArray[Any]:
        values = np.transpose(self.values(), [self._axes.index(axis) for axis in DIMS])
        return np.asarray((values[..., 0] if self._drop_band else values)[region], self.dtype)

    def fingerprint(self) -> str | None:
        return f"{file_fingerprint(self.header, self.name)}{file_fingerprint(self.path, self.name)}"

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        return None if self._geometry is None else replace(self._geometry, dims=tuple(dims[:2]))

    def labels(self, dims: Sequence[str], axis: int) -> tuple[Label, ...] | None:
        """Return the names of the bands."""
        names = self.attributes.get("band_names")
        if axis != DIMS.index("band") or not isinstance(names, list) or len(names) != self.shape[axis]:
            return None
        return tuple(map(str, names))


def _header_and_data(store: str, name: str) -> tuple[str, str]:
    """Return the paths of the header and the data file; `store` is one of them."""
    file_stamp(store, name)
    if file_name(store).endswith(".hdr"):
        stem = store[: -len(".hdr")]
        paths = dict.fromkeys(stem + case for end in DATA_ENDINGS for case in (end, end.upper()))
        kind = "data file"
    else:
        stem = os.path.splitext(store)[0]
        paths = dict.fromkeys((store + ".hdr", stem + ".hdr", store + ".HDR", stem + ".HDR"))
        kind = "header"
    others = [path for path in paths if os.path.isfile(path)]
    if len(others) > 1:
        raise InputError(
            f"{name}: several files may be the {kind} of {store}: {', '.join(Path(path).name for path in others)}. "
            f"Name the data file as `store`, with one header next to it."
        )
    if not others:
        raise InputError(f"{name}: there is no {kind} next to {store}.")
    return (store, others[0]) if kind == "data file" else (others[0], store)
