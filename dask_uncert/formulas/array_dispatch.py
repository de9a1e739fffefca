"""One pointwise function for every kind of array: numpy in, numpy out; lazy in, lazy out; labels kept.

The formulas are written once, on plain float64 numpy arrays. This module brings the other kinds there. An
xarray object is known by what it can do (``dims``, ``get_axis_num``), a lazy array by its graph, so neither
library is needed to import the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import DTypeLike, NDArray

from dask_uncert.formulas.typing import Bools, Floats

TOLERANCE: Mapping[str, float] = MappingProxyType({"float16": 5e-3, "float32": 1e-4, "float64": 1e-4})
"""By storage dtype: how far a probability may lie outside [0, 1], and the sum of a vector from 1."""


def tolerance(dtype: DTypeLike) -> float:
    """The entry of `TOLERANCE` for a storage dtype; integers and booleans are held to float64's.

    >>> tolerance("float16"), tolerance("uint8")
    (0.005, 0.0001)
    """
    return TOLERANCE.get(np.dtype(dtype).name, TOLERANCE["float64"])


def result_dtype(*dtypes: DTypeLike) -> np.dtype[Any]:
    """float32 when every input is stored as float32 or float16, otherwise float64.

    >>> result_dtype("float16"), result_dtype("float32", "uint8")
    (dtype('float32'), dtype('float64'))
    """
    small = all(np.dtype(dtype).name in ("float16", "float32") for dtype in dtypes)
    return np.dtype(np.float32 if small else np.float64)


def is_labelled(values: Any) -> bool:
    """Whether the array names its dimensions (an xarray DataArray or Variable)."""
    return hasattr(values, "dims") and hasattr(values, "get_axis_num")


def is_lazy(values: Any) -> bool:
    """Whether the values are still to be computed (a dask array, or an xarray object that holds one)."""
    held = values.data if is_labelled(values) else values
    return not isinstance(held, np.ndarray) and hasattr(held, "__dask_graph__")


def as_array(values: Any) -> Any:
    """A lazy array as it is, anything else as a numpy array of numbers; TypeError for other contents."""
    held = values if is_lazy(values) else np.asarray(values)
    if held.dtype.kind not in "biuf":
        raise TypeError(f"numbers expected, found dtype {held.dtype}")
    return held


def axis_number(values: Any, axis: int | str) -> int:
    """The axis as a number from 0; a name is looked up among the dimensions of a labelled array."""
    if isinstance(axis, str):
        if not is_labelled(values):
            raise ValueError(
                f"axis {axis!r} is a name, but the array has no named dimensions; give its number"
            )
        if axis not in values.dims:
            raise ValueError(f"no dimension {axis!r}; the array has {', '.join(map(repr, values.dims))}")
        return int(values.get_axis_num(axis))
    return int(normalize_axis_index(axis, values.ndim))


def normalise(probabilities: Any, axis: int | str = -1) -> Any:
    """Probability vectors along `axis`, each with all parts in [0, 1] and divided by its own sum; float64.

    A part within `TOLERANCE` of [0, 1] is clipped, a sum within it of 1 is divided out; a vector with a NaN
    is NaN as a whole. Array in memory: ValueError for vectors further off, with their number, the worst
    value, the worst sum and its place. Lazy array: such vectors become NaN, for nothing can be looked at.

    Shapes: (..., C, ...) to the same; C >= 2. Any real dtype to float64. Idempotent to rounding.

    >>> normalise([0.5, 0.25, 0.2500001]).sum() == 1
    np.True_
    >>> normalise([0.2, 0.3])
    Traceback (most recent call last):
    ...
    ValueError: 1 of 1 probability vectors along axis 0 lie beyond the tolerance 0.0001 (float64): largest \
