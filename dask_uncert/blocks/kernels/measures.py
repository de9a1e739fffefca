"""The steps of `compiled.measure` on a strip of pixels: the decision, the normal form and each measure.

A strip p is (classes, STRIDE) float64 of which the first STRIP columns are pixels; every loop runs over all
of them, so that the value of a pixel depends neither on its neighbours nor on its place.
"""

from __future__ import annotations

import numba
import numpy as np

from dask_uncert.blocks.kernels.cache import ensure_cache
from dask_uncert.blocks.kernels.elementary import arcsine, arctangent, exponential, logarithm
from dask_uncert.blocks.kernels.types import CLIPPED, MISSING, OFF, RENORMALISED, SMALLEST_SUM

STRIP = 128
STRIDE = STRIP + 8  # rows of a strip are 1088 bytes apart: not all in the same cache sets
ensure_cache()


def compiled(function):
    """Compile a function; the machine code is kept for the next process where a folder can be written."""
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # no folder can be written
        return numba.njit(nogil=True, error_model="numpy")(function)


@compiled
def gather(probabilities, pixels, start, width, p):
    """Fill a strip with pixels[start : start + width], and the rest of it with a harmless pixel."""
    classes, inner = probabilities.shape[1], probabilities.shape[2]
    for j in range(width):
        i, k = pixels[start + j], 0
        if inner > 1:
            i = pixels[start + j] // inner
            k = pixels[start + j] - i * inner
        for c in range(classes):
            p[c, j] = probabilities[i, c, k]
    for j in range(width, STRIP):
        for c in range(classes):
            p[c, j] = 1.0 if c == 0 else 0.0


@compiled
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
            x = p[c, j]
            best[j] = x if x > best[j] else best[j]
            lowest[j] = x if x < lowest[j] else lowest[j]
    for c in range(classes):
        for j in range(STRIP):
            over[j] += 1.0 if p[c, j] > level else 0.0
    for c in range(classes - 1, -1, -1):
        for j in range(STRIP):
            first[j] = np.float64(c) if p[c, j] == best[j] else first[j]
    for c in range(classes):
        for j in range(STRIP):
            x = p[c, j] if first[j] != np.float64(c) else -np.inf
            runner[j] = x if x > runner[j] else runner[j]
    for c in range(classes - 1, -1, -1):
        for j in range(STRIP):
            x = p[c, j] if first[j] != np.float64(c) else np.inf
            second[j] = np.float64(c) if x == runner[j] else second[j]


@compiled
def normalise(p, best, total, lowest, keep, hole, rounding, states):
    """Clip to [0, 1], divide by the sum; afterwards `best` is clipped and `total` is the sum before division.

    keep: 0 at a vertex, else 1; hole: NaN where the pixel is not usable, else 0. lowest is overwritten.
    """
    for j in range(STRIP):
        total[j] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            x = p[c, j]
            x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
            p[c, j] = x
            total[j] += x
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
        keep[j] = 0.0 if best[j] == total[j] else 1.0
    for j in range(STRIP):
        lowest[j] = 1.0 / total[j]
    for c in range(p.shape[0]):
        for j in range(STRIP):
            p[c, j] *= lowest[j]


@compiled
def bounded(out, keep, hole):
    """Take rounding off: in [0, 1], exactly 0.0 at a vertex; NaN where the pixel is not usable."""
    for j in range(STRIP):
        x = out[j]
        x = 0.0 if x <= 0.0 else (1.0 if x > 1.0 else x)
        out[j] = x * keep[j] + hole[j]


@compiled
def _one_minus_power(ratio, n):
    """Return 1 - ratio**n."""
    power = ratio
    for _ in range(n - 1):
        power *= ratio
    return 1.0 - power


@compiled
def euclidean(p, n, out):
    classes = p.shape[0]
    scale = classes / (classes - 1.0)
    out[:] = 0.0
    if n == 2:
        for c in range(classes):
            for j in range(STRIP):
                out[j] += p[c, j] * p[c, j]
        for j in range(STRIP):
            out[j] = scale * (1.0 - out[j])
        return
    for c in range(classes):  # 1 - Gini would lose half the digits of a distance near the centre
        for j in range(STRIP):
            step = p[c, j] - 1.0 / classes
            out[j] += step * step
    for j in range(STRIP):
        out[j] = _one_minus_power(np.sqrt(scale * out[j]), n)


