"""An array written anew in Zarr, block by block, each read back and compared; what is done is known after a crash."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import BloscCodec

from dask_uncert.errors import InputError
from dask_uncert.io.attributes import as_fill_value, json_attributes
from dask_uncert.io.decoding import Decoding
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.paths import AnyPath, as_path, write_atomic
from dask_uncert.io.readers.zarr import ZarrArray, opening, writable_store

CHUNK_BYTES = 2 << 20  # of a chunk, about: a pixel's neighbourhood is read with little beside it
SHARD_BYTES = 64 << 20  # of a shard, about: a task reads one
MOST_FILES = 2000
"""With more chunks, they go into shards."""
DONE, BEGUN = "done", "begun"
PACKING = (
    "scale_factor",
    "add_offset",
    "_FillValue",
    "missing_value",
    "affine",
    "affine_dims",
    "affine_unit",
    "crs",
)


@dataclass(frozen=True)
class Layout:
    """How the new array is cut: chunks, and shards (multiples of chunks, or None); a block is what is written at once."""

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None

    @property
    def block(self) -> tuple[int, ...]:
        """Sides of a block: a shard, or a chunk where there are no shards."""
        return self.shards or self.chunks

    def blocks(self) -> list[tuple[slice, ...]]:
        """Every block as a region; no two share a chunk or a shard."""
        numbers = np.ndindex(*(-(-n // b) for n, b in zip(self.shape, self.block, strict=True)))
        return [
            tuple(
                slice(i * b, min((i + 1) * b, n)) for i, b, n in zip(at, self.block, self.shape, strict=True)
            )
            for at in numbers
        ]


def layout_of(
    shape: Sequence[int],
    itemsize: int,
    whole: Sequence[bool],
    chunks: Sequence[int] | None = None,
    shards: Sequence[int] | None = None,
) -> Layout:
    """Chunks of about 2 MiB, cut along the axes that are not `whole`; shards where there would be very many files.

    Raises InputError for chunks and shards that do not fit the array or each other.
    """
    for name, given in (("chunks", chunks), ("shards", shards)):
        if given is not None and (len(given) != len(shape) or min(given, default=0) < 1):
            raise InputError(
                f"{name}: {list(given)} are not {len(shape)} numbers above 0, for the shape {tuple(shape)}."
            )
    made = tuple(chunks) if chunks is not None else _chunks(shape, itemsize, whole)
    made = tuple(max(1, min(c, n)) for c, n in zip(made, shape, strict=True))
    if shards is not None:
        if any(s % c for s, c in zip(shards, made, strict=True)):
            raise InputError(
                f"shards: {list(shards)} are not multiples of the chunks {list(made)}, so a chunk would lie in two shards."
            )
        return Layout(tuple(shape), made, tuple(shards))
    files = math.prod(-(-n // c) for n, c in zip(shape, made, strict=True))
    return Layout(tuple(shape), made, _shards(shape, made, itemsize) if files > MOST_FILES else None)


def _chunks(shape: Sequence[int], itemsize: int, whole: Sequence[bool]) -> tuple[int, ...]:
    """Powers of two along the axes that may be cut, as even as may be."""
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
    mark: Mapping[str, Any],
) -> None:
    """Make the group with an empty array and its coordinates; mark: what it is a conversion of, in its attributes."""
    store = str(folder)
    with opening(store, to_write=True):
        group = zarr.open_group(
            writable_store(store), mode="w", attributes={"dask_uncert": "converted", **mark}
        )
        group.create_array(
            name, shape=layout.shape, chunks=layout.chunks, shards=layout.shards, dtype=dtype, fill_value=0,
            dimension_names=tuple(dims), attributes=dict(attributes),
            compressors=[BloscCodec(cname="zstd", clevel=3, shuffle="shuffle")],
        )  # fmt: skip
        for dim, (values, about) in coordinates.items():
            one = group.create_array(
                dim,
                shape=values.shape,
                dtype=values.dtype,
                dimension_names=(dim,),
                attributes=json_attributes(about),
            )
            one[...] = values
    write_atomic(folder / DONE / BEGUN, b"")


def mark_of(folder: AnyPath) -> dict[str, Any] | None:
    """What a folder is a conversion of; None where it is none."""
    try:
        with opening(str(folder)):
            found = dict(zarr.open_group(writable_store(str(folder)), mode="r").attrs)
    except Exception:
        return None
    return found if found.get("dask_uncert") == "converted" else None


class Writer:
    """Writes one block, unless it is done: what a task does; pickles."""

    def __init__(self, source: Any, folder: str, name: str) -> None:
        """source: what is sliced. folder: of the group that `create` made."""
        self.source, self.folder, self.name = source, folder, name

    def __call__(self, region: tuple[slice, ...]) -> int:
        """Bytes written; 0 where the block was done before. InputError where what was written does not read back."""
        mark = as_path(self.folder) / DONE / ("-".join(str(part.start) for part in region) or "all")
        if mark.exists():
            return 0
        values = np.asarray(self.source[region])
        with opening(self.folder, to_write=True):
            group = zarr.open_group(writable_store(self.folder), mode="r+")
            array: Any = group[self.name]
        array[region] = values
        back = ZarrArray(self.folder, self.name, "what was written")[region]
        if back.dtype != values.dtype or back.tobytes() != np.ascontiguousarray(values).tobytes():
            said = ", ".join(f"{part.start}:{part.stop}" for part in region)
            raise InputError(
                f"the block [{said}] of {self.folder} does not read back as it was written: check the disk."
            )
        write_atomic(mark, b"")
        return int(values.nbytes)


def about(
    attributes: Mapping[str, Any], decoding: Decoding, dtype: np.dtype[Any], geometry: Geometry | None
) -> dict[str, Any]:
    """Attributes of the new array: those there were, what stored numbers mean, and where it lies."""
    found = {key: value for key, value in json_attributes(attributes).items() if key not in PACKING}
    if decoding.is_packed:
        found |= {"scale_factor": decoding.scale, "add_offset": decoding.offset}
    codes = [code for code in decoding.missing if math.isfinite(code)]
    if codes:
        found["_FillValue"] = as_fill_value(codes[0], dtype)
    if len(codes) > 1:
        found["missing_value"] = codes[1:]
    return found | ({} if geometry is None else geometry.attributes())
