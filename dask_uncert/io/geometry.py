"""Positions of the centres of voxels or pixels, and the coordinates and attributes that describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dask_uncert.formulas.typing import Floats

SAME_NUMBER = 1e-6  # relative: how far two scales may differ of which one lacks its unit
WORLD = ("x", "y", "z")


@dataclass(frozen=True)
class Geometry:
    """Positions of the centres of voxels or pixels: origin + the sum over `dims` of index times step.

    unit: of all positions; mm without a reference system (x right, y anterior, z superior), else that of `crs` (x east,
    y north, z 0), "1" if unknown. stored_units: the mm in one unit of the stored numbers along x, y and z; None where
    the file does not say its unit.
    """

    dims: tuple[str, ...]
    steps: tuple[tuple[float, float, float], ...]
    origin: tuple[float, float, float]
    crs: str | None = None
    unit: str = "mm"
    stored_units: tuple[float | None, float | None, float | None] = (1.0, 1.0, 1.0)

    @property
    def lacks_unit(self) -> bool:
        """Whether the file does not say the unit of a length."""
        return None in self.stored_units

    def in_units_of(self, other: Geometry) -> Geometry:
        """Return the positions with the unit that the stored numbers of another have, where they have none."""
        factors = [
            theirs if own is None else 1.0 for own, theirs in zip(self.stored_units, other.stored_units, strict=True)
        ]
        steps = tuple(_scaled(step, factors) for step in self.steps)
        origin = _scaled(self.origin, factors)
        return replace(self, steps=steps, origin=origin, unit=other.unit, stored_units=other.stored_units)

    def has_scale_of(self, other: Geometry) -> bool:
        """Return whether the distances of neighbours are those of another along the same dimensions, but for rounding."""
        spacing = dict(zip(other.dims, other.spacing, strict=True))
        return bool(np.allclose(self.spacing, [spacing[dim] for dim in self.dims], rtol=SAME_NUMBER, atol=0))

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance of neighbouring centres along each of `dims`."""
        return tuple(float(np.linalg.norm(step)) for step in self.steps)

    @property
    def affine(self) -> Floats:
        """Matrix from index along `dims`, and 1, to position, and 1: (4, number of dims + 1)."""
        columns = [*((*step, 0.0) for step in self.steps), (*self.origin, 1.0)]
        return np.array(columns, np.float64).T

    def along(self, dims: Sequence[str]) -> Geometry:
        """Return the positions along some of `dims`, where the index along the others is 0."""
        return replace(self, dims=tuple(dims), steps=tuple(self.steps[self.dims.index(dim)] for dim in dims))

    @property
    def turned(self) -> tuple[str, ...]:
        """The dimensions that do not run the way they would in an array without an affine.

        Such an array runs upwards along x, y and z: by their names, else in their order. In rasters with a reference
        system, the rows run down.
        """
        order = (1, 0) if self.unit != "mm" and len(self.dims) == 2 else (0, 1, 2)
        turned = []
        for place, (dim, step) in enumerate(zip(self.dims, self.steps, strict=True)):
            axis = max(range(3), key=lambda k: abs(step[k]))
            backwards = step[axis] < 0
            if axis == 1 and self.unit != "mm":
                backwards = step[axis] > 0 and self.unit != "1"  # without any unit, rows may run either way
            if backwards or axis != (WORLD.index(dim) if dim in WORLD else order[place]):
                turned.append(dim)
        return tuple(turned)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of a stored array that `geometry_in` reads."""
        crs = {} if self.crs is None else {"crs": self.crs}
        affine = self.affine.tolist()
        units = {} if self.stored_units == (1.0, 1.0, 1.0) else {"affine_stored_units": list(self.stored_units)}
        return {"affine": affine, "affine_dims": list(self.dims), "affine_unit": self.unit, **units, **crs}

    def __str__(self) -> str:
        steps = (f"{dim} ({_numbers(step)})" for dim, step in zip(self.dims, self.steps, strict=True))
        unit = "" if self.unit == "1" else f" {self.unit}"
        return f"steps {', '.join(steps)}{unit} from ({_numbers(self.origin)})"


def _scaled(values: tuple[float, float, float], factors: Sequence[float | None]) -> tuple[float, float, float]:
    x, y, z = (value * (factor or 1.0) for value, factor in zip(values, factors, strict=True))
    return x, y, z


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value + 0.0:.10g}" for value in values)  # never -0


def geometry_of(affine: Any, dims: Sequence[str], crs: str | None = None, unit: str = "mm") -> Geometry:
    """Return the Geometry of an affine: rows x, y, z (and 0 0 0 1), a column for each of `dims` and one for the origin.

    Raises ValueError if it has another shape or a number that is not finite.
    """
    matrix = np.asarray(affine, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] not in (3, 4) or matrix.shape[1] != len(dims) + 1:
        expected = (4, len(dims) + 1)
        raise ValueError(f"an affine for {', '.join(dims)} has shape {expected}, found {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("an affine holds finite numbers only")
    *steps, origin = (tuple(column[:3]) for column in matrix.T.tolist())
    return Geometry(tuple(dims), tuple(steps), origin, crs, unit)


def geometry_in(attributes: Mapping[str, Any], dims: Sequence[str]) -> Geometry | None:
    """Return the Geometry of the attributes `affine` and `affine_dims`; None if there is none for these dimensions."""
    named = attributes.get("affine_dims")
    if "affine" not in attributes or not isinstance(named, list) or not set(named) <= set(dims):
        return None
    crs, unit = attributes.get("crs"), str(attributes.get("affine_unit", "mm"))
    geometry = geometry_of(attributes["affine"], named, None if crs is None else str(crs), unit)
    x, y, z = (None if n is None else float(n) for n in attributes.get("affine_stored_units", (1.0, 1.0, 1.0)))
    return replace(geometry, stored_units=(x, y, z))


AXES = {
    "m": (("projection_x_coordinate", "m"), ("projection_y_coordinate", "m")),
    "degree": (("longitude", "degrees_east"), ("latitude", "degrees_north")),
}
"""CF's standard names and units of x and y, by the unit of the reference system."""


def coordinates_of(geometry: Geometry, sizes: Mapping[str, int]) -> dict[str, tuple[Floats, dict[str, Any]]]:
    """Return coordinates with CF's attributes; {} unless every dimension runs along one axis."""
    coordinates = {}
    for dim, step in zip(geometry.dims, geometry.steps, strict=True):
        axes = [k for k in range(3) if step[k] != 0]
        if len(axes) != 1 or dim not in sizes:
            return {}
        (k,) = axes
        attributes: dict[str, Any] = {"units": geometry.unit}
        if k < 2 and geometry.unit in AXES:
            attributes = dict(zip(("standard_name", "units"), AXES[geometry.unit][k], strict=True))
        values = np.asarray(geometry.origin[k] + step[k] * np.arange(sizes[dim]), np.float64)
        coordinates[dim] = (values, attributes)
    return coordinates
