"""Reading NIfTI-1 and NIfTI-2 volumes, `.nii` and `.nii.gz`.

nibabel reads the header. Voxels of a local `.nii` are mapped and read as needed; a `.nii.gz`, or a file behind a URL,
is read whole once a process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.file_cache import EXPANSION, Bytes, is_gzip, open_stream, read_to_end
from dask_uncert.io.geometry import Geometry, geometry_of
from dask_uncert.io.paths import is_remote
from dask_uncert.io.readers.stored_array import FileArray, slabs

HEADERS: dict[int, tuple[Any, bytes]] = {
    348: (nibabel.Nifti1Header, b"n+1"),
    540: (nibabel.Nifti2Header, b"n+2"),
}
"""Class and magic number of a single file, by the size of the header."""
EOL_CHECKS = ([13, 10, 26, 10], [0, 0, 0, 0])
"""Bytes by which NIfTI-2 detects copies as text; some programs write zeros."""
CIFTI = range(3000, 3100)  # intent codes of CIFTI-2, whose axes are not a grid of voxels
MILLIMETRES = {1: 1000.0, 3: 0.001}  # of a metre and a micron; without a unit, mm is meant
NAMES = ("x", "y", "z", "t")  # of the first axes of every file
FARTHEST = 1e9  # mm, a thousand kilometres: no voxel is there
SPATIAL = 3


@dataclass(frozen=True)
class Header:
    """What a header says about its voxels; affine: (3, 4), from index and 1 to mm, or None."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int
    slope: float
    inter: float
    affine: NDArray[np.float64] | None

    @property
    def nbytes(self) -> int:
        """Bytes of the voxels as stored."""
        return math.prod(self.shape) * self.dtype.itemsize


class NiftiArray(FileArray):
    """A NIfTI volume.

    Axes after the third with a single index are dropped unless `dims` names them; two `dims` also drop such a third.
    Voxels have the stored dtype, in this machine's byte order; `decoding` is the header's scaling.
    """

    order = "F"

    def __init__(self, store: str, array: str, name: str, dims: Sequence[str] | None = None) -> None:
        super().__init__(store, array, name)
        self.check_unnamed()
        self.open_file(store)
        self.header = header = read_header(store, name)
        self.stored_shape, self.stored, self.offset = header.shape, header.dtype, header.offset
        self.read_whole = is_gzip(store) or is_remote(store)
        self.has_checksum = is_gzip(store)
        self.held = self.nbytes if self.read_whole else 0
        self._kept = _kept_axes(header.shape, None if dims is None else len(dims))
        self.shape = tuple(header.shape[axis] for axis in self._kept)
        self.decoding = Decoding(header.slope, header.inter)
        self.dtype = header.dtype.newbyteorder("=")
        self.dims = tuple(NAMES[axis] for axis in self._kept) if max(self._kept) < len(NAMES) else None
        self._check_names(dims or ())
        self.chunks = slabs(self.shape, self.stored.itemsize, min(SPATIAL, self.ndim) - 1)  # stored by slice
        self.attributes = _attributes(header.affine)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        axes = tuple(slice(None) if axis in self._kept else 0 for axis in range(len(self.stored_shape)))
        return np.asarray(self.values()[axes][region], self.dtype)

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        spatial = {axis: dim for axis, dim in zip(self._kept, dims, strict=True) if axis < SPATIAL}
        if self.header.affine is None or not spatial:
            return None
        return geometry_of(self.header.affine[:, [*spatial, SPATIAL]], tuple(spatial.values()))

    def _read(self) -> Bytes:
        return read_to_end(self.store, self.name, self.offset, self.nbytes)

    def _check_names(self, dims: Sequence[str]) -> None:
        """Refuse x, y and z for an axis that is another of them in the file."""
        own = self.dims or ()
        if any(dim != axis and dim in NAMES[:SPATIAL] for dim, axis in zip(dims, own, strict=False)):
            raise self.error(
                f"dims {list(dims)} contradict {self.store}, whose axes are {', '.join(own)} in this order, as in every "
                f"NIfTI file."
            )


def _attributes(affine: NDArray[np.float64] | None) -> dict[str, Any]:
    """Return voxel spacing and the directions (R: right, A: anterior, S: superior) of the axes."""
    if affine is None:
        return {}
    codes = nibabel.aff2axcodes(np.vstack([affine, [0, 0, 0, 1]]))  # type: ignore[no-untyped-call]
    spacing = np.linalg.norm(affine[:, :SPATIAL], axis=0).tolist()
    return {"orientation": "".join(code or "?" for code in codes), "spacing_mm": spacing}


