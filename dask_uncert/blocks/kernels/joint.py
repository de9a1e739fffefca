"""The joint histogram of p, c and u; compiled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.measures import STRIP, any_layout
from dask_uncert.blocks.kernels.memory import kept, zeros
from dask_uncert.blocks.kernels.types import AnyFloats
from dask_uncert.blocks.kernels.vectors import add_powers, fetch
from dask_uncert.formulas.fixed_point import FIRST, SECOND
from dask_uncert.formulas.typing import Counts, Floats, Indices


def class_probabilities(probabilities: AnyFloats, pixels: Indices, class_index: int, p: Floats) -> None:
    """Write a class's probability, clipped to [0, 1], of these pixels; probabilities, pixels as for `measure`."""
    _class_probabilities(any_layout(probabilities), pixels, class_index, p)


@compiled
def _class_probabilities(probabilities, pixels, class_index, p):
    inner = probabilities.shape[2]
    outer, start = 0, 0
    for i in range(pixels.size):
        within = pixels[i] - start
        if within < 0 or within >= inner:  # pixels mostly follow each other
            outer = pixels[i] // inner
            start = outer * inner
            within = pixels[i] - start
        x = np.float64(probabilities[outer, class_index, within, 0])
        p[i] = min(1.0, max(0.0, x))


@compiled
def find_rows(values, above, grid, rows, offsets):
    """Find the row of each value of p, and its place in the row, in [-1, 1] from end to end.

    grid: the `RowGrid`. Rows are right-closed, the first also holds 0; a value on an edge belongs to the next
    row where `above` is true. values: (n,) in [0, 1]; above: (n,) bool; rows: (n,) int64, offsets: (n,) float64,
    written.
    """
    edges, first = grid.edges, grid.first
    size = np.int32(first.size - 1)
    cells = np.float64(size)
    for i in range(values.size):  # SIMD
        share = np.float64(values[i])
        place = min(share * cells if share > 0.0 else 0.0, cells)
        cell = np.int32(place)
        below = np.int32((place == np.float64(cell)) & (cell > 0) & ((not above[i]) | (cell == size)))
        cell = np.int32(cell - below)  # AVX2 makes floats of 32 bits only
        rows[i] = cell
        offsets[i] = 2.0 * (place - np.float64(cell)) - 1.0
    if edges.size - 1 == size:
        return
    for i in range(values.size):  # some cells are cut into several rows
        x, cell = np.float64(values[i]), rows[i]
        row, end = first[cell], first[cell + 1]
        if end > row + 1:
            while row + 1 < end and (x > edges[row + 1] or (above[i] and x == edges[row + 1])):
                row += 1
            low, high = edges[row], edges[row + 1]
            offsets[i] = min(1.0, max(-1.0, (2.0 * x - low - high) / (high - low)))
        rows[i] = row


@compiled(step=True)
def find_halves(values, rows):
    """Write the number of each float16 value in [0, 1], (n,) float64, counted up from 0: its bits."""
    for i in range(values.size):  # SIMD
        x = np.float32(values[i])
        normal = (x.view(np.int32) >> 13) - np.int32(112 << 10)  # 13 bits less of fraction, 112 less of exponent
        rows[i] = np.int32(x * np.float32(2.0**24)) if x < np.float32(2.0**-14) else normal


def count_joint(rows: Indices, offsets: Floats, levels: Indices, u: Floats, upper: float, moments: Counts) -> None:
    """Add every pixel to the moments of its level, row and bin.

    rows, levels: (n,) int64; offsets: y (n,) in [-1, 1]; u: (n,), 0 or above; upper: the largest u, or infinity.
    moments: (levels, rows, bins, powers): sums of the powers of y and x that
    `formulas.soft_sweep.moment_powers` lists.
    """
    add_jointly(rows, offsets, levels, u, upper, moments, *kept(cell_strips))


def cell_strips() -> tuple[Floats, NDArray[np.int32]]:
    """Return the memory that `add_jointly` overwrites."""
    return zeros((STRIP,)), zeros((STRIP,), np.int32)


@compiled
def add_jointly(rows, offsets, levels, u, upper, moments, x, cell):
    """Do what `count_joint` does; x, cell: of `cell_strips`."""
    flat = moments.reshape(-1)
    bins, third, powers = np.int32(moments.shape[2]), np.int32(moments.shape[1]), moments.shape[3]
    for start in range(0, rows.size, STRIP):
        end = min(start + STRIP, rows.size)
        y, width = offsets[start:end], end - start
        _find_cells(levels[start:end], rows[start:end], u[start:end], upper, third, bins, x, cell)
        if powers == 8:
            for j in range(width):  # most cells are in no near cache: this way many are on their way at a time
                fetch(flat, np.uint64(8 * np.int64(cell[j])))
            for j in range(width):
                add_powers(flat, np.uint64(8 * np.int64(cell[j])), x[j], y[j])
        else:
            for j in range(width):
                k = np.uint64(powers * np.int64(cell[j]))
                z = x[j] if bins > 1 else y[j]
                flat[k] += 1
                if powers == 3:
                    flat[k + np.uint64(1)] += np.int64(np.rint(z * FIRST))
                    flat[k + np.uint64(2)] += np.int64(np.rint(z * z * SECOND))


@compiled(step=True)
def _find_cells(levels, rows, u, upper, third, bins, x, cell):
    """Write the number of each pixel's cell, and its place in the bin of u, in [-1, 1] from end to end."""
    last, scale, finite = np.int32(bins - 1), np.float64(bins), upper < np.inf
    for j in range(u.size):  # SIMD
        value = u[j]
        v = value / upper if finite else 1.0 - 1.0 / (1.0 + value)
        place = v * scale
        place = min(place if place > 0.0 else 0.0, scale)
        b = min(np.int32(place), last)
        x[j], cell[j] = 2.0 * (place - np.float64(b)) - 1.0, b
    for j in range(u.size):
        row = np.int32(np.int32(levels[j]) * third + np.int32(rows[j]))
        cell[j] = np.int32(cell[j] + np.int32(row * bins))  # AVX2 multiplies 32 bits only
