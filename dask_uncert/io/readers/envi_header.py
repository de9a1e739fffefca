"""What the header of an ENVI raster says; the one place that knows spectral, which takes it apart."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spectral.io import envi

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.file_cache import refusal
from dask_uncert.io.geometry import canonical_crs

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
LONGEST_HEADER = 16 << 20  # bytes: those of spectrometers hold a number for every band
DEGREES = ("degrees", "degree", "geographic lat/lon")


def words_of(header: str, what: str) -> dict[str, Any]:
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


def layout_of(
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


def decoding_of(words: dict[str, Any], header: str, what: str) -> Decoding:
    """What stored numbers mean; InputError where that differs from band to band."""
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


def lies_of(
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
    crs = canonical_crs(str(text)) if text else _utm(list(map(str, said)))
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


def _utm(said: list[str]) -> str | None:
    """The code of a zone of UTM on WGS 84, as the map info names it; None for others."""
    words = [word.strip().lower() for word in said]
    if words[0] != "utm" or len(words) < 10 or not words[9].replace("-", "").startswith("wgs84"):
        return None
    if not words[7].isdigit() or not 1 <= int(words[7]) <= 60:
        return None
    return f"EPSG:{32600 + int(words[7]) + (100 if words[8] == 'south' else 0)}"
