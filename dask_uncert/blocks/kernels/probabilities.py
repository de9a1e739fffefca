"""Stated probabilities to calibration tallies and proper scores, compiled; each adds to the arrays it is given.

Of float32 data every class's probability is summed in steps of 2**-22, less than float32 rounds by near 1. So count
and sum of a bin fit one int64, and an item costs one addition to memory; they are taken apart, exactly, at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.bins import add, find_bin, find_bins, fixed, fixed_share, this_or_next
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import inline, logarithm, logarithm_or_zero
from dask_uncert.blocks.kernels.measures import STRIDE, STRIP, any_layout, gather
from dask_uncert.blocks.kernels.memory import kept, zeros
from dask_uncert.blocks.kernels.singles import PITCH, TILE
from dask_uncert.blocks.kernels.types import AnyFloats, Finder, ScoreCounts, TileRows
from dask_uncert.formulas.fixed_point import LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.typing import Counts, Floats, Indices

SUM_BITS = 40
ONE = 1 << SUM_BITS  # an item of a packed bin, above the sum of its probabilities
ITEMS = ONE >> LIMB_BITS + 1  # of a bin, at most, before they are taken apart
SLIGHT = 0.01  # of a bin's width: with more, too many shares are near an edge to look at one by one
NOT_COUNTED = 2  # why a pixel is put right, in `odd`; 1: a bin may be one off
LIMB_ONES = (1 << 30) - 1  # tells the compiler that what is above a limb is not negative
WHOLE = np.float32(1 << LIMB_BITS + 1)  # added to it, a smaller float32 is rounded to a whole number


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
    stated, flat = any_layout(probabilities), counts._replace(classwise=counts.classwise.reshape(-1))
    if probabilities.dtype != np.float32:
        _count_doubles(stated, pixels, reference, finder, flat, tiles, *kept(_strips, probabilities.shape[1]))
        return
    work, tile = stated_work(probabilities.shape[1], finder), kept(_tile, probabilities.shape[1])
    for start in range(0, pixels.size, ITEMS):
        part = slice(start, start + ITEMS)
        rows = tiles._replace(row=tiles.row[part])
        _count_singles(stated, pixels[part], reference[part], finder, flat, rows, work, *tile)


def _tile(classes: int) -> tuple[NDArray[Any], ...]:
    p, taken = zeros((classes, PITCH), np.float32), zeros((TILE,), np.int64)
    return p, *zeros((2, TILE), np.int32), taken, zeros((TILE,), np.float32), zeros((0,), np.int64)


def _strips(classes: int) -> tuple[NDArray[Any], ...]:
    whole, bin_of = zeros((2, classes, STRIDE), np.int64)
    return zeros((classes, STRIDE)), whole, bin_of, *zeros((2, STRIP), np.int64), zeros((3, STRIP))


class Work(NamedTuple):
    """Memory that `count_tile` overwrites; counts are zeros before, and again after `take_apart`."""

    errors: NDArray[np.float32]  # (TILE,)
    whole: NDArray[np.int32]  # (2, TILE)
    bin_of: NDArray[np.int16]  # (classes, PITCH)
    odd: NDArray[np.int32]  # (TILE,)
    scores: Floats  # (3, TILE)
    packed: Counts  # (classes, bins), items and their sum
    hits: NDArray[np.int32]  # (classes, bins), items that came true
    winning: Counts  # (bins, 2): items and the high limbs of their sum, those that came true and the low ones


def stated_work(classes: int, finder: Finder) -> Work:
    """Return this thread's memory for probabilities of so many classes."""
    work: Work = kept(_work, classes, finder.edges.size - 1)
    return work


def _work(classes: int, bins: int) -> Work:
    return Work(
        errors=zeros((TILE,), np.float32),
        whole=zeros((2, TILE), np.int32),
        bin_of=zeros((classes, PITCH), np.int16),
        odd=zeros((TILE,), np.int32),
        scores=zeros((3, TILE)),
        packed=zeros((classes, bins), np.int64),
        hits=zeros((classes, bins), np.int32),
        winning=zeros((bins, 2), np.int64),
    )