excursion from [0, 1] 0, sum furthest from 1 is 0.5, at index ()
    """
    return over_classes(_identity, probabilities, axis, dtype=np.dtype(np.float64), keep=True)


def normalised_block(block: NDArray[Any], axis: int, refuse: bool = True) -> Floats:
    """`normalise` for one numpy array; with ``refuse=False`` what is beyond the tolerance becomes NaN."""
    allowed = tolerance(block.dtype)
    p = np.array(block, dtype=np.float64)  # a copy: inputs are never written to
    with np.errstate(invalid="ignore"):  # inf - inf, in vectors that are refused below
        total = p.sum(axis=axis, keepdims=True)
    outside = np.maximum(-p.min(axis=axis, keepdims=True), p.max(axis=axis, keepdims=True) - 1)
    beyond = (outside > allowed) | (np.abs(total - 1) > allowed)
    if beyond.any():
        if refuse:
            raise ValueError(_beyond(beyond, outside, total, axis, allowed, block.dtype))
        p = np.where(beyond, np.nan, p)
    p = np.clip(p, 0.0, 1.0)
    return np.asarray(p / p.sum(axis=axis, keepdims=True))


def over_classes(
    function: Callable[..., Any],
    probabilities: Any,
    axis: int | str,
    dtype: np.dtype[Any] | None = None,
    keep: bool = False,
) -> Any:
    """``function(p, axis=number)`` over the normalised p of any kind of array, in the kind that came.

    `function` sees float64 numpy arrays and takes the class axis away (``keep=True``: leaves the shape). The
    result has `dtype`, by default `result_dtype` of the input. A lazy array is worked block by block, its
    class axis in one piece.
    """
    if is_labelled(probabilities):
        number = axis_number(probabilities, axis)
        found = over_classes(function, probabilities.data, number, dtype, keep)
        first = {probabilities.dims[number]: 0}
        return (probabilities if keep else probabilities.isel(first, drop=True)).copy(data=found)
    values = as_array(probabilities)
    number = axis_number(values, axis)
    if values.shape[number] < 2:
        raise ValueError(f"at least 2 classes expected along axis {number}, found shape {values.shape}")
    dtype = result_dtype(values.dtype) if dtype is None else dtype
    lazy = is_lazy(values)
    work = partial(_work, function=function, number=number, kind=dtype, refuse=not lazy)
    if not lazy:
        return work(values)[()]
    dropped = {} if keep else {"drop_axis": number}
    meta = np.empty((0,) * (values.ndim - (not keep)), dtype=dtype)
    return values.rechunk({number: -1}).map_blocks(work, dtype=dtype, meta=meta, **dropped)


def elementwise(function: Callable[..., Any], values: Any) -> Any:
    """``function`` of a numpy array, or block by block of a lazy one; float64, shape kept."""
    if not is_lazy(values):
        return np.asarray(function(values), dtype=np.float64)
    meta = np.empty((0,) * values.ndim, dtype=np.float64)
    return values.map_blocks(function, dtype=np.float64, meta=meta)


def check_same_grid(given: Mapping[str, Any]) -> None:
    """ValueError unless all arrays have one shape and, where they name them, the same dimensions and labels.

    Nothing is broadcast and nothing is joined: a count in must be a count out.
    """
    (first, one), *others = given.items()
    for name, other in others:
        if np.shape(other) != np.shape(one):
            raise ValueError(f"{name} has shape {np.shape(other)}, but {first} has {np.shape(one)}")
        if not (is_labelled(one) and is_labelled(other)):
            continue
        if other.dims != one.dims:
            raise ValueError(f"{name} has dimensions {other.dims}, but {first} has {one.dims}")
        for dim in one.dims:
            ours, theirs = (getattr(array, "indexes", {}).get(dim) for array in (one, other))
            if ours is not None and theirs is not None and not ours.equals(theirs):
                raise ValueError(f"{name} and {first} differ in the coordinate {dim!r}; align them first")


def _identity(p: Floats, axis: int) -> Floats:
    return p


def _work(
    block: NDArray[Any], function: Callable[..., Any], number: int, kind: np.dtype[Any], refuse: bool
) -> NDArray[Any]:
    return np.asarray(function(normalised_block(block, number, refuse), axis=number), dtype=kind)


def _beyond(
    beyond: Bools, outside: Floats, total: Floats, axis: int, allowed: float, dtype: np.dtype[Any]
) -> str:
    """What to tell: how many, how far, where the worst one is (its index without the class axis)."""
    with np.errstate(invalid="ignore"):
        off = np.abs(total - 1)
    distance = np.where(beyond, np.fmax(np.maximum(outside, 0), off), -1.0)
    place = np.unravel_index(int(np.argmax(distance)), distance.shape)
    index = tuple(int(i) for number, i in enumerate(place) if number != axis)
    worst = float(np.max(np.where(beyond, np.maximum(outside, 0), 0)))
    sums = np.where(beyond & ~np.isnan(off), off, -1.0)
    furthest = float(total[np.unravel_index(int(np.argmax(sums)), sums.shape)])
    return (
        f"{int(beyond.sum())} of {beyond.size} probability vectors along axis {axis} lie beyond the "
        f"tolerance {allowed:g} ({dtype}): largest excursion from [0, 1] {worst:g}, sum furthest from 1 is "
        f"{furthest:g}, at index {index}"
    )


def is_dask(data: Any) -> bool:
    """Whether this is a dask array; told without importing dask."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "rechunk")