@compiled
def kullback_leibler(p, logs, n, out):
    out[:] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            out[j] -= p[c, j] * logs[c, j]
    scale = 1.0 / np.log(p.shape[0])
    for j in range(STRIP):
        out[j] *= scale
    if n != 1:
        for j in range(STRIP):
            out[j] = _one_minus_power(1.0 - out[j], n)


@compiled
def fisher_rao(p, n, out):
    """By the chord ||sqrt p - sqrt u||, which keeps its digits near the centre."""
    root = np.sqrt(1.0 / p.shape[0])
    out[:] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            step = np.sqrt(p[c, j]) - root
            out[j] += step * step
    furthest = arcsine(0.5 * np.sqrt((1.0 - root) * (1.0 - root) + (p.shape[0] - 1.0) * (root * root)))
    for j in range(STRIP):
        out[j] = arcsine(0.5 * np.sqrt(out[j])) / furthest
    for j in range(STRIP):
        out[j] = _one_minus_power(out[j], n)


@compiled
def _power(x, log, alpha):
    return exponential(alpha * log) if x > 1e-300 else 0.0


@compiled
def renyi(p, logs, best, total, alpha, n, out):
    scale = 1.0 / np.log(p.shape[0])
    if np.isinf(alpha):
        for j in range(STRIP):
            out[j] = -logarithm(best[j] / total[j]) * scale
    elif alpha * np.log(p.shape[0]) > 650.0:  # relative to the largest, so that the powers do not all underflow
        for j in range(STRIP):
            top, largest = -np.inf, -np.inf
            for c in range(p.shape[0]):
                if p[c, j] > largest:
                    largest, top = p[c, j], logs[c, j]
            power = 0.0
            for c in range(p.shape[0]):
                power += _power(p[c, j], logs[c, j] - top, alpha)
            out[j] = (alpha * top + logarithm(power)) * scale / (1.0 - alpha)
    else:
        out[:] = 0.0
        for c in range(p.shape[0]):
            if alpha == 2.0:
                for j in range(STRIP):
                    out[j] += p[c, j] * p[c, j]
            else:
                for j in range(STRIP):
                    out[j] += _power(p[c, j], logs[c, j], alpha)
        for j in range(STRIP):
            out[j] = logarithm(out[j]) * scale / (1.0 - alpha)
    if n != 1:
        for j in range(STRIP):
            out[j] = _one_minus_power(1.0 - out[j], n)


@compiled
def tsallis(p, logs, alpha, out):
    classes = p.shape[0]
    out[:] = 0.0
    for c in range(classes):
        if alpha == 1.5:
            for j in range(STRIP):
                out[j] += p[c, j] * np.sqrt(p[c, j])
        else:
            for j in range(STRIP):
                out[j] += _power(p[c, j], logs[c, j], alpha)
    largest = 1.0 - np.exp((1.0 - alpha) * np.log(classes))
    for j in range(STRIP):
        out[j] = (1.0 - out[j]) / largest


@compiled
def t_entropy(p, out):
    """arctan(1/p) = pi/2 - arctan p, so that zeros need no care."""
    out[:] = 0.0
    for c in range(p.shape[0]):
        for j in range(STRIP):
            out[j] += p[c, j] * arctangent(p[c, j])
    quarter = np.pi / 4
    scale = 1.0 / (np.arctan(p.shape[0]) - quarter)
    for j in range(STRIP):
        out[j] = (quarter - out[j]) * scale


@compiled
def homophily(p, square, out):
    """Compute p'Sp for symmetric S with zero diagonal, already divided by its maximum."""
    inner = np.empty(STRIP)
    out[:] = 0.0
    for i in range(1, p.shape[0]):
        inner[:] = 0.0
        for k in range(i):
            weight = square[i, k]
            for j in range(STRIP):
                inner[j] += weight * p[k, j]
        for j in range(STRIP):
            out[j] += p[i, j] * inner[j]
    for j in range(STRIP):
        out[j] *= 2.0
