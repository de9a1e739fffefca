"""Where voxels lie, and inputs brought to one another's axes by it: by flips and permutations, nothing else.

Two files may hold the same voxels in another order of axes, or along an axis from its other end; their affines
say so. Such inputs are brought together by renaming dimensions and by reading axes from their ends, so nothing
is copied or interpolated. Grids that differ by anything else are refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, replace
from itertools import product
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.lazy_array import Wrapped

TOLERANCE = 1e-2
"""How far, in sides of the smallest voxel, the same voxel may lie apart in two inputs.

Headers hold float32: the matrix made of a NIfTI quaternion is off by up to about 6e-6 (where its first
component, which is not stored, is as small as .02), a third of this over 512 voxels.
"""


@dataclass(frozen=True)
class Geometry:
    """Where centres of voxels or pixels lie: origin + the sum over `dims` of index times step.

    unit: of all of them; mm without a reference system (x right, y front, z up), else what `crs` says (x east, y
    north, z 0), "1" where that is not known.
    """

    dims: tuple[str, ...]
    steps: tuple[tuple[float, float, float], ...]
    origin: tuple[float, float, float]
    crs: str | None = None
    unit: str = "mm"

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance of neighbouring centres along each of `dims`."""
        return tuple(float(np.linalg.norm(step)) for step in self.steps)

    @property
    def affine(self) -> NDArray[np.float64]:
        """Index along `dims`, and 1, to a place, and 1: (4, number of dims + 1)."""
        columns = [*((*step, 0.0) for step in self.steps), (*self.origin, 1.0)]
        return np.array(columns, np.float64).T

    def attributes(self) -> dict[str, Any]:
        """As attributes of a stored array, which `geometry_in` reads."""
        found = {"affine": self.affine.tolist(), "affine_dims": list(self.dims), "affine_unit": self.unit}
        return found if self.crs is None else {**found, "crs": self.crs}

    def __str__(self) -> str:
        steps = (f"{dim} ({_numbers(step)})" for dim, step in zip(self.dims, self.steps, strict=True))
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"steps {', '.join(steps)}{unit} from ({_numbers(self.origin)})"


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value + 0.0:.10g}" for value in values)  # never -0


def canonical_crs(text: str) -> str:
    """A reference system by its authority's code where its WKT names one, else its text on one line.

    >>> canonical_crs('PROJCRS["WGS 84 / UTM zone 16N", ID["EPSG",32616]]')
    'EPSG:32616'
    """
    line = " ".join(text.split())
    found = re.search(r'(?:AUTHORITY|ID)\["(\w+)",\s*"?(\w+)"?\]\s*\]$', line)
    return f"{found[1]}:{found[2]}" if found else line


