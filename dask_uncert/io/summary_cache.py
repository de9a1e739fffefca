"""Cache of finished cases' summaries until the cohort is complete: one file a case, beside the output folder.

A file is either complete and on the disk, or not there. Its name depends on the case and on what it was computed from,
so a case whose inputs, job or version changed is not found and is computed again; so are damaged files and files in
another format version. Frames, which are the same for most cases, are stored once, in separate files.
"""

from __future__ import annotations

import hashlib
import json
import logging
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

from dask_uncert.io.format_version import FORMAT
from dask_uncert.io.owned_folder import remove_inside
from dask_uncert.io.paths import AnyPath, as_path, write_atomic
from dask_uncert.summaries.layout import Layout, layout_of
from dask_uncert.summaries.sparse_rows import SparseRow
from dask_uncert.summaries.summary import Summary

REFERENCE_LABEL = ""  # of the summary against the reference; those against raters have their names
LOGGER = logging.getLogger(__name__)
MAGIC = f"dask-uncert case {FORMAT}\n".encode()
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
SIGNED = (np.int8, np.int16, np.int32, np.int64)


def frame_digest(text: bytes) -> str:
    """Return the digest of a frame as JSON: its name in a folder."""
    return hashlib.sha256(text).hexdigest()[:32]


@dataclass(frozen=True)
class Frame:
    """The frame of an Evaluation and the layout of its arrays."""

    frame: dict[str, Any]
    layout: Layout

    @cached_property
    def text(self) -> str:
        """The Frame as JSON. It takes 20 ms for three measures, so Frames are reused."""
        arrays = {path: [list(dims), list(shape)] for path, (dims, shape) in self.layout.items()}
        return json.dumps({"frame": self.frame, "arrays": arrays})

    @cached_property
    def digest(self) -> str:
        """Hash of the text: equal for equal frames."""
        return frame_digest(self.text.encode())

    @classmethod
    def of(cls, evaluation: Summary) -> Frame:
        """Return the Frame of an Evaluation."""
        return cls(evaluation.frame(), layout_of(evaluation))


@dataclass(frozen=True)
class CaseFile:
    """The summaries of one case, by label: digests of their frames, and sparse rows.

    facts: anything that JSON can hold about how it was computed.
    """

    facts: dict[str, Any]
    frames: dict[str, str]
    rows: dict[str, dict[str, SparseRow]]


class CaseFolder:
    """The folder of case files of one output, at a path or a URL; made when the first is written."""

    def __init__(self, path: str | AnyPath) -> None:
        self.path = as_path(path)

    def file(self, name: str, key: str) -> AnyPath:
        """Return the path of the case `name`; `key` is the fingerprint of what it was computed from."""
        readable = re.sub(r"[^\w-]+", "_", name)[:40]
        return self.path / f"{readable}.{hashlib.sha256(f'{name} {key}'.encode()).hexdigest()[:24]}.case"

    def maps(self, name: str, key: str) -> AnyPath:
        """Return the folder of the maps of a case."""
        return self.file(name, key).with_suffix(".maps")

    def write(
        self,
        name: str,
        key: str,
        summaries: Mapping[str, tuple[Frame, Summary]],
        facts: Mapping[str, Any],
    ) -> CaseFile:
        """Write a case's summaries, each with its frame, by label; return what was written."""
        frames, rows = {}, {}
        for label, (frame, evaluation) in summaries.items():
            frames[label] = self._write_frame(frame)
            rows[label] = {path: SparseRow.of(array) for path, _, array in evaluation.arrays()}
        case = CaseFile(dict(facts), frames, rows)
        write_atomic(self.file(name, key), _packed(name, key, case))
        return case

    def has(self, name: str, key: str) -> bool:
        """Return whether the case was written; its file may be damaged."""
        return self.file(name, key).is_file()

    def read(self, name: str, key: str) -> CaseFile | None:
        """Return the case; None if it was not written, is damaged, or has another format version."""
        try:
            content = self.file(name, key).read_bytes()
        except OSError:
            return None
        case = _unpacked(name, key, content)
        whole = case is not None and all(self._has_frame(digest) for digest in case.frames.values())
        if not whole:
            LOGGER.warning("%s is damaged, or of another version: it is computed again.", self.file(name, key))
        return case if whole else None

    def frame(self, digest: str) -> Frame:
        """Return the frame with this digest."""
        content = json.loads((self.path / f"{digest}.frame").read_text(encoding="utf-8"))
        return Frame(
            content["frame"],
            {path: (tuple(dims), tuple(shape)) for path, (dims, shape) in content["arrays"].items()},
        )

    def _has_frame(self, digest: str) -> bool:
        """Return whether the file of a frame is there, and as it was written."""
        try:
            return frame_digest((self.path / f"{digest}.frame").read_bytes()) == digest
        except OSError:
            return False

    def _write_frame(self, frame: Frame) -> str:
        file = self.path / f"{frame.digest}.frame"
        if not self._has_frame(frame.digest):
            write_atomic(file, frame.text.encode())
        return frame.digest


@contextmanager
def replacing_folder(path: AnyPath) -> Iterator[AnyPath]:
    """Yield a folder of this process beside `path`; it is renamed to `path`, replacing it, when the `with` ends well.

    Both lie in a folder with a marker. An object store cannot rename: there the final folder is written, and is complete
    once the case's file is there.
    """
    if not isinstance(path, Path):
        remove_inside(path.parent, path)
        yield path
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    working = path.with_name(f"{path.name}.{uuid.uuid4().hex}.unfinished")
    try:
        yield working
        remove_inside(path.parent, path)
        try:
            os.replace(working, path)
        except OSError:
            if not path.is_dir():  # else another worker finished the same task first
                raise
    finally:
        remove_inside(working.parent, working)


def _packed(name: str, key: str, case: CaseFile) -> bytes:
    """Return MAGIC, the length of a JSON header, the header, the numbers, and a checksum of it all.

    Numbers take as few bytes as they need. Compressing them too halves the size at 20 MB/s: too slow for files that are
    soon deleted.
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
    """Return the same numbers in the narrowest of these dtypes, little-endian."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    for dtype in dtypes:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return values.astype(np.dtype(dtype).newbyteorder("<"))
    raise AssertionError("unreachable: 64 bits hold every count")
