"""What attributes say of an array: packing and missing codes by NetCDF and CF, its place as our own maps state it."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.geometry import Geometry, geometry_in

MISSING = ("_FillValue", "missing_value")


UNSIGNED = "_Unsigned"


def meant(stored: np.dtype[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
    """The dtype that signed storage is of, where the attribute _Unsigned says so."""
    unsigned = str(attributes.get(UNSIGNED, "")).lower() == "true" and stored.kind == "i"
    return np.dtype(f"u{stored.itemsize}") if unsigned else stored


def decoding_in(attributes: Mapping[str, Any], dtype: np.dtype[Any], where: str) -> Decoding:
    """The Decoding that the attributes scale_factor, add_offset, _FillValue and missing_value state.

    dtype: of the stored numbers. where: for messages. Raises InputError for attributes that are no numbers.
    """
    found = {}
    for key, plain in (("scale_factor", 1.0), ("add_offset", 0.0)):
        (found[key],) = _numbers(attributes.get(key, plain), dtype, f"{where}: its attribute {key}") or (
            plain,
        )
    if found["scale_factor"] == 0 or not np.isfinite(list(found.values())).all():
        raise InputError(f"{where}: its attributes state a scale_factor of {found['scale_factor']:g}.")
    missing: dict[float, None] = {}
    for key in MISSING:
        if attributes.get(key) is not None:
            codes = _numbers(attributes[key], dtype, f"{where}: its attribute {key}")
            missing.update(dict.fromkeys(codes))
    return Decoding(found["scale_factor"], found["add_offset"], tuple(missing))


def place_in(attributes: Mapping[str, Any], dims: Sequence[str], what: str, where: str) -> Geometry | None:
    """Where voxels lie, by the attributes that our own maps have; None where there are none.

    what, where: for messages. Raises InputError for an affine that is none.
    """
    try:
        return geometry_in(attributes, dims)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what}: the attribute `affine` of {where} cannot be used: {error}.") from None


def _numbers(value: Any, dtype: np.dtype[Any], where: str) -> tuple[float, ...]:
    """The numbers of an attribute; a text may be one, or what xarray makes of a float, its bytes in base 64."""
    try:
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str):
            return (_from_text(value, dtype),)
        flat = np.atleast_1d(np.asarray(value)).ravel()
        if flat.dtype.kind not in "biuf" or flat.size > 64:
            raise ValueError(f"of type {flat.dtype}")
        whole = 1 << (8 * dtype.itemsize)  # a negative code of unsigned numbers is the one of the same bits
        return tuple(
            code + whole if dtype.kind == "u" and isinstance(code, int) and code < 0 else code
            for code in (one.item() for one in flat)
        )
    except (ValueError, TypeError, binascii.Error, struct.error):
        raise InputError(f"{where} is {str(value)[:60]!r}; expected a number.") from None


def _from_text(text: str, dtype: np.dtype[Any]) -> float:
    try:
        return float(text)
    except ValueError:
        if dtype.kind != "f":
            raise
        (number,) = struct.unpack("<d", base64.standard_b64decode(text))
        return float(number)


def as_fill_value(code: float, dtype: np.dtype[Any]) -> Any:
    """A missing code as the attribute _FillValue of a Zarr array: a float as xarray has it, its bytes in base 64."""
    if dtype.kind != "f":
        return int(code)
    return base64.standard_b64encode(struct.pack("<d", code)).decode()


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that JSON can hold."""
    found = {}
    for key, value in attributes.items():
        try:
            found[str(key)] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            continue
    return found
