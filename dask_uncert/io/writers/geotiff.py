"""Writing GeoTIFF: a map as bands, one row of tiles after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import rasterio
from rasterio.windows import Window

from dask_uncert.errors import InputError
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.owned_folder import EXPORTED
from dask_uncert.io.quiet import quiet

TILE = 512


def write_geotiff(path: str, map_: Any, dims: tuple[str, ...], geometry: Geometry | None, nodata: float | None) -> None:
    """Write a map (y, x), or a picture with its colours last, with its transform and reference system.

    map_: an array with shape and dtype that is read by slicing. Raises InputError if the map's plane is tilted.
    """
    height, width = map_.shape[:2]
    bands = map_.shape[2] if len(map_.shape) == 3 else 1
    profile: dict[str, Any] = {"driver": "GTiff", "height": height, "width": width, "count": bands}
    profile |= {"nodata": nodata, "dtype": str(map_.dtype), "compress": "deflate", "BIGTIFF": "IF_SAFER"}
    if min(height, width) >= 16:
        side_x, side_y = (min(TILE, n // 16 * 16) for n in (width, height))
        profile |= {"tiled": True, "blockxsize": side_x, "blockysize": side_y}
    if bands == 3:
        profile["photometric"] = "RGB"
    if geometry is not None:
        profile |= {"transform": _transform(geometry, dims), "crs": geometry.crs}
    with quiet(), rasterio.open(path, "w", **profile) as file:  # quiet about a missing georeference
        file.update_tags(TIFFTAG_SOFTWARE=EXPORTED)
        for start in range(0, height, TILE):
            values = np.asarray(map_[start : start + TILE])
            layers = np.moveaxis(values, -1, 0) if values.ndim == 3 else values[np.newaxis]
            file.write(layers, window=Window(0, start, width, len(values)))


def _transform(geometry: Geometry, dims: tuple[str, ...]) -> Any:
    down, right = (geometry.steps[geometry.dims.index(dim)] for dim in dims[:2])
    if down[2] or right[2]:
        raise InputError("a GeoTIFF has no depth, but this plane is tilted or upright. Export it as NIfTI.")
    x, y = (geometry.origin[k] - (down[k] + right[k]) / 2 for k in (0, 1))
    return rasterio.Affine(right[0], down[0], x, right[1], down[1], y)
