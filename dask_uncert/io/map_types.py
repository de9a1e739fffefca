"""Maps as reports show them; apart from their store, so that what draws does not load zarr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


class Dim(str):
    """The name of a shown dimension, with what stands on its axis.

    place: the position of the first shown pixel, the distance to the next, and the axis' label with its unit.
    """

    place: tuple[float, float, str]

    @classmethod
    def placed(cls, name: str, first: float, step: float, label: str) -> Dim:
        """Return the name with its place."""
        dim = cls(name)
        dim.place = (first, step, label)
        return dim


Map = tuple[NDArray[Any], tuple[str, ...]]
Maps = Mapping[str, Map]
"""Values and names of the first two dimensions of each shown map, by name.

Values are two-dimensional, NaN where undefined; a picture has a third dimension of size 3 and dtype uint8.
"""
