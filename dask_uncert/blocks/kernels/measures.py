"""The steps of `compiled.measure` on a strip of pixels: the decision, the normal form and each measure.

A strip p is (classes, STRIDE) float64 of which the first STRIP columns are pixels; every loop runs over all
of them, so that the value of a pixel depends neither on its neighbours nor on its place.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import (
    TINY,
    arcsine,
    arctangent,
    exponential,
    exponential_minus_one,
    log_one_plus,
    logarithm,
    logarithm_or_zero,
)
from dask_uncert.blocks.kernels.types import CLIPPED, MISSING, OFF, RENORMALISED, SMALLEST_SUM, AnyFloats

STRIP = 128
STRIDE = STRIP + 8  # rows of a strip are 1088 bytes apart: not all in the same cache sets


def any_layout(probabilities: AnyFloats) -> AnyFloats:
    """Return (a, classes, b, 2), a view that holds each value twice: of one type for numba, however the values lie in memory.

    So a kernel is compiled once for a dtype, not again for values in another order or values that may not be written.
    """
    return np.broadcast_to(probabilities[..., np.newaxis], (*probabilities.shape, 2))


@compiled(step=True)
def gather(probabilities, pixels, start, width, p):
    """Fill a strip with pixels[start : start + width], and the rest of it with a harmless pixel."""
    classes, inner = probabilities.shape[1], probabilities.shape[2]
    i, k, apart = pixels[start] // inner, pixels[start] % inner, np.int64(0)
    before, outside = i * inner, np.int64(0)
    for j in range(width):
        within = pixels[start + j] - before
        apart |= within - (k + j)
        outside |= np.int64(within < 0) | np.int64(within >= inner)
    if apart == 0 and (inner == 1 or outside == 0):  # they are neighbours
        along, across = (1, 0) if inner == 1 else (0, 1)
        for c in range(classes):
            for j in range(width):
                p[np.uint64(c), np.uint64(j)] = probabilities[
                    np.uint64(i + along * j), np.uint64(c), np.uint64(k + across * j), np.uint64(0)
                ]
    elif outside == 0:  # class by class: classes often lie a power of two apart, in one set of the cache
        for c in range(classes):
            for j in range(width):
                p[np.uint64(c), np.uint64(j)] = probabilities[
                    np.uint64(i), np.uint64(c), np.uint64(pixels[start + j] - before), np.uint64(0)
                ]
    else:
        for j in range(width):
            i, k = pixels[start + j], 0
            if inner > 1:
                i = pixels[start + j] // inner
                k = pixels[start + j] - i * inner
            for c in range(classes):
                p[np.uint64(c), np.uint64(j)] = probabilities[np.uint64(i), np.uint64(c), np.uint64(k), np.uint64(0)]
    for j in range(width, p.shape[1]):
        for c in range(classes):
            p[c, j] = 1.0 if c == 0 else 0.0


@compiled(step=True)
def decide(p, level, best, runner, lowest, first, second, over):
    """Find the largest and second largest, each with the lowest index that holds it; p is still as stored.

    Short loops over few arrays, and indices as floats: so each becomes SIMD.
    """
    classes = p.shape[0]
    for j in range(STRIP):
        best[j] = -np.inf
        runner[j] = -np.inf
        lowest[j] = np.inf
        over[j] = 0.0
        first[j] = 0.0  # stays so where all are NaN
        second[j] = 0.0
    for c in range(classes):
        for j in range(STRIP):
            x, most, least, index = p[c, j], best[j], lowest[j], first[j]  # loaded first: else stores have conditions
            first[j] = np.float64(c) if x > most else index
            best[j] = x if x > most else most
            lowest[j] = x if x < least else least
    for c in range(classes):
        for j in range(STRIP):
            over[j] += 1.0 if p[c, j] > level else 0.0
    for c in range(classes):
        for j in range(STRIP):
            x, index, most = p[c, j], first[j], runner[j]
            x = x if index != np.float64(c) else -np.inf
            runner[j] = x if x > most else most
    for c in range(classes - 1, -1, -1):
        for j in range(STRIP):
            x, index, most, other = p[c, j], first[j], runner[j], second[j]
            second[j] = np.float64(c) if (x == most) & (index != np.float64(c)) else other


@compiled(step=True)
def normalise(p, first, best, rest, total, lowest, hole, rounding, states):
    """Clip to [0, 1], divide by the sum; afterwards `best` is clipped and `total` is the sum before division.

    rest: sum of all but the first of the largest, divided as well: where 1 - best would be rounding, it has all
    digits. hole: NaN where the pixel is not usable, else 0. lowest is overwritten.
    """
    for j in range(STRIP):
        total[j] = 0.0
        rest[j] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            x = p[c, j]
            x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
            p[c, j] = x
            total[j] += x
            rest[j] += x if first[j] != np.float64(c) else 0.0
    for j in range(STRIP):
        off = np.abs(total[j] - 1.0)
        missing = total[j] != total[j]
        clipped = (lowest[j] < 0.0) | (best[j] > 1.0)
        bad = (
            (lowest[j] < -rounding.tolerance)
            | (best[j] > 1.0 + rounding.tolerance)
            | (off > rounding.tolerance)
            | (total[j] < SMALLEST_SUM)
        )
        code = (CLIPPED if clipped else 0) | (RENORMALISED if off > rounding.exact else 0)
        states[j] = MISSING if missing else (OFF if bad else code)
        hole[j] = np.nan if missing or bad else 0.0
        best[j] = 1.0 if best[j] > 1.0 else best[j]
    for j in range(STRIP):
        lowest[j] = 1.0 / total[j]
        rest[j] *= lowest[j]
    for c in range(p.shape[0]):
        for j in range(STRIP):
            p[c, j] *= lowest[j]


@compiled(step=True)
def find_logs(p, first, rest, tops, logs):
    """Write the logarithm of every probability (0 for 0), and of the largest as ln(1 - rest); that to `tops`, too."""
    for j in range(STRIP):
        tops[j] = log_one_plus(-rest[j] if rest[j] < 0.5 else 0.0)
    tiny = np.int64(0)
    for c in range(p.shape[0]):
        for j in range(STRIP):
            tiny |= np.int64((p[c, j] > 0.0) & (p[c, j] < TINY))
    for c in range(p.shape[0] if tiny == 0 else 0):
        for j in range(STRIP):  # few steps: so several logarithms are under way at a time
            x = p[c, j]
            logs[c, j] = logarithm(x if x > 0.0 else 1.0)
    for c in range(p.shape[0] if tiny != 0 else 0):
        for j in range(STRIP):
            logs[c, j] = logarithm_or_zero(p[c, j])
    for j in range(STRIP):
        winner, pixel = np.uint64(first[j]), np.uint64(j)
        if rest[j] < 0.5:
            logs[winner, pixel] = tops[j]
        else:
            tops[j] = logs[winner, pixel]


@compiled(step=True)
def bounded(out, hole):
    """Take rounding off: in [0, 1], 0.0 and not -0.0 at a vertex; NaN where the pixel is not usable."""
    for j in range(STRIP):
        x = out[j]
        x = 0.0 if x <= 0.0 else (1.0 if x > 1.0 else x)
        out[j] = x + hole[j]


@compiled(step=True)
def _one_minus_power(deficit, n):
    """Return 1 - (1 - deficit)**n, as deficit (1 + q + ... + q**(n - 1)): small ones keep their digits."""
    q, total = 1.0 - deficit, 1.0
    for _ in range(n - 1):
        total = total * q + 1.0
    return deficit * total


@compiled(step=True)
def _complement(x, c, j, first, rest):
    """Return 1 - p of a class: for the largest what the others add up to."""
    return rest[j] if first[j] == np.float64(c) else 1.0 - x


@compiled(step=True)
def euclidean(p, first, rest, n, out, squares):
    """Write the measure; squares: (STRIP,), overwritten."""
    classes = p.shape[0]
    scale = classes / (classes - 1.0)
    for j in range(STRIP):
        out[j], squares[j] = 0.0, 0.0
    for c in range(classes):
        for j in range(STRIP):
            out[j] += p[c, j] * _complement(p[c, j], c, j, first, rest)
    for j in range(STRIP):
        out[j] *= scale
    if n == 2:
        return
    for c in range(classes):  # 1 - Gini would lose half the digits of a distance near the centre
        for j in range(STRIP):
            step = p[c, j] - 1.0 / classes
            squares[j] += step * step
    for j in range(STRIP):
        q = np.sqrt(scale * squares[j])
        out[j] = _one_minus_power(1.0 - q if q < 0.5 else out[j] / (1.0 + q), n)


@compiled(step=True)
def kullback_leibler(p, logs, n, out):
    for j in range(STRIP):
        out[j] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            out[j] -= p[c, j] * logs[c, j]
    scale = 1.0 / np.log(p.shape[0])
    for j in range(STRIP):
        out[j] *= scale
    if n != 1:
        for j in range(STRIP):
            out[j] = _one_minus_power(out[j], n)


@compiled(step=True)
def fisher_rao(p, first, best, total, rest, n, out, more):
    """By the chord ||sqrt p - sqrt u|| near the centre, by the angle that is left near a vertex; see the reference.

    more: (STRIP,), overwritten.
    """
    root = np.sqrt(1.0 / p.shape[0])
    for j in range(STRIP):
        out[j], more[j] = 0.0, 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            x = np.sqrt(p[c, j])
            step = x - root
            out[j] += step * step
            more[j] += x if first[j] != np.float64(c) else 0.0
    furthest = 2.0 * arcsine(0.5 * np.sqrt((1.0 - root) * (1.0 - root) + (p.shape[0] - 1.0) * (root * root)))
    for j in range(STRIP):
        q = 2.0 * arcsine(0.5 * np.sqrt(out[j])) / furthest
        beyond = root * (more[j] - rest[j] / (1.0 + np.sqrt(best[j] / total[j])))
        cosine = root + beyond
        square = 1.0 - cosine * cosine
        sine = np.sqrt(1.0 - root * root) * cosine + root * np.sqrt(square if square > 0.0 else 0.0)
        left = beyond * (cosine + root) / sine
        left = arcsine(left if left < 1.0 else 1.0) / furthest
        out[j] = _one_minus_power(1.0 - q if q < 0.5 else left, n)


@compiled(step=True)
def renyi(p, logs, first, rest, tops, alpha, n, out):
    scale = 1.0 / np.log(p.shape[0])
    if np.isinf(alpha):
        for j in range(STRIP):
            out[j] = -tops[j] * scale
    elif alpha == 2.0:
        for j in range(STRIP):
            out[j] = 0.0
        for c in range(p.shape[0]):
            for j in range(STRIP):
                out[j] += p[c, j] * _complement(p[c, j], c, j, first, rest)
        for j in range(STRIP):
            out[j] = -log_one_plus(-out[j]) * scale
    elif np.abs(alpha - 1.0) < 0.5:  # sum p**alpha is 1 + little, and dividing by 1 - alpha blows up its rounding
        _power_excess(p, logs, alpha, out)
        for j in range(STRIP):
            out[j] = log_one_plus(out[j]) * scale / (1.0 - alpha)
    else:  # relative to the largest, so that the powers do not all underflow
        for j in range(STRIP):
            out[j] = 0.0
        for c in range(p.shape[0]):
            for j in range(STRIP):
                log = logs[c, j] - tops[j]
                power = exponential(alpha * (log if log < 0.0 else 0.0))
                out[j] += power if first[j] != np.float64(c) and p[c, j] > 0.0 else 0.0
        for j in range(STRIP):
            out[j] = (alpha * tops[j] + log_one_plus(out[j])) * scale / (1.0 - alpha)
    if n != 1:
        for j in range(STRIP):
            out[j] = _one_minus_power(out[j], n)


@compiled(step=True)
def _power_excess(p, logs, alpha, out):
    """Write sum p**alpha - 1, as sum p (p**(alpha - 1) - 1)."""
    for j in range(STRIP):
        out[j] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            out[j] += p[c, j] * exponential_minus_one((alpha - 1.0) * logs[c, j])


@compiled(step=True)
def tsallis(p, logs, first, rest, alpha, out):
    classes = p.shape[0]
    if alpha == 1.5:
        for j in range(STRIP):
            out[j] = 0.0
        for c in range(classes):
            for j in range(STRIP):
                x = p[c, j]
                out[j] -= x * _complement(x, c, j, first, rest) / (1.0 + np.sqrt(x))
    else:
        _power_excess(p, logs, alpha, out)
    largest = np.expm1((1.0 - alpha) * np.log(classes))
    for j in range(STRIP):
        out[j] = out[j] / largest


@compiled(step=True)
def t_entropy(p, first, rest, out):
    """arctan(1/p) - pi/4 = arctan((1 - p) / (1 + p)), so that zeros need no care and nothing cancels."""
    for j in range(STRIP):
        out[j] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            x = p[c, j]
            y = _complement(x, c, j, first, rest) / (1.0 + x)
            out[j] += x * arctangent(y if y < 1.0 else 1.0)
    scale = 1.0 / (np.arctan(p.shape[0]) - np.pi / 4)
    for j in range(STRIP):
        out[j] *= scale


@compiled(step=True)
def homophily(p, square, out, inner):
    """Compute p'Sp for symmetric S with zero diagonal, already divided by its maximum; inner: (STRIP,), overwritten."""
    for j in range(STRIP):
        out[j] = 0.0
    for i in range(1, p.shape[0]):
        for j in range(STRIP):
            inner[j] = 0.0
        for k in range(i):
            weight = square[i, k]
            for j in range(STRIP):
                inner[j] += weight * p[k, j]
        for j in range(STRIP):
            out[j] += p[i, j] * inner[j]
    for j in range(STRIP):
        out[j] *= 2.0
