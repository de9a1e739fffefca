"""The joint histogram of p, c and u; compiled."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.histograms import add, find_bin, fixed
from dask_uncert.blocks.kernels.measures import STRIP, compiled


@compiled
def find_rows(values, above, finder, rows, offsets):
    """Find the row of each value of p, and its place in the row, in [-1, 1] from end to end.

    finder: of rows over [0, 1], right-closed, the first also holds 0; a value on an edge belongs to the next
    row where `above` is true. values: (n,) in [0, 1]; above: (n,) bool; rows: (n,) int64, offsets: (n,),
    written.
    """
    edges = finder.edges
    last = edges.size - 2
    for i in range(values.size):
        x = values[i]
        b = find_bin(x, x, finder)
        if above[i] and x == edges[b + 1] and b < last:
            b += 1
        rows[i] = b
        low, high = edges[b], edges[b + 1]
        offsets[i] = (2.0 * x - low - high) / (high - low)


@compiled
def count_joint(rows, offsets, levels, u, intervals, moments):
    """Add T_k(x), and y T_k(x), of every pixel to the fixed-point sums of its level and row.

    rows, levels: (n,) int64; offsets: y (n,) in [-1, 1]; u: (n,), 0 or above. intervals: (intervals, 4) of
    the ends of an interval of the u axis (left-open but for the first; the last may be open to the right) and
    its numbers of zeroth and first moments. moments: (levels, rows, columns, 2 limbs): first moments after
    all zeroth.
    """
    flat = moments.reshape(-1)
    stride = 2 * moments.shape[2]
    most, zeroths = np.int64(intervals[:, 2].max()), np.int64(intervals[:, 2].sum())
    starts = np.zeros((intervals.shape[0], 2), np.int64)
    for q in range(1, intervals.shape[0]):
        starts[q, 0] = starts[q - 1, 0] + 2 * np.int64(intervals[q - 1, 2])
        starts[q, 1] = starts[q - 1, 1] + 2 * np.int64(intervals[q - 1, 3])
    t = np.empty((most, STRIP))
    x, interval = np.empty(STRIP), np.zeros(STRIP, np.int64)
    for start in range(0, rows.size, STRIP):
        width = min(STRIP, rows.size - start)
        for j in range(STRIP):
            value = u[start + j] if j < width else 0.0
            q = 0
            while q < intervals.shape[0] - 1 and value > intervals[q, 1]:
                q += 1
            interval[j] = q
            low, high = intervals[q, 0], intervals[q, 1]
            place = (2.0 * value - low - high) / (high - low) if high < np.inf else 0.0
            x[j] = min(1.0, max(-1.0, place))
        for j in range(STRIP):
            t[0, j] = 1.0
        if most > 1:
            for j in range(STRIP):
                t[1, j] = x[j]
        for k in range(2, most):
            for j in range(STRIP):
                t[k, j] = 2.0 * x[j] * t[k - 1, j] - t[k - 2, j]
        for j in range(width):
            i = start + j
            q = interval[j]
            base = (levels[i] * moments.shape[1] + rows[i]) * stride
            place = base + starts[q, 0]
            for k in range(np.int64(intervals[q, 2])):
                add(fixed(t[k, j]), flat, place + 2 * k)
            place = base + 2 * zeroths + starts[q, 1]
            for k in range(np.int64(intervals[q, 3])):
                add(fixed(offsets[i] * t[k, j]), flat, place + 2 * k)
