"""What finished cases leave until a cohort is whole: a file a case, beside the output folder.

A file is whole, and on the disk, or not there. Its name says the
case and what it was computed from, so a case whose inputs, job or version changed is not found and is computed
again. Frames, which are the same for most cases, are kept once, in files of their own.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.io.paths import AnyPath, as_path, remove, write_atomic
from dask_uncert.summaries.sparse_rows import SparseRow
from dask_uncert.summaries.stack import Layout, layout_of
from dask_uncert.summaries.summary import Summary

MAGIC = b"dask-uncert case 1\n"
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)


@dataclass(frozen=True)
class Frame:
    """What Evaluations of one kind count: their frame and the layout of their arrays."""

    frame: dict[str, Any]
    layout: Layout

    @cached_property
    def text(self) -> str:
        """As JSON: 20 ms for three measures, so Frames are kept."""
        arrays = {path: [list(dims), list(shape)] for path, (dims, shape) in self.layout.items()}
        return json.dumps({"frame": self.frame, "arrays": arrays})

    @cached_property
    def digest(self) -> str:
        """Equal for equal frames."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    @classmethod
    def of(cls, evaluation: Summary) -> Frame:
        """An Evaluation's."""
        return cls(evaluation.frame(), layout_of(evaluation))


@dataclass(frozen=True)
class CaseFile:
    """What one case left: a digest of its frame and its sparse rows, by the label of each of its summaries.

    facts: anything that JSON holds about how it was computed.
    """

    facts: dict[str, Any]
    frames: dict[str, str]
    rows: dict[str, dict[str, SparseRow]]


class CaseFolder:
    """The folder of case files of one output, at a path or a URL; made when the first is written."""

    def __init__(self, place: str | AnyPath) -> None:
        self.place = as_path(place)

    def file(self, name: str, key: str) -> AnyPath:
        """Where the case `name`, computed from what `key` stands for, lies."""
        readable = re.sub(r"[^\w-]+", "_", name)[:40]
        return self.place / f"{readable}.{hashlib.sha256(f'{name} {key}'.encode()).hexdigest()[:24]}.case"

    def maps(self, name: str, key: str) -> AnyPath:
        """Where its maps lie."""
        return self.file(name, key).with_suffix(".maps")

    def write(
        self,
        name: str,
        key: str,
        summaries: Mapping[str, tuple[Frame, Summary]],
        facts: Mapping[str, Any],
    ) -> CaseFile:
        """Write a case's summaries, each with its frame, by label; returns what was written."""
        frames, rows = {}, {}
        for label, (frame, evaluation) in summaries.items():
            frames[label] = self._keep(frame)
            rows[label] = {path: SparseRow.of(array) for path, _, array in evaluation.arrays()}
        found = CaseFile(dict(facts), frames, rows)
        write_atomic(self.file(name, key), _packed(name, key, found))
        return found

    def has(self, name: str, key: str) -> bool:
        """Whether `write` left something; it may be damaged."""
        return self.file(name, key).is_file()

    def read(self, name: str, key: str) -> CaseFile | None:
        """What `write` left; None where there is nothing, or it is damaged."""
        try:
            content = self.file(name, key).read_bytes()
        except OSError:
            return None
        return _unpacked(name, key, content)

    def frame(self, digest: str) -> Frame:
        """The frame with this digest."""
        words = json.loads((self.place / f"{digest}.frame").read_text(encoding="utf-8"))
        return Frame(
            words["frame"],
            {path: (tuple(dims), tuple(shape)) for path, (dims, shape) in words["arrays"].items()},
        )

    def _keep(self, frame: Frame) -> str:
        file = self.place / f"{frame.digest}.frame"
        if not file.exists():
            write_atomic(file, frame.text.encode())
        return frame.digest


@contextmanager
def replacing_folder(path: AnyPath) -> Iterator[AnyPath]:
    """A folder of this process's own beside `path`, renamed to it when the `with` ends well; one there is replaced.

    An object store cannot rename: there it is written where it belongs, and is whole once the case's file is there.
    """
    if not isinstance(path, Path):
        remove(path)
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    working = path.with_name(f"{path.name}.{uuid.uuid4().hex}.unfinished")
    try:
        yield working
        remove(path)
        try:
            os.replace(working, path)
        except OSError:
            if not path.is_dir():  # else the same task, on another worker, was quicker
                raise
    finally:
        remove(working)


def _packed(name: str, key: str, case: CaseFile) -> bytes:
    """MAGIC, the length of a JSON header, the header, numbers, and a checksum of all that.

    Numbers are as narrow as they may be. Compressing them as well halves the size at 20 MB/s: too slow for what
    is soon deleted.
    """
    parts: list[bytes] = []
    stored: dict[str, dict[str, list[Any]]] = {}
    for label, rows in case.rows.items():
        stored[label] = {}
        for path, row in rows.items():
            steps = _narrow(np.diff(row.cells, prepend=0), UNSIGNED)
            counts = _narrow(row.counts, SIGNED)
            parts += [steps.tobytes(), counts.tobytes()]
            stored[label][path] = [int(row.cells.size), steps.dtype.str, counts.dtype.str]
    header = json.dumps(
        {"name": name, "key": key, "facts": case.facts, "frames": case.frames, "stored": stored}
    ).encode()
    content = b"".join([MAGIC, struct.pack("<I", len(header)), header, *parts])
    return content + struct.pack("<I", zlib.crc32(content))


def _unpacked(name: str, key: str, content: bytes) -> CaseFile | None:
    start = len(MAGIC) + 4
    if len(content) < start + 4 or not content.startswith(MAGIC):
        return None
    if struct.unpack("<I", content[-4:])[0] != zlib.crc32(content[:-4]):
        return None
    (length,) = struct.unpack("<I", content[start - 4 : start])
    header = json.loads(content[start : start + length])
    if (header["name"], header["key"]) != (name, key):
        return None
    at = start + length
    rows: dict[str, dict[str, SparseRow]] = {}
    for label, stored in header["stored"].items():
        rows[label] = {}
        for path, (size, *dtypes) in stored.items():
            arrays = []
            for dtype in dtypes:
                arrays.append(np.frombuffer(content, dtype, size, at).astype(np.int64))
                at += size * np.dtype(dtype).itemsize
            rows[label][path] = SparseRow(np.cumsum(arrays[0]), arrays[1])
    return CaseFile(header["facts"], header["frames"], rows)


def _narrow(values: NDArray[np.int64], dtypes: tuple[Any, ...]) -> NDArray[Any]:
    """The same numbers in the narrowest of these dtypes, little-endian."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for dtype in dtypes:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return values.astype(np.dtype(dtype).newbyteorder("<"))
    raise AssertionError("64 bits hold every count")
