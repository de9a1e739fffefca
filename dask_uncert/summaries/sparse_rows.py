"""Sparse rows of counts: what many cases counted in one array, most of which is 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse

from dask_uncert.formulas.typing import Counts

RUNS = 16  # of neighbouring rows that are read one by one; more are read in one piece, from the first to the last


class Entries(Protocol):
    """One-dimensional numbers that are read where they are sliced: a numpy array, or one that lies in a store."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, region: Any, /) -> Any: ...


class Row(NamedTuple):
    """What one case counted: the cells that are not 0, rising, and their counts; both (entries,), int64."""

    cells: Counts
    counts: Counts

    @classmethod
    def of(cls, array: Counts) -> Self:
        """The row that an array of any shape makes, flattened in C order."""
        flat = array.ravel()
        cells = np.flatnonzero(flat)
        return cls(cells, flat[cells])

    def dense(self, shape: tuple[int, ...]) -> Counts:
        """The array again."""
        found = np.zeros(shape, np.int64)
        found.reshape(-1)[self.cells] = self.counts
        return found


@dataclass(frozen=True)
class Rows:
    """A row a case over the `width` cells of an array, as in compressed sparse rows.

    starts: (rows + 1,) int64; row i holds the entries starts[i] to starts[i + 1]. cells, counts: (entries,),
    read only where rows are asked for, so they may lie in a store.
    """

    width: int
    starts: Counts
    cells: Entries
    counts: Entries

    @classmethod
    def of(cls, width: int, rows: Iterable[Row]) -> Self:
        """Rows in memory, in the order given."""
        listed = list(rows)
        starts = np.zeros(len(listed) + 1, np.int64)
        np.cumsum([row.cells.size for row in listed], out=starts[1:])
        nothing = [np.empty(0, np.int64)]
        return cls(
            width,
            starts,
            np.concatenate([row.cells for row in listed] or nothing),
            np.concatenate([row.counts for row in listed] or nothing),
        )

    def read(self, order: Sequence[int] | Counts) -> sparse.csr_array:
        """The rows with these numbers, in this order, as int64 (rows, width)."""
        wanted = np.asarray(order, np.int64)
        runs = np.split(wanted, np.flatnonzero(np.diff(wanted) != 1) + 1) if wanted.size else []
        if len(runs) <= RUNS:
            parts = [self._run(int(run[0]), int(run[-1]) + 1) for run in runs]
            if len(parts) == 1:
                return parts[0]
            if not parts:
                return sparse.csr_array((0, self.width), dtype=np.int64)
            return sparse.csr_array(sparse.vstack(parts, format="csr"))
        first = int(wanted.min())
        return sparse.csr_array(self._run(first, int(wanted.max()) + 1)[wanted - first])

    def _run(self, first: int, end: int) -> sparse.csr_array:
        a, b = int(self.starts[first]), int(self.starts[end])
        cells = np.asarray(self.cells[a:b]).astype(np.int64)
        counts = np.asarray(self.counts[a:b]).astype(np.int64)
        return sparse.csr_array(
            (counts, cells, self.starts[first : end + 1] - a), shape=(end - first, self.width)
        )

    def row(self, number: int) -> Row:
        """One row."""
        a, b = int(self.starts[number]), int(self.starts[number + 1])
        return Row(
            np.asarray(self.cells[a:b]).astype(np.int64), np.asarray(self.counts[a:b]).astype(np.int64)
        )


def row_of(rows: sparse.csr_array, number: int) -> Row:
    """One row of those that were read."""
    a, b = rows.indptr[number], rows.indptr[number + 1]
    return Row(rows.indices[a:b].astype(np.int64), rows.data[a:b])


def add_rows(total: Counts, rows: sparse.csr_array, name: str) -> Counts:
    """total (width,) and all rows, added; OverflowError, naming the array, where 64 bits may not hold the sum."""
    most = int(np.abs(rows.data).max(initial=0)) * rows.shape[0] + int(np.abs(total).max(initial=0))
    if most >= 2**63:
        raise OverflowError(f"{name} may exceed 64-bit counts; keep these cases apart")
    found = total.copy()
    np.add.at(found, rows.indices, rows.data)
    return found


class RunningTotal:
    """The sum of rows of several arrays, by path, while they stream past; OverflowError as in `add_rows`."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.arrays = {path: np.zeros(shape, np.int64) for path, shape in shapes.items()}
        self._most = dict.fromkeys(shapes, 0)

    def add(self, rows: Mapping[str, Row]) -> None:
        for path, row in rows.items():
            self._most[path] += int(np.abs(row.counts).max(initial=0))
            if self._most[path] >= 2**63:
                raise OverflowError(f"{path} may exceed 64-bit counts; keep these cases apart")
            self.arrays[path].reshape(-1)[row.cells] += row.counts  # each cell is there once


def fold(
    rows: sparse.csr_array, shape: tuple[int, ...], kept: Sequence[int]
) -> tuple[sparse.csr_array, tuple[int, ...]]:
    """Rows over an array of this shape, summed over all its dimensions but those kept; and the shape left."""
    left = tuple(shape[i] for i in kept)
    place = np.unravel_index(rows.indices, shape)
    cells = np.zeros(rows.nnz, np.int64)
    for i in kept:
        cells = cells * shape[i] + place[i]
    folded = sparse.csr_array(
        (rows.data, cells, rows.indptr), shape=(rows.shape[0], int(np.prod(left, dtype=np.int64)))
    )
    folded.sum_duplicates()
    return folded, left