@compiled(step=True)
def count_tile(p, truth, predicted, best, width, finder, winning, counts, work):
    """Count a tile of stated probabilities, clipped to [0, 1]: (classes, TILE or more) float32.

    truth: (TILE,) class, negative where a pixel does not count. predicted, best: (TILE,) decisions and their probabilities,
    which are counted unless `winning` is empty. width: pixels from there on do not count, either. Bins stay in the `Work`
    until `take_apart`; counts: the others of `ScoreCounts`.

    Two classes at a time, so that many additions to one bin do not wait for each other. All pixels are added; those that
    do not count, and bins that may be one off, are then put right one by one: they are few.
    """
    classes, bin_of, packed, odd, errors = p.shape[0], work.bin_of, work.packed, work.odd, work.errors
    whole, other, found = work.whole[0], work.whole[1], np.int32(0)
    for j in range(TILE):
        errors[j] = np.float32(0.0)
        odd[j] = np.int32(NOT_COUNTED) if (truth[j] < np.int32(0)) | (j >= width) else np.int32(0)
    for k in range(0, classes - 1, 2):
        _find_stated(p, truth, k, finder, errors, whole, bin_of, odd)
        _find_stated(p, truth, k + 1, finder, errors, other, bin_of, odd)
        for j in range(0, TILE, 2):  # all loads first
            a, b, c, d = bin_of[k, j], bin_of[k + 1, j], bin_of[k, j + 1], bin_of[k + 1, j + 1]
            of_a, of_b, of_c, of_d = whole[j], other[j], whole[j + 1], other[j + 1]
            packed[k, np.uint64(a)] += ONE + of_a
            packed[k + 1, np.uint64(b)] += ONE + of_b
            packed[k, np.uint64(c)] += ONE + of_c
            packed[k + 1, np.uint64(d)] += ONE + of_d
    if classes % 2:
        _find_stated(p, truth, classes - 1, finder, errors, whole, bin_of, odd)
        for j in range(TILE):
            packed[classes - 1, np.uint64(bin_of[classes - 1, j])] += ONE + whole[j]
    for j in range(TILE):
        found |= odd[j]
    if found != 0:
        for j in range(TILE):
            if odd[j] >= NOT_COUNTED:
                for k in range(classes):
                    packed[k, np.uint64(bin_of[k, j])] -= ONE + in_steps(p[k, j])
            elif odd[j] != 0:
                put_right(p, j, finder, bin_of, packed)
    add_scores(p, truth, predicted, best, width, winning.size > 0, counts, work)


@inline
def in_steps(x):
    """Return x of [0, 1] in steps of 2**-22: added to 2**23, it is rounded to a whole number, which the last bits hold."""
    return np.float32(x * np.float32(1 << LIMB_BITS) + WHOLE).view(np.int32) & np.int32((1 << LIMB_BITS + 1) - 1)


@compiled(step=True)
def _find_stated(p, truth, k, finder, errors, whole, bin_of, odd):
    """Find one class's bins, add to squared errors, write values in steps, and where an edge is near."""
    nothing, half, one, code, bins = (
        np.float32(0.0),
        np.float32(0.5),
        np.float32(1.0),
        np.int32(k),
        finder.edges.size - 1,
    )
    slack = np.float32(finder.uneven)
    rounded = finder.start.size == 0 and slack > SLIGHT  # edges of float16 are far from even, by less than a bin
    scale, last, near = np.float32(bins), np.float32(bins - 0.5), np.float32(half - (-half if rounded else slack))
    for j in range(TILE):
        x = p[k, j]
        gap = x - (one if truth[j] == code else nothing)
        errors[j] += gap * gap
        whole[j] = in_steps(x)
        within = min(max(x * scale, half), last)
        b = np.int32(within)
        bin_of[k, j] = b
        odd[j] = np.int32(odd[j] | np.int32(np.abs(within - np.float32(b) - half) > near))  # from the middle of the bin
    for j in range(TILE if rounded else 0):
        bin_of[k, j] = this_or_next(np.float64(p[k, j]), np.int32(bin_of[k, j]), finder.edges, np.int32(bins - 1))


@compiled(step=True)
def put_right(p, j, finder, bin_of, packed):
    """Move the items of a pixel from the bins in which they were counted to the right ones."""
    for k in range(p.shape[0]):
        x, item = np.float64(p[k, j]), ONE + in_steps(p[k, j])
        b = find_bin(x, x, finder)
        packed[k, bin_of[k, j]] -= item
        packed[k, b] += item
        bin_of[k, j] = b


@compiled(step=True)
def add_scores(p, truth, predicted, best, width, wins, counts, work):
    """Add squared errors and log losses of a tile, and where wanted the winning class's probability, to its bin."""
    scores, errors, bin_of, hits, winning = work.scores, work.errors, work.bin_of, work.hits, work.winning
    none = np.int64(0)
    for j in range(TILE):
        scores[0, j], scores[1, j] = 0.0, 1.0
    for j in range(width):
        if truth[j] >= 0:
            c, i = np.uint64(truth[j]), np.uint64(j)
            scores[0, i], scores[1, i] = errors[i], p[c, i]
            hits[c, np.uint64(bin_of[c, i])] += np.int32(1)
    for j in range(TILE):
        x = scores[1, j]
        none += np.int64(x == 0.0)
        scores[2, j] = -logarithm(x if x > 0.0 else 1.0)
    counts.infinite[0] += none
    add_fixed(scores[0], counts.squared_error)
    add_fixed(scores[2], counts.log_loss)
    if wins:
        for j in range(width):
            if truth[j] >= 0:
                q, b = fixed_share(np.float64(best[j])), np.uint64(bin_of[np.uint64(predicted[j]), np.uint64(j)])
                winning[b, 0] += ONE + (q >> LIMB_BITS)
                winning[b, 1] += ONE * np.int64(truth[j] == predicted[j]) + (q & LIMB_MASK)


