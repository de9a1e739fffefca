"""The header of an ENVI raster; the only module that imports spectral, which parses it."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from spectral.io import envi

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.file_cache import file_error
from dask_uncert.io.geometry import Geometry, geometry_of
from dask_uncert.io.paths import check_not_special
from dask_uncert.io.quiet import quiet
from dask_uncert.io.reference_systems import canonical_crs

TYPES = {
    "1": "u1", "2": "i2", "3": "i4", "4": "f4", "5": "f8", "12": "u2", "13": "u4", "14": "i8", "15": "u8",
}  # fmt: skip
"""ENVI's data types of real numbers."""
ORDERS = {"bsq": ("band", "y", "x"), "bil": ("y", "band", "x"), "bip": ("y", "x", "band")}
"""Order of the axes in the file, by interleave."""
MAX_HEADER_BYTES = 16 << 20  # headers of spectrometers hold a number for every band
FACTOR = "reflectance scale factor"
"""The numbers of a file are divided by it."""
DEGREES = ("degrees", "degree", "geographic lat/lon")


class EnviHeader:
    """The fields of a header: keys in lower case, lists as lists of text. Every error names input and header."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        self.fields = self._read()

    def _read(self) -> dict[str, Any]:
        check_not_special(self.path, f"{self.name}: ")
        try:
            if os.path.getsize(self.path) > MAX_HEADER_BYTES:
                raise self._error("is too long for a header.")
            with open(self.path, encoding="utf-8", errors="replace") as file:
                if not file.readline().strip().startswith("ENVI"):
                    raise self._error("is not an ENVI header: its first line is not ENVI.")
            with quiet():  # about keys in capitals, which are converted
                fields: dict[str, Any] = envi.read_envi_header(self.path)
        except InputError:
            raise
        except OSError as error:
            raise file_error(self.path, self.name, error) from None
        except Exception as error:  # spectral's parser raises many kinds
            raise self._error(f"cannot be understood ({exception_text(error)}).") from None
        return {str(key).strip().lower(): value for key, value in fields.items()}

    def _error(self, message: str) -> InputError:
        return InputError(f"{self.name}: {self.path} {message}")

    def _text(self, key: str, default: str = "") -> str:
        return str(self.fields.get(key, default)).strip()

    def _integer(self, key: str, least: int, default: str = "") -> int:
        text = self._text(key, default)
        if not text.isascii() or not text.isdigit() or int(text) < least:
            states = f"states {key} = {text[:40]!r}" if text else f"does not state {key}"
            raise self._error(f"{states}; expected a whole number of at least {least}.")
        return int(text)

    def _floats(self, key: str) -> list[float]:
        if key not in self.fields:
            return []
        value = self.fields[key]
        try:
            return [float(str(number)) for number in (value if isinstance(value, list) else [value])]
        except ValueError:
            raise self._error(f"states {key} = {str(value)[:80]!r}; expected numbers.") from None

    def sizes(self) -> dict[str, int]:
        """Return the sizes of the axes y, x and band."""
        keys = {"y": "lines", "x": "samples", "band": "bands"}
        return {axis: self._integer(key, 1) for axis, key in keys.items()}

    def axes(self) -> tuple[str, ...]:
        """Return the axes in their order in the file."""
        interleave = self._text("interleave").lower()
        if interleave not in ORDERS:
            raise self._error(f"states interleave = {interleave[:40]!r}; expected bsq, bil or bip.")
        return ORDERS[interleave]

    def dtype(self) -> np.dtype[Any]:
        """Return the dtype of the numbers, with its byte order."""
        code = self._text("data type")
        if code not in TYPES:
            raise self._error(f"states data type = {code[:40]!r}; real numbers are {', '.join(TYPES)}.")
        order = self._integer("byte order", 0, "0" if code == "1" else "")
        if order > 1:
            raise self._error(f"states byte order = {order}; expected 0 (little) or 1 (big endian).")
        return np.dtype((">" if order else "<") + TYPES[code])

    def offset(self) -> int:
        """Return the byte at which the numbers begin; refuse compressed numbers and gaps between frames."""
        if self._text("file compression", "0") not in ("0", ""):
            raise self._error("states file compression; write the raster without.")
        for key in ("major frame offsets", "minor frame offsets"):
            if any(str(part).strip() not in ("0", "") for part in self.fields.get(key, ())):
                raise self._error(f"states {key}, which are not supported; write the raster without.")
        return self._integer("header offset", 0, "0")

    def decoding(self) -> Decoding:
        """Return how stored numbers become values; refuse gains or offsets that differ between bands."""
        gain, offset = self._common("data gain values", 1.0), self._common("data offset values", 0.0)
        factor = self._common(FACTOR, 1.0)
        if not (factor > 0 and math.isfinite(factor)):
            raise self._error(f"states {FACTOR} = {factor:g}; expected a number above 0.")
        if factor != 1 and (gain, offset) != (1.0, 0.0):
            raise self._error(f"states {FACTOR} beside data gain or offset values; write the raster with one of them.")
        return Decoding(gain / factor, offset, tuple(self._floats("data ignore value")))

    def bad_bands(self) -> tuple[int, ...]:
        """Return the indices of the bands that are marked as bad."""
        good = self._floats("bbl")
        if good and len(good) != self.sizes()["band"]:
            raise self._error(f"states bbl of {len(good)} bands, but has {self.sizes()['band']}.")
        if any(value not in (0, 1) for value in good):
            raise self._error("states a bbl with other numbers than 0 (bad) and 1 (good).")
        return tuple(band for band, value in enumerate(good) if value == 0)

    def _common(self, key: str, default: float) -> float:
        values = set(self._floats(key)) or {default}
        if len(values) > 1:
            raise self._error(f"states several {key}: bands differ. Write them with one, or unpacked.")
        return values.pop()

    def geometry(self) -> Geometry | None:
        """Return the positions of pixel centres by line y and sample x; None if there is no map information."""
        info = self.fields.get("map info")
        if not isinstance(info, list) or len(info) < 7:
            return None
        info = [str(part).strip() for part in info]
        options = dict(part.split("=", 1) for part in info[7:] if "=" in part)
        options = {key.strip().lower(): value.strip().lower() for key, value in options.items()}
        try:
            pixel_x, pixel_y, east, north, width, height = map(float, info[1:7])
            rotation = math.radians(float(options.get("rotation", 0)))
        except ValueError:
            raise self._error(f"states a map info that cannot be understood: {info[:7]}.") from None
        if info[0].lower() == "arbitrary":
            return None
        system = self.fields.get("coordinate system string")
        text = ",".join(system) if isinstance(system, list) else system
        unit = options.get("units", "meters")
        degrees = unit in DEGREES or info[0].lower() in DEGREES
        cos, sin = math.cos(rotation), math.sin(rotation)
        affine = np.zeros((3, 3))
        affine[:2, 0] = -height * sin, -height * cos  # one line further down, rotated counterclockwise
        affine[:2, 1] = width * cos, -width * sin
        # ENVI's pixel 1.0 is the outer corner of the first pixel; its centre is 1.5.
        affine[:2, 2] = (east, north) - affine[:2, 0] * (pixel_y - 1.5) - affine[:2, 1] * (pixel_x - 1.5)
        crs = canonical_crs(str(text)) if text else _utm([part.lower() for part in info])
        unit = "degree" if degrees else "m" if unit == "meters" else unit
        return geometry_of(affine, ("y", "x"), crs, unit)


def _utm(info: list[str]) -> str | None:
    """Return the code of a UTM zone on WGS 84 that the map info names; None for other systems."""
    if info[0] != "utm" or len(info) < 10 or not info[9].replace("-", "").startswith("wgs84"):
        return None
    if not info[7].isdigit() or not 1 <= int(info[7]) <= 60:
        return None
    return f"EPSG:{32600 + int(info[7]) + (100 if info[8] == 'south' else 0)}"
