"""Writing a new Zarr group of small arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import zarr
from numpy.typing import NDArray

from dask_uncert.io.paths import AnyPath
from dask_uncert.io.readers.zarr import opening, writable_store


class NewArray(NamedTuple):
    """An array to write: the names of its dimensions, its values, and its attributes."""

    dims: Sequence[str]
    values: NDArray[Any]
    attributes: Mapping[str, Any] = {}  # never changed


def write_group(folder: AnyPath, arrays: Mapping[str, NewArray]) -> None:
    """Write the arrays into a new group, each as one chunk; FileExistsError if there is something in its place."""
    store = str(folder)
    with opening(store, to_write=True):
        group = zarr.open_group(writable_store(store), mode="w-")
        for name, (dims, values, attributes) in arrays.items():
            group.create_array(name, data=values, dimension_names=tuple(dims), attributes=dict(attributes))
