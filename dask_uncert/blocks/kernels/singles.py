"""The steps of `compiled.measure` for float32 data, in float32: twice as many pixels at a time as `measures`.

A tile p is (classes, PITCH) float32 of which the first TILE columns are pixels; every loop runs over all of them and over
few arrays, so that it becomes SIMD and the value of a pixel depends neither on its neighbours nor on its place.
Decisions and states are those of `measures`, to the last bit; measures are within 2e-6 of theirs, and near a vertex
within 2e-6 of themselves.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary_singles import (
    HALF,
    I32,
    NOTHING,
    ONE,
    ONE_BITS,
    TWO,
    F,
    arcsine,
    binary_logarithm,
    logarithm,
)
from dask_uncert.blocks.kernels.types import CLIPPED, MISSING, OFF, RENORMALISED, SMALLEST_SUM
from dask_uncert.blocks.kernels.vectors import LANES, copy_eight, load_single, turn_square

TILE = 256
PITCH = TILE + 16
TINY_SUM, RAISED, LN2 = 2.0**-60, 2.0**90, float(np.log(2.0))
BEST, REST, TOP, HOLE, VALUE, WORK, MORE, FIRST, SECOND, OVER, STATE, ODD = range(12)
"""Rows (`ROWS`, TILE) that the steps share, as float32 and as int32: two views of the same memory. From ODD on: three."""
ROWS = ODD + 3


@compiled(step=True)
def gather(probabilities, pixels, start, width, p, places):
    """Fill a tile with pixels[start : start + width], and the rest of it with the first of them.

    Pixels that follow each other are copied eight at a time; where classes lie side by side, eight of them, too.
    places: (TILE,) int64, overwritten.
    """
    classes, inner, flat = probabilities.shape[1], probabilities.shape[2], p.reshape(-1)
    outwards, between, inwards = probabilities.strides[0], probabilities.strides[1], probabilities.strides[2]
    step, apart, before, i = outwards if inner == 1 else inwards, np.int64(0), np.int64(-1) - inner, np.int64(0)
    here = pixels[start : start + width]
    first = here[0]
    for j in range(width):
        apart |= here[j] ^ (first + j)
    if width == TILE and apart == 0 and (inner == 1 or first % inner + width <= inner):
        origin = first // inner * outwards + first % inner * inwards
        for j in range(TILE):
            places[j] = origin + j * step
    else:
        for j in range(TILE):
            pixel = here[j if j < width else 0]
            if pixel < before or pixel >= before + inner:
                i = pixel // inner if inner > 1 else pixel
                before = i * inner
            places[j] = i * outwards + (pixel - before) * inwards
        apart = np.int64(0)
        for j in range(TILE):
            apart |= places[j] - (places[0] + j * step)
    source = probabilities.ctypes.data
    for c in range(classes):
        if apart == 0 and step == 4:
            for j in range(0, TILE, LANES):
                copy_eight(source + c * between + places[j], flat, c * PITCH + j)
        elif apart == 0 and between == 4 and c < classes // LANES * LANES:
            for j in range(0, TILE if c % LANES == 0 else 0, LANES):
                turn_square(source + c * between + places[j], step, flat, c * PITCH + j, PITCH)
        else:
            for j in range(TILE):
                flat[np.uint64(c * PITCH + j)] = load_single(source + c * between + places[j])


@compiled(step=True)
def raise_to(n, deficit):
    """Make 1 - (1 - deficit)**n of a strip of deficits, as `measures` does."""
    for j in range(TILE if n > 1 else 0):
        total = ONE
        for _ in range(n - 1):
            total = total * (ONE - deficit[j]) + ONE
        deficit[j] *= total


@compiled(step=True)
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
    classes = p.shape[0]
    for c in range(0, classes - 1, 2):  # two at a time: half as many loads and stores of what is kept
        k, m = I32(c), I32(c + 1)
        for j in range(TILE):
            x, y, top, next_, index, other = bits[c, j], bits[c + 1, j], tops[j], runner[j], first[j], second[j]
            other = index if x > top else (k if x > next_ else other)
            index = k if x > top else index
            next_, top = max(next_, min(x, top)), max(top, x)
            second[j] = index if y > top else (m if y > next_ else other)
            first[j] = m if y > top else index
            runner[j], tops[j] = max(next_, min(y, top)), max(top, y)
            over[j] = I32(over[j] + I32(I32(x > limit) + I32(y > limit)))
    if classes % 2:
        k = I32(classes - 1)
        for j in range(TILE):
            x, top, next_, index = bits[classes - 1, j], tops[j], runner[j], first[j]
            second[j] = index if x > top else (k if x > next_ else second[j])
            first[j] = k if x > top else index
            tops[j] = max(top, x)
            over[j] = I32(over[j] + I32(x > limit))
    if unclean < 0:
        for j in range(TILE):
            if odd[j] < 0:
                first[j], second[j], over[j] = rows[ODD, j], rows[ODD + 1, j], rows[ODD + 2, j]


@compiled(step=True)
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


@compiled(step=True)
def add_up(p, floats, rows, total, rounding):
    """Add up clipped values: `total` (TILE,) in float64, from which states follow, and REST, of all but the largest.

    HOLE: NaN where the pixel is not usable, else 0.
    """
    rest, hole, first, states, grades = floats[REST], floats[HOLE], rows[FIRST], rows[STATE], rows[MORE]
    classes = p.shape[0]
    for j in range(TILE):
        rest[j], total[j] = NOTHING, 0.0
    for c in range(0, classes - 1, 2):
        for j in range(TILE):
            total[j] = total[j] + np.float64(p[c, j]) + np.float64(p[c + 1, j])
        k, m = I32(c), I32(c + 1)
        for j in range(TILE):
            rest[j] = rest[j] + (p[c, j] if first[j] != k else NOTHING) + (p[c + 1, j] if first[j] != m else NOTHING)
    if classes % 2:
        k = I32(classes - 1)
        for j in range(TILE):
            total[j] += np.float64(p[classes - 1, j])
        for j in range(TILE):
            rest[j] += p[classes - 1, j] if first[j] != k else NOTHING
    for j in range(TILE):
        off = np.abs(total[j] - 1.0)
        grades[j] = I32(off > rounding.exact) + I32((off > rounding.tolerance) | (total[j] < SMALLEST_SUM))
    for j in range(TILE):
        usable, state = I32(states[j] & I32(3)) == I32(0), states[j]
        state = I32(state | I32(RENORMALISED)) if usable & (grades[j] == I32(1)) else state
        state = I32(OFF) if usable & (grades[j] > I32(1)) else state
        states[j] = state
        hole[j] = F(np.nan) if I32(state & I32(3)) != I32(0) else NOTHING


@compiled(step=True)
def normalise(p, floats, rows, total):
    """Divide clipped values by their sum, as `add_up` left it; TOP and REST are the largest and what is left, divided."""
    best, rest, top, inverse, tiny = floats[BEST], floats[REST], floats[TOP], floats[WORK], rows[MORE]
    some = I32(0)
    for j in range(TILE):
        top[j], tiny[j] = best[j], I32(total[j] < TINY_SUM)  # whose inverse float32 cannot hold
    for j in range(TILE):
        some = I32(some | tiny[j])
    if some != 0:
        for j in range(TILE):
            if tiny[j] != 0:
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


@compiled(step=True)
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


@compiled(step=True)
def kullback_leibler(p, floats, n):
    """Add up all terms alike, then take the largest's back and put one in its place that has all digits near a vertex."""
    out, rest, top = floats[VALUE], floats[REST], floats[TOP]
    classes, scale, ln2 = p.shape[0], F(1.0 / np.log(p.shape[0])), F(LN2)
    for j in range(TILE):
        out[j] = NOTHING
    for c in range(0, classes - 1, 2):
        for j in range(TILE):
            x, y = p[c, j], p[c + 1, j]
            out[j] = out[j] - x * binary_logarithm(x) - y * binary_logarithm(y)
    if classes % 2:
        for j in range(TILE):
            x = p[classes - 1, j]
            out[j] -= x * binary_logarithm(x)
    for j in range(TILE):
        out[j] += top[j] * binary_logarithm(top[j])
    for j in range(TILE):  # of the largest the logarithm is ln(1 - rest), where rest is small
        y = rest[j] if rest[j] < HALF else NOTHING
        u = ONE - y
        log = logarithm(u) - ((u - ONE) + y) / u
        direct = logarithm(top[j] if top[j] > F(2.0**-126) else F(2.0**-126))
        out[j] = scale * (ln2 * out[j] - top[j] * (log if rest[j] < HALF else direct))
    raise_to(n, out)


