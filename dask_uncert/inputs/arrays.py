"""Arrays of any kind as the inputs of an evaluation: numpy, dask, xarray or zarr to Cubes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas.array_dispatch import is_dask, is_labelled
from dask_uncert.inputs.cube import BAND, CLASS, SAMPLE, Cube, make_cube
from dask_uncert.inputs.scene import prediction
from dask_uncert.io.readers.zarr import describe

Place = int | str


def cubes_of(
    given: Mapping[str, Any], *, axis: Place | None, sample_axis: Place, band_axis: Place, fuzzy: bool
) -> dict[str, Cube]:
    """The inputs that are there (not None) as Cubes; the prediction's names the grid's dimensions.

    axis, sample_axis, band_axis: where classes, samples and bands lie; the classes of samples are counted
    without the sample axis. Samples in a list become inputs of their own. fuzzy: a reference with one
    dimension more than the grid has its classes on `axis`.
    """
    classes: dict[str, Place] = {} if axis is None else {CLASS: axis}
    apart = isinstance(given.get("samples"), list | tuple)
    cubes: dict[str, Cube] = {}
    grid: tuple[str, ...] | None = None
    for name, data in given.items():
        if data is None:
            continue
        if name == "samples" and apart:
            if not data:
                raise InputError("samples: the list is empty.")
            for number, member in enumerate(data):
                cube = cube_of(f"samples_{number}", member, classes, grid)
                cubes[cube.name] = replace(cube, kind="samples")
                grid = tuple(prediction(cubes).grid)
            continue
        places: dict[str, Place] = {}
        if name in ("probabilities", "samples"):
            places = classes
        if name == "samples":
            places = {**classes, SAMPLE: sample_axis}
        elif name == "features":
            places = {BAND: band_axis}
        elif name == "reference" and fuzzy and grid is not None and len(np.shape(data)) == len(grid) + 1:
            places = classes
        cubes[name] = cube_of(name, data, places, grid)
        if grid is None:
            grid = tuple(prediction(cubes).grid)
    return cubes


def cube_of(name: str, data: Any, places: Mapping[str, Place], grid: tuple[str, ...] | None) -> Cube:
    """An array as a Cube; `places` says where reserved dimensions lie, `grid` names the others.

    Each place is counted without the reserved dimensions after it.
    """
    if isinstance(data, Cube):
        return data
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
    ndim = len(data.shape)
    if not names:
        others = ndim - len(places)
        positions = grid if grid is not None and len(grid) == others else [f"dim_{i}" for i in range(others)]
        names = list(positions)
        for reserved, place in places.items():
            names.insert(_number(name, place, len(names) + 1), reserved)
    else:
        rest = list(range(ndim))
        for reserved, place in reversed(list(places.items())):
            if reserved in names:
                at = names.index(reserved)
            else:
                at = names.index(str(place)) if place in names else rest[_number(name, place, len(rest))]
                names[at] = reserved
            rest.remove(at)
    cube = make_cube(name, data, names, None, chunks, f"the array given as {name}")
    return replace(cube, coordinates=known) if known else cube


def _number(name: str, place: Place, ndim: int) -> int:
    if isinstance(place, str):
        raise InputError(f"{name}: there is no dimension {place!r}; give the axis's number.")
    if not -ndim <= place < ndim:
        raise InputError(f"{name}: axis {place} is out of range for {ndim} dimensions.")
    return place % ndim
