"""Writing NetCDF: a map as a variable with its coordinates and CF's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import h5netcdf  # noqa: F401  xarray writes with it; its own message is less clear if it is missing
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dask_uncert.io.attributes import json_attributes
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.owned_folder import EXPORTED


def write_netcdf(
    path: str,
    name: str,
    values: NDArray[Any],
    dims: Sequence[str],
    stored: Any,
    coordinates: Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]],
    geometry: Geometry | None,
) -> None:
    """Write a map; stored: the map's own array, whose attributes are kept."""
    attributes = json_attributes(getattr(stored, "attributes", {}))
    attributes = {key: value for key, value in attributes.items() if not isinstance(value, list | dict)}
    missing = attributes.pop("_FillValue", None)
    dataset = xr.Dataset(
        {name: (tuple(dims), values, attributes)},
        coords={dim: (dim, axis, json_attributes(attrs)) for dim, (axis, attrs) in coordinates.items()},
        attrs={"Conventions": "CF-1.11", "source": EXPORTED},
    )
    if geometry is not None:
        dataset[name].attrs |= {"affine": geometry.affine[:3].ravel(), "affine_dims": " ".join(geometry.dims)}
        if geometry.crs is not None:
            mapping = {"crs_wkt": geometry.crs, "spatial_ref": geometry.crs}
            dataset = dataset.assign_coords(spatial_ref=((), np.int32(0), mapping))
            dataset[name].attrs["grid_mapping"] = "spatial_ref"
    encoding: dict[str, Any] = {"zlib": True, "complevel": 4}
    if missing is not None:
        encoding["_FillValue"] = values.dtype.type(missing)
    dataset.to_netcdf(path, engine="h5netcdf", encoding={name: encoding})
