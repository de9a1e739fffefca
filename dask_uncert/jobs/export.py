"""A map of a finished evaluation as a file of another format, with its geometry."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.maps import MAPS, RGB
from dask_uncert.io.open import open_stored
from dask_uncert.io.output_folder import read_record
from dask_uncert.io.paths import AnyPath, as_path, is_remote
from dask_uncert.io.summary_store import load
from dask_uncert.reports.figures.thumbnails import thumbnail
from dask_uncert.summaries.evaluation import Evaluation

MAX_BYTES = 4 << 30  # of a map that must be held whole
SPATIAL = ("x", "y", "z")


@dataclass(frozen=True)
class Map:
    """A map to be exported: what is sliced, its dimensions, and where it lies."""

    name: str
    data: Any
    dims: tuple[str, ...]
    geometry: Geometry | None
    coordinates: dict[str, Any]
    nodata: float | None

    @property
    def grid(self) -> tuple[str, ...]:
        """Its dimensions but for colours."""
        return tuple(dim for dim in self.dims if dim not in RGB)

    @property
    def is_labels(self) -> bool:
        """Whether its values are codes."""
        return self.name in MAPS

    def values(self) -> NDArray[Any]:
        """All of it, as stored."""
        nbytes = int(self.data.dtype.itemsize * np.prod(self.data.shape, dtype=np.float64))
        if nbytes > MAX_BYTES:
            raise InputError(
                f"the map {self.name} has {nbytes / 2**30:.1f} GiB, more than the {MAX_BYTES >> 30} GiB that this format "
                f"is written from at once. Export it as .tif, or read maps.zarr itself."
            )
        return np.asarray(self.data[...])


def export(
    folder: str | AnyPath,
    name: str,
    target: str | Path,
    *,
    case: str | None = None,
    at: dict[str, int] | None = None,
    fresh: bool = False,
) -> Path:
    """Write a map of a finished output folder as GeoTIFF, NIfTI, NetCDF, PNG or OME-Zarr, by the target's ending.

    name: of the map. case: of a cohort, whose map. at: an index along some dimensions, such as ``{"z": 12}``, where
    the format has fewer. Endings: .tif, .nii, .nii.gz, .nc, .png, .ome.zarr. Values are as stored, with the code
    that means undefined declared; PNG has the colours of the report. Returns the path.

    Raises InputError for what is not there, for what the format cannot hold, and where the target exists
    (unless `fresh`).

    >>> import dask_uncert as du
    >>> du.export("nothing", "entropy", "entropy.tif")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no folder nothing.
    """
    if is_remote(str(target)):
        raise InputError(
            f"{target}: a map is exported to a file on this machine. Name one, and copy it from there."
        )
    place, goal = as_path(folder), Path(target)
    writer = next((w for end, w in WRITERS.items() if goal.name.lower().endswith(end)), None)
    if writer is None:
        raise InputError(f"{goal}: the ending says the format; there are {', '.join(WRITERS)}.")
    if goal.exists() and not fresh:
        raise InputError(f"{goal} exists. Name another target, or give --fresh to replace it.")
    one = _at(_open(place, name, case), at or {})
    working = goal.with_name(f".{uuid.uuid4().hex}-{goal.name}")
    try:
        try:
            writer(one, working, place)
        except ModuleNotFoundError as error:
            raise InputError(
                f"writing {goal.name} needs {error.name}, which is not installed. Run `python -m pip install "
                f"'dask-uncert[all]'`."
            ) from None
        except OSError as error:
            raise InputError(f"{goal} cannot be written: {error}.") from None
        if goal.is_dir():
            shutil.rmtree(goal)
        os.replace(working, goal)
    finally:
        shutil.rmtree(working, ignore_errors=True)
        working.unlink(missing_ok=True)
    return goal


def _open(place: AnyPath, name: str, case: str | None) -> Map:
    record = read_record(place)
    known = record.get("maps", [])
    if name not in known:
        listed = ", ".join(known) or "none: name some under `maps` in the job"
        raise InputError(f"{place} holds no map {name!r}; it holds {listed}.")
    if "cases" in record and case is None:
        some = [key for key, one in record["cases"].items() if one.get("status") != "failed"]
        raise InputError(f"{place} is a cohort; name a case with --case, such as {', '.join(some[:3])}.")
    if case is not None and ("cases" not in record or not (place / "maps.zarr" / case).is_dir()):
        raise InputError(f"{place} holds no maps of a case {case!r}.")
    stored = open_stored(str(place / "maps.zarr"), f"{case}/{name}" if case else name, name)
    dims = stored.dims or ()
    grid = [dim for dim in dims if dim not in RGB]
    coordinates = {dim: both for dim, both in stored.coordinates(dims).items() if dim in grid}
    codes = stored.decoding.missing
    return Map(name, stored, dims, stored.geometry(dims), coordinates, codes[0] if codes else None)


class _At:
    """An array at one index along some of its axes; slices like one without them."""

    def __init__(self, data: Any, fixed: dict[int, int]) -> None:
        self.data, self.fixed = data, fixed
        self.shape = tuple(n for axis, n in enumerate(data.shape) if axis not in fixed)
        self.dtype = data.dtype

    def __getitem__(self, region: Any) -> NDArray[Any]:
        given = (
            [slice(None)] if region is Ellipsis else [*(region if isinstance(region, tuple) else (region,))]
        )
        given += [slice(None)] * (len(self.shape) - len(given))
        rest = iter(given)
        whole = tuple(self.fixed.get(axis, ...) for axis in range(len(self.data.shape)))
        return np.asarray(self.data[tuple(next(rest) if part is ... else part for part in whole)])


def _at(one: Map, at: dict[str, int]) -> Map:
    for dim, index in at.items():
        if dim not in one.grid:
            raise InputError(f"the map {one.name} has no dimension {dim!r}; it has {', '.join(one.grid)}.")
        n = one.data.shape[one.dims.index(dim)]
        if not 0 <= index < n:
            raise InputError(f"{dim} = {index} is outside of the map {one.name}, which has {n} along {dim}.")
    if not at:
        return one
    geometry = one.geometry
    if geometry is not None:
        origin = np.array(geometry.origin)
        for dim, index in at.items():
            if dim in geometry.dims:
                origin = origin + index * np.array(geometry.steps[geometry.dims.index(dim)])
        kept = [i for i, dim in enumerate(geometry.dims) if dim not in at]
        x, y, z = origin.tolist()
        dims, steps = tuple(geometry.dims[i] for i in kept), tuple(geometry.steps[i] for i in kept)
        geometry = replace(geometry, dims=dims, steps=steps, origin=(x, y, z)) if kept else None
    return replace(
        one,
        data=_At(one.data, {one.dims.index(dim): index for dim, index in at.items()}),
        dims=tuple(dim for dim in one.dims if dim not in at),
        geometry=geometry,
        coordinates={dim: both for dim, both in one.coordinates.items() if dim not in at},
    )


def _flat(one: Map, kind: str) -> None:
    if len(one.grid) != 2:
        most = one.grid[int(np.argmin([one.data.shape[one.dims.index(d)] for d in one.grid]))]
        raise InputError(
            f"the map {one.name} has {len(one.grid)} dimensions ({', '.join(one.grid)}), a {kind} two. Name a slice, such "
            f"as --slice {most}=0, or export it as .nii or .nc."
        )


def _geotiff(one: Map, working: Path, place: AnyPath) -> None:
    _flat(one, "GeoTIFF")
    from dask_uncert.io.writers.geotiff import write_geotiff

    geometry = _of_coordinates(one) if one.geometry is None else one.geometry
    nodata = float("nan") if one.data.dtype.kind == "f" else one.nodata
    write_geotiff(str(working), one.data, one.dims, geometry, nodata)


def _of_coordinates(one: Map) -> Geometry | None:
    """An affine of evenly spaced coordinates."""
    steps, origin = [], [0.0, 0.0, 0.0]
    for row, dim in ((1, one.grid[0]), (0, one.grid[1])):
        values = np.asarray(one.coordinates.get(dim, ((), {}))[0], np.float64)
        if values.size < 2 or np.ptp(np.diff(values)) > 1e-3 * abs(values[1] - values[0]):
            return None
        step = [0.0, 0.0, 0.0]
        step[row] = float((values[-1] - values[0]) / (values.size - 1))
        origin[row] = float(values[0])
        steps.append((step[0], step[1], step[2]))
    return Geometry(one.grid, tuple(steps), (origin[0], origin[1], origin[2]), None, "1")


def _nifti(one: Map, working: Path, place: AnyPath) -> None:
    if len(one.grid) > 3 or len(one.dims) > len(one.grid):
        raise InputError(
            f"a NIfTI file holds volumes of numbers; {one.name} has dimensions {', '.join(one.dims)}."
        )
    from dask_uncert.io.writers.nifti import write_nifti

    geometry = one.geometry
    if geometry is not None and geometry.unit != "mm":
        geometry = None  # scanner space is in mm, and a map's projection none
    known = [dim for dim in SPATIAL if dim in one.dims]
    order = known if len(known) == len(one.dims) else list(one.dims)
    values = one.values().transpose([one.dims.index(dim) for dim in order])
    write_nifti(str(working), values, order, geometry)


def _netcdf(one: Map, working: Path, place: AnyPath) -> None:
    from dask_uncert.io.writers.netcdf import write_netcdf

    write_netcdf(str(working), one.name, one.values(), one.dims, one.data, one.coordinates, one.geometry)


def _png(one: Map, working: Path, place: AnyPath) -> None:
    _flat(one, "picture")
    evaluation = load(place)
    values = one.values()
    if len(one.dims) == len(one.grid):
        values = values.astype(np.float64)
        if one.nodata is not None:
            values[values == one.nodata] = np.nan
    assert isinstance(evaluation, Evaluation)
    working.write_bytes(thumbnail(evaluation, one.name, values))


def _pyramid(one: Map, working: Path, place: AnyPath) -> None:
    if len(one.dims) > len(one.grid):
        raise InputError(f"{one.name} is a picture; export it as .png or .tif.")
    from dask_uncert.io.writers.ome_zarr import write_pyramid

    write_pyramid(str(working), one.name, one.values(), one.grid, one.geometry, one.is_labels)


WRITERS: dict[str, Callable[[Map, Path, AnyPath], None]] = {
    ".tif": _geotiff,
    ".tiff": _geotiff,
    ".nii": _nifti,
    ".nii.gz": _nifti,
    ".nc": _netcdf,
    ".png": _png,
    ".ome.zarr": _pyramid,
}
"""By ending."""
