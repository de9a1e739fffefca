"""The slice of a volume's maps to show: across the shortest axis, where most pixels are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.io.geometry import Geometry, geometry_in
from dask_uncert.io.maps import MAX_PIXELS, map_dims, open_maps, preview, read_region, read_values, thinned

Slice = tuple[int, int]
"""An axis of a volume, and an index along it."""


def most_wrong_slice(store: str, names: Sequence[str]) -> Slice | None:
    """Return the slice of a volume's maps to show; None if the maps do not have three dimensions.

    It is across the first of the shortest axes: where the map `correct`, if there is one, has most wrong pixels, else in
    the middle.
    """
    (array,) = open_maps(store, ["correct" if "correct" in names else names[0]])
    grid = array.shape[: map_dims(array)[1]]
    if len(grid) != 3:
        return None
    axis = int(np.argmin(grid))
    if "correct" not in names:
        return axis, grid[axis] // 2
    step = array.chunks[axis]
    wrong: list[int] = []
    for start in range(0, grid[axis], step):  # one slab of chunks at a time
        slab = read_region(array, (*([slice(None)] * axis), slice(start, start + step)))
        wrong += (slab == 0).sum(axis=tuple(i for i in range(3) if i != axis)).tolist()
    return axis, int(np.argmax(wrong)) if any(wrong) else grid[axis] // 2


def read_slice(
    store: str, name: str, slice_: Slice | None, most: int = MAX_PIXELS
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Read a slice of a map as `preview` does, in the usual orientation.

    If an affine is known, the picture is oriented as radiologists expect: the patient's right on the left, anterior or
    superior above. Otherwise x runs to the right if the axes are named x and y.
    """
    if slice_ is None:
        return preview(store, name, most)
    (array,) = open_maps(store, [name])
    axis, index = slice_
    dims = map_dims(array)[0]
    kept = [i for i in range(3) if i != axis]
    region: list[Any] = [thinned(n, most) for n in array.shape[:3]]
    region[axis] = index
    values = read_values(array, tuple(region))
    shown = [dims[i] for i in kept]
    across, reversed_dims = _display_axes(geometry_in(dict(array.attrs), dims[:3]), shown)
    values = np.flip(values, tuple(i for i, dim in enumerate(shown) if dim in reversed_dims))
    if shown[0] == across:
        values, shown = values.swapaxes(0, 1), shown[::-1]
    return values, tuple(shown)


def _display_axes(geometry: Geometry | None, dims: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the axis to draw from left to right, and the axes to reverse."""
    if geometry is None or not set(dims) <= set(geometry.dims):
        return ("x" if set(dims) == {"x", "y"} else dims[1]), ()
    steps = {dim: geometry.affine[:3, geometry.dims.index(dim)] for dim in dims}
    main = {dim: int(np.argmax(np.abs(step))) for dim, step in steps.items()}  # right, anterior or superior
    return min(dims, key=main.__getitem__), tuple(dim for dim in dims if steps[dim][main[dim]] > 0)
