"""The result of a block: a frame and integer counts, added exactly.

A Summary is a frozen dataclass. Its fields are of three kinds, declared and never inferred:

- counts (made with `counts(...)`): int64 arrays with named dimensions; they add;
- parts: fields that are Summaries, tuples of Summaries or None; they add part by part;
- the frame: everything else (classes, edges, settings); frames must be equal, or the sum is refused.

Hence `+` is associative and commutative to the last bit, and any tree of additions gives the same bits.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np

from dask_uncert.formulas.typing import Counts

if TYPE_CHECKING:
    import xarray as xr


class UnequalFramesError(ValueError):
    """Two Summaries count different things and cannot be added."""


def counts(*dims: str) -> Any:
    """Declare a field that holds int64 counts with these dimensions."""
    return dataclasses.field(metadata={"dims": dims}, kw_only=True)


@dataclasses.dataclass(frozen=True, eq=False)
class Summary:
    """A frame and integer counts; `+` adds equal frames, `-` takes a part out again, 0 is the zero.

    kind: the name of the class in saved data.
    """

    kind: ClassVar[str]

    def __add__(self, other: object) -> Self:
        if isinstance(other, int) and other == 0:
            return self
        return self._combine([other], np.add) if type(other) is type(self) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: object) -> Self:
        return self._combine([other], np.subtract) if type(other) is type(self) else NotImplemented

    def plus_all(self, others: Sequence[Self]) -> Self:
        """Return the sum with many others, as `sum` does, but faster.

        Parameters
        ----------
        others : sequence of Summary
            Summaries of the same type and frame.

        Returns
        -------
        Summary
            The sum, of the same type.

        Raises
        ------
        UnequalFramesError
            If they count different things.
        OverflowError
            If a count exceeds 64 bits.
        """
        return self._combine(others, np.add)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.frame() == other.frame() and all(
            np.array_equal(mine, theirs)
            for (_, _, mine), (_, _, theirs) in zip(self.arrays(), other.arrays(), strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def _combine(self, others: Sequence[Self], operation: np.ufunc) -> Self:
        values: dict[str, Any] = {}
        for name, dims in _fields(type(self)):
            values[name] = mine = getattr(self, name)
            theirs = [getattr(other, name) for other in others]
            if dims is not None:
                for shape in {array.shape for array in theirs} - {mine.shape}:
                    raise UnequalFramesError(
                        f"{type(self).__name__}.{name}: shapes {mine.shape} and {shape} do not add"
                    )
                values[name] = _total(operation, mine, theirs, name)
            elif _holds_parts(mine) and all(map(_holds_parts, theirs)):
                values[name] = self._combine_parts(name, mine, theirs, operation)
            elif unequal := [value for value in theirs if mine is not value and mine != value]:
                raise UnequalFramesError(
                    f"{type(self).__name__}s with unequal {name} do not add: {_short(mine)} and "
                    f"{_short(unequal[0])}; evaluate both with the same job"
                )
        return type(self)(**values)

    def _combine_parts(self, name: str, mine: Any, theirs: Sequence[Any], operation: np.ufunc) -> Any:
        if isinstance(mine, Summary):
            return mine._combine(theirs, operation)
        for number in {len(parts) for parts in theirs} - {len(mine)}:
            raise UnequalFramesError(f"{type(self).__name__}s with {len(mine)} and {number} {name} do not add")
        return tuple(part._combine(other, operation) for part, *other in zip(mine, *theirs, strict=True))

    def frame(self) -> dict[str, Any]:
        """Return what is counted: the frame with its parts as plain data, compared by `+`.

        Returns
        -------
        dict
            Numbers, strings, lists and dicts.
        """
        frame: dict[str, Any] = {"kind": self.kind}
        for field in dataclasses.fields(self):
            if "dims" in field.metadata:
                continue
            value = getattr(self, field.name)
            if isinstance(value, Summary):
                frame[field.name] = value.frame()
            elif _holds_parts(value):
                frame[field.name] = [part.frame() for part in value]
            else:
                frame[field.name] = _plain(value)
        return frame

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, tuple[str, ...], Counts]]:
        """Yield every array of counts, parts included, in a fixed order.

        Parameters
        ----------
        prefix : str, default ""
            Begin of the paths.

        Yields
        ------
        tuple of (str, tuple of str, numpy.ndarray of int64)
            Path, dimensions and counts.
        """
        for name, dims in _fields(type(self)):
            value, path = getattr(self, name), f"{prefix}{name}"
            if dims is not None:
                yield path, dims, value
            elif isinstance(value, Summary):
                yield from value.arrays(f"{path}/")
            elif _holds_parts(value):
                for i, part in enumerate(value):
                    yield from part.arrays(f"{path}/{i}/")

    def in_buffer(self, buffer: Counts) -> Self:
        """Return the Summary of this frame with other counts.

        Parameters
        ----------
        buffer : numpy.ndarray of int64
            (cells,): the counts of all arrays, one after the other; they are views of it.

        Returns
        -------
        Summary
            Of the same type.
        """
        start, views = 0, {}
        for path, _, array in self.arrays():
            views[path] = buffer[start : start + array.size].reshape(array.shape)
            start += array.size
        return self._with_arrays(views, "")

    def _with_arrays(self, arrays: Mapping[str, Counts], prefix: str) -> Self:
        values: dict[str, Any] = {}
        for name, dims in _fields(type(self)):
            value, path = getattr(self, name), f"{prefix}{name}"
            if dims is not None:
                value = arrays[path]
            elif isinstance(value, Summary):
                value = value._with_arrays(arrays, f"{path}/")
            elif _holds_parts(value):
                value = tuple(p._with_arrays(arrays, f"{path}/{i}/") for i, p in enumerate(value))
            values[name] = value
        return type(self)(**values)

    @classmethod
    def from_plain(cls, frame: Mapping[str, Any], arrays: Mapping[str, Counts], prefix: str = "") -> Self:
        """Return the Summary of a frame and arrays.

        Parameters
        ----------
        frame : mapping
            As `frame` gives it.
        arrays : mapping of str to numpy.ndarray of int64
            As `arrays` gives them, by path.
        prefix : str, default ""
            Begin of the paths.

        Returns
        -------
        Summary
            Of this type.

        Raises
        ------
        KeyError, TypeError
            If something is missing or unknown.
        """
        unknown = set(frame) - {"kind"} - {field.name for field in dataclasses.fields(cls)}
        if frame["kind"] != cls.kind or unknown:
            raise TypeError(f"{cls.kind} expected, found {frame['kind']!r} with {sorted(unknown)}")
        values = {}
        for field in dataclasses.fields(cls):
            path = f"{prefix}{field.name}"
            if "dims" in field.metadata:
                values[field.name] = arrays[path]
            elif field.name in frame or field.default is dataclasses.MISSING:  # older data lack what was added since
                values[field.name] = _from_plain(_hints(cls)[field.name], frame[field.name], arrays, path)
        return cls(**values)

    def to_dataset(self) -> xr.Dataset:
        """Return the counts as an xarray Dataset.

        Returns
        -------
        xarray.Dataset
            Arrays of parts are named ``part.array``; the frame is an attribute. Dimensions of the same name
            are the same in every part, but for those such as ``bin`` that a part sizes for itself: they carry
            its name.
        """
        import xarray as xr

        variables = {}
        for path, dims, value in self.arrays():
            part, _, _ = path.rpartition("/")
            suffix = "_" + part.replace("/", "_") if part else ""
            named = tuple(f"{d}{suffix}" if d in OWN_DIMS else d for d in dims)
            variables[path.replace("/", ".")] = (named, value)
        return xr.Dataset(variables, attrs={"frame": self.frame()})


OWN_DIMS = (
    "bin", "reason", "threshold", "sigma", "damping", "level", "row", "interval", "power", "known_class", "sum2", "sum3",
    "tile", "axis", "start", "entry", "confidence",
)  # fmt: skip
"""Dimensions that a part sizes for itself."""


def _total(operation: np.ufunc, mine: Counts, others: Sequence[Counts], name: str) -> Counts:
    """Return counts with all others added or taken out, in one new array; OverflowError if a sum exceeds 64 bits."""
    result = np.asarray(operation(mine, others[0])) if others else mine
    for theirs in others[1:]:
        operation(result, theirs, out=result)
    every = (mine, *others)
    if operation is np.add and mine.size and sum(int(array.max()) for array in every) >= 1 << 63:
        exact: Any = sum(array.astype(object) for array in every)
        if np.max(exact) >= 1 << 63:
            raise OverflowError(f"{name} exceeds 64-bit counts; keep these Summaries apart")
    return result


def _list_fields(kind: Any) -> tuple[tuple[str, tuple[str, ...] | None], ...]:
    """Return the names of a Summary's fields, each with its dimensions if it holds counts."""
    return tuple((field.name, field.metadata.get("dims")) for field in dataclasses.fields(kind))


