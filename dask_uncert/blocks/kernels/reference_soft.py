"""Soft weights and the joint histogram of p, c and u in plain numpy; see `reference`."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.types import AnyFloats, RowGrid
from dask_uncert.formulas import fixed_point
from dask_uncert.formulas.soft_confusion import cell_index as find_cells
from dask_uncert.formulas.soft_confusion import certainty
from dask_uncert.formulas.soft_confusion import damping_factor as damping_factors
from dask_uncert.formulas.soft_sweep import moment_powers
from dask_uncert.formulas.typing import Bools, Counts, Floats, Indices

__all__ = [
    "certainties",
    "class_probabilities",
    "count_joint",
    "damping_factors",
    "find_cells",
    "find_rows",
    "sum_soft_weights",
]


def certainties(p: Floats, threshold: float, sigma: float) -> Floats:
    """Return A of a gaussian threshold; see `soft.certainties`."""
    return np.asarray(certainty(p, threshold, sigma))


def class_probabilities(probabilities: AnyFloats, pixels: Indices, class_index: int, p: Floats) -> None:
    """Write a class's probability, clipped to [0, 1]; see `joint.class_probabilities`."""
    outer, inner = np.divmod(pixels, probabilities.shape[2])
    p[:] = np.clip(probabilities[outer, class_index, inner].astype(np.float64), 0.0, 1.0)


def sum_soft_weights(weights: Floats, cells: Counts, sums: Counts) -> None:
    """Add weights to the fixed-point sum of their cell; see `soft.sum_soft_weights`."""
    taken = cells >= 0
    np.add.at(sums, cells[taken], fixed_point.encode(weights[taken]))


def find_rows(values: Floats, above: Bools, grid: RowGrid, rows: Counts, offsets: Floats) -> None:
    """Find the row of each value of p and its place in the row; see `joint.find_rows`."""
    edges = grid.edges
    values = np.asarray(values, np.float64)
    closed = np.maximum(np.searchsorted(edges, values, side="left") - 1, 0)
    open_ = np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)
    rows[:] = np.where(above, open_, closed)
    low, high = edges[rows], edges[rows + 1]
    offsets[:] = np.clip((2.0 * values - low - high) / (high - low), -1, 1)


def count_joint(rows: Counts, offsets: Floats, levels: Counts, u: Floats, upper: float, moments: Counts) -> None:
    """Add pixels to the moments of the joint histogram; see `joint.count_joint`."""
    bins = moments.shape[2]
    place = (u / upper if np.isfinite(upper) else 1 - 1 / (1 + u)) * bins
    bin_of = np.minimum(place.astype(np.int64), bins - 1)
    x = 2.0 * (place - bin_of) - 1.0
    in_row = moments.shape[3] == len(moment_powers(True, bins > 1))
    for k, (i, j) in enumerate(moment_powers(in_row, bins > 1)):
        unit = (1.0, fixed_point.FIRST, fixed_point.SECOND)[min(i + j, 2)]
        product = np.ones_like(x)
        for factor in [offsets] * i + [x] * j:
            product = product * factor
        np.add.at(moments[..., k], (levels, rows, bin_of), np.rint(product * unit).astype(np.int64))
