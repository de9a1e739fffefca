"""Whether a compressed chunk decodes to no more than its array states, at little cost and in little memory.

A chunk of some kilobytes can decode to gigabytes, and libraries decode all of it before they look at its size. blosc
and lz4 say the size first. zstd bounds that of each of its blocks, so their headers tell. The rest is decoded piece by
piece, only to count, where it could be more than FREE.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dask_uncert.io.file_cache import EXPANSION, STEP

FREE = 16 << 20  # bytes that any chunk may decode to: the reader then sees that its size is wrong
ZSTD_BLOCK = 128 << 10  # bytes that a block of zstd can decode to
ZSTD_FRAME, ZSTD_SKIPPABLE = 0xFD2FB528, range(0x184D2A50, 0x184D2A60)
SLACK = 8  # times the stated size that zstd's short blocks may seem to hold


def decodes_within(codecs: Sequence[str], data: Any, limit: int) -> bool:
    """Return whether bytes decode to at most `limit` bytes, or so few that it does not matter.

    More bytes than a compressor makes of the limit are refused as well. codecs: names, as in numcodecs, in the order of
    decoding. data: any buffer; for zstd alone also `FileBytes`. Unknown codecs, damaged bytes, and what blosc, lz4 or zstd packed once more are left to
    the reader.
    """
    if len(data) > grown(limit):
        return False
    try:
        for number, codec in enumerate(codecs, 1):
            last = number == len(codecs)
            most = limit if last else grown(limit)
            if codec in STATED and STATED[codec](data) > most:
                return False
            if codec == "zstd" and _zstd_bound(data) > SLACK * most + FREE:
                return False
            if codec not in STREAMS:
                return True
            if _could_hold(codec, data) > max(most, FREE) and _holds_more(codec, data, most):
                return False
            if not last:
                data = memoryview(b"".join(STREAMS[codec](data)))
    except (ValueError, struct.error, EOFError, OSError, zlib.error, lzma.LZMAError):
        return True
    return True


class FileBytes:
    """The bytes of an open file in slices, each read when it is asked for: a map of a few bytes costs more."""

    def __init__(self, file: Any, size: int) -> None:
        self.file, self.size = file, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.size)
        return os.pread(self.file.fileno(), stop - start, start)


def grown(nbytes: int) -> int:
    """Return the most bytes that a compressor makes of these: what it cannot compress grows a little."""
    return nbytes + nbytes // 8 + (1 << 16)


STATED: dict[str, Callable[[Any], int]] = {
    "blosc": lambda data: int(struct.unpack_from("<I", data, 4)[0]),
    "lz4": lambda data: int(struct.unpack_from("<I", data, 0)[0]),
}


def _zlib_pieces(data: Any) -> Iterator[bytes]:
    stream, rest = zlib.decompressobj(), data
    while piece := stream.decompress(rest, STEP):
        yield piece
        rest = stream.unconsumed_tail


def _pieces(opened: Callable[[Any], Any]) -> Callable[[Any], Iterator[bytes]]:
    def pieces(data: Any) -> Iterator[bytes]:
        with opened(io.BytesIO(data)) as file:
            while piece := file.read(STEP):
                yield piece

    return pieces


STREAMS = {"zlib": _zlib_pieces, "gzip": _pieces(gzip.open), "bz2": _pieces(bz2.open), "lzma": _pieces(lzma.open)}


def _could_hold(codec: str, data: Any) -> float:
    return EXPANSION * len(data) if codec in ("zlib", "gzip") else float("inf")


def _holds_more(codec: str, data: Any, most: int) -> bool:
    count = 0
    for piece in STREAMS[codec](data):
        count += len(piece)
        if count > most:
            return True
    return False


def _zstd_bound(data: Any) -> int:
    """Return the most bytes that the blocks of all frames decode to (RFC 8878, section 3.1)."""
    at = total = 0
    while at + 4 <= len(data):
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic in ZSTD_SKIPPABLE:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
            continue
        if magic != ZSTD_FRAME:
            break
        descriptor = int.from_bytes(data[at + 4 : at + 5], "little")
        single, size_flag = descriptor >> 5 & 1, descriptor >> 6
        at += 5 + (not single) + (0, 1, 2, 4)[descriptor & 3] + ((1 if single else 0), 2, 4, 8)[size_flag]
        last = False
        while not last:
            header = int.from_bytes(data[at : at + 3], "little") if at + 3 <= len(data) else 7
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            total += size if kind < 2 else ZSTD_BLOCK
            at += 3 + (1 if kind == 1 else size)
        at += 4 * (descriptor >> 2 & 1)
    return total
