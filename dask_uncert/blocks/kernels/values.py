"""Values of measures to histograms and power sums, compiled; each adds to the arrays it is given.

Pixels are taken in the order of their `Groups`, so that the sums of a group are added up in registers, and bins of one
class stay in the nearest cache. Measures are taken four at a time, as lanes: the values of a pixel lie side by side, and
one addition serves all four. Limbs of 22 bits are added two at a time, side by side in one int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.bins import find_octave_bins, fixed_share
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import inline
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.memory import Memory, kept, zeros
from dask_uncert.blocks.kernels.types import AnyFloats, Groups, Pixels, TileRows, ValueBins
from dask_uncert.blocks.kernels.vectors import copy_four, sum_lanes
from dask_uncert.formulas.fixed_point import LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.power_sums import WIDE
from dask_uncert.formulas.typing import Bools, Indices

HALF = 32  # bits of an int64 for each of two limbs
PAIR, ALL = 3, 6  # packed limbs of the first two powers, and of all three
LANES = 4  # measures at a time, unless there is one only
CHUNK = 32 * STRIP  # pixels whose bins are found before they are counted, measure by measure


def count_values(
    values: AnyFloats,
    groups: Groups,
    reference: Indices,
    batch: Pixels,
    bins: Sequence[ValueBins],
    tiles: TileRows,
    memory: Memory | None = None,
) -> None:
    """Add the values of all measures to their `ValueCounts`.

    values: (measures, n) in the range of each. groups: the `Groups` of these pixels. bins: of each measure. tiles: starts of histograms
    (right, bin) and of sums (right, sums of 3 powers), measure by measure.
    """
    if not bins:
        return
    memory, lanes = memory or Memory(), LANES if len(bins) > 1 else 1
    found = memory.empty("sorted", (groups.order.size, -(-len(bins) // lanes) * lanes), values.dtype)
    _sort_values(np.ascontiguousarray(values.T), groups.place, found)
    for first in range(0, len(bins), lanes):
        used = np.array([i < len(bins) and not bins[i].wide for i in range(first, first + lanes)])
        if used.any():
            _count_lanes(found, first, used, groups, reference, batch, bins, tiles)
    for i, of in enumerate(bins):
        if of.wide:
            alone, rows = np.ascontiguousarray(found[:, i]), tiles._replace(starts=tiles.starts[2 * i : 2 * i + 2])
            powers = np.empty(of.counts.by_confused.shape[2], np.int64)
            _count_wide_values(alone, of.finder, groups.order, reference, batch, of.counts, rows, powers)


@compiled
def _sort_values(values, place, found):
    """Write each pixel's values to its place: many lines are written at a time, but none has to be waited for."""
    measures, pitch = values.shape[1], found.shape[1]
    source, target = values.reshape(-1), found.reshape(-1)
    if measures % LANES == 0:
        for k in range(0, measures, LANES):
            for i in range(place.size):
                if place[i] < found.shape[0]:
                    copy_four(source, i * measures + k, target, np.int64(place[i]) * pitch + k)
        return
    for i in range(place.size):
        if place[i] < found.shape[0]:
            for k in range(measures):
                found[np.uint64(place[i]), np.uint64(k)] = values[np.uint64(i), np.uint64(k)]


def _count_lanes(
    values: AnyFloats,
    first: int,
    used: Bools,
    groups: Groups,
    reference: Indices,
    batch: Pixels,
    bins: Sequence[ValueBins],
    tiles: TileRows,
) -> None:
    """Count columns of sorted values from the first on, those that are used."""
    anything = bins[first + int(used.argmax())]
    of = [bins[first + k] if used[k] else anything for k in range(used.size)]
    flat = zip(*((array.reshape(-1) for array in one.counts) for one in of), strict=True)
    _count_values(
        values, first, used, tuple(one.upper for one in of), tuple(one.finder for one in of), groups, reference,
        batch.predicted, *flat, tiles, *kept(_strips, used.size),
    )  # fmt: skip


def _strips(lanes: int) -> tuple[NDArray[Any], ...]:
    shares, powers, cells = (
        zeros((lanes * STRIP,)),
        zeros((ALL, lanes * STRIP), np.int64),
        zeros((lanes, CHUNK), np.int32),
    )
    bin_of, right_of, sums = zeros((STRIP,), np.int64), zeros((STRIP,), np.int32), zeros((lanes * ALL,), np.int64)
    return shares, powers, cells, zeros((2, STRIP)), bin_of, right_of, sums


