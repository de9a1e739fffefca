"""The steps of `compiled.measure` for float32 data, in float32: twice as many pixels at a time as `measures`.

A tile p is (classes, PITCH) float32 of which the first TILE columns are pixels; every loop runs over all of them and over
few arrays, so that it becomes SIMD and the value of a pixel depends neither on its neighbours nor on its place.
Decisions and states are those of `measures`, to the last bit; measures are within 2e-6 of theirs, and near a vertex
within 2e-6 of themselves.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.elementary import inline
from dask_uncert.blocks.kernels.measures import compiled
from dask_uncert.blocks.kernels.types import CLIPPED, MISSING, OFF, RENORMALISED, SMALLEST_SUM

TILE = 256
PITCH = TILE + 16
F = np.float32
NOTHING, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
SMALLEST = F(2.0**-126)
TINY_SUM, RAISED = 2.0**-60, 2.0**90


@inline
def logarithm(x):
    """Return ln x for normal x > 0, by fdlibm's logf: within .9 ulp."""
    bits = F(x).view(np.int32)
    k = (bits - np.int32(0x3F3504F3)) >> np.int32(23)
    f = np.int32(bits - (k << np.int32(23))).view(np.float32) - ONE
    s = f / (TWO + f)
    z = s * s
    w = z * z
    r = z * (F(0.66666662693) + w * F(0.28498786688)) + w * (F(0.40000972152) + w * F(0.24279078841))
    half, scale = HALF * f * f, F(k)
    return scale * F(6.9313812256e-01) - ((half - (s * (half + r) + scale * F(9.0580006145e-06))) - f)


@inline
def arcsine(x):
    """Return arcsin x for 0 <= x <= 1, by fdlibm's asinf."""
    small = x < HALF
    z = x * x if small else HALF * (ONE - x)
    p = z * (F(1.6666586697e-01) + z * (F(-4.2743422091e-02) + z * F(-8.6563630030e-03)))
    r = p / (ONE + z * F(-7.0662963390e-01))
    s = np.sqrt(z)
    return x + x * r if small else F(1.5707963268) - TWO * (s + s * r)


@inline
def one_minus_power(deficit, n):
    """Return 1 - (1 - deficit)**n, as `measures` does."""
    q, total = ONE - deficit, ONE
    for _ in range(n - 1):
        total = total * q + ONE
    return deficit * total


@compiled
def decide(p, level, best, runner, lowest, first, second, over):
    """Find the largest and second largest, each with the lowest index that holds it; p is still as stored."""
    for j in range(TILE):
        best[j] = F(-np.inf)
        runner[j] = F(-np.inf)
        lowest[j] = F(np.inf)
        over[j] = NOTHING
        first[j] = NOTHING  # stays so where all are NaN
        second[j] = NOTHING
    for c in range(p.shape[0]):  # fmax and fmin, as `x if x > y else y` does not become SIMD here: 1.4 and 8 ns a pixel
        for j in range(TILE):
            x, largest = p[c, j], best[j]
            runner[j] = np.fmax(runner[j], np.fmin(x, largest))
            best[j] = np.fmax(x, largest)
    for c in range(p.shape[0] - 1, -1, -1):
        for j in range(TILE):
            first[j] = F(c) if p[c, j] == best[j] else first[j]
    for c in range(p.shape[0] - 1, -1, -1):
        for j in range(TILE):
            second[j] = F(c) if (p[c, j] == runner[j]) & (first[j] != F(c)) else second[j]
    for c in range(p.shape[0]):
        for j in range(TILE):
            lowest[j] = np.fmin(p[c, j], lowest[j])
            over[j] += ONE if p[c, j] > level else NOTHING


