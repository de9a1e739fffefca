"""Inputs brought together by the coordinates that stand beside their dimensions, beside what affines say.

Coordinates that are equal within a hundredth of their spacing are the same; those that run the other way are read
from their end. Nothing is joined by exact equality, and nothing is interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.typing import Floats
from dask_uncert.io.geometry import TOLERANCE, Placed, Reversed, brought_together

ALONE = 1e-6  # relative: how far coordinates of a dimension of one index may differ, which has no spacing
STRAIGHT = 1e-6  # of a step: what it may go along other axes and still run along one, by rounding


class Marked(Placed, Protocol):
    """An input with named dimensions that may know their coordinates."""

    @property
    def coordinates(self) -> Mapping[str, NDArray[Any]] | None: ...
    @property
    def crs(self) -> str | None: ...
    @property
    def grid(self) -> dict[str, int]: ...


AnyMarked = TypeVar("AnyMarked", bound=Marked)


def together(inputs: Mapping[str, AnyMarked]) -> dict[str, AnyMarked]:
    """The inputs along the axes of the reference, or of the first that knows where it lies.

    Raises InputError for inputs that lie elsewhere.
    """
    found = brought_together(inputs)
    names = sorted(found, key=lambda name: name != "reference")  # the reference first, else in their order
    for dim in dict.fromkeys(dim for one in found.values() for dim in one.grid):
        turned: list[str] = []
        known = {name: values for name in names if (values := along(found[name], dim)) is not None}
        _check_straight([found[name] for name in names], dim)
        if len(known) < 2:
            continue
        first, *others = known
        for name in others:
            if found[name].geometry is not None and found[first].geometry is not None:
                continue  # compared already, in all dimensions at once
            check_systems(found[name], found[first])
            if _is_reversed(found[name], known[name], found[first], known[first], dim):
                found[name] = _reversed(found[name], dim)
                turned.append(name)
        silent = [name for name in names if dim in found[name].grid and name not in known]
        if turned and silent:
            raise InputError(
                f"{turned[0]}: {inputs[turned[0]].where} runs the other way along {dim} than {found[first].where} "
                f"({first}) does, but {found[silent[0]].where} ({silent[0]}) does not say how it runs. Store it with "
                f"coordinates, or all the same way."
            )
    return found


def along(one: Marked, dim: str) -> Floats | None:
    """The coordinates of a dimension: those that stand beside it, or what an affine along one axis says."""
    if dim not in one.grid:
        return None
    known = one.coordinates or {}
    if dim in known:
        values = np.asarray(known[dim], np.float64)
        steps = np.diff(values)
        if not np.isfinite(values).all() or not ((steps > 0).all() or (steps < 0).all()):
            raise InputError(
                f"{one.name}: the coordinates of {dim} in {one.where} neither rise nor fall throughout. Correct them, or "
                f"store the array without."
            )
        return values
    if one.geometry is None or dim not in one.geometry.dims:
        return None
    step = one.geometry.steps[one.geometry.dims.index(dim)]
    axes = [axis for axis in range(3) if abs(step[axis]) > STRAIGHT * max(map(abs, step))]
    if len(axes) != 1:
        return None
    return np.asarray(one.geometry.origin[axes[0]] + step[axes[0]] * np.arange(one.grid[dim]), np.float64)


def _check_straight(inputs: list[AnyMarked], dim: str) -> None:
    """Refuse an affine that runs askew beside mere coordinates: whether they agree cannot be told."""
    askew = [
        one
        for one in inputs
        if one.geometry is not None
        and dim in one.geometry.dims
        and along(one, dim) is None
        and one.grid[dim] > 1
    ]
    plain = [one for one in inputs if one.geometry is None and along(one, dim) is not None]
    if askew and plain:
        raise InputError(
            f"{askew[0].name}: {askew[0].where} runs askew along {dim}, by its affine, and {plain[0].where} "
            f"({plain[0].name}) has coordinates only, so whether they lie together cannot be told. Resample the first to "
            f"the other's axes."
        )


def check_systems(one: Marked, first: Marked) -> None:
    """Refuse two inputs of different reference systems."""
    systems = [one.crs or (one.geometry.crs if one.geometry else None) for one in (one, first)]
    if None not in systems and systems[0] != systems[1]:
        raise InputError(
            f"{one.name}: {one.where} has the reference system {systems[0]}, but {first.where} ({first.name}) has "
            f"{systems[1]}. Project one to the other's."
        )


def _is_reversed(one: Marked, own: Floats, first: Marked, wanted: Floats, dim: str) -> bool:
    """Whether the coordinates are the same the other way round; InputError unless they are the same in one way."""
    if own.size != wanted.size:
        return False  # the check of the grids says which sizes differ
    if own.size == 1:
        allowed = ALONE * max(1.0, abs(float(wanted[0])))
    else:
        allowed = TOLERANCE * float(min(np.abs(np.diff(own)).min(), np.abs(np.diff(wanted)).min()))
    apart = [float(np.abs(values - wanted).max()) for values in (own, own[::-1])]
    if apart[0] <= allowed:
        return False
    if apart[1] <= allowed:
        return True
    raise InputError(
        f"{one.name}: the coordinates of {dim} in {one.where} differ from those in {first.where} ({first.name}) by up to "
        f"{min(apart):.6g}; {allowed:.2g} is allowed, a hundredth of their spacing. The first run from {own[0]:.10g} to "
        f"{own[-1]:.10g}, the second from {wanted[0]:.10g} to {wanted[-1]:.10g}. Resample one to the other's grid."
    )


def _reversed(one: AnyMarked, dim: str) -> AnyMarked:
    known = dict(one.coordinates or {})
    if dim in known:
        known[dim] = known[dim][::-1]
    axis = one.dims.index(dim)
    return replace(
        one,
        data=Reversed(one.data, (axis,)),
        where=f"{one.where} ({dim} reversed)",
        coordinates=known,
        geometry=None,  # that of the others, which it now follows
    )
