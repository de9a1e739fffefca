"""Inputs that cover different parts of one grid: each is read where it has pixels, and marked as outside elsewhere.

Only on request: by default inputs that do not cover the same pixels are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.typing import Floats
from dask_uncert.inputs.alignment import TOLERANCE, check_reference_systems, comparable, coordinates_along
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.lazy_array import ArrayView, Reversed


class Window(ArrayView):
    """An array as part of a larger or shifted grid, with zeros where it has no pixels; steps of slices must be 1."""

    def __init__(self, data: Any, offset: Sequence[int], shape: Sequence[int]) -> None:
        """offset: of the array's first index in the new grid, along every axis. shape: of the new grid."""
        super().__init__(shape, data.dtype)
        self.data, self.offset = data, tuple(offset)

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        spans = [part.indices(n)[:2] for part, n in zip(region, self.shape, strict=True)]
        values = np.zeros([max(0, stop - start) for start, stop in spans], self.dtype)
        inner, outer = [], []
        for (start, stop), offset, n in zip(spans, self.offset, self.data.shape, strict=True):
            first, last = max(start - offset, 0), min(stop - offset, n)
            if last <= first:
                return values
            inner.append(slice(first, last))
            outer.append(slice(first + offset - start, last + offset - start))
        values[tuple(outer)] = self.data[tuple(inner)]
        return values


class OutsideMask(ArrayView):
    """A uint8 array over a grid: 0 inside a box, 1 outside."""

    def __init__(self, shape: Sequence[int], box: Sequence[tuple[int, int]]) -> None:
        """box: first index inside and first beyond, along every axis."""
        super().__init__(shape, np.uint8)
        self.box = tuple(box)

    def read(self, region: tuple[Any, ...]) -> NDArray[np.uint8]:
        indices = [np.arange(n)[part] for n, part in zip(self.shape, region, strict=True)]
        inside = [(i >= first) & (i < last) for i, (first, last) in zip(indices, self.box, strict=True)]
        sides = np.meshgrid(*inside, indexing="ij", sparse=True)
        return np.asarray(~reduce(np.logical_and, sides), np.uint8)


def over_the_reference(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """Return the inputs over the reference's grid; and a mask for each that does not cover it, 1 outside.

    All must have positions along every dimension of the grid, with the same steps. Raises InputError otherwise, and
    where an input has no pixel in common with the reference.
    """
    cubes = comparable(cubes)
    target = cubes["reference"]
    positions = {dim: _positions(target, dim) for dim in target.grid}
    placed = dict(cubes)
    for name, cube in cubes.items():
        if cube is target or cube.gap is not None or set(cube.grid) != set(target.grid):
            continue  # the check of the grids says which dimensions differ
        check_reference_systems(cube, target)
        offsets, data = {}, cube.data
        for dim in target.grid:
            own = _positions(cube, dim)
            others = positions[dim]
            if own.size > 1 and others.size > 1 and (own[1] > own[0]) != (others[1] > others[0]):
                data, own = Reversed(data, (cube.dims.index(dim),)), own[::-1]
            offsets[dim] = _offset(cube, own, target, others, dim)
        if any(offsets[dim] != 0 or cube.grid[dim] != n for dim, n in target.grid.items()):
            box = [(offsets[dim], offsets[dim] + cube.grid[dim]) for dim in target.grid]
            sizes = [*target.grid.values()]
            if any(last <= 0 or first >= n for (first, last), n in zip(box, sizes, strict=True)):
                raise InputError(f"{name}: {cube.where} shares no pixel with {target.where} (reference).")
            shape = [target.grid.get(dim, n) for dim, n in cube.sizes.items()]
            data = Window(data, [offsets.get(dim, 0) for dim in cube.dims], shape)
            mask = Cube(
                f"outside_{name}", OutsideMask(sizes, box), tuple(target.grid), None,
                f"outside of {cube.where}", kind=cube.kind, gap="outside", by_position=True,
            )  # fmt: skip
            placed[mask.name] = mask
        if data is not cube.data:
            placed[name] = replace(
                cube, data=data, geometry=None, coordinates=None, crs=None, coordinate_attributes={}, by_position=True
            )  # its indices are the reference's now
    return placed


def _positions(cube: Cube, dim: str) -> Floats:
    values = coordinates_along(cube, dim)
    if values is None:
        raise InputError(
            f"{cube.name}: {cube.where} has no positions along {dim}, which `overlap` needs. Store it with coordinates, "
            f"or an affine along its axes."
        )
    return values


def _offset(cube: Cube, own: Floats, target: Cube, others: Floats, dim: str) -> int:
    """Return the target's index of an input's first pixel; InputError where it is between pixels."""
    steps = np.concatenate([np.diff(others), np.diff(own)])
    steps = steps if steps.size else np.ones(1)
    exact = (own[0] - others[0]) / steps[0]
    offset = round(float(exact))
    first, last = max(0, offset), min(others.size, offset + own.size)
    distances = np.abs(own[first - offset : last - offset] - others[first:last])
    furthest = float(distances.max(initial=abs(exact - offset) * abs(steps[0])))
    allowed = TOLERANCE * float(np.abs(steps).min())
    if furthest > allowed:
        raise InputError(
            f"{cube.name}: along {dim} the pixels of {cube.where} are up to {furthest:.6g} away from those of "
            f"{target.where} ({target.name}); {allowed:.2g} is allowed. Resample one to the other's grid."
        )
    return offset
