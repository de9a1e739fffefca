"""Attributes of arrays: packing and missing codes by NetCDF and CF, and the affine that our own maps have."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.geometry import Geometry, geometry_in

MISSING = ("_FillValue", "missing_value")


def actual_dtype(stored: np.dtype[Any], attributes: Mapping[str, Any]) -> np.dtype[Any]:
    """Return the dtype of the values: unsigned if the attribute _Unsigned says so of signed storage."""
    unsigned = str(attributes.get("_Unsigned", "")).lower() == "true" and stored.kind == "i"
    return np.dtype(f"u{stored.itemsize}") if unsigned else stored


def decoding_in(attributes: Mapping[str, Any], dtype: np.dtype[Any], where: str) -> Decoding:
    """Return the Decoding that the attributes scale_factor, add_offset, _FillValue and missing_value state.

    dtype: of the stored numbers. where: for messages. Raises InputError for attributes that are not numbers.
    """

    def numbers(key: str, default: Any) -> tuple[float, ...]:
        return _numbers(attributes.get(key, default), dtype, f"{where}: its attribute {key}")

    (scale,), (offset,) = numbers("scale_factor", 1.0) or (1.0,), numbers("add_offset", 0.0) or (0.0,)
    if scale == 0 or not np.isfinite([scale, offset]).all():
        raise InputError(f"{where}: its attributes state a scale_factor of {scale:g}.")
    codes = [code for key in MISSING if attributes.get(key) is not None for code in numbers(key, None)]
    return Decoding(scale, offset, tuple(dict.fromkeys(codes)))


def read_geometry(attributes: Mapping[str, Any], dims: Sequence[str], where: str) -> Geometry | None:
    """Return the geometry in the attributes that our own maps have; None if there is none.

    where: for messages. Raises InputError for an affine that cannot be used.
    """
    try:
        return geometry_in(attributes, dims)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: its attribute `affine` cannot be used: {error}.") from None


def _numbers(value: Any, dtype: np.dtype[Any], where: str) -> tuple[float, ...]:
    """Return the numbers of an attribute; a text may be a number, or a float's bytes in base 64 as xarray has it."""
    try:
        if isinstance(value, bytes):
            value = value.decode()
        if isinstance(value, str):
            return (_from_text(value, dtype),)
        flat = np.atleast_1d(np.asarray(value)).ravel()
        if flat.dtype.kind not in "biuf" or flat.size > 64:
            raise ValueError(f"of type {flat.dtype}")
        whole = 1 << (8 * dtype.itemsize)  # a negative code for unsigned numbers means the same bits
        return tuple(
            code + whole if dtype.kind == "u" and isinstance(code, int) and code < 0 else code for code in flat.tolist()
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
    """Return a missing code as the attribute _FillValue of a Zarr array: floats as bytes in base 64, as xarray does."""
    if dtype.kind != "f":
        return int(code)
    return base64.standard_b64encode(struct.pack("<d", code)).decode()


def json_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that JSON can hold."""
    kept = {}
    for key, value in attributes.items():
        with suppress(TypeError, ValueError):
            kept[str(key)] = json.loads(json.dumps(value, allow_nan=False))
    return kept
