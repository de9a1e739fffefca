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
F, I32 = np.float32, np.int32
NOTHING, HALF, ONE, TWO = F(0.0), F(0.5), F(1.0), F(2.0)
ONE_BITS, SQRT_HALF_BITS, MANTISSA = I32(0x3F800000), I32(0x3F3504F3), I32(23)
TINY_SUM, RAISED, LN2 = 2.0**-60, 2.0**90, float(np.log(2.0))
BEST, REST, TOP, HOLE, VALUE, WORK, MORE, FIRST, SECOND, OVER, STATE, ODD = range(12)
"""Rows (`ROWS`, TILE) that the steps share, as float32 and as int32: two views of the same memory. From ODD on: three."""
ROWS = ODD + 3
# log2(1 + f) / f for f from sqrt(1/2) - 1 to sqrt(2) - 1, fitted at Chebyshev points: f times it is within 9e-8.
(L0, L1, L2, L3, L4, L5, L6, L7) = (
    F(1.4426949),
    F(-0.721352756),
    F(0.48092404),
    F(-0.360241979),
    F(0.287075609),
    F(-0.24882181),
    F(0.23420985),
    F(-0.146203533),
)


@inline
def logarithm(x):
    """Return ln x for normal x > 0, by fdlibm's logf: within .9 ulp."""
    bits = F(x).view(np.int32)
    k = (bits - SQRT_HALF_BITS) >> MANTISSA
    f = I32(bits - (k << MANTISSA)).view(np.float32) - ONE
    s = f / (TWO + f)
    z = s * s
    w = z * z
    r = z * (F(0.66666662693) + w * F(0.28498786688)) + w * (F(0.40000972152) + w * F(0.24279078841))
    half, scale = HALF * f * f, F(k)
    return scale * F(6.9313812256e-01) - ((half - (s * (half + r) + scale * F(9.0580006145e-06))) - f)


@inline
def binary_logarithm(x):
    """Return log2 x, off by up to 1e-7, for normal x from 0 to 3/4; something finite for 0, and for less than 2**-126."""
    bits = F(x).view(np.int32)
    k = (bits - SQRT_HALF_BITS) >> MANTISSA
    f = I32(bits - (k << MANTISSA)).view(np.float32) - ONE
    z = f * f
    low, high = (L0 + L1 * f) + (L2 + L3 * f) * z, (L4 + L5 * f) + (L6 + L7 * f) * z
    return F(k) + f * (low + high * (z * z))


@inline
def arcsine(x):
    """Return arcsin x for 0 <= x <= 1, by fdlibm's asinf."""
    small = x < HALF
    z = x * x if small else HALF * (ONE - x)
    p = z * (F(1.6666586697e-01) + z * (F(-4.2743422091e-02) + z * F(-8.6563630030e-03)))
    r = p / (ONE + z * F(-7.0662963390e-01))
    s = np.sqrt(z)
    return x + x * r if small else F(1.5707963268) - TWO * (s + s * r)


@compiled
def raise_to(n, deficit):
    """Make 1 - (1 - deficit)**n of a strip of deficits, as `measures` does."""
    for j in range(TILE if n > 1 else 0):
        total = ONE
        for _ in range(n - 1):
            total = total * (ONE - deficit[j]) + ONE
        deficit[j] *= total


@compiled
def decide(bits, p, level, rounding, rows):
    """Find the largest and second largest, each with the lowest index that holds it, and clip p, which is as stored.

    Nonnegative floats are compared by their bits, as integers, which is three times as fast as `fmax`. Pixels with a value
    outside [0, 1] are decided before, one by one. bits: those of p. rows: the shared rows as int32; BEST (clipped), FIRST, SECOND,
    OVER and STATE, as far as single values make it, are written.
    """
    tops, first, second, over = rows[BEST], rows[FIRST], rows[SECOND], rows[OVER]
    states, runner, odd = rows[STATE], rows[WORK], rows[MORE]
    unclean, limit = I32(0), F(level).view(np.int32)
    for j in range(TILE):
        tops[j], runner[j], odd[j], states[j] = I32(-1), I32(-1), I32(0), I32(0)
        first[j], second[j], over[j] = I32(0), I32(0), I32(0)
    for c in range(p.shape[0]):
        for j in range(TILE):
            odd[j] |= bits[c, j] | (ONE_BITS - bits[c, j])  # its sign tells
    for j in range(TILE):
        unclean |= odd[j]
    if unclean < 0:
        for j in range(TILE):
            if odd[j] < 0:
                _decide_odd(p, j, level, rounding, rows)
    for c in range(p.shape[0]):
        k = I32(c)
        for j in range(TILE):
            x, top, next_, index = bits[c, j], tops[j], runner[j], first[j]
            above, between = -I32(x > top), -I32(x > next_)  # all bits set where true
            second[j] = (index & above) | (((k & between) | (second[j] & ~between)) & ~above)
            first[j] = (k & above) | (index & ~above)
            runner[j] = max(next_, min(x, top))
            tops[j] = max(top, x)
            over[j] += I32(x > limit)
    if unclean < 0:
        for j in range(TILE):
            if odd[j] < 0:
                first[j], second[j], over[j] = rows[ODD, j], rows[ODD + 1, j], rows[ODD + 2, j]


