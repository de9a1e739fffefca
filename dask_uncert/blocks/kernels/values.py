"""Values of measures to histograms and power sums, compiled; each adds to the arrays it is given.

Pixels are taken in the order of their `Groups`, so that the sums of a group are added up in registers, and bins of one
class stay in the nearest cache. Limbs of 22 bits are added two at a time, side by side in one int64.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.bins import find_octave_bins, fixed_share
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import inline
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.memory import Memory
from dask_uncert.blocks.kernels.types import AnyFloats, Finder, Groups, Pixels, TileRows, ValueCounts
from dask_uncert.formulas.fixed_point import LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.power_sums import WIDE
from dask_uncert.formulas.typing import Indices

HALF = 32  # bits of an int64 for each of two limbs
PAIR, ALL = 3, 6  # packed limbs of the first two powers, and of all three


def sort_values(values: AnyFloats, groups: Groups, memory: Memory | None = None) -> AnyFloats:
    """Return values (measures, n) of `Pixels` in the order of groups, (measures, counted)."""
    one_more = len(values) + 1  # so that those of one measure never follow each other: of one type for numba
    found = (memory or Memory()).empty("sorted", (groups.order.size, one_more), values.dtype)
    _sort_values(np.ascontiguousarray(values.T), groups.place, found)
    return found.T[:-1]


@compiled
def _sort_values(values, place, found):
    """Write each pixel's values to its place: many lines are written at a time, but none has to be waited for."""
    for start in range(0, place.size, STRIP):  # whose pixels stay in the nearest cache
        for m in range(values.shape[1]):
            k = np.uint64(m)
            for i in range(start, min(start + STRIP, place.size)):
                if place[i] < found.shape[0]:
                    found[np.uint64(place[i]), k] = values[np.uint64(i), k]


def count_values(
    values: AnyFloats,
    upper: float,
    finder: Finder,
    groups: Groups,
    reference: Indices,
    batch: Pixels,
    counts: ValueCounts,
    tiles: TileRows,
) -> None:
    """Add one measure's values to its `ValueCounts`.

    values: (counted,) in [0, upper], in the order of the groups; finder: of bins over [0, upper], by octaves; groups: the `Groups` of these pixels. tiles: starts of
    histograms (right, bin) and of sums (right, sums of 3 powers).
    """
    flat = (array.reshape(-1) for array in counts)
    strips, whole = np.zeros((2, STRIP)), np.zeros((ALL + 1, STRIP), np.int64)
    _count_values(
        values, upper, finder, groups, reference, batch.predicted, *flat, tiles, strips, whole
    )  # fmt: skip


@compiled
def _count_values(
    values, upper, finder, groups, reference, predicted, histogram, by_pair, by_confused, tiles, strips, whole
):  # fmt: skip
    """Count strip by strip; strips (2, STRIP) and whole (ALL + 1, STRIP) are overwritten."""
    bins, order, starts = finder.edges.size - 1, groups.order, groups.starts
    strip, shares, powers, bin_of = strips[0], strips[1], whole, whole[ALL]
    g = np.int64(0)
    for start in range(0, order.size, STRIP):
        width = min(STRIP, order.size - start)
        for j in range(width):
            strip[j] = values[np.uint64(start + j)]
        for j in range(STRIP):
            shares[j] = strip[j] / upper
        find_powers(shares, powers)
        find_octave_bins(strip, shares, finder, bin_of)
        if tiles.row.size > 0:
            _add_to_tiles(order[start : start + width], bins, reference, predicted, bin_of, powers, tiles)
        j = 0
        while j < width:  # the pixels of one group after the other
            stop = min(starts[g + 1] - start, width)
            row, pair, number = groups.right[g] * bins, groups.pair[g] * 2 * PAIR, groups.number[g] * 2 * ALL
            x, x2, x2_low, x3, x3_middle, x3_low = 0, 0, 0, 0, 0, 0
            for m in range(j, stop):
                histogram[np.uint64(row + bin_of[m])] += 1
                x += powers[0, m]
                x2 += powers[1, m]
                x2_low += powers[2, m]
                x3 += powers[3, m]
                x3_middle += powers[4, m]
                x3_low += powers[5, m]
            _add_pair(x, by_confused, number)
            _add_pair(x2, by_confused, number + 2)
            _add_pair(x2_low, by_confused, number + 4)
            _add_pair(x3, by_confused, number + 6)
            _add_pair(x3_middle, by_confused, number + 8)
            _add_pair(x3_low, by_confused, number + 10)
            _add_pair(x, by_pair, pair)
            _add_pair(x2, by_pair, pair + 2)
            _add_pair(x2_low, by_pair, pair + 4)
            j = stop
            g += np.int64(start + stop == starts[g + 1])


@inline
def _add_pair(packed, limbs, place):
    limbs[np.uint64(place)] += packed >> HALF
    limbs[np.uint64(place + 1)] += packed & ((1 << HALF) - 1)