@compiled(step=True)
def add_fixed(values, limbs):
    """Add values in [0, 256) in fixed point."""
    high, low = np.int64(0), np.int64(0)
    for j in range(values.size):
        q = fixed_share(values[j])
        high += (q >> LIMB_BITS) & LIMB_ONES
        low += q & LIMB_MASK
    limbs[0] += high
    limbs[1] += low


@compiled(step=True)
def take_apart(work, flat, winning):
    """Add packed bins, which become zero, to flat tallies: of each class, and of the winning one, or empty."""
    packed, hits, both = work.packed.reshape(-1), work.hits.reshape(-1), work.winning
    for i in range(packed.size):
        if packed[i] != 0:
            flat[4 * i] += packed[i] >> SUM_BITS
            flat[4 * i + 1] += hits[i]
            flat[4 * i + 2] += packed[i] & (ONE - 1)
            packed[i], hits[i] = 0, np.int32(0)
    for b in range(winning.size // 4):
        for k in range(2):
            winning[4 * b + k] += both[b, k] >> SUM_BITS
            winning[4 * b + 2 + k] += both[b, k] & (ONE - 1)
            both[b, k] = 0


@compiled
def _count_singles(
    probabilities, pixels, reference, finder, counts, tiles, work, p, predicted, truth, taken, nobody, nowhere
):  # fmt: skip
    """Count tile by tile; p (classes, PITCH), truth and taken (TILE,) are overwritten. nowhere: empty."""
    start = np.int64(0)
    while start < reference.size:
        start, width = _next(probabilities, pixels, reference, start, taken, truth, p)
        for k in range(p.shape[0]):
            for j in range(TILE):
                x = p[k, j]
                p[k, j] = (
                    np.float32(0.0) if not x > np.float32(0.0) else (np.float32(1.0) if x > np.float32(1.0) else x)
                )
        count_tile(p, truth, predicted, nobody, width, finder, nowhere, counts, work)
        if tiles.row.size > 0:
            _add_tile_scores(work.scores, taken, width, tiles)
            for k in range(p.shape[0]):
                for j in range(width):
                    share = np.int64(np.rint(np.float64(p[k, j]) * (1 << LIMB_BITS))) << LIMB_BITS
                    _add_to_tile(taken[j], tiles.starts[3 + k], work.bin_of[k, j], truth[j] == k, share, tiles)
    take_apart(work, counts.classwise, nowhere)


@compiled
def _count_doubles(
    probabilities, pixels, reference, finder, counts, tiles, p, whole, bin_of, taken, truth, scores
):  # fmt: skip
    """Count strip by strip. p, whole, bin_of: (classes, STRIDE); taken, truth: (STRIP,); scores: (3, STRIP); overwritten."""
    classes, bins, flat = probabilities.shape[1], finder.edges.size - 1, counts.classwise
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
        for j in range(STRIP):
            scores[2, j] = -logarithm_or_zero(scores[1, j])
        for j in range(width):
            add(fixed(scores[0, j]), counts.squared_error, 0)
            add(fixed(scores[2, j]), counts.log_loss, 0)
            counts.infinite[0] += np.int64(not scores[1, j] > 0.0)
        if tiles.row.size > 0:
            _add_tile_scores(scores, taken, width, tiles)
            for k in range(classes):
                for j in range(width):
                    _add_to_tile(taken[j], tiles.starts[3 + k], bin_of[k, j], truth[j] == k, whole[k, j], tiles)


@compiled(step=True)
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


@compiled(step=True)
def _add_tile_scores(scores, taken, width, tiles):
    """Add squared errors, scores[0], and log losses, scores[2], of the true class's probabilities, scores[1], to their tiles."""
    for j in range(width):
        row = tiles.counts[tiles.row[taken[j]]]
        add(fixed(scores[0, j]), row, tiles.starts[0])
        add(fixed(scores[2, j]), row, tiles.starts[1])
        row[tiles.starts[2]] += np.int64(not scores[1, j] > 0.0)


@compiled(step=True)
def _add_to_tile(pixel, start, fine, positive, q, tiles):
    """Add an item to the job's bin in the row of its tile: tallies start at `start`."""
    rows = tiles.counts.reshape(-1)
    place = tiles.row[pixel] * tiles.counts.shape[1] + start + 4 * tiles.bins[fine]
    rows[place] += 1
    rows[place + 1] += np.int64(positive)
    add(q, rows, place + 2)
