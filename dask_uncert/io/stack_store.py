"""A Stack in Zarr: the group `cases/` of a summary, next to `total/`; sparse, and written case by case.

Every array of the Evaluations has a group with `starts` (cases + 1), `cells` and `counts` (entries): the rows of a
compressed sparse matrix over its cells in C order. The attributes of `cases` say which case each row belongs to. Equal
Stacks give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import zarr

from dask_uncert.errors import InputError, exception_text
from dask_uncert.io.integrity import CHECKED, SealedSummary, damaged, seal_summary
from dask_uncert.io.readers.zarr import opening, writable_store
from dask_uncert.io.summary_store import may_not_be_negative, open_summary, read_frame
from dask_uncert.summaries.case import Case
from dask_uncert.summaries.layout import Layout, width_of
from dask_uncert.summaries.sparse_rows import SparseRow, SparseRows
from dask_uncert.summaries.stack import Stack

CHUNK_ENTRIES = 1 << 18  # 2 MiB of counts
CASES = "cases"
NAMES = ("starts", "cells", "counts")
MOST = 2**63 - 1


def write_cases(store: str, cases: Sequence[Case], layout: Layout, rows: Iterable[Mapping[str, SparseRow]]) -> None:
    """Write `cases/` into the summary at `store`: the cases, and a row of every array for each, in their order.

    rows may be an iterator: no more than a chunk of each array is held in memory.
    """
    columns = dict.fromkeys(column for case in cases for column, _ in case.groups)
    groups = [dict(case.groups) for case in cases]
    attributes: dict[str, Any] = {
        "patients": [case.patient for case in cases],
        "visits": [case.visit for case in cases],
        "groups": {column: [values.get(column, "") for values in groups] for column in columns},
        "fingerprints": [case.fingerprint for case in cases],
        "arrays": {path: {"dims": [*dims], "shape": [*shape]} for path, (dims, shape) in layout.items()},
    }
    with opening(store, to_write=True):
        root = zarr.open_group(writable_store(store), mode="a")
        group = root.create_group(CASES, attributes=attributes)
    writers = {path: _RowsWriter(store, group, path, width_of(layout, path)) for path in layout}
    for row in rows:
        for path, writer in writers.items():
            writer.add(row[path])
    for writer in writers.values():
        writer.finish()
    if "dask_uncert" in root.attrs:  # else the cases are moved to their summary first
        seal_summary(store)


def has_cases(store: str) -> bool:
    """Return whether the summary at `store` also holds its cases; InputError if there is none."""
    return CASES in open_summary(store)[1].digests


def read_cases(store: str) -> Stack:
    """Return the Stack in the summary at `store`; its counts are read when they are needed.

    Raises InputError if there is no summary, or one without cases.
    """
    frame = read_frame(store)
    root, digests = open_summary(store)
    if CASES not in digests.digests:
        raise InputError(f"{store} holds one evaluation without cases: it is not the output of a cohort.")
    try:
        with opening(store):
            digests.check_group(CASES)
            group: Any = root[CASES]
            attributes: dict[str, Any] = dict(group.attrs)
            layout = {p: (tuple(a["dims"]), tuple(a["shape"])) for p, a in attributes["arrays"].items()}
            rows = {}
            for path, (dims, _) in layout.items():
                width = width_of(layout, path)
                least = 0 if may_not_be_negative(dims) else np.iinfo(np.int64).min
                limits = ((0, MOST), (0, width - 1), (least, MOST))
                starts, cells, counts = (
                    _CheckedArray(group[f"{path}/{name}"], digests, f"{CASES}/{path}/{name}", *limit)
                    for name, limit in zip(NAMES, limits, strict=True)
                )
                rows[path] = SparseRows(width, starts[:], cells, counts)
                if (np.diff(rows[path].starts) < 0).any() or cells.shape != counts.shape:
                    raise ValueError(f"the rows of {path} do not fit together")
        columns: dict[str, list[str]] = attributes["groups"]
        patients, visits, fingerprints = (attributes[key] for key in ("patients", "visits", "fingerprints"))
        groups = [tuple((column, columns[column][i]) for column in columns) for i in range(len(patients))]
        fields = zip(patients, visits, groups, fingerprints, strict=True)
        cases = tuple(Case(*case) for case in fields)
    except InputError:
        raise
    except Exception as error:  # zarr raises many kinds for damaged metadata
        raise damaged(f"{store}/{CASES}", exception_text(error)) from error
    return Stack(cases, frame, layout, rows, np.arange(len(cases)))


class _CheckedArray:
    """Whole numbers in a summary, read when sliced; InputError, naming them, if they are not as they were written.

    Their digest is verified once, before the first slice; the checksum of each chunk with every slice.
    """

    def __init__(self, array: Any, digests: SealedSummary, node: str, least: int, most: int) -> None:
        self.array, self.digests, self.node, self.limits = array, digests, node, (least, most)
        self.shape: tuple[int, ...] = array.shape
        self._checked = False

    def __getitem__(self, region: Any, /) -> Any:
        path, (least, most) = f"{self.digests.store}/{self.node}", self.limits
        if not self._checked:
            self.digests.check_array(self.node)
            self._checked = True
        try:
            values = np.asarray(self.array[region])
        except Exception as error:  # codecs raise many kinds
            raise damaged(path, exception_text(error)) from error
        if values.size and not (least <= int(values.min()) and int(values.max()) <= most):
            raise damaged(path, f"a number is not from {least} to {most}")
        return values


class _RowsWriter:
    """Writes the rows of one array; chunks are written as they fill."""

    def __init__(self, store: str, group: zarr.Group, path: str, width: int) -> None:
        self.store, self.group, self.path = store, group, path
        narrow = np.uint16 if width <= 1 << 16 else np.uint32 if width <= 1 << 32 else np.int64
        self.dtypes = {"cells": np.dtype(narrow), "counts": np.dtype(np.int64)}
        self.starts = [0]
        self.waiting: list[SparseRow] = []
        self.written = 0
        self.arrays: dict[str, Any] = {}

    def add(self, row: SparseRow) -> None:
        self.starts.append(self.starts[-1] + row.cells.size)
        self.waiting.append(row)
        if self.starts[-1] - self.written >= CHUNK_ENTRIES:
            self._write(whole=True)

    def finish(self) -> None:
        self._write(whole=False)
        starts = np.asarray(self.starts, np.int64)
        self._create("starts", starts.dtype, starts.size)[...] = starts

    def _write(self, whole: bool) -> None:
        """Write the waiting rows up to the last whole chunk, or to the end; keep the rest."""
        empty = np.empty(0, np.int64)
        cells = np.concatenate([empty, *(row.cells for row in self.waiting)])
        counts = np.concatenate([empty, *(row.counts for row in self.waiting)])
        end = cells.size // CHUNK_ENTRIES * CHUNK_ENTRIES if whole else cells.size
        if not self.arrays:
            chunk = CHUNK_ENTRIES if whole else max(end, 1)
            self.arrays = {name: self._create(name, dtype, 0, chunk) for name, dtype in self.dtypes.items()}
        for name, values in (("cells", cells), ("counts", counts)):
            self.arrays[name].resize((self.written + end,))
            if end:
                self.arrays[name][self.written :] = values[:end].astype(self.dtypes[name])
        self.written += end
        self.waiting = [SparseRow(cells[end:], counts[end:])] if end < cells.size else []

    def _create(self, name: str, dtype: np.dtype[Any], size: int, chunk: int | None = None) -> Any:
        with opening(self.store, to_write=True):
            return self.group.create_array(
                f"{self.path}/{name}", shape=(size,), chunks=(max(chunk or size, 1),), dtype=dtype,
                dimension_names=("row" if name == "starts" else "entry",), fill_value=0,
                compressors=CHECKED,
            )  # fmt: skip


def make_groups(store: str, paths: Iterable[str]) -> None:
    """Make an empty group at `store`, and groups at these paths below it; "" is the store itself."""
    with opening(store, to_write=True):
        root = zarr.open_group(writable_store(store), mode="w")
        for path in sorted(set(paths) - {""}):
            root.create_group(path)
