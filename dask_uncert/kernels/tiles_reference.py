"""The counts of each spatial tile in plain numpy: the definition that `histograms` is tested against."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.typing import Bools, Counts, Indices
from dask_uncert.kernels.types import TileRows


def add_values(
    tiles: TileRows, counted: Bools, right: Indices, bins: Indices, number: int, limbs: Counts
) -> None:
    """Add a measure's values of counted pixels to histograms (right, bin) and power sums (right, 3 powers, limbs).

    right, bins: (counted,); limbs: (counted, 3, limbs); number: of bins.
    """
    rows, powers = tiles.row[counted], limbs.reshape(len(limbs), -1)
    np.add.at(tiles.counts, (rows, tiles.starts[0] + right * number + bins), 1)
    start = tiles.starts[1] + right * powers.shape[1]
    np.add.at(tiles.counts, _cells(rows, start, powers.shape[1]), powers)


def add_tallies(tiles: TileRows, rows: Indices, start: int, bins: Indices, tallies: Counts) -> None:
    """Add tallies (n, 4) to those of the job's bins, which start at a cell of each row."""
    np.add.at(tiles.counts, _cells(rows, start + 4 * tiles.bins[bins], 4), tallies)


def add_scores(tiles: TileRows, rows: Indices, error: Counts, loss: Counts, infinite: Bools) -> None:
    """Add proper scores in fixed point, (n, 2) each, and count infinite ones."""
    for start, limbs in zip(tiles.starts[:2], (error, loss), strict=True):
        np.add.at(tiles.counts, _cells(rows, np.full(len(rows), start), 2), limbs)
    np.add.at(tiles.counts, (rows[infinite], tiles.starts[2]), 1)


def filled_cells(counts: Counts) -> tuple[Counts, Indices, Counts]:
    """Turn rows into sparse ones; see `sparse_rows.filled_cells`."""
    rows, cells = np.nonzero(counts)
    return np.bincount(rows, minlength=len(counts)), cells, counts[rows, cells]


def _cells(rows: Indices, start: Indices, width: int) -> tuple[Indices, Indices]:
    """Return the indices of `width` neighbouring cells of each row, from `start` on."""
    return rows[:, np.newaxis], start[:, np.newaxis] + np.arange(width)
