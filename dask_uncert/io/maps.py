"""Per-pixel maps in Zarr: written block by block, read thinned for display."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.errors import InputError, exception_text, one_line
from dask_uncert.io.attributes import MISSING, json_attributes
from dask_uncert.io.format_version import check_format, format_attributes
from dask_uncert.io.integrity import CHECKED, check_seal, damaged, seal
from dask_uncert.io.map_types import Dim, Map
from dask_uncert.io.owned_folder import MAP_STORE
from dask_uncert.io.paths import as_path
from dask_uncert.io.readers.stored_array import Coordinates
from dask_uncert.io.readers.zarr import dimension_names, opening, writable_store

LOGGER = logging.getLogger(__name__)
KIND = MAP_STORE
MAX_PIXELS = 600  # on each side of a thinned map
MAPS = {"correct": ("uint8", 255), "predicted": ("uint16", 65535), "confused_classes": ("uint16", 65535)}
"""Maps other than the measures (float32, NaN): dtype and the value that means undefined."""

RGB = {"rgb": 3}
"""Name and size of the dimension that a picture has after those of the grid."""
UNITS = {"degrees_east": "° E", "degrees_north": "° N", "metre": "m"}
"""How axes show units whose name is a word."""


class Layer(NamedTuple):
    """Storage of a map: its dtype, the value that means undefined, and its dimensions after those of the grid."""

    dtype: str
    fill: float
    extra: dict[str, int]


class MapWriter:
    """Writes per-pixel maps into one group, block by block; writing a block twice leaves the same bytes."""

    def __init__(self, store: str) -> None:
        self.store = store

    def create(
        self,
        maps: Mapping[str, tuple[str, Any, Mapping[str, Any]]],
        dims: Sequence[str],
        shape: Sequence[int],
        block: Sequence[int],
        attributes: Mapping[str, Any],
        extras: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
    ) -> None:
        """Make the group with empty maps. Chunks divide the block, so no two tasks write the same chunk.

        maps: name to (dtype, fill value, attributes). extras: names and sizes of the last dimensions of maps that have
        more than the grid.
        """
        chunks = _chunk_shape(block)
        with opening(self.store, to_write=True):
            attributes = {**format_attributes(KIND), **attributes}
            group = zarr.open_group(writable_store(self.store), mode="w", attributes=attributes)
            for name, (dtype, fill, map_attributes) in maps.items():
                extra = extras.get(name, {})
                group.create_array(
                    name, shape=(*shape, *extra.values()), chunks=(*chunks, *extra.values()), dtype=dtype,
                    fill_value=fill, dimension_names=(*dims, *extra), attributes=dict(map_attributes),
                    compressors=CHECKED,
                )  # fmt: skip
        for name in maps:
            seal(as_path(self.store) / name)

    def write(self, maps: Mapping[str, NDArray[Any]], offset: Sequence[int]) -> None:
        """Write one block of every map at its offset in the grid."""
        with opening(self.store, to_write=True):
            arrays = {
                name: zarr.open_array(writable_store(f"{self.store}/{name}"), mode="r+", zarr_format=3) for name in maps
            }
        for name, values in maps.items():
            region = tuple(slice(o, o + n) for o, n in zip(offset, values.shape, strict=False))
            arrays[name][region] = values

    def add_grid_mapping(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Write a variable without dimensions whose attributes describe the projection of the maps."""
        self._add(name, np.zeros((), np.int32), [], attributes)

    def add_coordinates(self, coordinates: Coordinates) -> None:
        """Write one-dimensional coordinates into the group of the maps: name to (values, attributes)."""
        for name, (values, attributes) in coordinates.items():
            kept = {key: value for key, value in json_attributes(attributes).items() if key not in MISSING}
            self._add(name, values, [name], kept)

    def _add(self, name: str, values: NDArray[Any], dims: list[str], attributes: Mapping[str, Any]) -> None:
        with opening(self.store, to_write=True):
            group = zarr.open_group(writable_store(self.store), mode="r+")
            array = group.create_array(
                name, shape=values.shape, dtype=values.dtype, dimension_names=dims, attributes=dict(attributes),
                compressors=CHECKED, overwrite=True,  # a run that was stopped may have written it
            )  # fmt: skip
        array[...] = values
        seal(as_path(self.store) / name)