@compiled
def normalise(p, first, best, rest, top, lowest, hole, rounding, states):
    """Clip to [0, 1] and divide by the sum; `best` is clipped, `top` and `rest` are the largest and what is left, divided.

    hole: NaN where the pixel is not usable, else 0. States follow from sums in float64.
    """
    total, inverse = np.zeros(TILE), np.empty(TILE, np.float32)
    rest[:] = NOTHING
    for c in range(p.shape[0]):
        for j in range(TILE):
            x = np.minimum(np.maximum(p[c, j], NOTHING), ONE)  # NaN stays
            p[c, j] = x
            total[j] += np.float64(x)
            rest[j] += x if first[j] != F(c) else NOTHING
    for j in range(TILE):
        off = np.abs(total[j] - 1.0)
        missing = total[j] != total[j]
        clipped = (lowest[j] < NOTHING) | (best[j] > ONE)
        bad = (
            (np.float64(lowest[j]) < -rounding.tolerance)
            | (np.float64(best[j]) > 1.0 + rounding.tolerance)
            | (off > rounding.tolerance)
            | (total[j] < SMALLEST_SUM)
        )
        code = (CLIPPED if clipped else 0) | (RENORMALISED if off > rounding.exact else 0)
        states[j] = MISSING if missing else (OFF if bad else code)
        hole[j] = F(np.nan) if missing or bad else NOTHING
        best[j] = ONE if best[j] > ONE else best[j]
        top[j] = best[j]
        if total[j] < TINY_SUM:  # whose inverse float32 cannot hold
            total[j] *= RAISED
            rest[j] *= F(RAISED)
            top[j] *= F(RAISED)
            for c in range(p.shape[0]):
                p[c, j] *= F(RAISED)
    for j in range(TILE):
        inverse[j] = F(1.0 / total[j])
    for j in range(TILE):
        rest[j] *= inverse[j]
        top[j] *= inverse[j]
    for c in range(p.shape[0]):
        for j in range(TILE):
            p[c, j] *= inverse[j]


@compiled
def euclidean(p, first, rest, n, out):
    classes = p.shape[0]
    scale = F(classes / (classes - 1.0))
    out[:] = NOTHING
    for c in range(classes):
        for j in range(TILE):
            out[j] += p[c, j] * (rest[j] if first[j] == F(c) else ONE - p[c, j])
    for j in range(TILE):
        out[j] *= scale
    if n == 2:
        return
    squares, level = np.zeros(TILE, np.float32), F(1.0 / classes)
    for c in range(classes):
        for j in range(TILE):
            step = p[c, j] - level
            squares[j] += step * step
    for j in range(TILE):
        q = np.sqrt(scale * squares[j])
        out[j] = one_minus_power(ONE - q if q < HALF else out[j] / (ONE + q), n)


@compiled
def kullback_leibler(p, first, rest, top, n, out):
    classes, scale = p.shape[0], F(1.0 / np.log(p.shape[0]))
    for j in range(TILE):  # of the largest the logarithm is ln(1 - rest), where rest is small
        y = rest[j] if rest[j] < HALF else NOTHING
        u = ONE - y
        log = logarithm(u) - ((u - ONE) + y) / u
        direct = logarithm(top[j] if top[j] > SMALLEST else SMALLEST)
        out[j] = -top[j] * (log if rest[j] < HALF else direct)
    for c in range(classes):
        for j in range(TILE):
            x = p[c, j]
            term = x * logarithm(x if x > SMALLEST else SMALLEST)
            out[j] -= NOTHING if first[j] == F(c) else term
    for j in range(TILE):
        out[j] *= scale
    if n != 1:
        for j in range(TILE):
            out[j] = one_minus_power(out[j], n)


@compiled
def fisher_rao(p, first, rest, top, n, out):
    """By the chord ||sqrt p - sqrt u|| near the centre, by the angle that is left near a vertex; see the reference."""
    classes = p.shape[0]
    exact = np.sqrt(1.0 / classes)
    furthest = F(2.0 * np.arcsin(0.5 * np.sqrt(2.0 - 2.0 * exact)))
    root, other = F(exact), F(np.sqrt(1.0 - 1.0 / classes))
    more = np.zeros(TILE, np.float32)
    out[:] = NOTHING
    for c in range(classes):
        for j in range(TILE):
            x = np.sqrt(p[c, j])
            step = x - root
            out[j] += step * step
            more[j] += x if first[j] != F(c) else NOTHING
    for j in range(TILE):
        q = TWO * arcsine(HALF * np.sqrt(out[j])) / furthest
        beyond = root * (more[j] - rest[j] / (ONE + np.sqrt(top[j])))
        cosine = root + beyond
        square = ONE - cosine * cosine
        sine = other * cosine + root * np.sqrt(square if square > NOTHING else NOTHING)
        left = beyond * (cosine + root) / sine
        left = arcsine(left if left < ONE else ONE) / furthest
        out[j] = one_minus_power(ONE - q if q < HALF else left, n)


@compiled
def homophily(p, square, out):
    """Compute p'Sp for symmetric S with zero diagonal, already divided by its maximum."""
    inner = np.empty(TILE, np.float32)
    out[:] = NOTHING
    for i in range(1, p.shape[0]):
        inner[:] = NOTHING
        for k in range(i):
            weight = F(square[i, k])
            for j in range(TILE):
                inner[j] += weight * p[k, j]
        for j in range(TILE):
            out[j] += p[i, j] * inner[j]
    for j in range(TILE):
        out[j] *= TWO
