"""Where the centres of voxels or pixels lie, and the coordinates and attributes that say so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
