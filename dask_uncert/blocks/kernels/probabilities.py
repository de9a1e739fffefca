"""Stated probabilities to calibration tallies and proper scores, compiled; each adds to the arrays it is given.

Of float32 data every class's probability is summed in steps of 2**-22, less than float32 rounds by near 1. So count
and sum of a bin fit one int64, and an item costs one addition to memory; they are taken apart, exactly, at the end.
"""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.bins import (
    add,
    find_bin,
    find_bins,
    find_bins_of_singles,
    fixed,
    fixed_share,
    this_or_next,
)
from dask_uncert.blocks.kernels.elementary import logarithm_or_zero
from dask_uncert.blocks.kernels.histograms import count_confidence
from dask_uncert.blocks.kernels.measures import STRIDE, STRIP, any_layout, compiled, gather
from dask_uncert.blocks.kernels.types import AnyFloats, Finder, Pixels, ScoreCounts, SmallIndices, TileRows
from dask_uncert.formulas.fixed_point import LIMB_BITS
from dask_uncert.formulas.typing import Counts, Indices

TILE = 4 * STRIP
SPREAD = 8
SUM_BITS = 40
ONE = 1 << SUM_BITS  # an item of a packed bin, above the sum of its probabilities
ITEMS = ONE >> LIMB_BITS + 1  # of a bin, at most, before they are taken apart
SLIGHT = 0.01  # of a bin's width: with more, too many shares are near an edge to look at one by one
NO_DECISIONS, NO_TALLY = np.empty(0, np.int16), np.empty(0, np.int64)
WHOLE = np.float32(1 << LIMB_BITS + 1)  # added to it, a smaller float32 is rounded to a whole number


def count_stated(
    probabilities: AnyFloats,
    pixels: Indices,
    reference: Indices,
    batch: Pixels,
    finder: Finder,
    winning: Counts,
    counts: ScoreCounts,
    winning_tiles: TileRows,
    tiles: TileRows,
) -> None:
    """Add stated probabilities: the winning class's as `count_confidence` does, all as `count_probabilities` does."""
    if probabilities.dtype == np.float32 and not tiles.row.size:
        _add_singles(probabilities, pixels, reference, batch.predicted, finder, winning, counts, tiles)
    else:
        count_confidence(reference, batch, finder, winning, winning_tiles)
        count_probabilities(probabilities, pixels, reference, finder, counts, tiles)


def count_probabilities(
    probabilities: AnyFloats,
    pixels: Indices,
    reference: Indices,
    finder: Finder,
    counts: ScoreCounts,
    tiles: TileRows,
) -> None:
    """Add every class's stated probability, clipped to [0, 1], to its bins and to the proper scores.

    probabilities, pixels: as for `measure`. finder: of bins over [0, 1] whose edges are as the data's dtype has them.
    counts: the `ScoreCounts`. tiles: starts of squared errors, of log losses, of infinite ones and of each class's tally.
    """
    if probabilities.dtype == np.float32:
        _add_singles(probabilities, pixels, reference, NO_DECISIONS, finder, NO_TALLY, counts, tiles)
    else:
        _count_doubles(any_layout(probabilities), pixels, reference, finder, counts, tiles)


def _add_singles(
    probabilities: AnyFloats,
    pixels: Indices,
    reference: Indices,
    predicted: SmallIndices,
    finder: Finder,
    winning: Counts,
    counts: ScoreCounts,
    tiles: TileRows,
) -> None:
    stated, slack, classes = any_layout(probabilities), uneven(finder), probabilities.shape[1]
    strips, bits = np.zeros((classes + 3, TILE + 8), np.float32), np.zeros((5, TILE), np.int32)
    scores, taken = np.zeros((3, TILE)), np.zeros(TILE, np.int64)
    packed = np.zeros((classes, finder.edges.size - 1 + SPREAD), np.int64)
    for start in range(0, pixels.size, ITEMS):
        part = slice(start, start + ITEMS)
        rows = tiles._replace(row=tiles.row[part])
        _count_singles(
            stated, pixels[part], reference[part], predicted[part], finder, slack, winning.reshape(-1),
            counts._replace(classwise=counts.classwise.reshape(-1)), rows, strips, bits, bits[4].view(np.int64),
            scores, taken, packed,
        )  # fmt: skip


