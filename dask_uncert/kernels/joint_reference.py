"""The joint histogram of p, c and u in plain numpy: the definition that `joint` is tested against."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas import fixed_point
from dask_uncert.formulas.typing import Bools, Counts, Floats
from dask_uncert.kernels.types import Finder


def find_rows(
    values: Floats,
    above: Bools,
    finder: Finder,
    rows: Counts,
    offsets: Floats,
) -> None:
    """Find the row of each value of p and its place in the row; see `compiled.find_rows`."""
    edges = finder.edges
    closed = np.maximum(np.searchsorted(edges, values, side="left") - 1, 0)
    open_ = np.minimum(np.searchsorted(edges, values, side="right") - 1, edges.size - 2)
    rows[:] = np.where(above, open_, closed)
    low, high = edges[rows], edges[rows + 1]
    offsets[:] = (2.0 * values - low - high) / (high - low)


def count_joint(
    rows: Counts,
    offsets: Floats,
    levels: Counts,
    u: Floats,
    intervals: Floats,
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
            group = (levels[here], rows[here], before[q, 0] + k)
            np.add.at(moments, group, fixed_point.encode(polynomials[k]))
        for k in range(int(first)):
            group = (levels[here], rows[here], zeroths + before[q, 1] + k)
            np.add.at(moments, group, fixed_point.encode(offsets[here] * polynomials[k]))
