"""Arrays of any kind as the inputs of an evaluation: numpy, dask, xarray or zarr to Cubes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.array_dispatch import each_chunk, is_dask, is_labelled, is_masked, masked_as_nan
from dask_uncert.inputs.cube import CLASS, RESERVED, Cube, Names, make_cube, without
from dask_uncert.io.missing_chunks import absent_chunks_of
from dask_uncert.io.readers.stored_array import class_table_in, labels_in
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
            data = np.asanyarray(data) if isinstance(data, np.ma.MaskedArray) else np.asarray(data)
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
    table = class_table_in(dict(getattr(given, "attrs", {})))
    return without(replace(cube, coordinates=known or None, class_labels=labels, class_table=table), *spare)


def is_store(data: Any) -> bool:
    """Return whether this is an array of a Zarr store, which may lack chunks."""
    return isinstance(data, zarr.Array)


def missing_in_store(cube: Cube, data: zarr.Array[Any]) -> list[tuple[int, ...]]:
    """Return the indices of the chunks that an array of a store lacks, along the dimensions of its Cube."""
    names = cube.dims if len(cube.dims) == data.ndim else dimension_names(data) or ()
    kept = [axis for axis, dim in enumerate(names) if dim in cube.dims]
    return [tuple(index[axis] for axis in kept) for index in absent_chunks_of(data, cube.name)]


def split_mask(cube: Cube) -> dict[str, Cube]:
    """Return a Cube of an array under its name, and of a masked array also a mask of the pixels that it lacks.

    A pixel lacks a value where any of its numbers is masked. Features become NaN there, which is their no-data value.
    """
    data = cube.data
    if not is_masked(data):
        return {cube.name: cube}
    if cube.kind == "features":
        decoding = replace(cube.decoding, missing=(*cube.decoding.missing, math.nan))
        return {cube.name: replace(cube, data=masked_as_nan(data), decoding=decoding)}
    values, masked = (each_chunk(f, data, t) for f, t in ((np.ma.getdata, data.dtype), (np.ma.getmaskarray, np.bool_)))
    if cube.kind == "mask":  # what lies behind says nothing, not even that the pixel is masked out
        values = each_chunk(lambda chunk: np.ma.filled(chunk, 1), data, data.dtype)
    masked = masked.any(axis=tuple(axis for axis, dim in enumerate(cube.dims) if dim in RESERVED))
    chunks = masked.chunksize if is_dask(masked) else None
    gap = Cube(
        f"masked_{cube.name}", masked, tuple(cube.grid), chunks, f"the mask of {cube.where}", cube.geometry,
        cube.coordinates, kind=cube.kind, gap="nodata", by_position=cube.by_position,
    )  # fmt: skip
    return {cube.name: replace(cube, data=values), gap.name: gap}


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
