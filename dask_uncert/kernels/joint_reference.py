"""Pixels to the joint histogram of p, c and u, in plain numpy: the definition that `joint` is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas import fixed_point
from dask_uncert.formulas.typing import Counts
from dask_uncert.kernels.types import Finder


def find_rows(
    values: NDArray[np.float64],
    above: NDArray[np.bool_],
    finder: Finder,
    rows: Counts,
    offsets: NDArray[np.float64],
) -> None:
    """The row of each value of p and where it lies in it; see `compiled.find_rows`."""
    edges = finder.edges
    closed = np.maximum(np.searchsorted(edges, values, side="left") - 1, 0)
    open_ = np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)
    rows[:] = np.where(above, open_, closed)
    low, high = edges[rows], edges[rows + 1]
    offsets[:] = (2.0 * values - low - high) / (high - low)


def count_joint(
    rows: Counts,
    offsets: NDArray[np.float64],
    levels: Counts,
    u: NDArray[np.float64],
    intervals: NDArray[np.float64],
    moments: Counts,
) -> None:
    """Add pixels to the moments of the joint histogram; see `compiled.count_joint`."""
    zeroths = int(intervals[:, 2].sum())
    before = np.concatenate([[[0, 0]], np.cumsum(intervals[:, 2:], axis=0)]).astype(int)
    which = np.minimum((u[:, np.newaxis] > intervals[:, 1]).sum(axis=1), len(intervals) - 1)
    for q, (low, high, zeroth, first) in enumerate(intervals):
        here = which == q
        x = np.clip((2.0 * u[here] - low - high) / (high - low), -1, 1) if high < np.inf else 0 * u[here]
        polynomials = [np.ones_like(x), x]
        while len(polynomials) < zeroth:
            polynomials.append(2.0 * x * polynomials[-1] - polynomials[-2])
        for k in range(int(zeroth)):
            at = (levels[here], rows[here], before[q, 0] + k)
            np.add.at(moments, at, fixed_point.encode(polynomials[k]))
        for k in range(int(first)):
            at = (levels[here], rows[here], zeroths + before[q, 1] + k)
            np.add.at(moments, at, fixed_point.encode(offsets[here] * polynomials[k]))
