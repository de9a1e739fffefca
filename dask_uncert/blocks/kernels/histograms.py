"""Decisions and stated probabilities to the integer counts of a Summary, compiled; each adds to the arrays it is given."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.bins import add, find_bin, find_bins, fixed
from dask_uncert.blocks.kernels.measures import STRIDE, STRIP, compiled
from dask_uncert.blocks.kernels.types import Groups


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
    groups, before = 0, -1
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
    flat, rows = tally.reshape(-1), tiles.counts.reshape(-1)
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = batch.confidence[i]
        b = find_bin(x, x, finder)
        place, q, right = 4 * b, fixed(x), 1 if batch.predicted[i] == c else 0
        flat[place] += 1
        flat[place + 1] += right
        add(q, flat, place + 2)
        if tiles.row.size > 0:
            place = tiles.row[i] * tiles.counts.shape[1] + tiles.starts[0] + 4 * tiles.bins[b]
            rows[place] += 1
            rows[place + 1] += right
            add(q, rows, place + 2)


@compiled
def count_probabilities(probabilities, pixels, reference, finder, counts, tiles):
    """Add every class's stated probability, clipped to [0, 1], to its bins and to the proper scores.

    probabilities, pixels: as for `measure`. counts: the `ScoreCounts`. tiles: starts of squared errors, of
    log losses, of infinite ones and of each class's tally.
    """
    tally, squared_error, log_loss, infinite = counts
    classes, inner, bins = probabilities.shape[1], probabilities.shape[2], tally.shape[1]
    flat, rows, cells = tally.reshape(-1), tiles.counts.reshape(-1), tiles.counts.shape[1]
    tiled, row_of = tiles.row.size > 0, np.zeros(STRIP, np.int64)
    p, q = np.zeros((classes, STRIDE)), np.empty((classes, STRIDE), np.int64)
    bin_of, truth, error = np.empty((classes, STRIDE), np.int64), np.empty(STRIP, np.int64), np.empty(STRIP)
    i = 0
    while i < reference.size:
        width = 0
        while i < reference.size and width < STRIP:
            if reference[i] >= 0:
                outer = pixels[i] // inner
                within = pixels[i] - outer * inner
                for k in range(classes):
                    p[k, width] = probabilities[outer, k, within]
                truth[width] = reference[i]
                error[width] = 0.0
                if tiled:
                    row_of[width] = tiles.row[i] * cells
                width += 1
            i += 1
        for k in range(classes):
            stated, whole = p[k], q[k]
            for j in range(STRIP):
                x = stated[j]
                x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
                stated[j] = x
                whole[j] = fixed(x)
                gap = x - np.float64(truth[j] == k)
                error[j] += gap * gap
            find_bins(stated, stated, finder, bin_of[k])
        for j in range(width):
            for k in range(classes):
                place = 4 * (k * bins + bin_of[k, j])
                flat[place] += 1
                add(q[k, j], flat, place + 2)
            flat[4 * (truth[j] * bins + bin_of[truth[j], j]) + 1] += 1
            whole_error = fixed(error[j])
            add(whole_error, squared_error, 0)
            x = p[truth[j], j]
            loss = fixed(-np.log(x)) if x > 0.0 else 0
            add(loss, log_loss, 0)
            infinite[0] += 0 if x > 0.0 else 1
            if tiled:
                row = row_of[j]
                rows[row + tiles.starts[3 + truth[j]] + 4 * tiles.bins[bin_of[truth[j], j]] + 1] += 1
                add(whole_error, rows, row + tiles.starts[0])
                add(loss, rows, row + tiles.starts[1])
                rows[row + tiles.starts[2]] += 0 if x > 0.0 else 1
        if tiled:
            for k in range(classes):
                start = tiles.starts[3 + k]
                for j in range(width):
                    place = row_of[j] + start + 4 * tiles.bins[bin_of[k, j]]
                    rows[place] += 1
                    add(q[k, j], rows, place + 2)


@compiled
def sum_soft_weights(weights, cells, sums):
    """Add weights in [0, 1] to the fixed-point sum (4 cells, 2 limbs) of their cell, except for negative cells."""
    flat = sums.reshape(-1)
    for i in range(weights.size):
        k = cells[i]
        if k >= 0:
            add(fixed(weights[i]), flat, 2 * k)