def open_maps(store: str, names: Sequence[str]) -> list[Any]:
    """Return these maps as zarr Arrays; raise InputError if another version wrote the group, or they have changed."""
    try:
        with opening(store):
            group = zarr.open_group(writable_store(store), mode="r", use_consolidated=False)
            check_format(dict(group.attrs), KIND, store)
            for name in names:
                check_seal(as_path(store) / name)
            return [group[name] for name in names]
    except InputError:
        raise
    except Exception as error:  # zarr raises many kinds for damaged metadata
        raise damaged(store, exception_text(error)) from error


def are_intact(store: str, names: Sequence[str]) -> bool:
    """Return whether the group is there, with the metadata of these maps as they were written."""
    if not as_path(store).is_dir():
        return False
    try:
        open_maps(store, names)
    except Exception as error:  # zarr raises many kinds for damaged metadata
        LOGGER.warning("the maps kept in %s cannot be used (%s): they are computed again.", store, one_line(error))
        return False
    return True


def map_names(store: str) -> list[str]:
    """Return the names of the maps in a group, sorted: its arrays of at least two dimensions."""
    open_maps(store, [])
    with opening(store):
        group = zarr.open_group(writable_store(store), mode="r")
        return sorted(name for name, array in group.arrays() if array.ndim >= 2)


def map_dims(array: Any) -> tuple[tuple[str, ...], int]:
    """Return the names of a map's dimensions, and how many of them are those of the grid."""
    names = dimension_names(array) or ("",) * array.ndim
    return names, array.ndim - sum(name in RGB for name in names)


def read_region(array: Any, region: tuple[Any, ...]) -> NDArray[Any]:
    """Read a region of a map as stored; raise InputError, naming the map, if a chunk does not have its checksum."""
    try:
        return np.asarray(array[region])
    except Exception as error:  # codecs raise many kinds
        raise damaged(str(array.store_path).removeprefix("file://"), exception_text(error)) from error


def read_values(array: Any, region: tuple[Any, ...]) -> NDArray[Any]:
    """Read a region of a map as float64 with NaN for undefined; pictures keep their bytes."""
    values = read_region(array, region)
    if map_dims(array)[1] < array.ndim:
        return values
    values = values.astype(np.float64)
    fill = array.attrs.get("_FillValue")
    if fill is not None:
        values[values == float(str(fill))] = np.nan
    return values


def thinned(size: int, most: int) -> slice:
    """Return the slice that keeps at most `most` of `size` pixels, evenly spaced."""
    return slice(None, None, max(1, -(-size // most)))


def preview(store: str, name: str, most: int = MAX_PIXELS) -> Map:
    """Read a map thinned to at most `most` pixels a side, at the middle of leading dimensions; NaN is undefined.

    Returns float64 values with two dimensions, and their names; a picture keeps its bytes and has a third dimension
    of size 3.
    """
    (array,) = open_maps(store, [name])
    dims, grid_ndim = map_dims(array)
    grid = array.shape[:grid_ndim]
    region = (*(n // 2 for n in grid[:-2]), *(thinned(n, most) for n in grid[-2:]))
    shown = zip(dims[:grid_ndim][-2:], region[-2:], strict=True)
    return read_values(array, region), tuple(_placed(store, dim, kept.step) for dim, kept in shown)


def _placed(store: str, dim: str, step: int) -> Dim:
    """Return a dimension of which every `step`-th pixel is shown, placed by its coordinates if they are evenly spaced.

    Otherwise it is placed by the indices of its pixels.
    """
    by_index = Dim.placed(dim, 0.0, step, f"{dim} (pixels)")
    if not dim or not as_path(f"{store}/{dim}").is_dir():
        return by_index
    (array,) = open_maps(store, [dim])
    values = read_region(array, (...,))
    if values.ndim != 1 or values.size < 2 or values.dtype.kind not in "fiu":
        return by_index
    steps = np.diff(values.astype(np.float64))
    if not steps.all() or not np.allclose(steps, steps[0], rtol=1e-3, atol=0):
        return by_index
    said, units = str(array.attrs.get("standard_name", dim)), str(array.attrs.get("units", "1"))
    name = said if said in ("longitude", "latitude") else dim
    label = name if units == "1" else f"{name} ({UNITS.get(units, units)})"
    return Dim.placed(dim, float(values[0]), float(steps.mean()) * step, label)


def _chunk_shape(block: Sequence[int], most: int = 1 << 20) -> tuple[int, ...]:
    """Return the shape of a chunk of at most `most` pixels, if the block's even sides can be halved that far."""
    chunk = list(block)
    while int(np.prod(chunk)) > most and (even := [i for i, n in enumerate(chunk) if n % 2 == 0]):
        chunk[max(even, key=lambda i: chunk[i])] //= 2
    return tuple(chunk)
