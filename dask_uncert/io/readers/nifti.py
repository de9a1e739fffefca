"""Reading NIfTI-1 and NIfTI-2 volumes, `.nii` and `.nii.gz`; the one place that knows nibabel.

nibabel reads the header. Voxels of a local `.nii` are mapped, and only what is asked for is read; a `.nii.gz`, or
a file behind a URL, is read whole once a process (`whole_files.py`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import nibabel
import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding, Role
from dask_uncert.io.file_cache import (
    EXPANSION,
    as_volume,
    is_gzip,
    kept,
    read_whole,
    refusal,
    stamp_of,
    stream,
)
from dask_uncert.io.geometry import Geometry, geometry_of
from dask_uncert.io.paths import is_remote, url_fingerprint

HEADERS: dict[int, tuple[Any, bytes]] = {
    348: (nibabel.Nifti1Header, b"n+1"),
    540: (nibabel.Nifti2Header, b"n+2"),
}
"""By the size a header states of itself: its class, and what marks a single file."""
EOL_CHECKS = (
    [13, 10, 26, 10],
    [0, 0, 0, 0],
)  # NIfTI-2 has these bytes to show a copy as text; some write none
CIFTI = range(3000, 3100)  # intent codes of CIFTI-2, whose axes are no grid of voxels
MILLIMETRES = {1: 1000.0, 3: 0.001}  # of a metre, of a micron; a header without a unit means mm
NAMES = ("x", "y", "z", "t")  # of a file's first axes, in their order
FARTHEST = 1e9  # mm, a thousand kilometres: no voxel lies there
SPATIAL = 3
SLAB = 1 << 20  # bytes of a chunk at least, where there are so many: a small volume is one


@dataclass(frozen=True)
class Header:
    """What a header says of its voxels; affine: (3, 4), index and 1 to mm, or None."""

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


def opened(store: str, array: str, what: str, dims: Sequence[str] | None, role: Role) -> StoredNifti:
    """A volume by its address; see `StoredNifti`."""
    if array:
        raise InputError(f"{what}: {store} is one array; leave out `array: {array}`.")
    return StoredNifti(store, what, dims)


class StoredNifti:
    """One NIfTI volume, opened lazily in whichever process slices it; it pickles as its address.

    Axes after the third that hold one index are dropped, unless `dims` names them; `dims` of two drop such a third.
    Voxels have the stored dtype, in this machine's byte order; `decoding` is the header's scaling.
    """

    def __init__(self, store: str, what: str, dims: Sequence[str] | None = None) -> None:
        """what: the input's name, for messages. Raises InputError for a file that cannot be used."""
        self.store, self.what = store, what
        self._stamp = stamp_of(store, what)
        self.header = header = read_header(store, what)
        self.array = ""
        self._kept = _kept_axes(header.shape, None if dims is None else len(dims))
        self.shape = tuple(header.shape[axis] for axis in self._kept)
        self.ndim = len(self.shape)
        self.decoding = Decoding(header.slope, header.inter)
        self.dtype = header.dtype.newbyteorder("=")
        self.dims = tuple(NAMES[axis] for axis in self._kept) if max(self._kept) < len(NAMES) else None
        _check_names(dims or (), self.dims or (), f"{what}: dims {list(dims or ())} contradict {store}")
        self.chunks = _slabs(self.shape, header.dtype.itemsize)
        self.held = header.nbytes if self._is_whole else 0
        self._mapped: NDArray[Any] | None = None

    @property
    def _is_whole(self) -> bool:
        return is_gzip(self.store) or is_remote(self.store)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        axes = tuple(slice(None) if axis in self._kept else 0 for axis in range(len(self.header.shape)))
        return np.asarray(self._voxels()[axes][region], self.dtype)

    def absent_chunks(self) -> tuple[tuple[int, ...], ...]:
        """None: a file is whole or refused."""
        return ()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mapped": None}

    def __repr__(self) -> str:
        return self.store

    def fingerprint(self) -> str | None:
        """Changes whenever a local file is written; None for remote ones."""
        if is_remote(self.store):
            return url_fingerprint(self.store)
        size, time, _ = stamp_of(self.store, self.what)
        return hashlib.sha256(json.dumps([size, time]).encode()).hexdigest()

    @property
    def attributes(self) -> dict[str, Any]:
        """What the affine says in words: voxel spacing, and to where (R: right, A: front, S: up) axes run."""
        affine = self.header.affine
        if affine is None:
            return {}
        axis_codes: Any = nibabel.aff2axcodes
        codes = axis_codes(np.vstack([affine, [0, 0, 0, 1]]))
        spacing = np.linalg.norm(affine[:, :SPATIAL], axis=0).tolist()
        return {"orientation": "".join(code or "?" for code in codes), "spacing_mm": spacing}

    def geometry(self, dims: Sequence[str]) -> Geometry | None:
        """Where the voxels lie, under the names the dimensions go by; None where the header does not say."""
        spatial = {axis: d for axis, d in zip(self._kept, dims, strict=True) if axis < SPATIAL}
        if self.header.affine is None or not spatial:
            return None
        return geometry_of(self.header.affine[:, [*spatial, SPATIAL]], tuple(spatial.values()))

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside the volume; its affine says where it lies."""
        return {}

    def _voxels(self) -> NDArray[Any]:
        """The volume as stored, with all its axes; not to be written to."""
        store, header = self.store, self.header
        if not is_remote(store) and stamp_of(store, self.what) != self._stamp:
            raise InputError(
                f"{self.what}: {store} has changed since it was opened. Run again when it is whole."
            )
        if self._is_whole:
            key = (store, *self._stamp)
            raw = kept(key, lambda: read_whole(store, self.what, header.offset, header.nbytes))
            return as_volume(raw, header.dtype, header.shape)
        if self._mapped is None:
            try:
                self._mapped = np.memmap(store, header.dtype, "r", header.offset, header.shape, "F")
            except (OSError, ValueError) as error:
                raise refusal(store, self.what, error) from None
        return self._mapped


def _check_names(declared: Sequence[str], found: Sequence[str], trouble: str) -> None:
    """Refuse x, y and z by name at places where the file has another of them."""
    for one, own in zip(declared, found, strict=False):
        if one != own and one in NAMES[:SPATIAL]:
            raise InputError(
                f"{trouble}, whose axes are {', '.join(found)} in this order, as in every NIfTI file."
            )


def _kept_axes(shape: tuple[int, ...], named: int | None) -> tuple[int, ...]:
    """The axes that are left: without those of one index that `named` dimensions leave no name for."""
    axes = list(range(len(shape)))
    spare = len(shape) if named is None else len(shape) - named
    first = SPATIAL if named is None else min(SPATIAL - 1, named)
    for axis in reversed(range(first, len(shape))):
        if spare > 0 and shape[axis] == 1:
            axes.remove(axis)
            spare -= 1
    return tuple(axes)


def _slabs(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Chunks of whole slices along the last spatial axis: voxels lie slice by slice."""
    if not shape:
        return ()
    last = min(SPATIAL, len(shape)) - 1
    slice_bytes = max(1, itemsize * math.prod(shape[:last]) * math.prod(shape[last + 1 :]))
    return tuple(
        max(1, min(n, -(-SLAB // slice_bytes)) if axis == last else n) for axis, n in enumerate(shape)
    )


def read_header(store: str, what: str) -> Header:
    """What the file's header says, checked against its size; InputError saying what is wrong with it."""
    with stream(store, what) as file:
        start = file.read(max(HEADERS))
    if start[:2] == b"\x1f\x8b":
        raise InputError(f"{what}: {store} is compressed by gzip. Name it `.nii.gz`.")
    sizes = {"<": int.from_bytes(start[:4], "little"), ">": int.from_bytes(start[:4], "big")}
    order = next((order for order, size in sizes.items() if size in HEADERS), "")
    if not order or len(start) < sizes[order]:
        raise InputError(f"{what}: {store} does not begin with a header of NIfTI-1 or NIfTI-2.")
    kind, magic = HEADERS[sizes[order]]
    try:
        found = kind(start[: sizes[order]], endianness=order, check=False)
        header = _said(found, MILLIMETRES.get(int(found["xyzt_units"]) & 7, 1.0))
        wrong = _wrong(found, magic, header) or _wrong_size(header, store)
    except Exception as error:  # of nibabel, many kinds
        raise InputError(
            f"{what}: the header of {store} is damaged ({' '.join(str(error).split())[:200]})."
        ) from None
    if wrong:
        raise InputError(f"{what}: {store} {wrong}")
    return header


def _said(found: Any, millimetres: float) -> Header:
    slope, inter = found.get_slope_inter()  # None where nothing is declared
    affine = None
    if int(found["sform_code"]) > 0:
        affine = found.get_sform()
    elif int(found["qform_code"]) > 0:
        affine = found.get_qform()
    return Header(
        tuple(int(n) for n in found.get_data_shape()),
        found.get_data_dtype(),
        int(found.get_data_offset()),
        1.0 if slope is None else float(slope),
        0.0 if slope is None else float(inter),
        None if affine is None else np.asarray(affine, np.float64)[:SPATIAL] * millimetres,
    )


def _wrong(found: Any, magic: bytes, header: Header) -> str:
    """What is wrong with a header in itself, "" for nothing."""
    if bytes(found["magic"].item()) != magic:
        mark = bytes(found["magic"].item())
        pair = mark.startswith((b"ni1", b"ni2"))
        return (
            "is half a pair (.hdr, .img); store it as one .nii."
            if pair
            else f"has the mark {mark!r}, not NIfTI's."
        )
    if magic == b"n+2" and found["eol_check"].tolist() not in EOL_CHECKS:
        return (
            "was damaged when it was copied as text (its end-of-line check differs). Copy it again as it is."
        )
    if int(found["intent_code"]) in CIFTI:
        return "is a CIFTI-2 file, whose axes are no grid of voxels."
    if header.dtype.kind not in "iuf" or header.dtype.itemsize > 8:
        held = f"colours ({', '.join(header.dtype.names)})" if header.dtype.names else str(header.dtype)
        return f"holds {held}; expected real numbers of at most 64 bits. Convert it."
    if not 1 <= int(found["dim"][0]) <= 7:
        return f"states {int(found['dim'][0])} axes in its header; expected 1 to 7."
    if min(header.shape) < 0:
        return f"states the shape {header.shape} in its header."
    if header.offset < int(found["sizeof_hdr"]) + 4:
        return f"states in its header that voxels begin at byte {header.offset}, which is inside of it."
    if header.affine is not None and not (np.abs(header.affine) < FARTHEST).all():
        return f"has an affine with a number that is not finite, or above {FARTHEST:g} mm."
    return ""


def _wrong_size(header: Header, store: str) -> str:
    """What is wrong with a header beside its file, "" for nothing that shows without reading it whole."""
    if is_remote(store):
        return ""
    size, needed = os.path.getsize(store), header.offset + header.nbytes
    states = f"states {needed} bytes in its header, for shape {header.shape} of {header.dtype}"
    if is_gzip(store):
        return f"{states}: {size} compressed bytes cannot hold so many." if needed > EXPANSION * size else ""
    if size < needed:
        return f"{states}, but ends after {size}. Copy it again from where it is whole."
    return f"{states}, but holds {size}: the header is not that of these voxels." if size > needed else ""