@compiled(step=True)
def _add_to_tiles(pixels, bins, reference, predicted, bin_of, powers, tiles):
    """Add a strip of pixels to the rows of their tiles."""
    rows = tiles.counts.reshape(-1)
    for j in range(pixels.size):
        i = pixels[j]
        right = np.int64(predicted[i] == reference[i])
        row = tiles.row[i] * tiles.counts.shape[1]
        rows[row + tiles.starts[0] + right * bins + bin_of[j]] += 1
        sums = row + tiles.starts[1] + right * 2 * ALL
        for k in range(ALL):
            rows[sums + 2 * k] += powers[k, j] >> HALF
            rows[sums + 2 * k + 1] += powers[k, j] & LIMB_MASK


@compiled(step=True)
def find_powers(shares, powers):
    """Write the limbs of x, x**2 (2) and x**3 (3) of a strip of x in [0, 1], packed; see `formulas.power_sums`.

    Masks tell the compiler that no number is negative and that factors have 32 bits: else nothing becomes SIMD.
    """
    for j in range(STRIP):
        q = fixed_share(shares[j])
        a, b = (q >> LIMB_BITS) & 0x7FFFFF, q & LIMB_MASK
        powers[0, j] = (a << HALF) | b
        low = b * b
        middle = 2 * (a * b) + carry(low)
        high = a * a + carry(middle)
        s0, s1, s2, s3 = low & LIMB_MASK, middle & LIMB_MASK, high & LIMB_MASK, carry(high)
        powers[1, j] = (s3 << HALF) | s2
        powers[2, j] = (s1 << HALF) | s0
        c0 = s0 * b
        c1 = s1 * b + s0 * a + carry(c0)
        c2 = s2 * b + s1 * a + carry(c1)
        c3 = s3 * b + s2 * a + carry(c2)
        c4 = s3 * a + carry(c3)
        powers[3, j] = (carry(c4) << HALF) | (c4 & LIMB_MASK)
        powers[4, j] = ((c3 & LIMB_MASK) << HALF) | (c2 & LIMB_MASK)
        powers[5, j] = ((c1 & LIMB_MASK) << HALF) | (c0 & LIMB_MASK)


@inline
def carry(product):
    """Return what is above the lowest limb of a number below 2**54 that is not negative."""
    return (product >> LIMB_BITS) & 0xFFFFFFFF


def count_wide_values(
    values: AnyFloats,
    upper: float,
    finder: Finder,
    groups: Groups,
    reference: Indices,
    batch: Pixels,
    counts: ValueCounts,
    tiles: TileRows,
) -> None:
    """Add values without a range: as `count_values`, without division by `upper`, with more limbs."""
    _count_wide_values(values, finder, groups.order, reference, batch, counts, tiles)


@compiled(arrays=True)
def _count_wide_values(values, finder, order, reference, batch, counts, tiles):
    histogram, by_pair, by_confused = counts
    powers, in_pairs, in_all = np.empty(by_confused.shape[2], np.int64), by_pair.shape[3], by_confused.shape[2]
    for j, i in enumerate(order):
        c = reference[i]
        x = np.float64(values[j])
        low, high = 0, finder.edges.size - 2
        while low < high:
            middle = (low + high) // 2
            if x > finder.edges[middle + 1]:
                low = middle + 1
            else:
                high = middle
        right = 1 if batch.predicted[i] == c else 0
        second = 1 if (right == 0 and batch.second[i] == c) else 0
        histogram[c, right, low] += 1
        find_wide_powers(x, powers)
        for k in range(in_pairs):
            by_pair[c, batch.predicted[i], second, k] += powers[k]
        for k in range(in_all):
            by_confused[batch.confused[i], right, k] += powers[k]
        if tiles.row.size > 0:
            row = tiles.counts[tiles.row[i]]
            row[tiles.starts[0] + right * histogram.shape[2] + low] += 1
            for k in range(in_all):
                row[tiles.starts[1] + right * in_all + k] += powers[k]


@compiled(step=True)
def find_wide_powers(x, powers):
    """Write the limbs of the first three powers of x in [0, 2**20], as `formulas.power_sums.WIDE` has them."""
    limbs = WIDE.limbs
    rest = np.rint(x * 2.0**WIDE.bits)
    for i in range(limbs):
        weight = 2.0 ** (LIMB_BITS * (limbs - 1 - i))
        part = np.floor(rest / weight)
        powers[i] = np.int64(part)
        rest -= part * weight  # exact: both are whole multiples of the same power of two
    before, start = 0, limbs
    for power in range(2, 4):
        width = power * limbs
        carry = 0
        for k in range(width - 1, -1, -1):  # the limb k of a product gets those of i + j = k - 1
            for i in range(max(0, k - limbs), min(width - limbs, k)):
                carry += powers[before + i] * powers[k - 1 - i]
            powers[start + k] = carry & LIMB_MASK if k > 0 else carry
            carry >>= LIMB_BITS
        before, start = start, start + width
