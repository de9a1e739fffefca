"""What spatial tiles counted, dense rows to sparse ones, compiled: most cells of a tile stay 0."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.kernels.measures import compiled


def filled_cells(counts: Counts) -> tuple[Counts, Counts, Counts]:
    """Of rows (rows, cells): how many cells of each are not 0, these cells, rising, and what they hold."""
    number = np.zeros(len(counts), np.int64)
    _count(counts, number)
    cells = np.empty(number.sum(), np.int64)
    held = np.empty_like(cells)
    _fill(counts, cells, held)
    return number, cells, held


@compiled
def _count(counts, number):
    for i in range(counts.shape[0]):
        row = counts[i]
        for k in range(row.size):
            number[i] += np.int64(row[k] != 0)


@compiled
def _fill(counts, cells, held):
    place = 0
    for i in range(counts.shape[0]):
        row = counts[i]
        for k in range(row.size):
            if row[k] != 0:
                cells[place] = k
                held[place] = row[k]
                place += 1
