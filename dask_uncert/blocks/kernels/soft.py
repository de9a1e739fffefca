"""Soft confusion, compiled: how sure a value is to be off its threshold, damping, and the sums of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.binary import plain_strip
from dask_uncert.blocks.kernels.bins import add, fixed, fixed_share
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import error_function, exponential
from dask_uncert.blocks.kernels.memory import kept, strips, zeros
from dask_uncert.blocks.kernels.types import BINARY_TILE as TILE
from dask_uncert.blocks.kernels.types import AnyFloats, SoftGrid
from dask_uncert.formulas.fixed_point import LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.soft_confusion import FN, FP, TN, TP
from dask_uncert.formulas.typing import Bools, Counts, Floats, Indices

EXPONENTIAL, RECIPROCAL, GAUSSIAN = range(3)
FORMS = {"exponential": EXPONENTIAL, "reciprocal": RECIPROCAL, "gaussian": GAUSSIAN}
APART = 31  # bits: a tile's sum of a limb has no more


def certainties(p: Floats, threshold: float, sigma: float) -> Floats:
    """Return A of a gaussian threshold, as `formulas.soft_confusion.certainty` does; p: (n,), sigma above 0."""
    certain = np.empty(p.size)
    _be_certain(p, threshold, sigma, certain)
    return certain


def damping_factors(u: Floats, damping: float, form: str) -> Floats:
    """Return D, as `formulas.soft_confusion.damping_factor` does; u: (n,), 0 or above."""
    factors = np.empty(u.size)
    _damp(u, damping, FORMS[form], factors)
    return factors


@compiled
def _be_certain(p, threshold, sigma, certain):
    for j in range(certain.size):  # SIMD
        certain[j] = error_function(np.abs(p[j] - threshold) / sigma * 0.7071067811865476)


@compiled
def _damp(u, damping, form, factors):
    for j in range(factors.size):  # SIMD
        factors[j] = u[j] * damping if u[j] > 0.0 else 0.0
    if form == RECIPROCAL:
        for j in range(factors.size):
            factors[j] = 1.0 / (1.0 + factors[j])
        return
    for j in range(factors.size):
        y = factors[j]
        factors[j] = exponential(-(y * y) if form == GAUSSIAN else -y)


def count_binary_softly(
    first: AnyFloats, second: AnyFloats, reference: Indices, u: AnyFloats, grid: SoftGrid, weights: Counts
) -> None:
    """Add binary pixels with p in [0, 1] to the weights at every setting of a class.

    first, second, reference, u: as for `count_binary_jointly`. weights: (thresholds, sigmas, dampings, 4 cells, 2 limbs).
    """
    settings = *grid[:4], FORMS[grid.form], grid.certainty
    _count_binary_softly(first, second, reference, u, *settings, weights, *kept(_strips, grid.dampings.size))


def _strips(dampings: int) -> tuple[NDArray[Any], ...]:
    return *strips(3, TILE), *strips(2, TILE, np.int64), zeros((TILE,), np.bool_), zeros((dampings, TILE))


@compiled
def _count_binary_softly(
    first, second, reference, u, class_index, thresholds, sigmas, dampings, form, sure, weights,
    p, damp, certain, cell, whole, positive, factors,
):  # fmt: skip
    for start in range(0, reference.size, TILE):
        end = min(start + TILE, reference.size)
        width = plain_strip(
            first[start:end], second[start:end], reference[start:end], u[start:end], class_index, p, positive, damp
        )
        for m in range(dampings.size):
            if dampings[m] > 0.0:
                _damp(damp[:width], dampings[m], form, factors[m])
            else:
                for j in range(width):
                    factors[m, j] = 1.0
        for i in range(thresholds.size):
            for j in range(width):
                agrees = (p[j] >= thresholds[i]) if positive[j] else (p[j] <= thresholds[i])
                cell[j] = (TP if positive[j] else TN) if agrees else (FN if positive[j] else FP)
            for k in range(sigmas.size):
                for j in range(width):
                    certain[j] = 1.0
                if sigmas[k] > 0.0:
                    _be_certain(p[:width], thresholds[i], sigmas[k], certain[:width])
                other, this = sure[i, k, 0], sure[i, k, 1]
                for j in range(width):
                    certain[j] *= this if positive[j] else other
                for m in range(dampings.size):
                    for j in range(width):
                        q = fixed_share(certain[j] * factors[m, j])
                        whole[j] = (q >> LIMB_BITS << APART) + (q & LIMB_MASK)
                    for n in range(4):
                        total = np.int64(0)
                        for j in range(width):  # SIMD
                            total += whole[j] if cell[j] == n else np.int64(0)
                        weights[i, k, m, n, 0] += total >> APART
                        weights[i, k, m, n, 1] += total & ((1 << APART) - 1)


def find_cells(p: Floats, positive: Bools, threshold: float) -> Indices:
    """Return the index among `soft_confusion.CELLS` of each pixel; p: (n,) float64, positive: (n,) bool of the reference."""
    cells = np.empty(p.size, np.int64)
    _find_cells(p, positive, threshold, cells)
    return cells


@compiled
def _find_cells(p, positive, threshold, cells):
    for i in range(p.size):
        agrees = (p[i] >= threshold) if positive[i] else (p[i] <= threshold)
        cells[i] = (TP if positive[i] else TN) if agrees else (FN if positive[i] else FP)


@compiled
def count_cells(first, second, reference, class_index, threshold, counts):
    """Add binary pixels with p in [0, 1] to counts (4,) of `soft_confusion.CELLS`; arguments as of `count_binary_jointly`."""
    nothing, one, t, is_second = np.float32(0.0), np.float32(1.0), np.float32(threshold), class_index == 1
    computed = first.size == 0
    for start in range(0, reference.size, TILE):
        tp, tn, fp, fn = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for i in range(start, min(start + TILE, reference.size)):  # SIMD
            x, c = second[i], np.int32(reference[i])
            p = x if is_second else (one - x if computed else first[i])
            counted = np.int32((c >= 0) & (x >= nothing) & (x <= one))
            hit = counted & np.int32(c == np.int32(class_index))
            reached, above = np.int32(p >= t), np.int32(p > t)
            tp += hit & reached
            fn += hit & ~reached
            fp += (counted - hit) & above
            tn += (counted - hit) & ~above
        counts[TP] += tp
        counts[TN] += tn
        counts[FP] += fp
        counts[FN] += fn


@compiled
def sum_soft_weights(weights, cells, sums):
    """Add weights in [0, 1] to the fixed-point sum (4 cells, 2 limbs) of their cell, except for negative cells."""
    flat = sums.reshape(-1)
    for i in range(weights.size):
        k = cells[i]
        if k >= 0:
            add(fixed(weights[i]), flat, 2 * k)
