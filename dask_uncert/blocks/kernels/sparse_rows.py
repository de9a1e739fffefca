"""The counts of spatial tiles, dense rows to sparse ones; compiled. Most cells of a tile stay 0."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.measures import compiled
from dask_uncert.formulas.typing import Counts


def filled_cells(counts: Counts) -> tuple[Counts, Counts, Counts]:
    """Return the number of filled cells of each row, these cells, rising, and their counts."""
    number = np.zeros(len(counts), np.int64)
    _count(counts, number)
    cells = np.empty(number.sum(), np.int64)
    filled = np.empty_like(cells)
    _fill(counts, cells, filled)
    return number, cells, filled


@compiled
def _count(counts, number):
    for i in range(counts.shape[0]):
        row = counts[i]
        for k in range(row.size):
            number[i] += np.int64(row[k] != 0)


@compiled
def _fill(counts, cells, filled):
    place = 0
    for i in range(counts.shape[0]):
        row = counts[i]
        for k in range(row.size):
            if row[k] != 0:
                cells[place] = k
                filled[place] = row[k]
                place += 1
