"""The bins of values, and values in fixed point; compiled."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import inline
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.types import CELL_BITS, LOWEST_CELL
from dask_uncert.formulas.fixed_point import FRACTION_BITS, LIMB_BITS, LIMB_MASK

SMALLEST = float(np.nextafter(np.int64(LOWEST_CELL << CELL_BITS).view(np.float64), 1.0))
"""The smallest share that is not at the left end of the first cell."""


@compiled
def find_bins(values, shares, finder, bins):
    """Find the bins of a whole strip of values; shares: the values over the range of the edges."""
    if finder.start.size == 0:
        number = finder.edges.size - 1
        for j in range(STRIP):
            bins[j] = this_or_next(values[j], cell(shares[j], number), finder.edges, np.int64(number - 1))
    else:
        for j in range(STRIP):
            bins[j] = find_bin(values[j], shares[j], finder)


@compiled(step=True)
def find_octave_bins(values, shares, finder, bins):
    """Find bins as `find_bins` does, by a `Finder` of octaves."""
    start, ends = finder.start, finder.ends
    for j in range(bins.size):
        bins[j] = octave_cell(shares[j])
    for j in range(bins.size):  # apart from the loop before, which is SIMD
        k = np.uint64(bins[j])
        bins[j] = start[k] + np.int64(values[j] > ends[k])
    for j in range(bins.size if finder.steps > 1 else 0):  # a cell holds several edges
        bins[j] = find_bin(values[j], shares[j], finder)


@compiled
def find_bin(value, share, finder):
    """Return the bin of one value; share: the value over the range of the edges."""
    last = finder.edges.size - 2
    if finder.steps > 0:
        b = np.int64(finder.start[octave_cell(share)])
    else:
        b = cell(share, finder.start.size if finder.start.size > 0 else last + 1)
        if finder.start.size > 0:
            b = np.int64(finder.start[b])
    while b < last and value > finder.edges[b + 1]:
        b += 1
    while b > 0 and value <= finder.edges[b]:
        b -= 1
    return b


@compiled(step=True)
def cell(share, number):
    """Return which of equally wide cells over [0, 1] holds a share; the first for NaN, an end for others outside."""
    x = share * number
    return np.int64(min(x if x > 0.0 else 0.0, number - 1.0))


@inline
def this_or_next(value, b, edges, last):
    """Return the bin of a value that is in bin b, or in one beside it: edges are off even ones by less than a bin.

    last: the number of the last bin, of the type of b.
    """
    up = np.int32((value > edges[np.uint64(b + 1)]) & (b < last))
    return b + up - np.int32((value <= edges[np.uint64(b)]) & (b > np.int32(0)))


@inline
def octave_cell(share):
    """Return the cell of a share as `finder` numbers them; the first for NaN, an end for others outside."""
    x = share if share > SMALLEST else SMALLEST  # as numbers they cannot be limited at once by AVX2
    x = x if x < 1.0 else 1.0
    before = np.float64(x).view(np.int64) - np.int64(1)  # the float before it: cells are right-closed
    return ((before >> np.int64(CELL_BITS)) & np.int64(0xFFFFF)) - np.int64(LOWEST_CELL)


@inline
def fixed(x):
    """Return a value in fixed point; see `formulas.fixed_point`."""
    return np.int64(np.rint(x * np.float64(1 << FRACTION_BITS)))


@inline
def fixed_share(x):
    """Return a value of [0, 1] in fixed point: added to 2**52, it is rounded to a whole number, which the last bits hold."""
    return np.float64(x * np.float64(1 << FRACTION_BITS) + 2.0**52).view(np.int64) & np.int64((1 << 52) - 1)


@compiled(step=True)
def add(q, limbs, place):
    """Add a value in fixed point to the sum of two limbs that starts at `place`."""
    limbs[place] += q >> LIMB_BITS
    limbs[place + 1] += q & LIMB_MASK


@compiled(step=True)
def find_bins_of_singles(values, number, slack, finder, bins):
    """Find the bins of a strip of float32 shares, of `number` that are equally wide but for `slack` of a width.

    Edges are searched only where a share is nearer to one than that.
    """
    scale, half, last = np.float32(number), np.float32(0.5), np.float32(number - 0.5)
    near, unsure, highest = np.float32(0.5) - slack, np.int32(0), np.int32(number - 1)
    for j in range(bins.size):
        place = values[j] * scale
        b = np.int32(place)
        bins[j] = min(b, highest)
        far = np.abs(place - np.float32(b) - half) > near  # from the middle of the bin
        unsure = np.int32(unsure | np.int32(far & (place > half) & (place < last)))
    if unsure and finder.start.size == 0:
        for j in range(bins.size):  # SIMD
            bins[j] = this_or_next(np.float64(values[j]), bins[j], finder.edges, highest)
    elif unsure:
        for j in range(bins.size):
            place = values[j] * scale
            if np.abs(place - np.float32(np.int32(place)) - half) > near:
                bins[j] = find_bin(np.float64(values[j]), np.float64(values[j]), finder)
