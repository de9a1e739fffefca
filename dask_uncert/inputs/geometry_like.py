"""The position of an array whose file holds none, from another file of the same pixels."""

from __future__ import annotations

from dataclasses import replace

from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import RESERVED, Cube
from dask_uncert.io.open import open_stored


def with_geometry_like(cube: Cube, path: str) -> Cube:
    """Return the cube with the affine or the coordinates of the file at a path, by the names of dimensions.

    Raises InputError where the cube has a position of its own, where the file has none, and where sizes differ.
    """
    if cube.geometry is not None or cube.coordinates:
        raise InputError(
            f"{cube.name}: {cube.where} has a position of its own; leave out `geometry: {{like: {path}}}`."
        )
    like = open_stored(path, "", cube.name)
    names = like.dims or ()
    geometry = like.geometry(names) if names else None
    known = like.coordinates(names) if names else {}
    coordinates = {dim: values for dim, values in known.items() if dim in cube.grid}
    if geometry is None and not coordinates:
        raise InputError(f"{cube.name}: geometry: {path} has neither an affine nor coordinates of named dimensions.")
    sizes = {dim: n for dim, n in zip(names, like.shape, strict=True) if dim not in RESERVED}
    spare = [dim for dim, n in sizes.items() if n == 1 and dim not in cube.grid]
    sizes = {dim: n for dim, n in sizes.items() if dim not in spare}
    if sizes != cube.grid:
        raise InputError(
            f"{cube.name}: geometry: {path} covers {_sizes(sizes)}, but {cube.where} covers {_sizes(cube.grid)}. Name the "
            f"dimensions of the array in its own order, by the names in that file: nnU-Net's arrays are `dims: [class, z, "
            f"y, x]`. Its first version leaves out what it cropped; export those with their full size."
        )
    if geometry is not None:
        geometry = geometry.along([dim for dim in cube.dims if dim in geometry.dims])
    return replace(
        cube,
        geometry=geometry,
        coordinates={dim: values for dim, (values, _) in coordinates.items()} or None,
        coordinate_attributes={dim: attributes for dim, (_, attributes) in coordinates.items()},
        crs=like.crs,
        like=like,
    )


def _sizes(grid: dict[str, int]) -> str:
    return ", ".join(f"{dim} = {n}" for dim, n in grid.items())