@compiled
def _count_values(
    values, first, used, uppers, finders, groups, reference, predicted, histograms, by_pairs, by_confused, tiles,
    shares, powers, cells, strips, bin_of, right_of, sums,
):  # fmt: skip
    """Count strip by strip; as many lanes as there are `uppers`. From `shares` on: overwritten, and strips are
    read beyond the last pixel: numbers that have a bin."""
    lanes, order, starts, whole, strip = len(uppers), groups.order, groups.starts, True, strips[0]
    for k in range(lanes):
        whole &= uppers[k] == 1.0
    g = np.int64(0)
    for start in range(0, order.size, STRIP):
        width, place = min(STRIP, order.size - start), start % CHUNK
        for j in range(width):
            for k in range(lanes):
                shares[np.uint64(lanes * j + k)] = np.float64(values[np.uint64(start + j), np.uint64(first + k)])
        if not whole:
            for j in range(width):
                for k in range(lanes):
                    shares[np.uint64(lanes * j + k)] /= uppers[k]
        find_powers(shares, powers)
        j = 0
        while j < width:  # the pixels of one group after the other
            stop, right = min(starts[g + 1] - start, width), np.int32(groups.right[g])
            pair, number = groups.pair[g] * 2 * PAIR, groups.number[g] * 2 * ALL
            for m in range(j, stop):
                right_of[m] = right
            sum_lanes(powers, powers.shape[1], j, stop, sums, uppers)
            for k in range(used.size):
                for i in range(ALL if used[k] else 0):
                    _add_pair(sums[np.uint64(lanes * i + k)], by_confused[k], number + 2 * i)
                for i in range(PAIR if used[k] else 0):
                    _add_pair(sums[np.uint64(lanes * i + k)], by_pairs[k], pair + 2 * i)
            j = stop
            g += np.int64(start + stop == starts[g + 1])
        for k in range(used.size):  # not `lanes`, a constant, for each of which all would be compiled
            if not used[k]:
                continue
            kept, bins = cells[k], np.int32(finders[k].edges.size - 1)
            for j in range(width):
                strip[j] = shares[np.uint64(lanes * j + k)]
            stored = strips[0 if whole else 1]
            for j in range(0 if whole else width):
                stored[j] = np.float64(values[np.uint64(start + j), np.uint64(first + k)])
            find_octave_bins(stored, strip, finders[k], bin_of)
            for j in range(width):
                kept[np.uint64(place + j)] = np.int32(np.int32(bin_of[j]) + np.int32(right_of[j] * bins))
            if tiles.row.size > 0:
                pixels, at = order[start : start + width], tiles.starts[2 * (first + k) :]
                _add_to_tiles(pixels, np.int64(bins), reference, predicted, bin_of, powers, lanes, k, tiles, at)
        if place == CHUNK - STRIP or start + STRIP >= order.size:
            for k in range(used.size):
                kept, histogram = cells[k], histograms[k]
                for j in range(place + width if used[k] else 0):
                    histogram[np.uint64(kept[j])] += 1


@inline
def _add_pair(packed, limbs, place):
    limbs[np.uint64(place)] += packed >> HALF
    limbs[np.uint64(place + 1)] += packed & ((1 << HALF) - 1)


@compiled(step=True)
def _add_to_tiles(pixels, bins, reference, predicted, bin_of, powers, lanes, lane, tiles, starts):
    """Add a strip of pixels to the rows of their tiles; starts: of the measure's histogram and of its sums."""
    rows = tiles.counts.reshape(-1)
    for j in range(pixels.size):
        i = pixels[j]
        right = np.int64(predicted[i] == reference[i])
        row = tiles.row[i] * tiles.counts.shape[1]
        rows[row + starts[0] + right * bins + bin_of[j]] += 1
        sums = row + starts[1] + right * 2 * ALL
        for k in range(ALL):
            rows[sums + 2 * k] += powers[k, lanes * j + lane] >> HALF
            rows[sums + 2 * k + 1] += powers[k, lanes * j + lane] & LIMB_MASK


@compiled(step=True)
def find_powers(shares, powers):
    """Write the limbs of x, x**2 (2) and x**3 (3) of a strip of x in [0, 1], packed; see `formulas.power_sums`.

    Masks tell the compiler that no number is negative and that factors have 32 bits: else nothing becomes SIMD.
    """
    for j in range(shares.size):
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


@compiled
def _count_wide_values(values, finder, order, reference, batch, counts, tiles, powers):
    """Add one measure's sorted values (counted,), which have no range: they are not divided by it, and have more limbs."""
    histogram, by_pair, by_confused = counts
    in_pairs, in_all = by_pair.shape[3], by_confused.shape[2]
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
