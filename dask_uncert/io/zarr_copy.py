"""Copying an array to Zarr block by block; each block is read back and compared, and a crash loses no finished block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec, ZstdCodec

from dask_uncert.errors import InputError
from dask_uncert.io.attributes import as_fill_value, json_attributes
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.indexing import region_text
from dask_uncert.io.integrity import CHECKED
from dask_uncert.io.owned_folder import CONVERTED, store_attributes
from dask_uncert.io.paths import AnyPath, as_path, write_atomic
from dask_uncert.io.readers.zarr import ZarrArray, opening, writable_store

CHUNK_BYTES = 2 << 20  # about, so that a region is read with little around it
SHARD_BYTES = 64 << 20  # about: a task reads one shard
MAX_FILES = 2000
"""If there are more chunks, they are put into shards."""
WRAPPED = ZstdCodec(level=1, checksum=True)
"""Adds a checksum to what Blosc compressed, which has none: 20 bytes for each chunk."""
DONE, BEGUN = "done", "begun"
PACKING = (
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "affine",
    "affine_dims",
    "affine_unit",
    "affine_stored_units",
    "crs",
)


@dataclass(frozen=True)
class Layout:
    """Chunks of the new array, and shards (multiples of chunks, or None); a block is what is written at once."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None

    @property
    def block(self) -> tuple[int, ...]:
        """Shape of a block: a shard, or a chunk if there are no shards."""
        return self.shards or self.chunks

    def blocks(self) -> list[tuple[slice, ...]]:
        """Return every block as a region; no two share a chunk or a shard."""
        numbers = np.ndindex(*(-(-n // b) for n, b in zip(self.shape, self.block, strict=True)))
        return [
            tuple(slice(i * b, min((i + 1) * b, n)) for i, b, n in zip(at, self.block, self.shape, strict=True))
            for at in numbers
        ]


def layout_of(
    shape: Sequence[int],
    itemsize: int,
    whole: Sequence[bool],
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
) -> Layout:
    """Return chunks of about 2 MiB, cut along the axes that are not `whole`; shards if there would be too many files.

    Raises InputError for chunks and shards that do not fit the array or each other.
    """
    for name, sizes in (("chunks", chunks), ("shards", shards)):
        if sizes is not None and (len(sizes) != len(shape) or min(sizes, default=0) < 1):
            raise InputError(
                f"{name}: {list(sizes)} are not {len(shape)} numbers above 0, for the shape {tuple(shape)}."
            )
    cut = tuple(chunks) if chunks is not None else _chunks(shape, itemsize, whole)
    cut = tuple(max(1, min(c, n)) for c, n in zip(cut, shape, strict=True))
    if shards is not None:
        if any(s % c for s, c in zip(shards, cut, strict=True)):
            raise InputError(
                f"shards: {list(shards)} are not multiples of the chunks {list(cut)}, so a chunk would be in two shards."
            )
        return Layout(tuple(shape), cut, tuple(shards))
    files = math.prod(-(-n // c) for n, c in zip(shape, cut, strict=True))
    return Layout(tuple(shape), cut, _shards(shape, cut, itemsize) if files > MAX_FILES else None)


def _chunks(shape: Sequence[int], itemsize: int, whole: Sequence[bool]) -> tuple[int, ...]:
    """Return powers of two along the axes that may be cut, as equal as possible."""
    fixed = math.prod(n for n, kept in zip(shape, whole, strict=True) if kept)
    free = [axis for axis, kept in enumerate(whole) if not kept]
    side = [n if kept else 1 for n, kept in zip(shape, whole, strict=True)]
    while True:
        short = [axis for axis in free if side[axis] < shape[axis]]
        pixels = math.prod(side[axis] for axis in free)
        if not short or 2 * pixels * fixed * itemsize > CHUNK_BYTES:
            return tuple(min(s, n) for s, n in zip(side, shape, strict=True))
        side[min(short, key=lambda axis: (side[axis], -shape[axis]))] *= 2


def _shards(shape: Sequence[int], chunks: Sequence[int], itemsize: int) -> tuple[int, ...]:
    shard = list(chunks)
    while True:
        grown = [axis for axis in range(len(shape)) if shard[axis] < shape[axis]]
        if not grown or 2 * math.prod(shard) * itemsize > SHARD_BYTES:
            return tuple(shard)
        shard[min(grown, key=lambda axis: (shard[axis] / chunks[axis], -shape[axis]))] *= 2


def create(
    folder: AnyPath,
    name: str,
    layout: Layout,
    dtype: np.dtype[Any],
    dims: Sequence[str],
    attributes: Mapping[str, Any],
    coordinates: Mapping[str, tuple[NDArray[Any], Mapping[str, Any]]],
    source: Mapping[str, Any],
) -> None:
    """Make the group with an empty array and its coordinates; source: what it is copied from, kept in its attributes."""
    store = str(folder)
    marked = {**store_attributes([name, *coordinates]), **source}
    with opening(store, to_write=True):
        group = zarr.open_group(writable_store(store), mode="w-", attributes=marked)
        group.create_array(
            name, shape=layout.shape, chunks=layout.chunks, shards=layout.shards, dtype=dtype, fill_value=0,
            dimension_names=tuple(dims), attributes=dict(attributes),
            compressors=[BloscCodec(cname="zstd", clevel=3, shuffle="shuffle"), WRAPPED],
        )  # fmt: skip
        for dim, (values, dim_attributes) in coordinates.items():
            coordinate = group.create_array(
                dim,
                shape=values.shape,
                dtype=values.dtype,
                dimension_names=(dim,),
                attributes=json_attributes(dim_attributes),
                compressors=CHECKED,
            )
            coordinate[...] = values
    write_atomic(folder / DONE / BEGUN, b"")


def source_of(folder: AnyPath) -> dict[str, Any] | None:
    """Return what a folder was copied from; None if it is not a copy."""
    try:
        with opening(str(folder)):
            attributes = dict(zarr.open_group(writable_store(str(folder)), mode="r").attrs)
    except Exception:
        return None
    return attributes if attributes.get("dask_uncert") == CONVERTED else None


class Writer:
    """The task that writes one block, unless it is done. It can be pickled."""

    def __init__(self, source: Any, folder: str, name: str) -> None:
        """source: the array to read. folder: of the group that `create` made."""
        self.source, self.folder, self.name = source, folder, name

    def __call__(self, region: tuple[slice, ...]) -> int:
        """Return the bytes written, 0 if the block was done before; raise InputError if it does not read back."""
        mark = as_path(self.folder) / DONE / ("-".join(str(part.start) for part in region) or "all")
        if mark.exists():
            return 0
        values = np.asarray(self.source[region])
        with opening(self.folder, to_write=True):
            group = zarr.open_group(writable_store(self.folder), mode="r+")
            array: Any = group[self.name]
        array[region] = values
        back = ZarrArray(self.folder, self.name, "the copy")[region]
        if back.dtype != values.dtype or back.tobytes() != np.ascontiguousarray(values).tobytes():
            raise InputError(
                f"the block [{region_text(region)}] of {self.folder} does not read back as it was written: check the disk."
            )
        write_atomic(mark, b"")
        return int(values.nbytes)


def copied_attributes(
    attributes: Mapping[str, Any], decoding: Decoding, dtype: np.dtype[Any], geometry: Geometry | None
) -> dict[str, Any]:
    """Return the attributes of the new array: those of the source, its decoding and its geometry."""
    kept = {key: value for key, value in json_attributes(attributes).items() if key not in PACKING}
    if decoding.is_packed:
        kept |= {"scale_factor": decoding.scale, "add_offset": decoding.offset}
    codes = [code for code in decoding.missing if math.isfinite(code)]
    if codes:
        kept["_FillValue"] = as_fill_value(codes[0], dtype)
    if len(codes) > 1:
        kept["missing_value"] = codes[1:]
    return kept | ({} if geometry is None else geometry.attributes())
