"""The counts of spatial tiles, dense rows to sparse ones; compiled. Most cells of a tile stay 0."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.formulas.typing import Bools, Counts, Indices


def sort_by_zone(of: Indices, selected: Bools, zones: int) -> tuple[Indices, Counts, Counts]:
    """Return the selected pixels in the order of their zones, how many each zone has, and where it ends in the order.

    of: (n,) the zone of each pixel, any integers; selected: (n,). A zone's pixels rise; the number of those that are not
    selected is in it, too.
    """
    order, sizes, ends = np.empty(np.count_nonzero(selected), np.int64), *np.zeros((2, zones), np.int64)
    _sort_by_zone(of, selected, order, sizes, ends)
    return order, sizes, ends


@compiled
def _sort_by_zone(of, selected, order, sizes, ends):
    for i in range(of.size):
        zone = of[i]
        sizes[zone] += 1
        ends[zone] += np.int64(selected[i])
    place = np.int64(0)
    for zone in range(ends.size):
        place, ends[zone] = place + ends[zone], place
    for i in range(of.size):
        if selected[i]:
            zone = of[i]
            order[ends[zone]] = i
            ends[zone] += 1


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
