"""What each spatial tile keeps apart, in plain numpy: the definition that `counters` is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.typing import Counts
from dask_uncert.kernels.types import Apart


def values_apart(
    apart: Apart, counted: NDArray[np.bool_], right: Counts, bins: Counts, number: int, limbs: Counts
) -> None:
    """Add a measure's values of counted pixels to histograms (right, bin) and power sums (right, 3 powers, limbs).

    right, bins: (counted,); limbs: (counted, 3, limbs). places: of the histogram, of the sums.
    """
    rows, powers = apart.owner[counted], limbs.reshape(len(limbs), -1)
    np.add.at(apart.counts, (rows, apart.places[0] + right * number + bins), 1)
    start = apart.places[1] + right * powers.shape[1]
    np.add.at(apart.counts, _cells(rows, start, powers.shape[1]), powers)


def tally_apart(apart: Apart, rows: Counts, place: int, bins: Counts, tallies: Counts) -> None:
    """Add what each item adds (n, 4) to the tally of its bin, one of the job's, at a place of its row."""
    np.add.at(apart.counts, _cells(rows, place + 4 * apart.bins[bins], 4), tallies)


def scores_apart(
    apart: Apart, rows: Counts, error: Counts, loss: Counts, infinite: NDArray[np.bool_]
) -> None:
    """Add proper scores in fixed point (n, 2); places: of squared errors, log losses, infinite ones."""
    for place, limbs in zip(apart.places[:2], (error, loss), strict=True):
        np.add.at(apart.counts, _cells(rows, np.full(len(rows), place), 2), limbs)
    np.add.at(apart.counts, (rows[infinite], apart.places[2]), 1)


def filled_cells(counts: Counts) -> tuple[Counts, Counts, Counts]:
    """Rows to sparse ones; see `apart.filled_cells`."""
    rows, cells = np.nonzero(counts)
    return np.bincount(rows, minlength=len(counts)), cells, counts[rows, cells]


def _cells(rows: Counts, start: Counts, width: int) -> tuple[Counts, Counts]:
    """Indices of cells that lie side by side from `start` on."""
    return rows[:, np.newaxis], start[:, np.newaxis] + np.arange(width)
