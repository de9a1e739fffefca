"""Export a map of a finished evaluation to a file of another format, with its georeferencing."""

from __future__ import annotations

import os
import shutil
import struct
import uuid
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.lazy_array import ArrayView
from dask_uncert.io.maps import RGB
from dask_uncert.io.open import open_stored
from dask_uncert.io.output_folder import put_in_place, read_record
from dask_uncert.io.output_lock import check_writable
from dask_uncert.io.owned_folder import EXPORTED, check_exported, check_new_file_outside
from dask_uncert.io.paths import AnyPath, as_path, is_remote
from dask_uncert.io.summary_store import load
from dask_uncert.jobs.convert import REPLACE
from dask_uncert.reports.figures.thumbnails import thumbnail
from dask_uncert.summaries.case import composed

MAX_BYTES = 4 << 30  # of a map that must be in memory at once
SPATIAL = ("x", "y", "z")
PNG_HEADER = 33  # bytes before the first chunk that may be text


@dataclass(frozen=True)
class Map:
    """A map to export; nodata: the code of undefined pixels."""

    name: str
    data: Any
    dims: tuple[str, ...]
    geometry: Geometry | None
    coordinates: dict[str, Any]
    nodata: float | None

    @property
    def grid(self) -> tuple[str, ...]:
        """Dimensions without the colours."""
        return tuple(dim for dim in self.dims if dim not in RGB)

    @property
    def is_picture(self) -> bool:
        """Whether there is a dimension of colours."""
        return len(self.dims) > len(self.grid)

    def size(self, dim: str) -> int:
        """Return the size along a dimension."""
        return int(self.data.shape[self.dims.index(dim)])

    def values(self) -> NDArray[Any]:
        """Return all values, as stored."""
        nbytes = int(self.data.dtype.itemsize * np.prod(self.data.shape, dtype=np.float64))
        if nbytes > MAX_BYTES:
            raise InputError(
                f"the map {self.name} has {nbytes / 2**30:.1f} GiB; this format takes at most {MAX_BYTES >> 30} GiB. Export "
                f"it as .tif, or read maps.zarr itself."
            )
        return np.asarray(self.data[...])


def export(
    folder: str | AnyPath,
    name: str,
    target: str | Path,
    *,
    case: str | None = None,
    at: Mapping[str, int] | None = None,
    fresh: bool = False,
) -> Path:
    """Export a map of a finished output folder to GeoTIFF, NIfTI, NetCDF, PNG or OME-Zarr.

    Parameters
    ----------
    folder : str or path
        The output folder. May be a URL.
    name : str
        Name of the map.
    target : str or path
        A new file; its ending gives the format: .tif, .nii, .nii.gz, .nc, .png or .ome.zarr.
    case : str, optional
        Name of the case, for a cohort.
    at : mapping, optional
        An index along some dimensions, such as ``{"z": 12}``, if the format has fewer dimensions.
    fresh : bool, default False
        Replace an existing result.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If there is no such map, the format cannot hold it or needs a library that is not installed, or the target
        exists; with `fresh`, if it is not a map that was exported before.

    Notes
    -----
    Values are as stored, with the code of undefined pixels declared as missing; PNG has the colours of the report.
    The command is ``dask-uncert export``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.export("nothing", "entropy", "entropy.tif")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no folder nothing.
    """
    if is_remote(str(target)):
        raise InputError(f"{target}: a map is exported to a file on this machine. Name one, and copy it.")
    output, goal = as_path(folder), Path(target)
    writer = next((w for ending, w in WRITERS.items() if goal.name.lower().endswith(ending)), None)
    if writer is None:
        raise InputError(f"{goal}: the ending gives the format; known are {', '.join(WRITERS)}.")
    exists = os.path.lexists(goal)
    if exists and not fresh:
        raise InputError(f"{goal} exists. {REPLACE}")
    if exists:
        check_exported(goal)
    check_writable(goal.parent, goal.name)
    if isinstance(output, Path):
        check_new_file_outside(goal, [output])
    chosen = _slice(_open(output, name, case), at or {})
    working = goal.with_name(f".{uuid.uuid4().hex}-{goal.name}")
    try:
        writer(chosen, working, output)
        if working.is_dir():
            put_in_place(working, goal)
        else:
            os.replace(working, goal)
    except ModuleNotFoundError as error:
        install = "`python -m pip install 'dask-uncert[all]'`"
        raise InputError(f"{goal.name} needs {error.name}, which is not installed. Run {install}.") from None
    except OSError as error:
        raise InputError(f"{goal} cannot be written: {error}.") from None
    finally:
        shutil.rmtree(working, ignore_errors=True)
        working.unlink(missing_ok=True)
    return goal


