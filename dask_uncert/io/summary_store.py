"""The frame and the counts of a Summary in Zarr."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.readers.zarr import opening, writable_store

FORMAT = 1


def write_counts(
    store: str, frame: Mapping[str, Any], arrays: Iterable[tuple[str, tuple[str, ...], NDArray[np.int64]]]
) -> None:
    """A Summary's frame and arrays under `total/`; the same Summary gives the same bytes."""
    with opening(store, to_write=True):
        root = zarr.open_group(
            writable_store(store), mode="w", attributes={"dask_uncert": "summary", "format": FORMAT}
        )
        total = root.create_group("total", attributes={"frame": json.dumps(frame)})
        for path, dims, value in arrays:
            made = total.create_array(
                path, shape=value.shape, chunks=tuple(max(n, 1) for n in value.shape), dtype="int64",
                dimension_names=dims, fill_value=0,
            )  # fmt: skip
            made[...] = value


def read_counts(store: str) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
    """The frame and the arrays by path that `write_counts` wrote; InputError where they are not there."""
    total, frame = _total(store)
    with opening(store):
        arrays = {
            path: np.asarray(member[...])
            for path, member in total.members(max_depth=None)
            if isinstance(member, zarr.Array)
        }
    return frame, arrays


def read_frame(store: str) -> dict[str, Any]:
    """The frame that `write_counts` wrote; InputError where there is none."""
    return _total(store)[1]


def _total(store: str) -> tuple[zarr.Group, dict[str, Any]]:
    try:
        with opening(store):
            root = zarr.open_group(writable_store(store), mode="r")
        kind, version = root.attrs.get("dask_uncert"), root.attrs.get("format")
    except Exception as error:
        raise InputError(f"there is no summary at {store} ({exception_text(error)}).") from error
    if kind != "summary":
        raise InputError(f"{store} is a Zarr group, but no summary of dask_uncert.")
    if version != FORMAT:
        raise InputError(f"{store} holds a summary of format {version}; this version reads format {FORMAT}.")
    with opening(store):
        total = root["total"]
    assert isinstance(total, zarr.Group)
    return total, json.loads(str(total.attrs["frame"]))