def geometry_of(affine: Any, dims: Sequence[str], crs: str | None = None, unit: str = "mm") -> Geometry:
    """The Geometry of an affine, rows x, y, z (and 0 0 0 1), one column for each of `dims` and one for the origin.

    Raises ValueError where it has another shape or holds what is no finite number.
    """
    matrix = np.asarray(affine, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] not in (3, 4) or matrix.shape[1] != len(dims) + 1:
        raise ValueError(
            f"an affine for {', '.join(dims)} has shape (4, {len(dims) + 1}), found {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("an affine holds finite numbers only")
    *steps, origin = (tuple(column[:3]) for column in matrix.T.tolist())
    return Geometry(tuple(dims), tuple(steps), origin, crs, unit)


def geometry_in(attributes: Mapping[str, Any], dims: Sequence[str]) -> Geometry | None:
    """The Geometry that an array's attributes `affine` and `affine_dims` state; None where they do not."""
    named = attributes.get("affine_dims")
    if "affine" not in attributes or not isinstance(named, list) or not set(named) <= set(dims):
        return None
    crs = attributes.get("crs")
    return geometry_of(
        attributes["affine"],
        named,
        None if crs is None else str(crs),
        str(attributes.get("affine_unit", "mm")),
    )


AXES = {
    "m": (("projection_x_coordinate", "m"), ("projection_y_coordinate", "m")),
    "degree": (("longitude", "degrees_east"), ("latitude", "degrees_north")),
}
"""By unit of a reference system, the standard names and units of x and y that CF gives them."""


def coordinates_of(
    geometry: Geometry, sizes: Mapping[str, int]
) -> dict[str, tuple[NDArray[np.float64], dict[str, Any]]]:
    """Coordinates, with CF's attributes, of the dimensions that run along one axis each; {} where one does not."""
    found = {}
    for dim, step in zip(geometry.dims, geometry.steps, strict=True):
        axes = [k for k in range(3) if step[k] != 0]
        if len(axes) != 1 or dim not in sizes:
            return {}
        (k,) = axes
        about: dict[str, Any] = {"units": geometry.unit}
        if k < 2 and geometry.unit in AXES:
            about = dict(zip(("standard_name", "units"), AXES[geometry.unit][k], strict=True))
        found[dim] = (np.asarray(geometry.origin[k] + step[k] * np.arange(sizes[dim]), np.float64), about)
    return found


class Placed(Protocol):
    """An input with named dimensions that may know where its voxels lie."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str: ...
    @property
    def data(self) -> Any: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    @property
    def where(self) -> str: ...
    @property
    def geometry(self) -> Geometry | None: ...


AnyPlaced = TypeVar("AnyPlaced", bound=Placed)


def shared_geometry(inputs: Mapping[str, Placed]) -> Geometry | None:
    """That of the reference or, where it has none, of the first input that has one; None where none has."""
    placed = {name: one.geometry for name, one in inputs.items() if one.geometry is not None}
    return placed.get("reference", next(iter(placed.values()), None))


def brought_together(inputs: Mapping[str, AnyPlaced]) -> dict[str, AnyPlaced]:
    """The inputs with the axes of the reference (of the first that knows its own, where the reference does not).

    Inputs that do not say where they lie stay as they are, but then none of the others may need turning.
    Raises InputError for inputs that lie elsewhere.
    """
    placed = {name: one for name, one in inputs.items() if one.geometry is not None}
    if not placed:
        return dict(inputs)
    target = placed.get("reference", next(iter(placed.values())))
    found = dict(inputs)
    for name, one in placed.items():
        found[name] = _brought(one, target)
    turned = [name for name in placed if found[name] is not inputs[name]]
    silent = [one for name, one in inputs.items() if name not in placed]
    if turned and silent:
        raise InputError(
            f"{turned[0]}: {inputs[turned[0]].where} has to be turned to lie as {target.where} does, but "
            f"{silent[0].where} ({silent[0].name}) does not say how it lies. Store it with an affine, or all with "
            f"the same axes."
        )
    return found


def _brought(one: AnyPlaced, target: Placed) -> AnyPlaced:
    own, wanted = one.geometry, target.geometry
    assert own is not None
    assert wanted is not None
    if set(own.dims) != set(wanted.dims):
        return one  # the check of the grids says which dimensions differ
    if own.crs is not None and wanted.crs is not None and own.crs != wanted.crs:
        raise InputError(
            f"{one.name}: {one.where} has the reference system {_short(own.crs)}, but {target.where} ({target.name}) "
            f"has {_short(wanted.crs)}. Project one to the other's."
        )
    sizes = dict(zip(one.dims, one.data.shape, strict=True))
    turn = _turn(own, wanted, sizes)
    if turn is None:
        raise InputError(
            f"{one.name}: {one.where} and {target.where} ({target.name}) lie on different grids, not the same one "
            f"with axes flipped or permuted. {_difference(own, wanted, sizes)} Resample one to the other's grid."
        )
    names, flipped = turn
    if not flipped and all(old == new for old, new in names.items()):
        return one
    dims = tuple(names.get(d, d) for d in one.dims)
    axes = tuple(one.dims.index(d) for d in flipped)
    moved = [f"{d} reversed" for d in flipped] + [
        f"{old} as {new}" for old, new in names.items() if old != new
    ]
    return replace(
        one,
        data=Reversed(one.data, axes) if axes else one.data,
        dims=dims,
        where=f"{one.where} ({', '.join(moved)})",
        geometry=wanted,
    )


def _turn(
    own: Geometry, wanted: Geometry, sizes: Mapping[str, int]
) -> tuple[dict[str, str], tuple[str, ...]] | None:
    """What each own dimension is called there, and which are read from their ends; None where that is not all."""
    steps, others = own.affine[:3, :-1], wanted.affine[:3, :-1]
    signs = np.rint(np.linalg.pinv(steps) @ others)  # of one index there, how many of each own
    ones = np.abs(signs)
    if not ((ones.sum(axis=0) == 1).all() and (ones.sum(axis=1) == 1).all()):
        return None
    at = ones.argmax(axis=0)
    names = {own.dims[i]: wanted.dims[j] for j, i in enumerate(at)}
    flipped = {own.dims[i]: signs[i, j] < 0 for j, i in enumerate(at)}
    most = [sizes[own.dims[i]] - 1 for i in at]
    smallest = min(*own.spacing, *wanted.spacing)
    for corner in product(*((0, n) for n in most)):
        place = wanted.affine[:3] @ [*corner, 1]
        index = np.zeros(len(at))
        for j, i in enumerate(at):
            index[i] = most[j] - corner[j] if flipped[own.dims[i]] else corner[j]
        if not np.linalg.norm(own.affine[:3] @ [*index, 1] - place) <= TOLERANCE * smallest:
            return None
    return names, tuple(d for d, backwards in flipped.items() if backwards)


def _difference(own: Geometry, wanted: Geometry, sizes: Mapping[str, int]) -> str:
    """Both affines and how far apart they put the box of the input's voxels at most, whichever way it is turned."""

    def box(one: Geometry) -> NDArray[np.float64]:
        corners = product(*((0, sizes[d] - 1) for d in one.dims))
        places = np.array([one.affine[:3] @ [*corner, 1] for corner in corners])
        return np.stack([places.min(axis=0), places.max(axis=0)])

    apart = float(np.abs(box(own) - box(wanted)).max())
    unit = "" if own.unit == "1" else f" {own.unit}"
    return f"The first has {own}, the second {wanted}; their outer voxels lie up to {apart:.6g}{unit} apart."


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


class Reversed(Wrapped):
    """A stored array read with some axes from their ends: reversed only in what is read, when it is read."""

    def __init__(self, data: Any, axes: Sequence[int]) -> None:
        super().__init__(data)
        self.axes = tuple(axes)
        self.shape: tuple[int, ...] = tuple(data.shape)
        self.dtype: np.dtype[Any] = np.dtype(data.dtype)
        self.ndim = len(self.shape)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        """region: slices with positive steps, an Ellipsis for those left out."""
        parts = list(region) if isinstance(region, tuple) else [region]
        if Ellipsis not in parts:
            parts.append(Ellipsis)
        gap = parts.index(Ellipsis)
        parts[gap : gap + 1] = [slice(None)] * (self.ndim - len(parts) + 1)
        order = [slice(None)] * self.ndim
        for axis in self.axes:
            n = self.shape[axis]
            chosen = range(*parts[axis].indices(n))
            parts[axis] = slice(n - 1 - chosen[-1], n - chosen[0], chosen.step) if chosen else slice(0, 0)
            order[axis] = slice(None, None, -1)
        return np.ascontiguousarray(self.data[tuple(parts)][tuple(order)])

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None: those that stand beside the array run the other way."""
        return {}