def _open(output: AnyPath, name: str, case: str | None) -> Map:
    case = None if case is None else composed(case)
    record = read_record(output)
    names, cases = record.get("maps", []), record.get("cases")
    if name not in names:
        known = ", ".join(names) or "none: name some under `maps` in the job"
        raise InputError(f"{output} holds no map {name!r}; it holds {known}.")
    if cases is not None and case is None:
        some = [key for key, entry in cases.items() if entry.get("status") != "failed"]
        raise InputError(f"{output} is a cohort; name a case with --case, such as {', '.join(some[:3])}.")
    if case is not None and (cases is None or not (output / "maps.zarr" / case).is_dir()):
        raise InputError(f"{output} holds no maps of a case {case!r}.")
    stored = open_stored(str(output / "maps.zarr"), f"{case}/{name}" if case else name, name)
    dims = stored.dims or ()
    coordinates = {dim: both for dim, both in stored.coordinates(dims).items() if dim not in RGB}
    codes = stored.decoding.missing
    return Map(name, stored, dims, stored.geometry(dims), coordinates, codes[0] if codes else None)


class _Slice(ArrayView):
    """An array at one index along some of its axes, without these axes."""

    def __init__(self, data: Any, fixed: Mapping[int, int]) -> None:
        super().__init__([n for axis, n in enumerate(data.shape) if axis not in fixed], data.dtype)
        self.data, self.fixed = data, fixed

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        parts = list(region)
        for axis, index in sorted(self.fixed.items()):
            parts.insert(axis, index)
        return np.asarray(self.data[tuple(parts)])


def _slice(whole: Map, at: Mapping[str, int]) -> Map:
    for dim, index in at.items():
        if dim not in whole.grid:
            raise InputError(f"the map {whole.name} has no dimension {dim!r}; it has {', '.join(whole.grid)}.")
        if not 0 <= index < (n := whole.size(dim)):
            raise InputError(f"{dim} = {index} is outside the map {whole.name}, which has size {n} along {dim}.")
    if not at:
        return whole
    geometry = whole.geometry
    if geometry is not None:
        origin = np.array(geometry.origin)
        for dim, step in zip(geometry.dims, geometry.steps, strict=True):
            origin = origin + at.get(dim, 0) * np.array(step)
        kept = [i for i, dim in enumerate(geometry.dims) if dim not in at]
        x, y, z = origin.tolist()
        dims, steps = tuple(geometry.dims[i] for i in kept), tuple(geometry.steps[i] for i in kept)
        geometry = replace(geometry, dims=dims, steps=steps, origin=(x, y, z)) if kept else None
    return replace(
        whole,
        data=_Slice(whole.data, {whole.dims.index(dim): index for dim, index in at.items()}),
        dims=tuple(dim for dim in whole.dims if dim not in at),
        geometry=geometry,
        coordinates={dim: both for dim, both in whole.coordinates.items() if dim not in at},
    )


