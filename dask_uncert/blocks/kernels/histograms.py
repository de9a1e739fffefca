"""Decisions and stated probabilities to the integer counts of a Summary, compiled; each adds to the arrays it is given."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.bins import add, find_bins, fixed, fixed_share
from dask_uncert.blocks.kernels.measures import STRIP, compiled
from dask_uncert.blocks.kernels.types import Groups
from dask_uncert.formulas.soft_confusion import FN, FP, TN, TP


@compiled
def group_decisions(reference, batch, classes):
    """Return the `Groups` of pixels; reference: (n,) class index, negative where the pixel does not count."""
    predicted, second, confused = batch.predicted, batch.second, batch.confused
    n = reference.size
    pair = np.empty(n, np.int32)
    ends, by_confused = np.zeros(2 * classes * classes, np.int32), np.zeros(classes + 1, np.int32)
    for i in range(n):
        c = reference[i]
        near = np.int64(predicted[i] != c) * np.int64(second[i] == c)
        pair[i] = (c * classes + predicted[i]) * 2 + near
        if c >= 0:
            ends[pair[i]] += 1
            by_confused[confused[i]] += 1
    once = np.empty(by_confused.sum(), np.int64)
    order, starts = np.empty(once.size, np.int64), np.empty(once.size + 1, np.int64)
    place = 0
    for k in range(by_confused.size):
        place, by_confused[k] = place + by_confused[k], place
    place = 0
    for k in range(ends.size):
        place, ends[k] = place + ends[k], place
    for i in range(n):
        if reference[i] >= 0:
            once[by_confused[confused[i]]] = i
            by_confused[confused[i]] += 1
    for i in once:
        order[ends[pair[i]]] = i
        ends[pair[i]] += 1
    groups, before = np.int64(0), -1
    for j in range(order.size):
        here = pair[order[j]] * (classes + 1) + confused[order[j]]
        starts[groups] = j
        groups += np.int64(here != before)
        before = here
    starts[groups] = order.size
    return Groups(order, starts[: groups + 1])


@compiled
def count_decisions(groups, reference, batch, pairs, by_confused, tiles):
    """Add pixels to pairs (reference, predicted, reference is second) and by_confused (number, right).

    reference: (n,) class index, negative where the pixel does not count. groups, batch: the `Groups` and `Pixels`.
    tiles: starts of confusion matrices (reference, predicted).
    """
    order, starts, rows = groups.order, groups.starts, tiles.counts.reshape(-1)
    for g in range(starts.size - 1):
        i, number = order[starts[g]], starts[g + 1] - starts[g]
        c, predicted = reference[i], batch.predicted[i]
        right = 1 if predicted == c else 0
        second = 1 if (right == 0 and batch.second[i] == c) else 0
        pairs[c, predicted, second] += number
        by_confused[batch.confused[i], right] += number
    for i in order[: tiles.row.size]:
        row = tiles.row[i] * tiles.counts.shape[1] + tiles.starts[0]
        rows[row + reference[i] * pairs.shape[1] + batch.predicted[i]] += 1


@compiled
def count_confidence(reference, batch, finder, tally, tiles):
    """Add the winning class's stated probability to its bins (right-closed, the first also holds 0).

    finder: of bins over [0, 1] whose edges are as the data's dtype has them. tally: (bins, 4) of items, those
    that came true and the limbs of the summed probability. tiles: start of the tally of the job's bins.
    """
    flat, rows, confidence, predicted = tally.reshape(-1), tiles.counts.reshape(-1), batch.confidence, batch.predicted
    strip, bin_of, whole = np.zeros(STRIP), np.zeros(STRIP, np.int64), np.empty(STRIP, np.int64)
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
def find_cells(p, positive, threshold):
    """Return the index among `soft_confusion.CELLS` of each pixel; p: (n,) float64, positive: (n,) bool of the reference."""
    cells = np.empty(p.size, np.int64)
    for i in range(p.size):
        agrees = (p[i] >= threshold) if positive[i] else (p[i] <= threshold)
        cells[i] = (TP if positive[i] else TN) if agrees else (FN if positive[i] else FP)
    return cells


@compiled
def count_cells(second, reference, class_index, threshold, counts):
    """Add binary pixels with p in [0, 1] to counts (4,) of `soft_confusion.CELLS`; arguments as of `count_binary_jointly`."""
    negative, positive = np.zeros(3, np.int64), np.zeros(3, np.int64)  # below the threshold, on it, above it
    for i in range(reference.size):
        x, c = second[i], reference[i]
        p = np.float64(x if class_index == 1 else np.float32(1.0) - x)
        side = np.int64(p >= threshold) + np.int64(p > threshold)
        counted = np.int64((c >= 0) & (x >= np.float32(0.0)) & (x <= np.float32(1.0)))
        hit = counted * np.int64(c == class_index)
        positive[side] += hit
        negative[side] += counted - hit
    counts[TP] += positive[1] + positive[2]
    counts[FN] += positive[0]
    counts[TN] += negative[0] + negative[1]
    counts[FP] += negative[2]


@compiled
def sum_soft_weights(weights, cells, sums):
    """Add weights in [0, 1] to the fixed-point sum (4 cells, 2 limbs) of their cell, except for negative cells."""
    flat = sums.reshape(-1)
    for i in range(weights.size):
        k = cells[i]
        if k >= 0:
            add(fixed(weights[i]), flat, 2 * k)
