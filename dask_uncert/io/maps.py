"""Per-pixel maps in Zarr: written block by block, shown thinned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.io.attributes import MISSING, json_attributes
from dask_uncert.io.readers.zarr import dimension_names, opening, writable_store


class MapWriter:
    """Per-pixel maps in one group, written block by block; a block written twice leaves the same bytes."""

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
        """maps: name to (dtype, fill value, attributes). Chunks divide the block: no two tasks share one.

        extras: of maps that have more dimensions than the grid, their names and sizes; they come last.
        """
        chunks = _dividing(block)
        with opening(self.store, to_write=True):
            group = zarr.open_group(writable_store(self.store), mode="w", attributes=dict(attributes))
            for name, (dtype, fill, about) in maps.items():
                extra = extras.get(name, {})
                group.create_array(
                    name,
                    shape=(*shape, *extra.values()),
                    chunks=(*chunks, *extra.values()),
                    dtype=dtype,
                    fill_value=fill,
                    dimension_names=(*dims, *extra),
                    attributes=dict(about),
                )

    def write(self, maps: Mapping[str, NDArray[Any]], offset: Sequence[int]) -> None:
        """Write one block of every map at its offset along the grid."""
        with opening(self.store, to_write=True):
            arrays = {
                name: zarr.open_array(writable_store(f"{self.store}/{name}"), mode="r+", zarr_format=3)
                for name in maps
            }
        for name, values in maps.items():
            region = tuple(slice(o, o + n) for o, n in zip(offset, values.shape, strict=False))
            arrays[name][region] = values

    def add_grid_mapping(self, name: str, about: Mapping[str, Any]) -> None:
        """Write a variable without dimensions that says in its attributes how the maps are projected."""
        with opening(self.store, to_write=True):
            array = zarr.open_group(writable_store(self.store), mode="r+").create_array(
                name, shape=(), dtype="int32", dimension_names=(), attributes=dict(about), overwrite=True
            )
        array[...] = 0

    def add_coordinates(self, found: Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]]) -> None:
        """Write one-dimensional coordinates beside the maps: name to (values, attributes)."""
        for name, (values, about) in found.items():
            with opening(self.store, to_write=True):
                array = zarr.open_group(writable_store(self.store), mode="r+").create_array(
                    name,
                    shape=values.shape,
                    dtype=values.dtype,
                    dimension_names=(name,),
                    attributes={
                        key: value for key, value in json_attributes(about).items() if key not in MISSING
                    },
                    overwrite=True,  # a run that was stopped may have written it
                )
            array[...] = values


def _array_of(group: zarr.Group, name: str) -> Any:
    array = group[name]
    assert isinstance(array, zarr.Array)
    return array


def preview(store: str, name: str, most: int = 600) -> tuple[NDArray[Any], tuple[str, ...]]:
    """A map thinned to at most `most` pixels a side, the middle slice of leading dimensions; NaN is undefined.

    float64, two dimensions and their names; a picture keeps its bytes and has a third dimension, of size 3.
    """
    with opening(store):
        array = _array_of(zarr.open_group(writable_store(store), mode="r"), name)
    names = dimension_names(array) or ("",) * array.ndim
    colours = tuple(slice(None) for dim in names if dim in RGB)
    grid = array.shape[: array.ndim - len(colours)]
    thinned = tuple(slice(None, None, max(1, -(-n // most))) for n in grid[-2:])
    values = np.asarray(array[(*(n // 2 for n in grid[:-2]), *thinned, *colours)])
    if not colours:
        values = values.astype(np.float64)
        fill = array.attrs.get("_FillValue")
        if fill is not None:
            values[values == float(str(fill))] = np.nan
    return values, names[: len(grid)][-2:]


def _dividing(block: Sequence[int], most: int = 1 << 20) -> tuple[int, ...]:
    """A chunk of at most `most` pixels where halving the block's sides evenly gets there."""
    chunk = list(block)
    while int(np.prod(chunk)) > most:
        even = [i for i, n in enumerate(chunk) if n % 2 == 0]
        if not even:
            break
        longest = max(even, key=lambda i: chunk[i])
        chunk[longest] //= 2
    return tuple(chunk)


MAPS = {"correct": ("uint8", 255), "predicted": ("uint16", 65535), "confused_classes": ("uint16", 65535)}
"""Maps beside the measures (float32, NaN): dtype and the value that means undefined."""

RGB = {"rgb": 3}
"""The dimension that a picture has more than the grid, and its size."""


class Layer(NamedTuple):
    """A map as it is stored: its dtype, the value that means undefined, dimensions beside the grid's."""

    dtype: str
    fill: float
    extra: dict[str, int]
