"""The pass over one block, compiled with numba and without the interpreter's lock.

Pixels are gathered into tiles of 128, class by class, and every loop runs over a whole tile (a short one is
padded with a harmless pixel): a pixel's value depends neither on its neighbours nor on its place. Only IEEE
basic operations, no fastmath, so vector body and remainder agree and so do all CPUs.
"""

from __future__ import annotations

from functools import lru_cache

import numba
import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.fixed_point import FRACTION_BITS, LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.homophily import squared_distances
from dask_uncert.formulas.measures import Measure
from dask_uncert.kernels.elementary import arcsine, arctangent, exponential, logarithm
from dask_uncert.kernels.pixels import (
    CLIPPED,
    MISSING,
    OFF,
    RENORMALISED,
    AnyFloats,
    Pixels,
    Rounding,
)

TILE = 128
STRIDE = TILE + 8  # rows of a tile 1088 bytes apart: not all in the same cache sets
compiled = numba.njit(nogil=True, cache=True, error_model="numpy")

EUCLIDEAN, KULLBACK_LEIBLER, FISHER_RAO, RENYI, TSALLIS, T_ENTROPY, VARIANCE, HOMOPHILY, ELSEWHERE = range(9)
GEOMETRIC_CODES = {
    "euclidean": EUCLIDEAN,
    "kullback-leibler": KULLBACK_LEIBLER,
    "fisher-rao": FISHER_RAO,
    "renyi": RENYI,
}
CODES = {
    "renyi": RENYI,
    "tsallis": TSALLIS,
    "t_entropy": T_ENTROPY,
    "variance": VARIANCE,
    "homophily": HOMOPHILY,
}


def measure(
    probabilities: AnyFloats,
    pixels: NDArray[np.int64],
    measures: tuple[Measure, ...],
    maxima: tuple[float, ...],
    rounding: Rounding,
) -> Pixels:
    """Decisions and measures of the pixels asked for.

    probabilities: (a, classes, b) float32 or float64, any strides, not written to; pixel number i * b + j is
    the vector [i, :, j]. pixels: (n,) such numbers. maxima: for homophily `homophily_maximum` of its
    `squared_distances`, else unused. Rows of measures that are not functions of the vector alone are left NaN.
    """
    codes, orders, alphas, squares = _tables(measures, maxima, probabilities.shape[1])
    n = pixels.size
    out = Pixels(
        np.empty((len(measures), n)),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n, np.uint8),
    )
    _measure(probabilities, pixels, codes, orders, alphas, squares, *rounding, *out)
    return out


