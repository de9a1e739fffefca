"""Alignment of inputs along the same axes, by their affines or the coordinates of their dimensions.

Two files may hold the same pixels in another order of axes, or along an axis from its other end. Such inputs are
aligned by renaming dimensions and reading axes from their ends: nothing is copied, interpolated or joined by exact
equality. Grids that differ otherwise are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas.typing import Floats
from dask_uncert.inputs.cube import Cube, without
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.lazy_array import Reversed
from dask_uncert.io.reference_systems import same_reference_system

TOLERANCE = 1e-2
"""How far apart two inputs may put the same pixel, in sides of the smallest pixel or steps between coordinates.

Headers hold float32: the matrix made of a NIfTI quaternion is off by up to about 6e-6 (where its first
component, which is not stored, is as small as .02), a third of this over 512 voxels.
"""
SINGLE = 1e-6  # relative: how far coordinates of a dimension with one index, which has no step, may differ
STRAIGHT = 1e-6  # of a step: what rounding may add along other axes to a step along one
LONGEST_CRS = 80  # characters of a reference system that a message shows


def align_axes(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """Return the inputs along the axes of the reference, or of the first that knows its position.

    Raises InputError for inputs at other positions.
    """
    cubes = comparable(cubes)
    aligned = align_by_affine(cubes)
    names = sorted(aligned, key=lambda name: name != "reference")  # the reference first, else in their order
    for dim in dict.fromkeys(dim for cube in aligned.values() for dim in cube.grid):
        reversed_names: list[str] = []
        along = {name: coordinates_along(aligned[name], dim) for name in names}
        known = {name: values for name, values in along.items() if values is not None}
        _check_straight([aligned[name] for name in names], dim)
        _check_turned([aligned[name] for name in names], dim)
        if len(known) < 2:
            continue
        first, *rest = known
        target = aligned[first]
        for name in rest:
            cube = aligned[name]
            if cube.geometry is not None and target.geometry is not None:
                continue  # compared already, in all dimensions at once
            check_reference_systems(cube, target)
            if _is_reversed(cube, known[name], target, known[first], dim):
                aligned[name] = reverse(cube, dim)
                reversed_names.append(name)
        silent = [name for name in names if dim in aligned[name].grid and name not in known]
        if reversed_names and silent:
            raise InputError(
                f"{reversed_names[0]}: {cubes[reversed_names[0]].where} runs the other way along {dim} than "
                f"{target.where} ({first}) does, but {aligned[silent[0]].where} ({silent[0]}) does not say how it runs. "
                f"Store it with coordinates, or all the same way."
            )
    return aligned


def comparable(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """Return the inputs as far as they can be compared: without dimensions that only some have, in known units.

    Raises InputError for a unit that is not known.
    """
    return _with_units(_without_single(cubes))


def _without_single(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """Return the inputs without dimensions of a single index that others lack, such as one time or channel."""
    kept = dict(cubes)
    for dim in dict.fromkeys(dim for cube in cubes.values() for dim in cube.grid):
        having = {name: cube for name, cube in kept.items() if dim in cube.grid}
        is_single = all(cube.grid[dim] == 1 and len(cube.grid) > 1 for cube in having.values())
        if is_single and len(having) < len(kept):
            kept |= {name: without(cube, dim) for name, cube in having.items()}
    return kept


def coordinates_along(cube: Cube, dim: str) -> Floats | None:
    """Return the coordinates of a dimension: those stored with the input, or those of an affine along one axis."""
    if dim not in cube.grid:
        return None
    known = cube.coordinates or {}
    if dim in known:
        values = np.asarray(known[dim], np.float64)
        steps = np.diff(values)
        if not np.isfinite(values).all() or not ((steps > 0).all() or (steps < 0).all()):
            raise InputError(
                f"{cube.name}: the coordinates of {dim} in {cube.where} neither rise nor fall throughout. Correct them, "
                f"or store the array without."
            )
        return values
    if cube.geometry is None or dim not in cube.geometry.dims:
        return None
    step = cube.geometry.steps[cube.geometry.dims.index(dim)]
    axes = [axis for axis in range(3) if abs(step[axis]) > STRAIGHT * max(map(abs, step))]
    if len(axes) != 1:
        return None
    return np.asarray(cube.geometry.origin[axes[0]] + step[axes[0]] * np.arange(cube.grid[dim]), np.float64)


def reverse(cube: Cube, *dims: str) -> Cube:
    """Return an input with dimensions read from their ends, and without an affine."""
    known = {dim: v[::-1] if dim in dims else v for dim, v in (cube.coordinates or {}).items()}
    data = Reversed(cube.data, [cube.dims.index(dim) for dim in dims])
    where = f"{cube.where} ({', '.join(f'{dim} reversed' for dim in dims)})"
    return replace(cube, data=data, where=where, coordinates=known, coordinate_attributes={}, geometry=None)


def check_reference_systems(cube: Cube, target: Cube) -> None:
    """Refuse two inputs with different reference systems; two spellings of one are the same."""
    own, other = (c.crs or (c.geometry.crs if c.geometry else None) for c in (cube, target))
    if own and other and not same_reference_system(own, other):
        own, other = (s if len(s) <= LONGEST_CRS else f"{s[: LONGEST_CRS - 3]}..." for s in (own, other))
        raise InputError(
            f"{cube.name}: {cube.where} has the reference system {own}, but {target.where} ({target.name}) has "
            f"{other}. Project one to the other's."
        )


def _check_straight(cubes: Sequence[Cube], dim: str) -> None:
    """Refuse an affine that is not along the axes next to an input with coordinates only: they cannot be compared."""
    known = {cube.name: coordinates_along(cube, dim) is not None for cube in cubes}
    affine = [c for c in cubes if c.geometry is not None and dim in c.geometry.dims and not known[c.name]]
    oblique = [cube for cube in affine if cube.grid[dim] > 1]
    plain = [cube for cube in cubes if cube.geometry is None and known[cube.name]]
    if oblique and plain:
        raise InputError(
            f"{oblique[0].name}: {oblique[0].where} is oblique along {dim}, by its affine, and {plain[0].where} "
            f"({plain[0].name}) has coordinates only, so they cannot be compared. Resample the first to the other's axes."
        )


def _check_turned(cubes: Sequence[Cube], dim: str) -> None:
    """Refuse an input without a position next to one whose affine turns this axis, unless it is read by position."""
    turned = [c for c in cubes if c.grid.get(dim, 1) > 1 and c.geometry is not None and dim in c.geometry.turned]
    silent = [
        cube
        for cube in cubes
        if dim in cube.grid
        and not cube.by_position
        and coordinates_along(cube, dim) is None
        and (cube.geometry is None or dim not in cube.geometry.dims)
    ]
    if turned and silent:
        raise InputError(
            f"{turned[0].name}: the affine of {turned[0].where} turns its axis {dim}, but {silent[0].where} "
            f"({silent[0].name}) does not say how its axes run. Store it with its affine; or name "
            f"a file that has it, by `geometry: {{like: FILE}}`; or, if the two hold the same "
            f"pixels in the same order, give {silent[0].name} `by_position: true`."
        )


def _is_reversed(cube: Cube, own: Floats, target: Cube, others: Floats, dim: str) -> bool:
    """Return whether coordinates equal the target's in reverse; InputError if they equal them in neither order."""
    if own.size != others.size:
        return False  # the check of the grids says which sizes differ
    if own.size == 1:
        allowed = SINGLE * max(1.0, abs(float(others[0])))
    else:
        allowed = TOLERANCE * float(min(np.abs(np.diff(own)).min(), np.abs(np.diff(others)).min()))
    distances = [float(np.abs(values - others).max()) for values in (own, own[::-1])]
    if distances[0] <= allowed:
        return False
    if distances[1] <= allowed:
        return True
    raise InputError(
        f"{cube.name}: the coordinates of {dim} in {cube.where} differ from those in {target.where} ({target.name}) by up "
        f"to {min(distances):.6g}; {allowed:.2g} is allowed, a hundredth of their spacing. The first run from "
        f"{own[0]:.10g} to {own[-1]:.10g}, the second from {others[0]:.10g} to {others[-1]:.10g}. Resample one to the "
        f"other's grid."
    )