@compiled
def _decide_odd(p, j, level, rounding, rows):
    """Decide a pixel that holds NaN or a value outside [0, 1], and clip it; writes from ODD: first, second, over; and STATE."""
    first, second, over, missing = I32(-1), I32(-1), I32(0), False
    lowest, best = F(np.inf), F(-np.inf)
    for c in range(p.shape[0]):
        x = p[c, j]
        missing |= x != x
        over += I32(x > level)
        lowest = x if x < lowest else lowest
        if x > best:
            first, second, best = I32(c), first, x
        elif x == x and (second < 0 or x > p[second, j]):
            second = I32(c)
    rows[ODD, j], rows[ODD + 1, j], rows[ODD + 2, j] = max(first, I32(0)), max(second, I32(0)), over
    for c in range(p.shape[0]):
        x = p[c, j]
        p[c, j] = NOTHING if not x > NOTHING else (ONE if x > ONE else x)
    off = np.float64(lowest) < -rounding.tolerance or np.float64(best) > 1.0 + rounding.tolerance
    clipped = lowest < NOTHING or best > ONE
    rows[STATE, j] = MISSING if missing else (OFF if off else (CLIPPED if clipped else 0))


@compiled
def normalise(p, floats, rows, total, rounding):
    """Divide clipped values by their sum; TOP and REST are the largest and what is left, divided.

    HOLE: NaN where the pixel is not usable, else 0. States follow from sums in float64, `total` (TILE,).
    """
    best, rest, top, hole, inverse = floats[BEST], floats[REST], floats[TOP], floats[HOLE], floats[WORK]
    first, states, grades, least = rows[FIRST], rows[STATE], rows[MORE], 1.0
    for j in range(TILE):
        rest[j], total[j] = NOTHING, 0.0
    for c in range(p.shape[0]):
        k = I32(c)
        for j in range(TILE):
            total[j] += np.float64(p[c, j])
        for j in range(TILE):
            rest[j] += p[c, j] if first[j] != k else NOTHING
    for j in range(TILE):
        off = np.abs(total[j] - 1.0)
        grades[j] = I32(off > rounding.exact) + I32((off > rounding.tolerance) | (total[j] < SMALLEST_SUM))
        least = min(least, total[j])
    for j in range(TILE):
        state, grade = states[j], grades[j]
        usable = state & I32(3) == 0
        state |= I32(RENORMALISED if usable and grade == 1 else 0)
        states[j] = I32(OFF) if usable and grade > 1 else state
        hole[j] = F(np.nan) if states[j] & I32(3) else NOTHING
        top[j] = best[j]
    if least < TINY_SUM:  # whose inverse float32 cannot hold
        for j in range(TILE):
            if total[j] < TINY_SUM:
                total[j] *= RAISED
                rest[j] *= F(RAISED)
                top[j] *= F(RAISED)
                for c in range(p.shape[0]):
                    p[c, j] *= F(RAISED)
    for j in range(TILE):
        inverse[j] = F(1.0 / total[j])
        rest[j] *= inverse[j]
        top[j] *= inverse[j]
    for c in range(p.shape[0]):
        for j in range(TILE):
            p[c, j] *= inverse[j]


