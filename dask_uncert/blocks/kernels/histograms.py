"""Decisions and stated probabilities to the integer counts of a Summary, compiled; each adds to the arrays it is given."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.bins import add, find_bins, fixed_share
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.memory import Memory, kept, zeros
from dask_uncert.blocks.kernels.types import NO_TILES, Finder, Groups, Pixels, TileRows
from dask_uncert.formulas.typing import Counts, Floats, Indices

AT_ONCE = 1 << 16  # most cells of a table that stays in a near cache


def group_decisions(reference: Indices, batch: Pixels, classes: int, memory: Memory | None = None) -> Groups:
    """Return the `Groups` of pixels; reference: (n,) class index, negative where the pixel does not count."""
    memory = memory or Memory()
    n, pairs, numbers = reference.size, 2 * classes * classes, classes + 1
    at_once = pairs * numbers <= AT_ONCE
    ends = np.empty((pairs * numbers if at_once else max(pairs, numbers)) + 1, np.int32)
    key, order = memory.empty("key", (n,), np.int32), memory.empty("order", (3, n), np.int32)
    starts = memory.empty("starts", (n + 1,), np.int32)
    of_groups = memory.empty("of_groups", (3, n), np.int64)
    counted, groups = _group(
        reference, batch.predicted, batch.second, batch.confused, classes, at_once, key, order, ends, starts, of_groups
    )  # fmt: skip
    return Groups(order[1, :counted], order[2], starts[: groups + 1], *of_groups[:, :groups])


@compiled
def _group(reference, predicted, second, confused, classes, at_once, key, order, ends, starts, of_groups):
    """Sort pixels into order[1], write their places in it to order[2], where groups start, and what `Groups` says of each.

    Returns how many pixels and groups there are.
    """
    n, counted, groups = reference.size, np.int64(0), np.int64(0)
    cells, numbers, before, after, place = ends.size - 1, np.int32(classes + 1), order[0], order[1], order[2]
    for i in range(n):
        before[i], key[i] = i, confused[i]
    if not at_once:
        _sort(key, before, after, place, ends)
        for i in range(n):
            before[i] = after[i]
    for i in range(n):
        c = np.int32(reference[i])
        won = np.int32(predicted[i])
        near = np.int32(won != c) & np.int32(np.int32(second[i]) == c)
        pair = np.int32(
            np.int32(np.int32(np.int32(c * np.int32(classes)) + won) * np.int32(2)) + near
        )  # SIMD: in 32 bits
        pair = np.int32(np.int32(pair * numbers) + np.int32(confused[i])) if at_once else pair
        key[i] = pair if c >= np.int32(0) else np.int32(cells)
    for i in range(n):
        counted += np.int64(reference[i] >= 0)
    _sort(key, before, after, place, ends)
    if at_once:
        starts[0] = 0
        for k in range(cells):
            groups += np.int64(ends[k] > starts[groups])
            starts[groups] = ends[k]
    else:
        for j in range(counted):
            i, previous = after[j], after[max(j - 1, 0)]
            starts[groups] = j
            groups += np.int64((j == 0) | (key[i] != key[previous]) | (confused[i] != confused[previous]))
    starts[groups] = counted
    for g in range(groups):
        one = after[starts[g]]
        true, decided = np.int64(reference[one]), np.int64(predicted[one])
        right = np.int64(decided == true)
        runner_up = (1 - right) * np.int64(second[one] == true)
        of_groups[0, g], of_groups[1, g] = true * 2 + right, (true * classes + decided) * 2 + runner_up
        of_groups[2, g] = np.int64(confused[one]) * 2 + right
    return counted, groups


@compiled(step=True)
def _sort(key, before, after, place, ends):
    """Sort pixel numbers by their key, which is less than the size of `ends`, where each key then ends; equals keep their order."""
    start = np.int32(0)
    for k in range(ends.size):
        ends[k] = np.int32(0)
    for i in key:
        ends[np.uint64(i)] += np.int32(1)
    for k in range(ends.size):
        number = ends[k]
        ends[k] = start
        start += number
    for i in before:
        cell = np.uint64(key[np.uint64(i)])
        j = ends[cell]
        after[np.uint64(j)], place[np.uint64(i)] = i, j
        ends[cell] = np.int32(j + np.int32(1))


def count_decisions(
    groups: Groups | None,
    reference: Indices,
    batch: Pixels,
    pairs: Counts,
    by_confused: Counts,
    tiles: TileRows = NO_TILES,
) -> None:
    """Add pixels to pairs (reference, predicted, reference is second) and by_confused (number, right).

    reference: (n,) class index, negative where the pixel does not count. groups, batch: the `Groups`, or None where no value
    is counted and pixels need not be sorted, and the `Pixels`. tiles: starts of confusion matrices (reference, predicted).
    """
    if groups is None:
        _count_decisions(reference, batch.predicted, batch.second, batch.confused, pairs, by_confused)
    else:
        for counts, key in ((pairs, groups.pair), (by_confused, groups.number)):
            added = np.bincount(key, np.diff(groups.starts), counts.size)  # whole numbers below 2**53
            counts += added.astype(np.int64).reshape(counts.shape)
    if tiles.row.size:
        counted = np.flatnonzero(reference >= 0)
        cell = tiles.starts[0] + reference[counted] * len(pairs) + batch.predicted[counted]
        np.add.at(tiles.counts.reshape(-1), tiles.row[counted] * tiles.counts.shape[1] + cell, 1)


@compiled
def _count_decisions(reference, predicted, second, confused, pairs, by_confused):
    of_pairs, of_numbers, classes = pairs.reshape(-1), by_confused.reshape(-1), np.int64(pairs.shape[0])
    for i in range(reference.size):
        c, won, runner, number = np.int64(reference[i]), np.int64(predicted[i]), second[i], np.int64(confused[i])
        if c >= 0:
            right = np.int64(won == c)
            near = np.int64(runner == c) & (1 - right)
            of_pairs[np.uint64(2 * (c * classes + won) + near)] += 1
            of_numbers[np.uint64(2 * number + right)] += 1


def count_confidence(reference: Indices, batch: Pixels, finder: Finder, tally: Counts, tiles: TileRows) -> None:
    """Add the winning class's stated probability to its bins (right-closed, the first also holds 0).

    finder: of bins over [0, 1] whose edges are as the data's dtype has them. tally: (bins, 4) of items, those
    that came true and the limbs of the summed probability. tiles: start of the tally of the job's bins.
    """
    _count_confidence(reference, batch, finder, tally, tiles, *kept(_strips))


def _strips() -> tuple[Floats, Indices, Indices]:
    bin_of, whole = zeros((2, STRIP), np.int64)
    return zeros((STRIP,)), bin_of, whole


@compiled
def _count_confidence(reference, batch, finder, tally, tiles, strip, bin_of, whole):
    flat, rows, confidence, predicted = tally.reshape(-1), tiles.counts.reshape(-1), batch.confidence, batch.predicted
    for start in range(0, reference.size, STRIP):
        width = min(STRIP, reference.size - start)
        for j in range(width):
            strip[j] = confidence[start + j] if reference[start + j] >= 0 else 0.0
        for j in range(STRIP):
            whole[j] = fixed_share(strip[j])
        find_bins(strip, strip, finder, bin_of)
        for j in range(width):
            i = start + j
            c = reference[i]
            if c < 0:
                continue
            place, right = 4 * bin_of[j], np.int64(predicted[i] == c)
            flat[place] += 1
            flat[place + 1] += right
            add(whole[j], flat, place + 2)
            if tiles.row.size > 0:
                place = tiles.row[i] * tiles.counts.shape[1] + tiles.starts[0] + 4 * tiles.bins[bin_of[j]]
                rows[place] += 1
                rows[place + 1] += right
                add(whole[j], rows, place + 2)


@compiled
def count_codes(codes, reference, cells):
    """Count pixels by part, class and code, in cells (parts, classes + 1, 256); the last class is of those that do not count.

    codes: (n,) uint8; reference: (n,) class index, negative where the pixel does not count. One pixel after the other goes to
    the next part.
    """
    flat, classes, first = cells.reshape(-1), cells.shape[1] - 1, np.int64(0)  # first: row of the part
    for i in range(codes.size):
        c = np.int64(reference[i])
        row = first + (c if c >= 0 else classes)
        flat[np.uint64(row * cells.shape[2] + codes[i])] += 1
        first += classes + 1  # without a remainder, which takes longer than the rest
        if first == cells.shape[0] * (classes + 1):
            first = np.int64(0)
