"""Pictures of a volume's maps: one slice, across the shortest axis, where most was decided wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.io.geometry import Geometry, geometry_in
from dask_uncert.io.maps import RGB, preview
from dask_uncert.io.readers.zarr import describe, opening, writable_store

Slice = tuple[int, int]
"""An axis of a volume, and the place along it."""


def telling_slice(store: str, names: Sequence[str]) -> Slice | None:
    """The slice of a volume's maps to show; None where the maps have not three dimensions.

    It lies across the shortest axis, the first of equally short ones: where the map `correct`, if it is there, has
    most wrong pixels, otherwise in the middle.
    """
    with opening(store):
        group = zarr.open_group(writable_store(store), mode="r")
        array = _array_of(group, "correct" if "correct" in names else names[0])
    grid = _grid(array)
    if len(grid) != 3:
        return None
    axis = int(np.argmin(grid))
    if "correct" not in names:
        return axis, grid[axis] // 2
    step = array.chunks[axis]
    wrong = []
    for start in range(0, grid[axis], step):  # a slab of chunks at a time
        slab = np.asarray(array[(*([slice(None)] * axis), slice(start, start + step))])
        wrong += (slab == 0).sum(axis=tuple(i for i in range(3) if i != axis)).tolist()
    return axis, int(np.argmax(wrong)) if any(wrong) else grid[axis] // 2


def sliced(store: str, name: str, at: Slice | None, most: int = 600) -> tuple[NDArray[Any], tuple[str, ...]]:
    """A map as for `preview`, of this slice, as it is looked at.

    Where an affine says how the volume lies, the picture is as radiologists have it: the patient's right is on the
    left, the front or the head above. Else x runs to the right where the axes say which is x and which y.
    """
    if at is None:
        return preview(store, name, most)
    with opening(store):
        array = _array_of(zarr.open_group(writable_store(store), mode="r"), name)
    axis, place = at
    dims = _dims(array)
    left = [i for i in range(3) if i != axis]
    where: list[Any] = [slice(None)] * array.ndim
    where[axis] = place
    for i in left:
        where[i] = slice(None, None, max(1, -(-array.shape[i] // most)))
    values = np.asarray(array[tuple(where)])
    if array.ndim == 3:
        values = values.astype(np.float64)
        fill = array.attrs.get("_FillValue")
        if fill is not None:
            values[values == float(str(fill))] = np.nan
    shown = [dims[i] for i in left]
    across, turned = _as_looked_at(geometry_in(dict(array.attrs), dims[:3]), shown)
    for i, name_ in enumerate(shown):
        if name_ in turned:
            values = np.flip(values, axis=i)
    if shown[0] == across:
        values, shown = values.swapaxes(0, 1), shown[::-1]
    return values, tuple(shown)


def _as_looked_at(lies: Geometry | None, shown: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Which axis runs across the picture, and which axes are turned round."""
    if lies is None or not set(shown) <= set(lies.dims):
        return ("x" if set(shown) == {"x", "y"} else shown[1]), ()
    steps = {name: lies.affine[:3, lies.dims.index(name)] for name in shown}
    main = {name: int(np.argmax(np.abs(step))) for name, step in steps.items()}  # to the right, front, head
    return min(shown, key=main.__getitem__), tuple(name for name in shown if steps[name][main[name]] > 0)


def _array_of(group: zarr.Group, name: str) -> Any:
    array = group[name]
    assert isinstance(array, zarr.Array)
    return array


def _dims(array: Any) -> tuple[str, ...]:
    found = describe(array)
    names = None if found is None else found[0]
    return names or ("",) * array.ndim


def _grid(array: Any) -> tuple[int, ...]:
    colours = sum(name in RGB for name in _dims(array))
    return tuple(array.shape[: array.ndim - colours])
