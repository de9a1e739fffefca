"""Writing NetCDF: a map as a variable, with its coordinates and CF's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import h5netcdf  # noqa: F401  xarray writes with it, and would say less clearly that it is not there
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dask_uncert.io.attributes import json_attributes
from dask_uncert.io.geometry import Geometry


def write_netcdf(
    path: str,
    name: str,
    values: NDArray[Any],
    dims: Sequence[str],
    stored: Any,
    coordinates: Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]],
    geometry: Geometry | None,
) -> None:
    """Write a map; stored: the map's own array, whose attributes go along."""
    attributes = {
        k: v
        for k, v in json_attributes(getattr(stored, "attributes", {})).items()
        if not isinstance(v, list | dict)
    }
    missing = attributes.pop("_FillValue", None)
    found = xr.Dataset(
        {name: (tuple(dims), values, attributes)},
        coords={dim: (dim, one, json_attributes(about)) for dim, (one, about) in coordinates.items()},
        attrs={"Conventions": "CF-1.11"},
    )
    if geometry is not None:
        found[name].attrs |= {"affine": geometry.affine[:3].ravel(), "affine_dims": " ".join(geometry.dims)}
        if geometry.crs is not None:
            said = {"crs_wkt": geometry.crs, "spatial_ref": geometry.crs}
            found = found.assign_coords(spatial_ref=((), np.int32(0), said))
            found[name].attrs["grid_mapping"] = "spatial_ref"
    encoding: dict[str, Any] = {"zlib": True, "complevel": 4}
    if missing is not None:
        encoding["_FillValue"] = values.dtype.type(missing)
    found.to_netcdf(path, engine="h5netcdf", encoding={name: encoding})