def uneven(finder: Finder) -> np.float32:
    """Return by how much of a bin's width the edges of equally wide bins may be off, with rounding."""
    even = np.arange(finder.edges.size) / (finder.edges.size - 1)
    return np.float32(np.abs(finder.edges - even).max() * even.size + 1e-4)


@compiled
def _count_singles(
    probabilities, pixels, reference, predicted, finder, slack, winning, counts, tiles, strips, bits, pairs, scores, taken, packed
):  # fmt: skip
    """Count tile by tile, and class by class in a tile: so the bins of a class stay in the nearest cache.

    winning: flat tally of the winning class's probability, or empty; the rest is overwritten: strips (classes + 3, TILE
    or more), bits (5, TILE) and `pairs`, its last row two at a time, scores (3, TILE), taken (TILE,), and packed
    (classes, bins + SPREAD), which starts and ends with zeros.
    """
    classes, bins, flat = probabilities.shape[1], finder.edges.size - 1, counts.classwise
    p, errors, stated_ones = strips, strips[classes], strips[classes + 1]
    whole, bin_of, place, truth, flags = bits[0], bits[1], bits[2], bits[3], bits[4]
    nothing, half, one, steps = np.float32(0.0), np.float32(0.5), np.float32(1.0), np.float32(1 << LIMB_BITS)
    scale, last = np.float32(bins), np.float32(bins - 0.5)
    edges, highest, rounded = finder.edges, np.int32(bins - 1), finder.start.size == 0 and slack > SLIGHT
    start = np.int64(0)
    while start < reference.size:
        start, width = _next(probabilities, pixels, reference, start, taken, truth, p)
        for j in range(TILE):
            errors[j] = nothing
        for k in range(classes):
            stated, row = p[k], packed[k]
            unsure = np.int32(0)
            for j in range(TILE):
                x = stated[j]
                x = nothing if x < nothing else (one if x > one else x)
                gap = x - (one if truth[j] == np.int32(k) else nothing)
                errors[j] += gap * gap
                whole[j] = np.float32(x * steps + WHOLE).view(np.int32) & np.int32((1 << LIMB_BITS + 1) - 1)
                within = min(max(x * scale, half), last)
                b = np.int32(within)
                far = np.int32(np.abs(within - np.float32(b) - half) > half - slack)  # from the middle of the bin
                bin_of[j], flags[j] = b, far  # whether the edge is so near that it must be searched
                unsure = unsure | far
            if rounded:  # edges of float16 are far from even, by less than a bin
                for j in range(TILE):
                    bin_of[j] = this_or_next(np.float64(stated[j]), bin_of[j], edges, highest)
            elif unsure:
                for pair in range(TILE // 2):
                    if pairs[pair] != 0:
                        for j in range(2 * pair, 2 * pair + 2):
                            bin_of[j] = find_bin(np.float64(stated[j]), np.float64(stated[j]), finder)
            # Many are in the first bin: they are added up here, and their additions below go nowhere, each to another place.
            first, number = (
                np.int32(0),
                np.int32(0 if k == 0 else width - TILE),
            )  # less the pixels that fill up the tile
            for j in range(TILE):
                b = bin_of[j]
                first += whole[j] if b == 0 else np.int32(0)
                number += np.int32(b == 0)
                place[j] = b if b > 0 else np.int32(bins + (j & (SPREAD - 1)))
            row[0] += ONE * number + first
            for j in range(width):
                row[np.uint64(place[j])] += ONE + whole[j]
            if tiles.row.size > 0:
                for j in range(width):
                    share = np.int64(whole[j]) << LIMB_BITS
                    _add_to_tile(taken[j], tiles.starts[3 + k], bin_of[j], truth[j] == k, share, tiles)
        for j in range(width):
            stated_ones[j] = min(max(p[truth[j], j], nothing), one)
            scores[0, j], scores[1, j] = errors[j], stated_ones[j]
        find_bins_of_singles(stated_ones, bins, slack, finder, bin_of)
        for j in range(width):
            flat[4 * (truth[j] * bins + bin_of[j]) + 1] += 1
        _add_scores(scores, taken, width, counts, tiles)
        if winning.size > 0:
            for j in range(width):
                place[j] = predicted[taken[j]]
                stated_ones[j] = min(max(p[place[j], j], nothing), one)
            find_bins_of_singles(stated_ones, bins, slack, finder, bin_of)
            for j in range(width):
                at = np.int64(bin_of[j]) * 4
                winning[at] += 1
                winning[at + 1] += np.int64(place[j] == truth[j])
                add(fixed_share(np.float64(stated_ones[j])), winning, at + 2)
    for code in range(classes):
        for fine in range(bins + SPREAD):
            items = packed[code, fine]
            if items != 0 and fine < bins:
                flat[4 * (code * bins + fine)] += items >> SUM_BITS
                flat[4 * (code * bins + fine) + 2] += items & (ONE - 1)
            packed[code, fine] = 0


@compiled
def _count_doubles(probabilities, pixels, reference, finder, counts, tiles):
    classes, bins, flat = probabilities.shape[1], finder.edges.size - 1, counts.classwise.reshape(-1)
    p, whole = np.zeros((classes, STRIDE)), np.empty((classes, STRIDE), np.int64)
    bin_of = np.zeros((classes, STRIDE), np.int64)
    taken, truth, scores = np.empty(STRIP, np.int64), np.zeros(STRIP, np.int32), np.zeros((3, STRIP))
    start = np.int64(0)
    while start < reference.size:
        start, width = _next(probabilities, pixels, reference, start, taken, truth, p)
        for j in range(STRIP):
            scores[0, j] = 0.0
        for k in range(classes):
            for j in range(STRIP):
                x = p[k, j]
                x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
                p[k, j] = x
                whole[k, j] = fixed_share(x)
            for j in range(STRIP):
                gap = p[k, j] - (1.0 if truth[j] == k else 0.0)
                scores[0, j] += gap * gap
            find_bins(p[k], p[k], finder, bin_of[k])
        for j in range(width):
            for k in range(classes):
                place = 4 * (k * bins + bin_of[k, j])
                flat[place] += 1
                add(whole[k, j], flat, place + 2)
            flat[4 * (truth[j] * bins + bin_of[truth[j], j]) + 1] += 1
            scores[1, j] = p[truth[j], j]
        _add_scores(scores, taken, width, counts, tiles)
        if tiles.row.size > 0:
            for k in range(classes):
                for j in range(width):
                    _add_to_tile(taken[j], tiles.starts[3 + k], bin_of[k, j], truth[j] == k, whole[k, j], tiles)


@compiled
def _next(probabilities, pixels, reference, start, taken, truth, p):
    """Fill a strip with the next pixels that count; return where to go on, and the width of the strip."""
    width = 0
    while start < reference.size and width < taken.size:
        if reference[start] >= 0:
            taken[width] = pixels[start]
            truth[width] = reference[start]
            width += 1
        start += 1
    gather(probabilities, taken, np.int64(0), width, p)
    back, i = width, start
    while back > 0:  # from numbers of pixels in the block to those in the batch
        i -= 1
        if reference[i] >= 0:
            back -= 1
            taken[back] = i
    return start, width


@compiled
def _add_scores(scores, taken, width, counts, tiles):
    """Add squared errors, scores[0], and log losses, written to scores[2], of the true class's probabilities, scores[1]."""
    for j in range(taken.size):
        scores[2, j] = -logarithm_or_zero(scores[1, j])
    for j in range(width):
        error, loss, infinite = fixed(scores[0, j]), fixed(scores[2, j]), np.int64(not scores[1, j] > 0.0)
        add(error, counts.squared_error, 0)
        add(loss, counts.log_loss, 0)
        counts.infinite[0] += infinite
        if tiles.row.size > 0:
            row = tiles.counts[tiles.row[taken[j]]]
            add(error, row, tiles.starts[0])
            add(loss, row, tiles.starts[1])
            row[tiles.starts[2]] += infinite


@compiled
def _add_to_tile(pixel, start, fine, positive, q, tiles):
    """Add an item to the job's bin in the row of its tile: tallies start at `start`."""
    rows = tiles.counts.reshape(-1)
    place = tiles.row[pixel] * tiles.counts.shape[1] + start + 4 * tiles.bins[fine]
    rows[place] += 1
    rows[place + 1] += np.int64(positive)
    add(q, rows, place + 2)
