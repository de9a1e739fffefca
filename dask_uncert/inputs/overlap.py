"""Inputs that cover other parts of one grid: each is read where it is, and known to be outside elsewhere.

Asked for only: by default inputs that do not cover the same pixels are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.typing import Floats
from dask_uncert.inputs.alignment import along, check_systems
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.geometry import TOLERANCE, Reversed
from dask_uncert.io.lazy_array import Wrapped, whole_region


class Windowed(Wrapped):
    """A stored array as if it covered a larger or shifted grid: zeros where it does not; slices like one."""

    def __init__(self, data: Any, offset: Sequence[int], shape: Sequence[int]) -> None:
        """offset: where index 0 of the array lies in the new grid, along every axis. shape: of the new grid."""
        super().__init__(data)
        self.offset, self.shape = tuple(offset), tuple(shape)
        self.ndim, self.dtype = len(self.shape), np.dtype(data.dtype)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        """region: slices with step 1, an Ellipsis for those left out."""
        parts = [
            part.indices(n)[:2] for part, n in zip(whole_region(region, self.ndim), self.shape, strict=True)
        ]
        found = np.zeros([max(0, stop - start) for start, stop in parts], self.dtype)
        inner, outer = [], []
        for (start, stop), offset, n in zip(parts, self.offset, self.data.shape, strict=True):
            first, last = max(start - offset, 0), min(stop - offset, n)
            if last <= first:
                return found
            inner.append(slice(first, last))
            outer.append(slice(first + offset - start, last + offset - start))
        found[tuple(outer)] = self.data[tuple(inner)]
        return found

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None: those that stand beside the array are of its own part."""
        return {}


class Outside:
    """A uint8 array over a grid: 0 inside of a box, 1 outside; slices like one."""

    def __init__(self, shape: Sequence[int], box: Sequence[tuple[int, int]]) -> None:
        """box: first index inside and first beyond, along every axis."""
        self.shape, self.box = tuple(shape), tuple(box)
        self.ndim, self.dtype = len(self.shape), np.dtype(np.uint8)

    def __getitem__(self, region: Any) -> NDArray[np.uint8]:
        inside = np.ones((1,) * self.ndim, np.bool_)
        given = whole_region(region, self.ndim)
        for axis, (n, (first, last), part) in enumerate(zip(self.shape, self.box, given, strict=True)):
            index = np.arange(n)[part]
            side = [-1 if i == axis else 1 for i in range(self.ndim)]
            inside = inside & ((index >= first) & (index < last)).reshape(side)
        return np.asarray(~inside, np.uint8)

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside it."""
        return {}


def over_the_reference(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """The inputs over the reference's grid; for each that does not cover it, an input `outside_...` says where.

    All must say where they lie along every dimension of the grid, in the same steps. Raises InputError otherwise, and
    where one has no pixel in common with the reference.
    """
    target = cubes["reference"]
    wanted = {dim: _known(target, dim) for dim in target.grid}
    found = dict(cubes)
    for name, cube in cubes.items():
        if name == "reference" or name.startswith(("outside_", "absent_")):
            continue
        if set(cube.grid) != set(target.grid):
            continue  # the check of the grids says which dimensions differ
        check_systems(cube, target)
        offsets = {}
        for dim in target.grid:
            own = _known(cube, dim)
            if (
                own.size > 1
                and wanted[dim].size > 1
                and (own[1] - own[0]) * (wanted[dim][1] - wanted[dim][0]) < 0
            ):
                cube = replace(cube, data=Reversed(cube.data, (cube.dims.index(dim),)))
                own = own[::-1]
            offsets[dim] = _offset(cube, own, target, wanted[dim], dim)
        sizes = cube.grid
        if all(offsets[dim] == 0 and sizes[dim] == n for dim, n in target.grid.items()):
            found[name] = _placed(cube, target, cube.data)
            continue
        box = [(offsets[dim], offsets[dim] + sizes[dim]) for dim in target.grid]
        if any(last <= 0 or first >= n for (first, last), n in zip(box, target.grid.values(), strict=True)):
            raise InputError(f"{name}: {cube.where} has no pixel in common with {target.where} (reference).")
        shape = [target.grid.get(dim, n) for dim, n in zip(cube.dims, cube.data.shape, strict=True)]
        data = Windowed(cube.data, [offsets.get(dim, 0) for dim in cube.dims], shape)
        found[name] = _placed(cube, target, data)
        outside = Outside(tuple(target.grid.values()), box)
        where = f"outside of {cube.where}"
        found[f"outside_{name}"] = Cube(f"outside_{name}", outside, tuple(target.grid), None, where)
    return found


def _placed(cube: Cube, target: Cube, data: Any) -> Cube:
    """The cube over the target's grid, which it now lies on."""
    return replace(cube, data=data, geometry=None, coordinates=None, crs=None)


def _known(cube: Cube, dim: str) -> Floats:
    values = along(cube, dim)
    if values is None:
        raise InputError(
            f"{cube.name}: {cube.where} does not say where it lies along {dim}, which `overlap` needs. Store it with "
            f"coordinates, or an affine along its axes."
        )
    return values


def _offset(one: Cube, own: Floats, target: Cube, wanted: Floats, dim: str) -> int:
    """Where index 0 of an input lies along a dimension of the target's; InputError where it lies between pixels."""
    steps = np.concatenate([np.diff(wanted), np.diff(own)])
    if not steps.size:
        steps = np.ones(1)
    at = (own[0] - wanted[0]) / steps[0]
    offset = round(float(at))
    first, last = max(0, offset), min(wanted.size, offset + own.size)
    apart = np.abs(own[first - offset : last - offset] - wanted[first:last])
    most = float(apart.max(initial=abs(at - offset) * abs(steps[0])))
    allowed = TOLERANCE * float(np.abs(steps).min())
    if most > allowed:
        raise InputError(
            f"{one.name}: along {dim} the pixels of {one.where} lie up to {most:.6g} beside those of {target.where} "
            f"({target.name}); {allowed:.2g} is allowed. Resample one to the other's grid."
        )
    return offset
