"""One pointwise function for every kind of array: numpy in, numpy out; lazy in, lazy out; labels kept.

The formulas are written once, on plain float64 numpy arrays. This module applies them to the other kinds. An
xarray object is recognised by its attributes (``dims``, ``get_axis_num``), a lazy array by its graph, so
neither library is needed to import the formulas.
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
    """Return the entry of `TOLERANCE` for a storage dtype; that of float64 for integers and booleans.

    >>> tolerance("float16"), tolerance("uint8")
    (0.005, 0.0001)
    """
    return TOLERANCE.get(np.dtype(dtype).name, TOLERANCE["float64"])


def result_dtype(*dtypes: DTypeLike) -> np.dtype[Any]:
    """Return float32 when every input is stored as float32 or float16, otherwise float64.

    >>> result_dtype("float16"), result_dtype("float32", "uint8")
    (dtype('float32'), dtype('float64'))
    """
    small = all(np.dtype(dtype).name in ("float16", "float32") for dtype in dtypes)
    return np.dtype(np.float32 if small else np.float64)


def is_labelled(values: Any) -> bool:
    """Return whether the array names its dimensions (an xarray DataArray or Variable)."""
    return hasattr(values, "dims") and hasattr(values, "get_axis_num")


def is_lazy(values: Any) -> bool:
    """Return whether the values are not computed yet (a dask array, or an xarray object that holds one)."""
    held = values.data if is_labelled(values) else values
    return not isinstance(held, np.ndarray) and hasattr(held, "__dask_graph__")


def is_masked(values: Any) -> bool:
    """Return whether this is a masked array of numpy, or a dask array of such chunks."""
    return isinstance(getattr(values, "_meta", values), np.ma.MaskedArray)


def each_chunk(function: Callable[[Any], Any], values: Any, dtype: DTypeLike) -> Any:
    """Return ``function`` of an array in memory, or of each chunk of a dask array; its result is a plain array."""
    if not is_dask(values):
        return function(values)
    return values.map_blocks(function, dtype=dtype, meta=np.empty((0,) * values.ndim, dtype))


def masked_as_nan(values: Any) -> Any:
    """Return a masked array as a plain one of floats, NaN where it is masked; any other array unchanged.

    >>> masked_as_nan(np.ma.masked_equal([1, 2, 3], 2))
    array([ 1., nan,  3.])
    """
    if not is_masked(values):
        return values
    dtype = values.dtype if values.dtype.kind == "f" else np.dtype(np.float64)
    return each_chunk(lambda chunk: np.ma.filled(chunk.astype(dtype), np.nan), values, dtype)


def as_array(values: Any) -> Any:
    """Return a lazy array as it is, anything else as a numpy array; what is masked is NaN.

    TypeError unless it holds numbers.
    """
    values = masked_as_nan(values)
    held = values if is_lazy(values) else np.asarray(values)
    if held.dtype.kind not in "biuf":
        raise TypeError(f"numbers expected, found dtype {held.dtype}")
    return held


def axis_number(values: Any, axis: int | str) -> int:
    """Return the axis as a number from 0; a name is looked up among the dimensions of a labelled array."""
    if isinstance(axis, str):
        if not is_labelled(values):
            raise ValueError(f"axis {axis!r} is a name, but the array has no named dimensions; give its number")
        if axis not in values.dims:
            raise ValueError(f"no dimension {axis!r}; the array has {', '.join(map(repr, values.dims))}")
        return int(values.get_axis_num(axis))
    return int(normalize_axis_index(axis, values.ndim))


def normalise(probabilities: Any, axis: int | str = -1) -> Any:
    """Return probability vectors along `axis`, each clipped to [0, 1] and divided by its sum; float64.

    A part within `TOLERANCE` of [0, 1] is clipped, a sum within it of 1 is divided out; a vector with a NaN
    is NaN as a whole. Array in memory: ValueError for vectors further off, with their number, the worst
    value, the worst sum and its index. Lazy array: such vectors become NaN, as nothing is computed yet.

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
    """Return `normalise` of one numpy array; ``refuse=False`` makes vectors beyond the tolerance NaN."""
    allowed = tolerance(block.dtype)
    p = np.array(block, dtype=np.float64)  # a copy: inputs are never written to
    with np.errstate(invalid="ignore"):  # inf - inf, in vectors that are refused below
        total = p.sum(axis=axis, keepdims=True)
    outside = np.maximum(-p.min(axis=axis, keepdims=True), p.max(axis=axis, keepdims=True) - 1)
    beyond = (outside > allowed) | (np.abs(total - 1) > allowed)
    if beyond.any():
        if refuse:
            raise ValueError(_beyond_message(beyond, outside, total, axis, allowed, block.dtype))
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
    """Return ``function(p, axis=number)`` of the normalised p, in the kind of array of the input.

    `function` takes float64 numpy arrays and removes the class axis (``keep=True``: keeps the shape). The
    result has `dtype`, by default `result_dtype` of the input. A lazy array is computed block by block, with
    all classes in each block.
    """
    if is_labelled(probabilities):
        number = axis_number(probabilities, axis)
        result = over_classes(function, probabilities.data, number, dtype, keep)
        first = {probabilities.dims[number]: 0}
        return (probabilities if keep else probabilities.isel(first, drop=True)).copy(data=result)
    values = as_array(probabilities)
    number = axis_number(values, axis)
    if values.shape[number] < 2:
        raise ValueError(f"at least 2 classes expected along axis {number}, found shape {values.shape}")
    dtype = result_dtype(values.dtype) if dtype is None else dtype
    lazy = is_lazy(values)
    work = partial(_over_block, function=function, number=number, dtype=dtype, refuse=not lazy)
    if not lazy:
        return work(values)[()]
    dropped = {} if keep else {"drop_axis": number}
    meta = np.empty((0,) * (values.ndim - (not keep)), dtype=dtype)
    return values.rechunk({number: -1}).map_blocks(work, dtype=dtype, meta=meta, **dropped)


