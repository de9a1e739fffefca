"""What stored numbers mean: which of them say that there is nothing, and the values that the others pack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError

Role = Literal["labels", "probabilities", "values"]
"""What an input holds: class codes, probabilities, or anything else."""


@dataclass(frozen=True)
class Decoding:
    """A value is stored * scale + offset; a stored number in `missing` means that there is none.

    missing: compared in the storage's own dtype, before anything is scaled; a number that the dtype cannot hold
    equals none of its values.
    """

    scale: float = 1.0
    offset: float = 0.0
    missing: tuple[float, ...] = ()

    @property
    def is_packed(self) -> bool:
        """Whether stored numbers are not yet the values."""
        return (self.scale, self.offset) != (1.0, 0.0)

    def keeps_stored(self, dtype: np.dtype[Any], role: Role) -> bool:
        """Whether values stay as stored: unpacked ones; and integer probabilities, that have a mere factor.

        The factor of those goes to whoever reads them, who knows then how they were rounded.
        """
        factor = role == "probabilities" and dtype.kind in "iu" and self.offset == 0 and self.scale > 0
        return not self.is_packed or factor

    def absent(self, stored: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Where there is no value, in the shape of `stored`; None where no stored number means that."""
        found = None
        for code in self.missing:
            if stored.dtype.kind == "f":
                with np.errstate(over="ignore"):
                    one = stored.dtype.type(code)
                if np.isinf(one) and not np.isinf(code):
                    continue
                equal = np.isnan(stored) if np.isnan(one) else stored == one
            elif not float(code).is_integer() or not _fits(int(code), stored.dtype):
                continue
            else:
                equal = stored == stored.dtype.type(int(code))
            found = equal if found is None else found | equal
        return found

    def values(self, stored: NDArray[Any], role: Role) -> NDArray[Any]:
        """The values, in the shape of `stored`: itself where they stay so, else float64.

        Labels that scaling has left within its own rounding (half a step, at most a quarter) of a whole number are
        that number.
        """
        if self.keeps_stored(stored.dtype, role):
            return stored
        values = stored.astype(np.float64) * self.scale + self.offset
        if role != "labels":
            return values
        # Integers hold labels to half a step; a factor may itself have been rounded to float32.
        step = abs(self.scale) if stored.dtype.kind in "iu" else 0.0
        near = min(step / 2, 0.25) + 2.0**-22 * np.abs(values)
        whole = np.rint(values)
        return np.where(np.abs(values - whole) <= near, whole, values)


def _fits(code: int, dtype: np.dtype[Any]) -> bool:
    if dtype.kind not in "iu":
        return code in (0, 1)
    limits = np.iinfo(dtype)
    return int(limits.min) <= code <= int(limits.max)


AS_STORED = Decoding()


def declared(
    found: Decoding,
    scale: float | None,
    offset: float | None,
    nodata: Sequence[float] | None,
    what: str,
) -> Decoding:
    """What a file says that its numbers mean, completed by what the job says; InputError where they contradict.

    what: the input and where it lies, for the message.
    """
    if found.is_packed and (scale, offset) != (None, None):
        asked = (1.0 if scale is None else scale, 0.0 if offset is None else offset)
        if asked != (found.scale, found.offset):
            raise InputError(
                f"{what} declares scale {found.scale:g} and offset {found.offset:g} itself; leave out `scale` and "
                f"`offset`, here {asked[0]:g} and {asked[1]:g}."
            )
        scale = offset = None
    packed = (
        found if (scale, offset) == (None, None) else replace(found, scale=scale or 1.0, offset=offset or 0.0)
    )
    if nodata is None:
        return packed
    return replace(packed, missing=tuple(dict.fromkeys((*packed.missing, *nodata))))
