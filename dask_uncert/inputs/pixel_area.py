"""What pixels weigh by their own size: area or volume, from where the grid lies."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.areas import latitude_areas
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.geometry import Geometry

LATITUDES, LONGITUDES = ("lat", "latitude"), ("lon", "longitude")
EVEN = 1e-3  # of a step: how far steps between coordinates may differ
POWERS = {1: "", 2: "²", 3: "³"}


class Along:
    """A float64 array over a grid whose values depend on the index along one axis only; slices like one."""

    def __init__(self, shape: Sequence[int], axis: int, values: NDArray[np.float64]) -> None:
        """values: (shape[axis],), or (1,) for a constant."""
        self.shape, self.axis = tuple(shape), axis
        self.ndim, self.dtype = len(self.shape), np.dtype(np.float64)
        self.values = np.broadcast_to(values, (self.shape[axis],))

    def __getitem__(self, region: Any) -> NDArray[np.float64]:
        """region: slices, an Ellipsis for those left out."""
        whole = self.values.reshape([-1 if i == self.axis else 1 for i in range(self.ndim)])
        return np.array(np.broadcast_to(whole, self.shape)[region])

    def fingerprint(self) -> str:
        """Changes with the values."""
        return hashlib.sha256(repr((self.shape, self.axis)).encode() + self.values.tobytes()).hexdigest()

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside it."""
        return {}


def weight_of(cubes: Mapping[str, Cube]) -> Cube:
    """The input `weight`: each pixel's area or volume, over the grid of the reference or of what knows where it lies.

    Raises InputError where no input says so in a way that gives sizes.
    """
    names = sorted(cubes, key=lambda name: name != "reference")
    for name in names:
        cube = cubes[name]
        found = None if cube.geometry is None else _of_geometry(cube, cube.geometry)
        found = found or _of_coordinates(cube)
        if found is not None:
            axis, values, unit = found
            dims = tuple(cube.grid)
            data = Along(tuple(cube.grid.values()), axis, values)
            return Cube(
                "weight", data, dims, where=f"the size of pixels of {cube.where}", geometry=cube.geometry,
                coordinates=cube.coordinates, unit=unit,
            )  # fmt: skip
    raise InputError(
        "weight: no input says how large its pixels are: `geometry` needs an affine, a projection, or the coordinates "
        "lat and lon in degrees. Give an array of weights, or store the inputs with their geometry."
    )


Sizes = tuple[int, NDArray[np.float64], str]
"""The grid's axis along which sizes differ, the sizes, and their unit."""


def _of_geometry(cube: Cube, geometry: Geometry) -> Sizes | None:
    dims = tuple(cube.grid)
    if not set(dims) <= set(geometry.dims):
        return None
    steps = np.array([geometry.steps[geometry.dims.index(d)] for d in dims])
    if geometry.unit == "degree":
        return _of_degrees(cube, geometry, steps)
    if len(dims) == 2:
        size = float(np.linalg.norm(np.cross(*steps)))
    else:
        size = float(
            abs(steps[0] @ np.cross(steps[1], steps[2])) if len(dims) == 3 else np.linalg.norm(steps)
        )
    return 0, np.array([size]), f"{geometry.unit}{POWERS[len(dims)]}"


def _of_degrees(cube: Cube, geometry: Geometry, steps: NDArray[np.float64]) -> Sizes | None:
    """Longitude and latitude along the axes of the grid."""
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
    lat = next((d for d in dims if d.lower() in LATITUDES and d in known), None)
    lon = next((d for d in dims if d.lower() in LONGITUDES and d in known), None)
    if lat is None or lon is None or len(dims) != 2 or min(known[lat].size, known[lon].size) < 2:
        return None
    degrees, wide = np.asarray(known[lat], np.float64), np.diff(np.asarray(known[lon], np.float64))
    if np.ptp(wide) > EVEN * abs(wide[0]):
        raise InputError(
            f"weight: the coordinates {lon} of {cube.where} are not evenly spaced; give an array."
        )
    middle = (degrees[1:] + degrees[:-1]) / 2
    edges = np.concatenate(
        [[1.5 * degrees[0] - degrees[1] / 2], middle, [1.5 * degrees[-1] - degrees[-2] / 2]]
    )
    return dims.index(lat), latitude_areas(edges, float(wide[0])), "m²"