@lru_cache(maxsize=64)
def _tables(
    measures: tuple[Measure, ...], maxima: tuple[float, ...], classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    codes = np.full(len(measures), ELSEWHERE, np.int64)
    orders = np.ones(len(measures), np.int64)
    alphas = np.ones(len(measures))
    squares = np.zeros((len(measures), classes, classes))
    for i, one in enumerate(measures):
        code = GEOMETRIC_CODES[one.distance or ""] if one.kind == "geometric" else CODES.get(one.kind, ELSEWHERE)
        codes[i], orders[i] = code, one.n or 1
        alphas[i] = 1.0 if one.alpha is None or abs(one.alpha - 1.0) <= 1e-6 else one.alpha
        if code in (RENYI, TSALLIS) and alphas[i] == 1.0:
            codes[i] = KULLBACK_LEIBLER
        if code == HOMOPHILY:
            squares[i] = squared_distances(one.distances or ()) / maxima[i]
    return codes, orders, alphas, squares


@compiled
def _measure(  # type: ignore[no-untyped-def]
    probabilities, pixels, codes, orders, alphas, squares, tolerance, exact, level,
    values, predicted, second, confused, confidence, state,
):  # fmt: skip
    classes, inner = probabilities.shape[1], probabilities.shape[2]
    n = pixels.size
    p = np.empty((classes, STRIDE))
    logs = np.empty((classes, STRIDE))
    best, runner, total = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    lowest, vertex, out = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    first_index, second_index, over = np.empty(TILE, np.int64), np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    codes_of_tile = np.empty(TILE, np.uint8)
    wants_logs = False
    for m in range(codes.size):
        if codes[m] == KULLBACK_LEIBLER or codes[m] == RENYI or codes[m] == TSALLIS:
            wants_logs = True
    for start in range(0, n, TILE):
        width = min(TILE, n - start)
        if inner == 1:
            for j in range(width):
                i = pixels[start + j]
                for c in range(classes):
                    p[c, j] = probabilities[i, c, 0]
        else:
            for j in range(width):
                i = pixels[start + j] // inner
                k = pixels[start + j] - i * inner
                for c in range(classes):
                    p[c, j] = probabilities[i, c, k]
        for j in range(width, TILE):
            for c in range(classes):
                p[c, j] = 1.0 if c == 0 else 0.0
        _decide(p, level, best, runner, total, lowest, first_index, second_index, over)
        _normalise(p, best, total, lowest, vertex, tolerance, exact, codes_of_tile)
        if wants_logs:
            for c in range(classes):
                for j in range(TILE):
                    x = p[c, j]
                    logs[c, j] = logarithm(x if x > 1e-300 else 1.0)
        for j in range(width):
            predicted[start + j] = first_index[j]
            second[start + j] = second_index[j]
            confused[start + j] = over[j]
            confidence[start + j] = best[j]
            state[start + j] = codes_of_tile[j]
        for m in range(codes.size):
            if codes[m] == EUCLIDEAN:
                _euclidean(p, orders[m], out)
            elif codes[m] == KULLBACK_LEIBLER:
                _kullback_leibler(p, logs, orders[m], out)
            elif codes[m] == FISHER_RAO:
                _fisher_rao(p, orders[m], out)
            elif codes[m] == RENYI:
                _renyi(p, logs, best, total, alphas[m], orders[m], out)
            elif codes[m] == TSALLIS:
                _tsallis(p, logs, alphas[m], out)
            elif codes[m] == T_ENTROPY:
                _t_entropy(p, out)
            elif codes[m] == VARIANCE:
                for j in range(TILE):
                    top = best[j] / total[j]
                    out[j] = 4.0 * top * (1.0 - top)
            elif codes[m] == HOMOPHILY:
                _homophily(p, squares[m], out)
            else:
                out[:] = np.nan
            for j in range(width):
                x = out[j]
                x = x if x > 0.0 else (0.0 if x <= 0.0 else x)
                x = 1.0 if x > 1.0 else x
                x = 0.0 if vertex[j] == 1.0 else x
                values[m, start + j] = x if (codes_of_tile[j] & 3) == 0 else np.nan


@compiled
def _decide(p, level, best, runner, total, lowest, first_index, second_index, over):  # type: ignore[no-untyped-def]
    """Largest and second largest, each with the lowest index that holds it; p is still as stored."""
    for j in range(TILE):
        best[j] = p[0, j]
        first_index[j] = 0
        runner[j] = -np.inf
        second_index[j] = 0
        lowest[j] = p[0, j]
        total[j] = 0.0
        over[j] = 0
    for c in range(p.shape[0]):
        for j in range(TILE):
            x = p[c, j]
            wins = x > best[j]
            places = (x > runner[j]) & (c > 0)
            runner[j] = best[j] if wins else (x if places else runner[j])
            second_index[j] = first_index[j] if wins else (c if places else second_index[j])
            best[j] = x if wins else best[j]
            first_index[j] = c if wins else first_index[j]
            lowest[j] = x if not (x >= lowest[j]) else lowest[j]  # a NaN stays
            over[j] += 1 if x > level else 0


@compiled
def _normalise(p, best, total, lowest, vertex, tolerance, exact, codes):  # type: ignore[no-untyped-def]
    """Clip to [0, 1], divide by the sum; afterwards best is clipped and total the sum before division."""
    for c in range(p.shape[0]):
        for j in range(TILE):
            x = p[c, j]
            x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
            p[c, j] = x
            total[j] += x
    for j in range(TILE):
        off = np.abs(total[j] - 1.0)
        missing = total[j] != total[j]
        clipped = (lowest[j] < 0.0) | (best[j] > 1.0)
        bad = (lowest[j] < -tolerance) | (best[j] > 1.0 + tolerance) | (off > tolerance)
        code = (CLIPPED if clipped else 0) | (RENORMALISED if off > exact else 0)
        codes[j] = MISSING if missing else (OFF if bad else code)
        best[j] = 1.0 if best[j] > 1.0 else best[j]
        vertex[j] = 1.0 if best[j] == total[j] else 0.0
    for c in range(p.shape[0]):
        for j in range(TILE):
            p[c, j] /= total[j]


@compiled
def _from_ratio(ratio, n):  # type: ignore[no-untyped-def]
    """1 - ratio**n."""
    power = ratio
    for _ in range(n - 1):
        power *= ratio
    return 1.0 - power


@compiled
def _euclidean(p, n, out):  # type: ignore[no-untyped-def]
    classes = p.shape[0]
    scale = classes / (classes - 1.0)
    out[:] = 0.0
    if n == 2:
        for c in range(classes):
            for j in range(TILE):
                out[j] += p[c, j] * p[c, j]
        for j in range(TILE):
            out[j] = scale * (1.0 - out[j])
        return
    for c in range(classes):  # 1 - Gini would lose half the digits of a distance near the centre
        for j in range(TILE):
            step = p[c, j] - 1.0 / classes
            out[j] += step * step
    for j in range(TILE):
        out[j] = _from_ratio(np.sqrt(scale * out[j]), n)


@compiled
def _kullback_leibler(p, logs, n, out):  # type: ignore[no-untyped-def]
    out[:] = 0.0
    for c in range(p.shape[0]):
        for j in range(TILE):
            out[j] -= p[c, j] * logs[c, j]
    scale = 1.0 / np.log(p.shape[0])
    for j in range(TILE):
        out[j] *= scale
    if n != 1:
        for j in range(TILE):
            out[j] = _from_ratio(1.0 - out[j], n)


@compiled
def _fisher_rao(p, n, out):  # type: ignore[no-untyped-def]
    """Through the chord ||sqrt p - sqrt u||, which keeps its digits near the centre."""
    root = np.sqrt(1.0 / p.shape[0])
    out[:] = 0.0
    for c in range(p.shape[0]):
        for j in range(TILE):
            step = np.sqrt(p[c, j]) - root
            out[j] += step * step
    furthest = arcsine(0.5 * np.sqrt((1.0 - root) * (1.0 - root) + (p.shape[0] - 1.0) * (root * root)))
    for j in range(TILE):
        out[j] = arcsine(0.5 * np.sqrt(out[j])) / furthest
    for j in range(TILE):
        out[j] = _from_ratio(out[j], n)


@compiled
def _power(x, log, alpha):  # type: ignore[no-untyped-def]
    return exponential(alpha * log) if x > 1e-300 else 0.0


@compiled
def _renyi(p, logs, best, total, alpha, n, out):  # type: ignore[no-untyped-def]
    scale = 1.0 / np.log(p.shape[0])
    if np.isinf(alpha):
        for j in range(TILE):
            out[j] = -logarithm(best[j] / total[j]) * scale
    else:
        out[:] = 0.0
        for c in range(p.shape[0]):
            if alpha == 2.0:
                for j in range(TILE):
                    out[j] += p[c, j] * p[c, j]
            else:
                for j in range(TILE):
                    out[j] += _power(p[c, j], logs[c, j], alpha)
        for j in range(TILE):
            out[j] = logarithm(out[j]) * scale / (1.0 - alpha)
    if n != 1:
        for j in range(TILE):
            out[j] = _from_ratio(1.0 - out[j], n)


@compiled
def _tsallis(p, logs, alpha, out):  # type: ignore[no-untyped-def]
    classes = p.shape[0]
    out[:] = 0.0
    for c in range(classes):
        if alpha == 1.5:
            for j in range(TILE):
                out[j] += p[c, j] * np.sqrt(p[c, j])
        else:
            for j in range(TILE):
                out[j] += _power(p[c, j], logs[c, j], alpha)
    largest = 1.0 - np.exp((1.0 - alpha) * np.log(classes))
    for j in range(TILE):
        out[j] = (1.0 - out[j]) / largest


@compiled
def _t_entropy(p, out):  # type: ignore[no-untyped-def]
    """arctan(1/p) = pi/2 - arctan p, so that zeros need no care."""
    out[:] = 0.0
    for c in range(p.shape[0]):
        for j in range(TILE):
            out[j] += p[c, j] * arctangent(p[c, j])
    quarter = np.pi / 4
    scale = 1.0 / (np.arctan(p.shape[0]) - quarter)
    for j in range(TILE):
        out[j] = (quarter - out[j]) * scale


@compiled
def _homophily(p, square, out):  # type: ignore[no-untyped-def]
    """p'Sp for symmetric S with zero diagonal, already divided by its maximum."""
    inner = np.empty(TILE)
    out[:] = 0.0
    for i in range(1, p.shape[0]):
        inner[:] = 0.0
        for k in range(i):
            weight = square[i, k]
            for j in range(TILE):
                inner[j] += weight * p[k, j]
        for j in range(TILE):
            out[j] += p[i, j] * inner[j]
    for j in range(TILE):
        out[j] *= 2.0


@compiled
def count_decisions(  # type: ignore[no-untyped-def]
    reference, predicted, second, confused, pairs, by_confused
):
    """Add pixels to pairs (reference, predicted, reference is second) and by_confused (number, right).

    reference: (n,) class index, negative where the pixel does not count.
    """
    for i in range(reference.size):
        c = reference[i]
        if c >= 0:
            right = 1 if predicted[i] == c else 0
            near = 1 if (right == 0 and second[i] == c) else 0
            pairs[c, predicted[i], near] += 1
            by_confused[confused[i], right] += 1


@compiled
def count_values(  # type: ignore[no-untyped-def]
    values, upper, edges, guess, reference, predicted, second, confused, histogram, by_pair, by_confused
):
    """Add one measure's values to its histogram and to its fixed-point power sums.

    values: (n,) in [0, upper]; edges: (bins + 1,) rising from 0 to upper, bins right-closed, the first also
    holds 0; guess: (cells,) a bin at or below the first bin of each of equally wide cells. histogram:
    (reference, right, bin); by_pair: (reference, predicted, second, 2 powers, 2 limbs); by_confused:
    (number, right, 3 powers, 2 limbs).
    """
    cells = guess.size
    scale = np.float64(1 << FRACTION_BITS)
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        value = values[i]
        x = value / upper
        b = guess[min(np.int64(x * cells), cells - 1)]
        while value > edges[b + 1]:
            b += 1
        right = 1 if predicted[i] == c else 0
        near = 1 if (right == 0 and second[i] == c) else 0
        histogram[c, right, b] += 1
        q1 = np.int64(np.rint(x * scale))
        q2 = np.int64(np.rint(x * x * scale))
        q3 = np.int64(np.rint(x * x * x * scale))
        pair = by_pair[c, predicted[i], near]
        pair[0, 0] += q1 >> LIMB_BITS
        pair[0, 1] += q1 & LIMB_MASK
        pair[1, 0] += q2 >> LIMB_BITS
        pair[1, 1] += q2 & LIMB_MASK
        number = by_confused[confused[i], right]
        number[0, 0] += q1 >> LIMB_BITS
        number[0, 1] += q1 & LIMB_MASK
        number[1, 0] += q2 >> LIMB_BITS
        number[1, 1] += q2 & LIMB_MASK
        number[2, 0] += q3 >> LIMB_BITS
        number[2, 1] += q3 & LIMB_MASK


@compiled
def count_confidence(  # type: ignore[no-untyped-def]
    confidence, reference, predicted, edges, counts, hits, sums
):
    """Add pixels to the calibration bins (right-closed, the first also holds 0)."""
    bins = counts.size
    scale = np.float64(1 << FRACTION_BITS)
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = confidence[i]
        b = min(np.int64(x * bins), bins - 1)
        while b > 0 and x <= edges[b]:
            b -= 1
        while b < bins - 1 and x > edges[b + 1]:
            b += 1
        counts[b] += 1
        hits[b] += 1 if predicted[i] == c else 0
        q = np.int64(np.rint(x * scale))
        sums[b, 0] += q >> LIMB_BITS
        sums[b, 1] += q & LIMB_MASK


@compiled
def sum_soft_weights(weights, cells, sums):  # type: ignore[no-untyped-def]
    """Add weights in [0, 1] to the fixed-point sum (4 cells, 2 limbs) of their cell; negative cells are left out."""
    scale = np.float64(1 << FRACTION_BITS)
    for i in range(weights.size):
        k = cells[i]
        if k >= 0:
            q = np.int64(np.rint(weights[i] * scale))
            sums[k, 0] += q >> LIMB_BITS
            sums[k, 1] += q & LIMB_MASK