_fields: Callable[[Any], tuple[tuple[str, tuple[str, ...] | None], ...]] = cache(_list_fields)


def _holds_parts(value: Any) -> bool:
    if isinstance(value, tuple):
        return len(value) > 0 and all(isinstance(part, Summary) for part in value)
    return isinstance(value, Summary)


def _plain(value: Any) -> Any:
    if type(value) is float:  # as most are
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


def _from_plain(hint: Any, value: Any, arrays: Mapping[str, Counts], path: str) -> Any:
    """Return a field of this type from plain data: a part, a record, a tuple of them, or the value."""
    if value is None:
        return None
    arguments = get_args(hint)
    if get_origin(hint) is UnionType:
        (hint,) = (argument for argument in arguments if argument is not NoneType)
        return _from_plain(hint, value, arrays, path)
    if get_origin(hint) is tuple:
        if arguments[-1] is not Ellipsis or arguments[0] in (int, float, str):
            return tuple(value)
        return tuple(_from_plain(arguments[0], item, arrays, f"{path}/{i}") for i, item in enumerate(value))
    if not isinstance(hint, type):
        return value
    if issubclass(hint, Summary):
        return hint.from_plain(value, arrays, f"{path}/")
    if dataclasses.is_dataclass(hint):
        return hint(**{name: _from_plain(_hints(hint)[name], v, arrays, path) for name, v in value.items()})
    return hint(*value) if issubclass(hint, tuple) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
