"""Chunks of Zarr arrays, looked at before they are decoded: ordinary files, which hold no more than the array states."""

from __future__ import annotations

import json
import math
import mmap
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from zarr.abc.codec import BytesBytesCodec
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec
from zarr.core.buffer.cpu import NDBuffer

from dask_uncert.errors import InputError
from dask_uncert.io.decoded_size import FileBytes, decodes_within
from dask_uncert.io.indexing import Span, spans_of
from dask_uncert.io.large_pages import empty
from dask_uncert.io.lazy_array import whole_region
from dask_uncert.io.paths import check_not_special

METADATA = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata")
CHECKSUM = 4  # bytes of crc32c, and of an index in a shard's index after 16 for each chunk
CHECKED = ("gzip", "zlib", "bz2", "lzma")  # codecs whose streams end with a checksum
SMALL = 1 << 17  # bytes of a file that is read at once: mapping it takes longer
EMPTY = (1 << 64) - 1  # place of a chunk that a shard does not hold


class Packing(NamedTuple):
    """Compressors of a chunk in the order of decoding; the most bytes it decodes to; bytes of checksums after it."""

    codecs: tuple[str, ...]
    limit: int
    checksums: int

    def holds(self, data: Any) -> bool:
        """Return whether an encoded chunk decodes to no more than the limit."""
        return decodes_within(self.codecs, data[: len(data) - self.checksums], self.limit)


def check_metadata(store: str, path: str, name: str) -> None:
    """Refuse a store whose metadata, at any level of a path, are no ordinary files."""
    parts = path.split("/") if path else []
    for depth, file in product(range(len(parts) + 1), METADATA):
        check_not_special(os.path.join(store, *parts[:depth], file), f"{name}: ")


def may_be_one_dimension(folder: str) -> bool:
    """Return whether a folder may hold an array of one dimension, by its metadata: to open an array takes far longer."""
    for file in (os.path.join(folder, name) for name in ("zarr.json", ".zarray")):
        with suppress(OSError, ValueError, TypeError, LookupError):
            if os.path.isfile(file):
                with open(file, encoding="utf-8") as metadata:
                    return len(json.load(metadata)["shape"]) == 1
    return os.path.isdir(folder)


def check_all_files(folder: str, name: str) -> None:
    """Refuse a folder, such as a small array's, that holds what is no ordinary file."""
    for inside, _, files in os.walk(folder):
        for file in files:
            check_not_special(os.path.join(inside, file), f"{name}: ")


