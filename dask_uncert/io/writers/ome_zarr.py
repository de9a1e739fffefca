"""Writing an OME-Zarr 0.5 image of several levels, each half the size of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.io.geometry import Geometry
from dask_uncert.io.integrity import CHECKED
from dask_uncert.io.owned_folder import store_attributes
from dask_uncert.io.readers.zarr import opening

SMALLEST = 256  # pixels a side: the last level has no longer side
CHUNK = 256
UNITS = {"mm": "millimeter", "m": "meter"}


def write_pyramid(
    path: str, name: str, values: NDArray[Any], dims: Sequence[str], geometry: Geometry | None, labels: bool
) -> None:
    """Write a map as an image. labels: its values are codes, which are sampled and never averaged.

    values: over the grid `dims`. NaN is undefined: means are of the defined pixels.
    """
    levels = [values]
    while max(levels[-1].shape) > SMALLEST:
        levels.append(_half(levels[-1], labels))
    spacing = dict.fromkeys(dims, 1.0)
    if geometry is not None:
        spacing |= dict(zip(geometry.dims, geometry.spacing, strict=True))
    unit = {} if geometry is None or geometry.unit not in UNITS else {"unit": UNITS[geometry.unit]}
    axes = [{"name": dim, **({"type": "space", **unit} if dim in ("z", "y", "x") else {})} for dim in dims]
    datasets = []
    for number, level in enumerate(levels):
        factors = [full / small for full, small in zip(values.shape, level.shape, strict=True)]
        factors = [2.0 ** round(np.log2(f)) if f > 1 else 1.0 for f in factors]
        # The centre of averaged pixels is between theirs; a sampled pixel stays where it is.
        shift = [0.0 if labels else (f - 1) / 2 for f in factors]
        scale, translation = (
            [pixels * spacing[dim] for pixels, dim in zip(lengths, dims, strict=True)] for lengths in (factors, shift)
        )
        steps = [{"type": "scale", "scale": scale}, {"type": "translation", "translation": translation}]
        datasets.append({"path": str(number), "coordinateTransformations": steps})
    kind = "nearest" if labels else "mean"
    image: dict[str, Any] = {"name": name, "axes": axes, "datasets": datasets, "type": kind}
    metadata: dict[str, Any] = {"version": "0.5", "multiscales": [image]}
    if labels:
        metadata["image-label"] = {}
    marked = {**store_attributes(str(number) for number in range(len(levels))), "ome": metadata}
    with opening(path, to_write=True):
        group = zarr.open_group(path, mode="w-", attributes=marked)
        for number, level in enumerate(levels):
            array = group.create_array(
                str(number), shape=level.shape, dtype=level.dtype, chunks=tuple(min(CHUNK, n) for n in level.shape),
                dimension_names=tuple(dims), fill_value=0, compressors=CHECKED,
            )  # fmt: skip
            array[...] = level


def _half(values: NDArray[Any], labels: bool) -> NDArray[Any]:
    """Return every second pixel, or the mean of each two defined ones, along every axis longer than one."""
    if labels:
        return values[tuple(slice(None, None, 2 if n > 1 else 1) for n in values.shape)]
    sums, numbers = np.nan_to_num(values.astype(np.float64)), (~np.isnan(values)).astype(np.float64)
    for axis, n in enumerate(values.shape):
        if n > 1:
            starts = np.arange(0, n, 2)
            sums, numbers = (np.add.reduceat(part, starts, axis=axis) for part in (sums, numbers))
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / numbers).astype(values.dtype)  # 0/0 is undefined