@compiled
def euclidean(p, floats, rows, n):
    classes, out, rest, squares, first = p.shape[0], floats[VALUE], floats[REST], floats[WORK], rows[FIRST]
    scale, level = F(classes / (classes - 1.0)), F(1.0 / classes)
    for j in range(TILE):
        out[j], squares[j] = NOTHING, NOTHING
    for c in range(classes):
        k = I32(c)
        for j in range(TILE):
            out[j] += p[c, j] * (rest[j] if first[j] == k else ONE - p[c, j])
    for j in range(TILE):
        out[j] *= scale
    for c in range(classes if n != 2 else 0):
        for j in range(TILE):
            step = p[c, j] - level
            squares[j] += step * step
    for j in range(TILE if n != 2 else 0):
        q = np.sqrt(scale * squares[j])
        out[j] = ONE - q if q < HALF else out[j] / (ONE + q)
    raise_to(n if n != 2 else 1, out)


@compiled
def kullback_leibler(p, floats, rows, n):
    out, rest, top, first = floats[VALUE], floats[REST], floats[TOP], rows[FIRST]
    classes, scale, ln2 = p.shape[0], F(1.0 / np.log(p.shape[0])), F(LN2)
    for j in range(TILE):
        out[j] = NOTHING
    for c in range(classes):
        k = I32(c)
        for j in range(TILE):  # another than the largest is at most a half
            x = NOTHING if first[j] == k else p[c, j]
            out[j] -= x * binary_logarithm(x)
    for j in range(TILE):  # of the largest the logarithm is ln(1 - rest), where rest is small
        y = rest[j] if rest[j] < HALF else NOTHING
        u = ONE - y
        log = logarithm(u) - ((u - ONE) + y) / u
        direct = logarithm(top[j] if top[j] > F(2.0**-126) else F(2.0**-126))
        out[j] = scale * (ln2 * out[j] - top[j] * (log if rest[j] < HALF else direct))
    raise_to(n, out)


@compiled
def fisher_rao(p, floats, rows, n):
    """By the chord ||sqrt p - sqrt u|| near the centre, by the angle that is left near a vertex; see the reference."""
    out, rest, top, more, first = floats[VALUE], floats[REST], floats[TOP], floats[WORK], rows[FIRST]
    classes = p.shape[0]
    exact = np.sqrt(1.0 / classes)
    furthest = F(2.0 * np.arcsin(0.5 * np.sqrt(2.0 - 2.0 * exact)))
    root, other = F(exact), F(np.sqrt(1.0 - 1.0 / classes))
    for j in range(TILE):
        out[j], more[j] = NOTHING, NOTHING
    for c in range(classes):
        k = I32(c)
        for j in range(TILE):
            x = np.sqrt(p[c, j])
            step = x - root
            out[j] += step * step
            more[j] += x if first[j] != k else NOTHING
    for j in range(TILE):
        q = TWO * arcsine(HALF * np.sqrt(out[j])) / furthest
        beyond = root * (more[j] - rest[j] / (ONE + np.sqrt(top[j])))
        cosine = root + beyond
        square = ONE - cosine * cosine
        sine = other * cosine + root * np.sqrt(square if square > NOTHING else NOTHING)
        left = beyond * (cosine + root) / sine
        left = arcsine(left if left < ONE else ONE) / furthest
        out[j] = ONE - q if q < HALF else left
    raise_to(n, out)


@compiled
def homophily(p, floats, square):
    """Compute p'Sp for symmetric S with zero diagonal, already divided by its maximum; four products at a time."""
    out, inner = floats[VALUE], floats[WORK]
    for j in range(TILE):
        out[j] = NOTHING
    for i in range(1, p.shape[0]):
        for j in range(TILE):
            inner[j] = NOTHING
        fours = i // 4 * 4
        for k in range(0, fours, 4):
            a, b, c, d = F(square[i, k]), F(square[i, k + 1]), F(square[i, k + 2]), F(square[i, k + 3])
            for j in range(TILE):
                inner[j] = inner[j] + a * p[k, j] + b * p[k + 1, j] + c * p[k + 2, j] + d * p[k + 3, j]
        for k in range(fours, i):
            weight = F(square[i, k])
            for j in range(TILE):
                inner[j] += weight * p[k, j]
        for j in range(TILE):
            out[j] += p[i, j] * inner[j]
    for j in range(TILE):
        out[j] *= TWO