def shared_geometry(cubes: Mapping[str, Cube]) -> Geometry | None:
    """Return the geometry of the reference, else of the first input that has one; None where none has."""
    known = {name: cube.geometry for name, cube in cubes.items() if cube.geometry is not None}
    return known.get("reference", next(iter(known.values()), None))


def align_by_affine(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """Return the inputs with the axes of the reference, or of the first with an affine where the reference has none.

    Inputs without an affine stay as they are, but then no other input may need a flip or permutation.
    Raises InputError for inputs at other positions.
    """
    placed = {name: cube for name, cube in cubes.items() if cube.geometry is not None}
    if not placed:
        return dict(cubes)
    target = placed.get("reference", next(iter(placed.values())))
    aligned = {name: _aligned(cube, target) if name in placed else cube for name, cube in cubes.items()}
    moved = [name for name in placed if aligned[name] is not cubes[name]]
    silent = [cube for name, cube in cubes.items() if name not in placed]
    if moved and silent:
        raise InputError(
            f"{moved[0]}: {cubes[moved[0]].where} has other axes than {target.where}, but {silent[0].where} "
            f"({silent[0].name}) does not say what its axes are. Store it with an affine, or all with the same axes."
        )
    return aligned


def _with_units(cubes: Mapping[str, Cube]) -> dict[str, Cube]:
    """Return the inputs, those that do not say the unit of their scale with that of one that has the same numbers.

    Raises InputError for an input without a unit where others have one, but other numbers.
    """
    found = dict(cubes)
    images = [(cube, cube.geometry) for cube in cubes.values() if cube.geometry is not None]
    for name, cube in cubes.items():
        own = cube.geometry
        if own is None or not own.lacks_unit:
            continue
        known = [(image, g) for image, g in images if g.unit == "mm" and set(g.dims) == set(own.dims)]
        same = [(image, filled) for image, g in known if (filled := own.in_units_of(g)).has_scale_of(g)]
        if same:
            image, filled = same[0]
            remark = (
                f"{name}: {cube.where} does not say the unit of its scale; it is taken from {image.where} "
                f"({image.name}), whose scale has the same numbers."
            )
            found[name] = replace(cube, geometry=filled, remarks=(*cube.remarks, *([] if cube.gap else [remark])))
        elif known:
            image, geometry = known[0]
            raise InputError(
                f"{name}: {cube.where} does not say the unit of its scale, {own}, and its numbers are not those of "
                f"{image.where} ({image.name}), {geometry}. Write the unit into its metadata."
            )
    return found


def _aligned(cube: Cube, target: Cube) -> Cube:
    own, others = cube.geometry, target.geometry
    assert own is not None
    assert others is not None
    if set(own.dims) != set(others.dims):
        if set(cube.grid) != set(target.grid):
            return cube  # the check of the grids says which dimensions differ
        raise InputError(
            f"{cube.name}: the affine of {cube.where} is along {', '.join(own.dims)}, and that of {target.where} "
            f"({target.name}) along {', '.join(others.dims)}, so they cannot be compared. Store both along the same "
            f"axes; or, if the two hold the same pixels in the same order, give one `by_position: true`."
        )
    check_reference_systems(cube, target)
    moves = _moves(own, others, cube.sizes)
    if moves is None:
        raise InputError(
            f"{cube.name}: {cube.where} and {target.where} ({target.name}) have different grids, not one grid with "
            f"axes flipped or permuted. {_difference(own, others, cube.sizes)} Resample one to the other's grid."
        )
    names, flipped = moves
    renamed = {old: new for old, new in names.items() if old != new}
    if not flipped and not renamed:
        return cube
    cube = reverse(cube, *flipped) if flipped else cube
    return replace(
        cube,
        dims=tuple(names.get(dim, dim) for dim in cube.dims),
        where=cube.where + "".join(f" ({old} as {new})" for old, new in renamed.items()),
        geometry=others,
        coordinates={names.get(dim, dim): values for dim, values in (cube.coordinates or {}).items()},
        coordinate_attributes={names.get(dim, dim): a for dim, a in cube.coordinate_attributes.items()},
    )


def _moves(own: Geometry, others: Geometry, sizes: Mapping[str, int]) -> tuple[dict[str, str], list[str]] | None:
    """Return the target's name of each own dimension, and the reversed dimensions; None if the grids differ more."""
    # Own indices along each axis, for one of the target's.
    signs = np.rint(np.linalg.pinv(own.affine[:3, :-1]) @ others.affine[:3, :-1])
    if not all((np.abs(signs).sum(axis=axis) == 1).all() for axis in (0, 1)):
        return None
    own_axes = np.abs(signs).argmax(axis=0)
    names = {own.dims[i]: others.dims[j] for j, i in enumerate(own_axes)}
    flipped = {own.dims[i]: signs[i, j] < 0 for j, i in enumerate(own_axes)}
    last = [sizes[own.dims[i]] - 1 for i in own_axes]
    smallest = min(*own.spacing, *others.spacing)
    for corner in product(*((0, n) for n in last)):
        position = others.affine[:3] @ [*corner, 1]
        index = np.zeros(len(own_axes))
        for j, i in enumerate(own_axes):
            index[i] = last[j] - corner[j] if flipped[own.dims[i]] else corner[j]
        if not np.linalg.norm(own.affine[:3] @ [*index, 1] - position) <= TOLERANCE * smallest:
            return None
    return names, [dim for dim, backwards in flipped.items() if backwards]


def _difference(own: Geometry, others: Geometry, sizes: Mapping[str, int]) -> str:
    """Return a sentence with both affines and the largest distance between the outer voxels."""

    def box(geometry: Geometry) -> Floats:
        corners = product(*((0, sizes[dim] - 1) for dim in geometry.dims))
        positions = np.array([geometry.affine[:3] @ [*corner, 1] for corner in corners])
        return np.stack([positions.min(axis=0), positions.max(axis=0)])

    distance = float(np.abs(box(own) - box(others)).max())
    unit = "" if own.unit == "1" else f" {own.unit}"
    return f"The first has {own}, the second {others}; outer voxels are up to {distance:.6g}{unit} apart."
