"""Meaning of stored numbers: which of them stand for a missing value, and the values that the others pack."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError

Role = Literal["labels", "shares", "probabilities", "values"]
"""Content of an input: class codes, probabilities, or anything else."""


@dataclass(frozen=True)
class Decoding:
    """How stored numbers become values: stored * scale + offset, and no value for a number in `missing`.

    missing: compared as stored, before anything is scaled; a number that the stored dtype cannot hold has no effect.
    """

    scale: float = 1.0
    offset: float = 0.0
    missing: tuple[float, ...] = ()

    @property
    def is_packed(self) -> bool:
        """Whether stored numbers are not yet the values."""
        return (self.scale, self.offset) != (1.0, 0.0)

    def absent(self, stored: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return where there is no value, in the shape of `stored`; None where no stored number means that."""
        absent = None
        for code in self.missing:
            if stored.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    number = stored.dtype.type(code)
                if np.isinf(number) and not np.isinf(code):
                    continue
                equal = np.isnan(stored) if np.isnan(number) else stored == number
            elif not float(code).is_integer() or not _fits(int(code), stored.dtype):
                continue
            else:
                equal = stored == stored.dtype.type(int(code))
            absent = equal if absent is None else absent | equal
        return absent

    def values(self, stored: NDArray[Any], role: Role) -> NDArray[Any]:
        """Return the values, in the shape of `stored`: float64, or `stored` if it is not packed.

        Labels are rounded to a whole number if that is within the rounding of scaling (half a step, at most a quarter).
        """
        if not self.is_packed:
            return stored
        values = stored.astype(np.float64) * self.scale + self.offset
        if role != "labels":
            return values
        # Integers hold labels to half a step; a factor may itself have been rounded to float32.
        step = abs(self.scale) if stored.dtype.kind in "iu" else 0.0
        near = min(step / 2, 0.25) + 2.0**-22 * (np.abs(values) + abs(self.offset))
        whole = np.rint(values)
        return np.where(np.abs(values - whole) <= near, whole, values)


def _fits(code: int, dtype: np.dtype[Any]) -> bool:
    if dtype.kind not in "iu":
        return code in (0, 1)
    limits = np.iinfo(dtype)
    return int(limits.min) <= code <= int(limits.max)


AS_STORED = Decoding()


def declared(
    file: Decoding, scale: float | None, offset: float | None, nodata: Sequence[float] | None, where: str
) -> Decoding:
    """Return the Decoding that a file declares, completed by what the caller declares.

    where: the input and its origin, for messages. Raises InputError where they contradict each other, and for numbers
    that make no sense.
    """
    for name, value in (("scale", scale), ("offset", offset), ("scale", file.scale)):
        if value is not None and (not math.isfinite(value) or (name == "scale" and value == 0)):
            other = " other than 0" if name == "scale" else ""
            raise InputError(f"{where}: {name} must be a finite number{other}, found {value:g}.")
    own = (1.0 if scale is None else scale, 0.0 if offset is None else offset)
    if (scale, offset) == (None, None):
        own = (file.scale, file.offset)
    elif file.is_packed and own != (file.scale, file.offset):
        raise InputError(
            f"{where} declares scale {file.scale:g} and offset {file.offset:g} itself; leave out `scale` and "
            f"`offset`, here {own[0]:g} and {own[1]:g}."
        )
    return Decoding(*own, tuple(dict.fromkeys((*file.missing, *(nodata or ())))))
