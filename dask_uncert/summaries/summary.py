"""What a block leaves behind: a frame and integer counts, added exactly.

A Summary is a frozen dataclass. Its fields are of three kinds, and which is which is declared, never inferred:

- counts (made with `counts(...)`): int64 arrays with named dimensions; they add;
- parts: fields that are Summaries, tuples of Summaries or None; they add part by part;
- the frame: everything else (classes, edges, settings); frames must be equal, or the sum is refused.

Hence `+` is associative and commutative to the last bit, and any tree of additions gives the same bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import xarray as xr

from dask_uncert.formulas.typing import Counts


class UnequalFramesError(ValueError):
    """Two Summaries count different things and cannot be added."""


def counts(*dims: str) -> Any:
    """A field that holds int64 counts with these dimensions."""
    return dataclasses.field(metadata={"dims": dims}, kw_only=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Summary:
    """A frame and integer counts; `+` adds equal frames, `-` takes a part out again, 0 is the zero."""

    def __add__(self, other: object) -> Self:
        if isinstance(other, int) and other == 0:
            return self
        return self._combine(other, np.add)

    __radd__ = __add__

    def __sub__(self, other: object) -> Self:
        return self._combine(other, np.subtract)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.frame() == other.frame() and all(
            np.array_equal(mine, theirs)
            for (_, _, mine), (_, _, theirs) in zip(self.arrays(), other.arrays(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def _combine(self, other: object, operation: np.ufunc) -> Self:
        if type(other) is not type(self):
            return NotImplemented  # type: ignore[no-any-return]
        changes: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            mine, theirs = getattr(self, field.name), getattr(other, field.name)
            if "dims" in field.metadata:
                if mine.shape != theirs.shape:
                    raise UnequalFramesError(
                        f"{type(self).__name__}.{field.name}: shapes {mine.shape} and {theirs.shape} do not add"
                    )
                changes[field.name] = _without_overflow(operation, mine, theirs, field.name)
            elif _holds_parts(mine) and _holds_parts(theirs):
                changes[field.name] = self._combine_parts(field.name, mine, theirs, operation)
            elif mine != theirs:
                raise UnequalFramesError(
                    f"{type(self).__name__}s with unequal {field.name} do not add: {_short(mine)} and "
                    f"{_short(theirs)}; evaluate both with the same job"
                )
        return dataclasses.replace(self, **changes)

    def _combine_parts(self, name: str, mine: Any, theirs: Any, operation: np.ufunc) -> Any:
        if isinstance(mine, Summary):
            return mine._combine(theirs, operation)
        if len(mine) != len(theirs):
            raise UnequalFramesError(
                f"{type(self).__name__}s with {len(mine)} and {len(theirs)} {name} do not add"
            )
        return tuple(a._combine(b, operation) for a, b in zip(mine, theirs, strict=True))

    def frame(self) -> dict[str, Any]:
        """The frame as plain data (numbers, strings, lists, dicts), parts included; compared by `+`."""
        found: dict[str, Any] = {"kind": type(self).__name__}
        for field in dataclasses.fields(self):
            if "dims" in field.metadata:
                continue
            value = getattr(self, field.name)
            if isinstance(value, Summary):
                found[field.name] = value.frame()
            elif _holds_parts(value):
                found[field.name] = [part.frame() for part in value]
            else:
                found[field.name] = _plain(value)
        return found

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...], Counts]]:
        """(path, dimensions, counts) of every array, parts included, in a fixed order."""
        for field in dataclasses.fields(self):
            value, path = getattr(self, field.name), f"{prefix}{field.name}"
            if "dims" in field.metadata:
                yield path, field.metadata["dims"], value
            elif isinstance(value, Summary):
                yield from value.arrays(f"{path}/")
            elif _holds_parts(value):
                for i, part in enumerate(value):
                    yield from part.arrays(f"{path}/{i}/")

    def to_dataset(self) -> xr.Dataset:
        """The counts as an xarray Dataset; arrays of parts are named `part.array`, the frame is an attribute.

        Dimensions of the same name are the same in every part but for `bin`, which carries the part's name.
        """
        variables = {}
        for path, dims, value in self.arrays():
            part, _, _ = path.rpartition("/")
            suffix = "_" + part.replace("/", "_") if part else ""
            named = tuple(f"{d}{suffix}" if d in OWN_DIMS else d for d in dims)
            variables[path.replace("/", ".")] = (named, value)
        return xr.Dataset(variables, attrs={"frame": self.frame()})


OWN_DIMS = ("bin", "reason", "threshold", "sigma", "damping", "level", "row", "column", "known_class")
"""Dimensions that a part sizes for itself."""


def _without_overflow(operation: np.ufunc, mine: Counts, theirs: Counts, name: str) -> Counts:
    found = operation(mine, theirs)
    if operation is np.add and ((found < mine) & (theirs > 0)).any():
        raise OverflowError(f"{name} exceeds 64-bit counts; keep these Summaries apart")
    return np.asarray(found)


def _holds_parts(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(isinstance(part, Summary) for part in value)
    return isinstance(value, Summary)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
