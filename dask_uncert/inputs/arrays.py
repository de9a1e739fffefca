"""Arrays of any kind as the inputs of an evaluation: numpy, dask, xarray or zarr to Cubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.array_dispatch import is_dask, is_labelled
from dask_uncert.inputs.cube import CLASS, Cube, Names, make_cube, without
from dask_uncert.io.readers.stored_array import labels_in
from dask_uncert.io.readers.zarr import dimension_names, labels_beside

Axis = int | str
"""The number of an axis, or the name of a labelled dimension."""


def cube_of(name: str, data: Any, axes: Mapping[str, Axis], grid: Names, dims: Names = None) -> Cube:
    """Return an array as a Cube, read where it is sliced.

    axes: positions of reserved dimensions, each counted without those after it; grid: names of the other dimensions of an
    array without names; dims: names of all dimensions, instead of both.
    """
    along: dict[int, NDArray[Any]] = {}  # coordinates by axis
    given = data
    if is_labelled(data):
        names, chunks = [str(dim) for dim in data.dims], None
        along = {axis: np.asarray(data[dim]) for axis, dim in enumerate(data.dims) if dim in data.coords}
        data = data.data
    elif isinstance(data, zarr.Array):
        names, chunks = list(dimension_names(data) or ()), data.shards or data.chunks
    else:
        names, chunks = [], None
        if not is_dask(data):
            data = np.asarray(data)
    if is_dask(data):
        chunks = data.chunksize
    if dims is None:
        dims = _named(name, names, axes) if names else _numbered(name, len(data.shape), axes, grid)
        names = []
    cube = make_cube(name, data, dims, names or None, chunks, f"the array given as {name}")
    known = {cube.dims[axis]: values for axis, values in along.items() if values.dtype.kind in "iuf"}
    labels = None
    if CLASS in cube.dims:
        axis = cube.dims.index(CLASS)
        beside = labels_beside(given, axis) if isinstance(given, zarr.Array) else None
        labels = labels_in(along[axis]) if axis in along else beside
    spare = [dim for dim in cube.dims if dim not in dims]
    return without(replace(cube, coordinates=known or None, class_labels=labels), *spare)


def _numbered(name: str, ndim: int, axes: Mapping[str, Axis], grid: Names) -> list[str]:
    """Return names for the dimensions of an array without any: those of the grid around the reserved ones."""
    others = ndim - len(axes)
    dims = list(grid) if grid is not None and len(grid) == others else [f"dim_{i}" for i in range(others)]
    for reserved, axis in axes.items():
        dims.insert(_number(name, axis, len(dims) + 1), reserved)
    return dims


def _named(name: str, names: Sequence[str], axes: Mapping[str, Axis]) -> list[str]:
    """Return an array's own names, but for the reserved dimensions."""
    dims, rest = list(names), list(range(len(names)))
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
