"""Arrays of any kind as the inputs of an evaluation: numpy, dask, xarray or zarr to Cubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas.array_dispatch import is_dask, is_labelled
from dask_uncert.inputs.cube import Cube, make_cube
from dask_uncert.io.readers.zarr import describe

Axis = int | str
"""The number of an axis, or the name of a labelled dimension."""


def cube_of(
    name: str,
    data: Any,
    axes: Mapping[str, Axis],
    grid: Sequence[str] | None,
    dims: Sequence[str] | None = None,
) -> Cube:
    """Return an array as a Cube, read where it is sliced.

    axes: where reserved dimensions lie, each counted without those after it; grid: names of the other dimensions of an
    array without names; dims: names of all dimensions, instead of both.
    """
    stored = describe(data)
    known: dict[str, Any] = {}
    if is_labelled(data):
        names, chunks = [str(d) for d in data.dims], None
        known = {
            str(d): v
            for d in data.dims
            if d in data.coords and (v := np.asarray(data[d])).dtype.kind in "iuf"
        }
        data = data.data
    elif stored is not None:
        names, chunks = list(stored[0] or ()), stored[1]
    else:
        names, chunks = [], None
        if not is_dask(data):
            data = np.asarray(data)
    if is_dask(data):
        chunks = data.chunksize
    if dims is None:
        dims, names = (_named if names else _numbered)(name, len(data.shape), names, axes, grid), []
    cube = make_cube(name, data, dims, names or None, chunks, f"the array given as {name}")
    return replace(cube, coordinates=known) if known else cube


def _numbered(
    name: str, ndim: int, names: list[str], axes: Mapping[str, Axis], grid: Sequence[str] | None
) -> list[str]:
    """Return names for the dimensions of an array without any: those of the grid around the reserved ones."""
    others = ndim - len(axes)
    dims = list(grid) if grid is not None and len(grid) == others else [f"dim_{i}" for i in range(others)]
    for reserved, axis in axes.items():
        dims.insert(_number(name, axis, len(dims) + 1), reserved)
    return dims


def _named(
    name: str, ndim: int, names: list[str], axes: Mapping[str, Axis], grid: Sequence[str] | None
) -> list[str]:
    """Return an array's own names, but for the reserved dimensions."""
    dims, rest = list(names), list(range(ndim))
    for reserved, axis in reversed(list(axes.items())):
        if reserved in dims:
            number = dims.index(reserved)
        else:
            number = dims.index(str(axis)) if axis in dims else rest[_number(name, axis, len(rest))]
            dims[number] = reserved
        rest.remove(number)
    return dims


def _number(name: str, axis: Axis, ndim: int) -> int:
    if isinstance(axis, str):
        raise InputError(f"{name}: there is no dimension {axis!r}; give the axis's number.")
    if not -ndim <= axis < ndim:
        raise InputError(f"{name}: axis {axis} is out of range for {ndim} dimensions.")
    return axis % ndim