@compiled(step=True)
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


@compiled(step=True)
def homophily(p, floats, square):
    """Compute p'Sp for symmetric S with zero diagonal, already divided by its maximum; four classes by two at a time.

    square: S with zeros up to a multiple of four classes.
    """
    out, top = floats[VALUE], p.shape[0] - 1
    for j in range(TILE):
        out[j] = NOTHING
    for i in range(0, p.shape[0], 4):
        second, third, fourth = min(i + 1, top), min(i + 2, top), min(i + 3, top)
        ab, ac, ad = F(square[i + 1, i]), F(square[i + 2, i]), F(square[i + 3, i])
        bc, bd, cd = F(square[i + 2, i + 1]), F(square[i + 3, i + 1]), F(square[i + 3, i + 2])
        for j in range(TILE):
            a, b, c, d = p[i, j], p[second, j], p[third, j], p[fourth, j]
            out[j] += a * (ab * b + ac * c + ad * d) + b * (bc * c + bd * d) + cd * c * d
        for k in range(0, i, 2):
            ka, kb, kc, kd = F(square[i, k]), F(square[i + 1, k]), F(square[i + 2, k]), F(square[i + 3, k])
            m = k + 1
            ma, mb, mc, md = F(square[i, m]), F(square[i + 1, m]), F(square[i + 2, m]), F(square[i + 3, m])
            for j in range(TILE):
                a, b, c, d = p[i, j], p[second, j], p[third, j], p[fourth, j]
                x, y = (ka * a + kb * b) + (kc * c + kd * d), (ma * a + mb * b) + (mc * c + md * d)
                out[j] += p[k, j] * x + p[m, j] * y
    for j in range(TILE):
        out[j] *= TWO
