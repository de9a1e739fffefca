"""Aligning the inputs of a regression: all cover the mean's grid and have as many outputs."""

from __future__ import annotations

from collections.abc import Mapping

from dask_uncert.errors import InputError, plural
from dask_uncert.inputs.alignment import align_axes
from dask_uncert.inputs.cube import OUTPUT, OUTPUT2, Cube
from dask_uncert.inputs.scene import MASK_VALUES, Scene, check_grids

MOST_OUTPUTS = 8


def align_regression(cubes: Mapping[str, Cube]) -> Scene:
    """Return the inputs as a Scene; raise InputError where they do not fit together."""
    if ("variance" in cubes) == ("covariance" in cubes):
        both = "both" if "variance" in cubes else "neither"
        raise InputError(f"a regression needs either `variance` or `covariance`, found {both}.")
    cubes = align_axes(cubes)
    _check_outputs(cubes)
    check_grids(cubes, cubes["mean"])
    for name, cube in _inputs(cubes).items():
        dtype = cube.data.dtype
        if dtype.kind not in ("biu" if name == "mask" and not cube.decoding.is_packed else "fiu") or dtype.itemsize > 8:
            expected = MASK_VALUES if name == "mask" else "real numbers"
            raise InputError(f"{name}: {cube.where} holds {dtype}; expected {expected}.")
    return Scene(cubes, tuple(cubes["mean"].grid))


def _check_outputs(cubes: Mapping[str, Cube]) -> None:
    mean = cubes["mean"]
    outputs = mean.sizes.get(OUTPUT, 1)
    if not 1 <= outputs <= MOST_OUTPUTS:
        raise InputError(f"mean: {mean.where} has {outputs} outputs; expected 1 to {MOST_OUTPUTS}.")
    special: dict[str, tuple[str, ...]] = {"covariance": (OUTPUT, OUTPUT2), "mask": ()}
    for name, cube in _inputs(cubes).items():
        expected = special.get(name, (OUTPUT,) if OUTPUT in mean.dims else ())
        reserved = tuple(dim for dim in cube.dims if dim not in cube.grid)
        if sorted(reserved) != sorted(expected):
            raise InputError(
                f"{name}: dims {list(cube.dims)} hold {', '.join(reserved) or 'none'} of the reserved dimensions; "
                f"expected {', '.join(expected) or 'none'}."
            )
        for dim in expected:
            if (size := cube.sizes[dim]) != outputs:
                has = plural(outputs, "output")
                raise InputError(f"{name}: {cube.where} has {dim} = {size}, but the mean has {has}.")


def _inputs(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    return {name: cube for name, cube in cubes.items() if cube.gap is None}