def named(values: Any, name: str, units: str = "1", **parameters: Any) -> Any:
    """Return a new result with its own name and attributes where it is labelled; any other array unchanged.

    parameters: of the formula, kept as attributes; those that are None are left out.
    """
    if is_labelled(values):
        texts = {key: getattr(value, "__name__", value) for key, value in parameters.items() if value is not None}
        values.attrs = {"long_name": name.replace("_", " "), "units": units, **texts}
        if hasattr(values, "name"):  # a Variable has none
            values.name = name
    return values


def elementwise(function: Callable[..., Any], values: Any) -> Any:
    """Return ``function`` of a numpy array, or block by block of a lazy one; float64, shape kept."""
    if not is_lazy(values):
        return np.asarray(function(values), dtype=np.float64)
    meta = np.empty((0,) * values.ndim, dtype=np.float64)
    return values.map_blocks(function, dtype=np.float64, meta=meta)


def check_same_grid(arrays: Mapping[str, Any]) -> None:
    """Raise ValueError unless all arrays have the same shape and, where labelled, dimensions and coordinates.

    Nothing is broadcast or joined: as many values come out as go in.
    """
    for name, other in arrays.items():
        if any(n != n for n in np.shape(other)):
            raise ValueError(
                f"{name} is a dask array whose chunks have unknown sizes; call its `compute_chunk_sizes()` first"
            )
    (first, array), *others = arrays.items()
    for name, other in others:
        if np.shape(other) != np.shape(array):
            raise ValueError(f"{name} has shape {np.shape(other)}, but {first} has {np.shape(array)}")
        if not (is_labelled(array) and is_labelled(other)):
            continue
        if other.dims != array.dims:
            raise ValueError(f"{name} has dimensions {other.dims}, but {first} has {array.dims}")
        for dim in array.dims:
            ours, theirs = (getattr(a, "indexes", {}).get(dim) for a in (array, other))
            if ours is not None and theirs is not None and not ours.equals(theirs):
                raise ValueError(f"{name} and {first} differ in the coordinate {dim!r}; align them first")


def _identity(p: Floats, axis: int) -> Floats:
    return p


def _over_block(
    block: NDArray[Any], function: Callable[..., Any], number: int, dtype: np.dtype[Any], refuse: bool
) -> NDArray[Any]:
    return np.asarray(function(normalised_block(block, number, refuse), axis=number), dtype=dtype)


def _beyond_message(
    beyond: Bools, outside: Floats, total: Floats, axis: int, allowed: float, dtype: np.dtype[Any]
) -> str:
    """Return the message: how many vectors, how far off, the index of the worst (without the class axis)."""
    with np.errstate(invalid="ignore"):
        off = np.abs(total - 1)
    distance = np.where(beyond, np.fmax(np.maximum(outside, 0), off), -1.0)
    furthest_off = np.unravel_index(int(np.argmax(distance)), distance.shape)
    index = tuple(int(i) for number, i in enumerate(furthest_off) if number != axis)
    worst = float(np.max(np.where(beyond, np.maximum(outside, 0), 0)))
    sums = np.where(beyond & ~np.isnan(off), off, -1.0)
    furthest = float(total[np.unravel_index(int(np.argmax(sums)), sums.shape)])
    return (
        f"{int(beyond.sum())} of {beyond.size} probability vectors along axis {axis} lie beyond the "
        f"tolerance {allowed:g} ({dtype}): largest excursion from [0, 1] {worst:g}, sum furthest from 1 is "
        f"{furthest:g}, at index {index}"
    )


def is_dask(data: Any) -> bool:
    """Return whether this is a dask array, without importing dask."""
    return hasattr(data, "__dask_graph__") and hasattr(data, "rechunk")