def _kept_axes(shape: tuple[int, ...], named: int | None) -> tuple[int, ...]:
    """Return the axes to keep: not those of a single index that `named` dimensions have no name for."""
    axes = list(range(len(shape)))
    spare = len(shape) if named is None else len(shape) - named
    first = SPATIAL if named is None else min(SPATIAL - 1, named)
    for axis in reversed(range(first, len(shape))):
        if spare > 0 and shape[axis] == 1:
            axes.remove(axis)
            spare -= 1
    return tuple(axes)


def read_header(store: str, name: str) -> Header:
    """Return the header, checked against the size of the file; raise InputError if it is wrong."""
    with open_stream(store, name) as file:
        start = file.read(max(HEADERS))
    if start[:2] == b"\x1f\x8b":
        raise InputError(f"{name}: {store} is compressed by gzip. Name it `.nii.gz`.")
    sizes = {"<": int.from_bytes(start[:4], "little"), ">": int.from_bytes(start[:4], "big")}
    order = next((order for order, size in sizes.items() if size in HEADERS), "")
    if not order or len(start) < sizes[order]:
        raise InputError(f"{name}: {store} does not begin with a header of NIfTI-1 or NIfTI-2.")
    kind, magic = HEADERS[sizes[order]]
    try:
        raw = kind(start[: sizes[order]], endianness=order, check=False)
        header = _parsed(raw)
        fault = _fault(raw, magic, header) or _size_fault(header, store)
    except Exception as error:  # nibabel raises many kinds
        raise InputError(f"{name}: the header of {store} is damaged ({exception_text(error)}).") from None
    if fault:
        raise InputError(f"{name}: {store} {fault}")
    return header


def _parsed(raw: Any) -> Header:
    slope, inter = raw.get_slope_inter()
    if slope is None:  # nothing is declared
        slope, inter = 1.0, 0.0
    affine = None
    if int(raw["sform_code"]) > 0:
        affine = raw.get_sform()
    elif int(raw["qform_code"]) > 0:
        affine = raw.get_qform()
    if affine is not None:
        affine = np.asarray(affine, np.float64)[:SPATIAL] * MILLIMETRES.get(int(raw["xyzt_units"]) & 7, 1.0)
    shape, offset = tuple(int(n) for n in raw.get_data_shape()), int(raw.get_data_offset())
    return Header(shape, raw.get_data_dtype(), offset, float(slope), float(inter), affine)


def _fault(raw: Any, magic: bytes, header: Header) -> str:
    """Return what is wrong with a header, whatever the file's size; "" for nothing."""
    mark = bytes(raw["magic"].item())
    if mark != magic:
        if mark.startswith((b"ni1", b"ni2")):
            return "is half of a pair (.hdr, .img); store it as one .nii."
        return f"has the magic number {mark!r}, which is not NIfTI's."
    if magic == b"n+2" and raw["eol_check"].tolist() not in EOL_CHECKS:
        return "was damaged when it was copied as text (its end-of-line check differs). Copy it as binary."
    if int(raw["intent_code"]) in CIFTI:
        return "is a CIFTI-2 file, whose axes are not a grid of voxels."
    if header.dtype.kind not in "iuf" or header.dtype.itemsize > 8:
        kind = f"colours ({', '.join(header.dtype.names)})" if header.dtype.names else str(header.dtype)
        return f"holds {kind}; expected real numbers of at most 64 bits. Convert it."
    if not 1 <= int(raw["dim"][0]) <= 7:
        return f"states {int(raw['dim'][0])} axes in its header; expected 1 to 7."
    if min(header.shape) < 0:
        return f"states the shape {header.shape} in its header."
    if header.offset < int(raw["sizeof_hdr"]) + 4:
        return f"states in its header that voxels begin at byte {header.offset}, which is inside the header."
    if header.affine is not None and not (np.abs(header.affine) < FARTHEST).all():
        return f"has an affine with a number that is not finite, or above {FARTHEST:g} mm."
    return ""


def _size_fault(header: Header, store: str) -> str:
    """Return how the header contradicts the file's size; "" if it does not, as far as that shows before reading."""
    if is_remote(store):
        return ""
    size, needed = os.path.getsize(store), header.offset + header.nbytes
    states = f"states {needed} bytes in its header, for shape {header.shape} of {header.dtype}"
    if is_gzip(store):
        return f"{states}: {size} compressed bytes cannot hold that." if needed > EXPANSION * size else ""
    if size < needed:
        return f"{states}, but ends after {size}. Copy it again."
    return f"{states}, but holds {size}: header and voxels do not belong together." if size > needed else ""
