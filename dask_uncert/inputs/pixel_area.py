"""Weights of pixels by their own size: area or volume, from the position of the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas.areas import latitude_areas
from dask_uncert.formulas.typing import Floats
from dask_uncert.inputs.alignment import comparable
from dask_uncert.inputs.cube import Cube, without
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.lazy_array import ArrayView

LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "longitude")
EVEN = 1e-3  # of a step: how far steps between coordinates may differ
POWERS = {1: "", 2: "²", 3: "³"}
Sizes = tuple[int, Floats, str]
"""The grid's axis along which sizes differ, the sizes, and their unit."""


class ValuesAlong(ArrayView):
    """A float64 array over a grid whose values depend on the index along one axis only."""

    def __init__(self, shape: Sequence[int], axis: int, values: Floats) -> None:
        """values: (shape[axis],), or (1,) for a constant."""
        super().__init__(shape, np.float64)
        self.values = np.reshape(values, [-1 if i == axis else 1 for i in range(self.ndim)])

    def read(self, region: tuple[Any, ...]) -> Floats:
        return np.array(np.broadcast_to(self.values, self.shape)[region])


def pixel_sizes(cubes: Mapping[str, Cube]) -> Cube:
    """Return the input `weight`: each pixel's area or volume, by the reference or the first input with a position.

    Raises InputError where no input has a position that gives sizes.
    """
    cubes = comparable(cubes)
    for name in sorted(cubes, key=lambda name: name != "reference"):
        cube = _on_the_ground(cubes[name])
        sizes = None if cube.geometry is None else _of_geometry(cube, cube.geometry)
        sizes = sizes or _of_coordinates(cube)
        if sizes is not None:
            axis, values, unit = sizes
            data = ValuesAlong([*cube.grid.values()], axis, values)
            return Cube(
                "weight", data, tuple(cube.grid), where=f"the size of pixels of {cube.where}", geometry=cube.geometry,
                coordinates=cube.coordinates, unit=unit,
            )  # fmt: skip
    raise InputError(
        "weight: no input says how large its pixels are: `geometry` needs an affine, a projection, or the coordinates "
        "lat and lon in degrees. Give an array of weights, or store the inputs with their geometry."
    )


def _on_the_ground(cube: Cube) -> Cube:
    """Return an input without dimensions of a single index that are none of space, such as one time."""
    space = () if cube.geometry is None else cube.geometry.dims
    single = [d for d, n in cube.grid.items() if n == 1 and d not in space and d.lower() not in LATITUDES + LONGITUDES]
    return without(cube, *single) if len(single) < len(cube.grid) else cube


def _of_geometry(cube: Cube, geometry: Geometry) -> Sizes | None:
    dims = tuple(cube.grid)
    if not set(dims) <= set(geometry.dims):
        return None
    steps = np.array([geometry.steps[geometry.dims.index(dim)] for dim in dims])
    if geometry.unit == "degree":
        return _of_degrees(cube, geometry, steps)
    if len(dims) == 3:
        size = abs(steps[0] @ np.cross(steps[1], steps[2]))
    else:
        size = np.linalg.norm(np.cross(*steps) if len(dims) == 2 else steps)
    return 0, np.array([float(size)]), f"{geometry.unit}{POWERS[len(dims)]}"


def _of_degrees(cube: Cube, geometry: Geometry, steps: Floats) -> Sizes | None:
    """Return sizes where longitude and latitude run along the axes of the grid."""
    dims = tuple(cube.grid)
    if len(dims) != 2 or (np.count_nonzero(steps, axis=1) != 1).any():
        return None
    axis = int(steps[1, 1] != 0)
    n, step = cube.grid[dims[axis]], steps[axis, 1]
    edges = geometry.origin[1] + step * (np.arange(n + 1) - 0.5)
    return axis, latitude_areas(edges, steps[1 - axis, 0]), "m²"


def _of_coordinates(cube: Cube) -> Sizes | None:
    dims = tuple(cube.grid)
    known = cube.coordinates or {}
    lat = next((dim for dim in dims if dim.lower() in LATITUDES and dim in known), None)
    lon = next((dim for dim in dims if dim.lower() in LONGITUDES and dim in known), None)
    if lat is None or lon is None or len(dims) != 2 or min(known[lat].size, known[lon].size) < 2:
        return None
    degrees, widths = np.asarray(known[lat], np.float64), np.diff(np.asarray(known[lon], np.float64))
    if np.ptp(widths) > EVEN * abs(widths[0]):
        raise InputError(f"weight: coordinates {lon} of {cube.where} are not evenly spaced; give an array.")
    first, last = 1.5 * degrees[0] - degrees[1] / 2, 1.5 * degrees[-1] - degrees[-2] / 2
    edges = np.concatenate([[first], (degrees[1:] + degrees[:-1]) / 2, [last]])
    return dims.index(lat), latitude_areas(edges, float(widths[0])), "m²"