class ChunkCheck:
    """Checks encoded chunks of a zarr.Array by their keys; where: names the array in messages."""

    def __init__(self, array: Any, where: str, name: str) -> None:
        self.array, self.where, self.name = array, where, name
        self.sharding = next((c for c in getattr(array.metadata, "codecs", ()) if isinstance(c, ShardingCodec)), None)
        self.packing = _packing(array)

    def check_files(self, folder: str, region: Any) -> None:
        """Refuse a region of a local array if a file that it needs is special, or decodes to more than it should."""
        chunks = self.array.shards or self.array.chunks
        spans, _ = spans_of(region, self.array.shape)
        for index in product(*(range(a // c, -(-b // c)) for (a, b), c in zip(spans, chunks, strict=True))):
            key = self.array.metadata.encode_chunk_key(index)
            path = os.path.join(folder, key)
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                continue  # whoever reads it says what is wrong
            if not stat.S_ISREG(status.st_mode):
                check_not_special(path, f"{self.name}: chunk ")
                continue
            if status.st_size == 0:
                continue
            with open(path, "rb", buffering=0) as file:
                if self.sharding is None and self.packing.codecs == ("zstd",):
                    part = FileBytes(file, status.st_size - self.packing.checksums)
                    if not decodes_within(self.packing.codecs, part, self.packing.limit):
                        raise self._too_much(key)
                    continue
                # A map is not closed by hand, which fails while a decompressor still holds a part of it.
                small = status.st_size <= SMALL
                data = memoryview(file.read() if small else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            within = None
            if self.sharding is not None:
                sides = zip(spans, index, chunks, strict=True)
                within = [(max(a - i * c, 0), min(b - i * c, c)) for (a, b), i, c in sides]
            self.check(key, data, within)

    def check(self, key: str, data: memoryview, spans: Sequence[Span] | None = None) -> None:
        """Refuse an encoded chunk that decodes to more than it should; of a shard, look at the chunks in these spans."""
        for part in [data] if self.sharding is None else self._inner(data, spans):
            if not self.packing.holds(part):
                raise self._too_much(key)

    def _too_much(self, key: str) -> InputError:
        return InputError(
            f"{self.name}: chunk {key} of {self.where} decodes to more than the {self.packing.limit} bytes that the "
            f"array's metadata state for a chunk: it is damaged, or made to fill the memory. Copy it again."
        )

    def _inner(self, data: memoryview, spans: Sequence[Span] | None) -> Iterator[memoryview]:
        """Yield the encoded chunks of a shard whose index can be read without decoding it."""
        sharding, sides = self.sharding, self.array.shards
        assert sharding is not None
        plain = [isinstance(codec, BytesCodec | Crc32cCodec) for codec in sharding.index_codecs]
        numbers = tuple(n // c for n, c in zip(sides, self.array.chunks, strict=True))
        nbytes = 16 * math.prod(numbers)
        ends = len(data) - CHECKSUM * (len(plain) - 1)
        begin = 0 if str(sharding.index_location.value) == "start" else ends - nbytes
        if not all(plain) or begin < 0 or begin + nbytes > len(data):
            return  # damaged: the reader tells
        places = np.frombuffer(data[begin : begin + nbytes], "<u8").reshape(*numbers, 2).copy()
        within = spans or [(0, n) for n in sides]
        inner = (range(a // c, -(-b // c)) for (a, b), c in zip(within, self.array.chunks, strict=True))
        for at in product(*inner):
            offset, size = (int(n) for n in places[at])
            if EMPTY not in (offset, size):
                yield data[offset : offset + size]


def room_for(array: Any, region: Any) -> NDBuffer | None:
    """Return the memory to read a region of a zarr.Array to, or None where zarr takes its own."""
    parts = whole_region(region, array.ndim)
    slices = [part for part in parts if isinstance(part, slice) and part.step in (None, 1)]
    if len(slices) < len(parts) or not array.dtype.isnative:
        return None
    spans, _ = spans_of(region, array.shape)
    values: Any = empty(tuple(b - a for a, b in spans), array.dtype)
    return NDBuffer(values)


def has_checksum(array: Any) -> bool:
    """Return whether every chunk of a zarr.Array has a checksum that is verified whenever any of it is read.

    That of crc32c is not, where zarrs decodes a part of a chunk.
    """
    if array.metadata.zarr_format == 2:
        codecs = [(codec.codec_id, codec.get_config()) for codec in _version_2(array.metadata)]
    else:
        plain = [codec.to_dict() for codec in _version_3(array.metadata) if isinstance(codec, BytesBytesCodec)]
        codecs = [(_codec_name(codec), codec.get("configuration", {})) for codec in plain]
    return any(name in CHECKED or (name == "zstd" and words.get("checksum")) for name, words in codecs)


def _version_2(metadata: Any) -> list[Any]:
    return [codec for codec in (metadata.compressor, *reversed(metadata.filters or ())) if codec is not None]


def _version_3(metadata: Any) -> Sequence[Any]:
    """Return the codecs of a chunk, or of those in a shard."""
    sharding = next((codec for codec in metadata.codecs if isinstance(codec, ShardingCodec)), None)
    codecs: Sequence[Any] = metadata.codecs if sharding is None else sharding.codecs
    return codecs


def _codec_name(codec: Mapping[str, Any]) -> str:
    return str(codec["name"]).removeprefix("numcodecs.")


def _packing(array: Any) -> Packing:
    """Return how the chunks of an array, or those in its shards, are packed."""
    metadata = array.metadata
    nbytes = math.prod(array.chunks) * np.dtype(array.dtype).itemsize
    if metadata.zarr_format == 2:
        packed = [codec.codec_id for codec in _version_2(metadata)]
        return Packing(tuple(packed), nbytes if len(packed) < 2 else 8 * nbytes, 0)
    codecs = _version_3(metadata)
    changes = [c for c in codecs if not isinstance(c, BytesBytesCodec | BytesCodec | TransposeCodec)]
    packing = [codec for codec in reversed(codecs) if isinstance(codec, BytesBytesCodec)]
    checksums = [codec for codec in packing if isinstance(codec, Crc32cCodec)]
    names = [_codec_name(c.to_dict()) for c in packing if c not in checksums]
    return Packing(tuple(names), 8 * nbytes if changes else nbytes, CHECKSUM * len(checksums))
