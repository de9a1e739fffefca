"""Sparse rows of counts: one array of many cases, most of which is 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from scipy import sparse

from dask_uncert.formulas.typing import Counts

RUNS = 16  # runs of neighbouring rows that are read one by one; more are read at once, from first to last


class SliceableArray(Protocol):
    """A one-dimensional array that is read when it is sliced: a numpy array, or one in a store."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def __getitem__(self, region: Any, /) -> Any: ...


class SparseRow(NamedTuple):
    """Counts of one case: the cells that are not 0, rising, and their counts; both (entries,), int64."""

    cells: Counts
    counts: Counts

    @classmethod
    def of(cls, array: Counts) -> Self:
        """Return the row of an array of any shape, flattened in C order."""
        flat = array.ravel()
        cells = np.flatnonzero(flat)
        return cls(cells, flat[cells])

    def dense(self, shape: tuple[int, ...]) -> Counts:
        """Return the row as an array of this shape."""
        array = np.zeros(shape, np.int64)
        array.reshape(-1)[self.cells] = self.counts
        return array


@dataclass(frozen=True)
class SparseRows:
    """One row per case over the `width` cells of an array, as in compressed sparse rows.

    starts: (rows + 1,) int64; row i holds the entries starts[i] to starts[i + 1]. cells, counts: (entries,),
    read only when rows are, so they may be in a store.
    """

    width: int
    starts: Counts
    cells: SliceableArray
    counts: SliceableArray

    @classmethod
    def of(cls, width: int, rows: Iterable[SparseRow]) -> Self:
        """Return rows in memory, in this order."""
        return cls(width, *joined_rows(list(rows)))

    def read(self, order: Sequence[int] | Counts) -> sparse.csr_array:
        """Return the rows with these numbers, in this order, as int64 (rows, width)."""
        numbers = np.asarray(order, np.int64)
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1) if numbers.size else []
        if len(runs) <= RUNS:
            parts = [self._run(int(run[0]), int(run[-1]) + 1) for run in runs]
            if len(parts) == 1:
                return parts[0]
            if not parts:
                return sparse.csr_array((0, self.width), dtype=np.int64)
            return sparse.csr_array(sparse.vstack(parts, format="csr"))
        first = int(numbers.min())
        return sparse.csr_array(self._run(first, int(numbers.max()) + 1)[numbers - first])

    def _run(self, first: int, end: int) -> sparse.csr_array:
        cells, counts = self._entries(first, end)
        return sparse.csr_array(
            (counts, cells, self.starts[first : end + 1] - self.starts[first]),
            shape=(end - first, self.width),
        )

    def row(self, number: int) -> SparseRow:
        """Return one row."""
        return self._entries(number, number + 1)

    def _entries(self, first: int, end: int) -> SparseRow:
        a, b = int(self.starts[first]), int(self.starts[end])
        cells, counts = (np.asarray(array[a:b]).astype(np.int64) for array in (self.cells, self.counts))
        return SparseRow(cells, counts)


def joined_rows(rows: Sequence[SparseRow]) -> tuple[Counts, Counts, Counts]:
    """Return starts (rows + 1,), cells and counts of these rows, one after the other."""
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([row.cells.size for row in rows], out=starts[1:])
    empty = [np.empty(0, np.int64)]
    return (
        starts,
        np.concatenate([row.cells for row in rows] or empty),
        np.concatenate([row.counts for row in rows] or empty),
    )


def split_rows(starts: Counts, cells: Counts, counts: Counts) -> list[SparseRow]:
    """Return the rows, of which row i has the entries starts[i] to starts[i + 1]."""
    return [SparseRow(cells[a:b], counts[a:b]) for a, b in pairwise(starts.tolist())]


def add_rows(total: Counts, rows: sparse.csr_array, name: str) -> Counts:
    """Return total (width,) plus all rows; OverflowError, naming the array, where it may pass 64 bits."""
    most = int(np.abs(rows.data).max(initial=0)) * rows.shape[0] + int(np.abs(total).max(initial=0))
    if most >= 2**63:
        raise OverflowError(f"{name} may exceed 64-bit counts; keep these cases apart")
    result = total.copy()
    np.add.at(result, rows.indices, rows.data)
    return result


class StreamedSum:
    """Adds up rows of several arrays, by path, one case at a time; OverflowError as in `add_rows`."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.arrays = {path: np.zeros(shape, np.int64) for path, shape in shapes.items()}
        self._most = dict.fromkeys(shapes, 0)

    def add(self, rows: Mapping[str, SparseRow]) -> None:
        for path, row in rows.items():
            self._most[path] += int(np.abs(row.counts).max(initial=0))
            if self._most[path] >= 2**63:
                raise OverflowError(f"{path} may exceed 64-bit counts; keep these cases apart")
            self.arrays[path].reshape(-1)[row.cells] += row.counts  # each cell occurs once


def marginal_rows(
    rows: sparse.csr_array, shape: tuple[int, ...], kept: Sequence[int]
) -> tuple[sparse.csr_array, tuple[int, ...]]:
    """Return rows over an array of this shape, summed over the dimensions not kept, and the new shape."""
    kept_shape = tuple(shape[i] for i in kept)
    index = np.unravel_index(rows.indices, shape)
    cells = np.zeros(rows.nnz, np.int64)
    for i in kept:
        cells = cells * shape[i] + index[i]
    width = int(np.prod(kept_shape, dtype=np.int64))
    marginal = sparse.csr_array((rows.data, cells, rows.indptr), shape=(rows.shape[0], width))
    marginal.sum_duplicates()
    return marginal, kept_shape
