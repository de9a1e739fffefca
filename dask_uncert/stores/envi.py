"""Reading ENVI rasters, a header and a file of numbers; the one place that knows spectral, which reads the header.

Numbers are mapped, whatever their interleave, byte order and offset, and given as line, sample and band.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spectral.io import envi

from dask_uncert.decoding import Decoding, Role
from dask_uncert.errors import InputError
from dask_uncert.orientation import Geometry, canonical_crs, geometry_of
from dask_uncert.stores.regions import SLAB, file_fingerprint, one_array
from dask_uncert.stores.whole_files import file_name, is_remote, refusal, stamp_of

TYPES = {
    "1": "u1",
    "2": "i2",
    "3": "i4",
    "4": "f4",
    "5": "f8",
    "12": "u2",
    "13": "u4",
    "14": "i8",
    "15": "u8",
}
"""ENVI's data types of real numbers."""
ORDERS = {"bsq": ("band", "y", "x"), "bil": ("y", "band", "x"), "bip": ("y", "x", "band")}
"""By interleave, the axes as they lie in the file."""
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
LONGEST_HEADER = 16 << 20  # bytes: those of spectrometers hold a number for every band
KEPT = (
    "description",
    "wavelength",
    "wavelength units",
    "fwhm",
    "band names",
    "class names",
    "reflectance scale factor",
)
DEGREES = ("degrees", "degree", "geographic lat/lon")


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
        words = _words(self.header, what)
        order, sizes, stored, offset = _layout(words, self.header, what)
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
        self.decoding = _decoding(words, self.header, what)
        self._affine, self._crs, self._unit = _lies(words, self.header, what)
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


def _words(header: str, what: str) -> dict[str, Any]:
    """The header's fields; keys in lower case, lists as lists of text."""
    try:
        if os.path.getsize(header) > LONGEST_HEADER:
            raise InputError(f"{what}: {header} is too long for a header.")
        with open(header, encoding="utf-8", errors="replace") as file:
            if not file.readline().strip().startswith("ENVI"):
                raise InputError(f"{what}: {header} is no header of ENVI: its first line is not ENVI.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on keys in capitals, which are lowered
            found: dict[str, Any] = envi.read_envi_header(header)
    except InputError:
        raise
    except OSError as error:
        raise refusal(header, what, error) from None
    except Exception as error:  # of spectral's parser, several kinds
        text = " ".join(str(error).split())[:200]
        raise InputError(f"{what}: the header {header} cannot be understood ({text}).") from None
    return {str(key).strip().lower(): value for key, value in found.items()}


def _layout(
    words: dict[str, Any], header: str, what: str
) -> tuple[tuple[str, ...], dict[str, int], np.dtype[Any], int]:
    """Axes as they lie in the file, their sizes, the dtype with its byte order, where numbers begin."""

    def whole(key: str, least: int, default: int | None = None) -> int:
        text = str(words.get(key, "" if default is None else default)).strip()
        if not text.isascii() or not text.isdigit() or int(text) < least:
            said = f"states {key} = {text[:40]!r}" if text else f"does not state {key}"
            raise InputError(f"{what}: {header} {said}; expected a whole number of at least {least}.")
        return int(text)

    sizes = {"y": whole("lines", 1), "x": whole("samples", 1), "band": whole("bands", 1)}
    interleave = str(words.get("interleave", "")).strip().lower()
    if interleave not in ORDERS:
        raise InputError(
            f"{what}: {header} states interleave = {interleave[:40]!r}; expected bsq, bil or bip."
        )
    kind = str(words.get("data type", "")).strip()
    if kind not in TYPES:
        raise InputError(
            f"{what}: {header} states data type = {kind[:40]!r}; real numbers are {', '.join(TYPES)}."
        )
    big = whole("byte order", 0, 0 if kind == "1" else None)
    if big > 1:
        raise InputError(
            f"{what}: {header} states byte order = {big}; expected 0 (little) or 1 (big endian)."
        )
    if str(words.get("file compression", "0")).strip() not in ("0", ""):
        raise InputError(f"{what}: {header} states file compression; write the raster without.")
    frames = [key for key in ("major frame offsets", "minor frame offsets") if key in words]
    if any(str(part).strip() not in ("0", "") for key in frames for part in words[key]):
        raise InputError(
            f"{what}: {header} states {frames[0]}, which are not read; write the raster without."
        )
    dtype = np.dtype((">" if big else "<") + TYPES[kind])
    return ORDERS[interleave], sizes, dtype, whole("header offset", 0, 0)


def _chunks(order: Sequence[str], sizes: dict[str, int], itemsize: int) -> tuple[int, ...]:
    """Chunks of about 1 MiB of lines, all bands of each together: what a block of pixels reads."""
    line = max(1, sizes["x"] * sizes["band"] * itemsize)
    return max(1, min(sizes["y"], -(-SLAB // line))), sizes["x"], sizes["band"]


def _numbers(words: dict[str, Any], key: str, header: str, what: str) -> list[float]:
    """The numbers of a field, [] where it is not there."""
    if key not in words:
        return []
    given = words[key] if isinstance(words[key], list) else [words[key]]
    try:
        return [float(str(one)) for one in given]
    except ValueError:
        raise InputError(
            f"{what}: {header} states {key} = {str(words[key])[:80]!r}; expected numbers."
        ) from None


def _decoding(words: dict[str, Any], header: str, what: str) -> Decoding:
    found = {}
    for key, plain in (("data gain values", 1.0), ("data offset values", 0.0)):
        values = set(_numbers(words, key, header, what)) or {plain}
        if len(values) > 1:
            raise InputError(
                f"{what}: the bands of {header} have several {key}. Write them with one, or unpacked."
            )
        found[key] = values.pop()
    missing = _numbers(words, "data ignore value", header, what)
    return Decoding(found["data gain values"], found["data offset values"], tuple(missing))


def _lies(
    words: dict[str, Any], header: str, what: str
) -> tuple[NDArray[np.float64] | None, str | None, str]:
    """Line, sample and origin of pixel centres (3, 3) with rows x, y, z; the reference system; its unit."""
    said = words.get("map info")
    if not isinstance(said, list) or len(said) < 7:
        return None, None, "1"
    try:
        at_x, at_y, east, north, wide, high = (float(str(one)) for one in said[1:7])
        rest = dict(part.split("=", 1) for part in map(str, said[7:]) if "=" in part)
        turned = math.radians(
            float({key.strip().lower(): value for key, value in rest.items()}.get("rotation", 0))
        )
    except ValueError:
        raise InputError(
            f"{what}: {header} states a map info that cannot be understood: {said[:7]}."
        ) from None
    system = words.get("coordinate system string")
    text = ",".join(system) if isinstance(system, list) else system
    crs = None if not text else canonical_crs(str(text))
    unit = {key.strip().lower(): value.strip().lower() for key, value in rest.items()}.get("units", "meters")
    if str(said[0]).strip().lower() == "arbitrary":
        return None, None, "1"
    degrees = unit in DEGREES or str(said[0]).strip().lower() in DEGREES
    cos, sin = math.cos(turned), math.sin(turned)
    affine = np.zeros((3, 3))
    affine[:2, 0] = -high * sin, -high * cos  # a line further down, turned against the clock
    affine[:2, 1] = wide * cos, -wide * sin
    # Pixel 1.0 of ENVI is the outer corner of the first one; its centre is 1.5.
    affine[:2, 2] = (east, north) - affine[:2, 0] * (at_y - 1.5) - affine[:2, 1] * (at_x - 1.5)
    return affine, crs, "degree" if degrees else {"meters": "m"}.get(unit, unit)