def _check_flat(chosen: Map, kind: str) -> None:
    if len(chosen.grid) != 2:
        dim = min(chosen.grid, key=chosen.size)
        raise InputError(
            f"the map {chosen.name} has {len(chosen.grid)} dimensions ({', '.join(chosen.grid)}), but a {kind} has two. "
            f"Name a slice, such as --slice {dim}=0, or export it as .nii or .nc."
        )


def _geotiff(chosen: Map, working: Path, output: AnyPath) -> None:
    _check_flat(chosen, "GeoTIFF")
    from dask_uncert.io.writers.geotiff import write_geotiff

    geometry = _even_geometry(chosen) if chosen.geometry is None else chosen.geometry
    nodata = float("nan") if chosen.data.dtype.kind == "f" else chosen.nodata
    write_geotiff(str(working), chosen.data, chosen.dims, geometry, nodata)


def _even_geometry(chosen: Map) -> Geometry | None:
    """Return the affine of the coordinates; None if they are not evenly spaced."""
    steps, starts = [], []
    for dim in chosen.grid:
        values = np.asarray(chosen.coordinates.get(dim, ((), {}))[0], np.float64)
        if values.size < 2 or np.ptp(np.diff(values)) > 1e-3 * abs(values[1] - values[0]):
            return None
        steps.append(float((values[-1] - values[0]) / (values.size - 1)))
        starts.append(float(values[0]))
    (dy, dx), (y, x) = steps, starts
    return Geometry(chosen.grid, ((0.0, dy, 0.0), (dx, 0.0, 0.0)), (x, y, 0.0), None, "1")


def _nifti(chosen: Map, working: Path, output: AnyPath) -> None:
    if len(chosen.grid) > 3 or chosen.is_picture:
        raise InputError(
            f"NIfTI takes up to three dimensions and no colours; {chosen.name} has {', '.join(chosen.dims)}."
        )
    from dask_uncert.io.writers.nifti import write_nifti

    geometry = chosen.geometry
    if geometry is not None and geometry.unit != "mm":
        geometry = None  # scanner space is in mm
    known = [dim for dim in SPATIAL if dim in chosen.dims]
    order = known if len(known) == len(chosen.dims) else list(chosen.dims)
    values = chosen.values().transpose([chosen.dims.index(dim) for dim in order])
    write_nifti(str(working), values, order, geometry)


def _netcdf(chosen: Map, working: Path, output: AnyPath) -> None:
    from dask_uncert.io.writers.netcdf import write_netcdf

    values, coordinates = chosen.values(), chosen.coordinates
    write_netcdf(str(working), chosen.name, values, chosen.dims, chosen.data, coordinates, chosen.geometry)


def _png(chosen: Map, working: Path, output: AnyPath) -> None:
    _check_flat(chosen, "picture")
    evaluation = load(output)
    values = chosen.values()
    if not chosen.is_picture:
        values = values.astype(np.float64)
        if chosen.nodata is not None:
            values[values == chosen.nodata] = np.nan
    picture = thumbnail(evaluation, chosen.name, values)
    text = b"tEXtSoftware\0" + EXPORTED.encode()
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    working.write_bytes(picture[:PNG_HEADER] + chunk + picture[PNG_HEADER:])


def _ome_zarr(chosen: Map, working: Path, output: AnyPath) -> None:
    if chosen.is_picture:
        raise InputError(f"{chosen.name} is a picture; export it as .png or .tif.")
    from dask_uncert.io.writers.ome_zarr import write_pyramid

    is_labels = chosen.data.dtype.kind == "u"
    write_pyramid(str(working), chosen.name, chosen.values(), chosen.grid, chosen.geometry, is_labels)


WRITERS: dict[str, Callable[[Map, Path, AnyPath], None]] = {
    **dict.fromkeys((".tif", ".tiff"), _geotiff),
    **dict.fromkeys((".nii", ".nii.gz"), _nifti),
    ".nc": _netcdf,
    ".png": _png,
    ".ome.zarr": _ome_zarr,
}
"""Writers by the ending of the file."""
