"""Values to the integer counts of a Summary, compiled; each adds to the arrays it is given."""

from __future__ import annotations

import numpy as np

from dask_uncert.blocks.kernels.measures import STRIDE, STRIP, compiled
from dask_uncert.blocks.kernels.types import CELL_BITS, LINEAR_CELLS, LINEAR_FROM, LOW_CELLS, LOWEST_CELL
from dask_uncert.formulas.fixed_point import FRACTION_BITS, LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.power_sums import WIDE


@compiled
def count_decisions(reference, batch, pairs, by_confused, tiles):
    """Add pixels to pairs (reference, predicted, reference is second) and by_confused (number, right).

    reference: (n,) class index, negative where the pixel does not count. batch: the `Pixels`. tiles: starts
    of confusion matrices (reference, predicted).
    """
    rows = tiles.counts.reshape(-1)
    for i in range(reference.size):
        c = reference[i]
        if c >= 0:
            predicted = batch.predicted[i]
            right = 1 if predicted == c else 0
            second = 1 if (right == 0 and batch.second[i] == c) else 0
            pairs[c, predicted, second] += 1
            by_confused[batch.confused[i], right] += 1
            if tiles.row.size > 0:
                row = tiles.row[i] * tiles.counts.shape[1] + tiles.starts[0]
                rows[row + c * pairs.shape[1] + predicted] += 1


@compiled
def count_values(values, upper, finder, reference, batch, counts, tiles):
    """Add one measure's values to its `ValueCounts`.

    values: (n,) in [0, upper]; finder: of bins over [0, upper]. tiles: starts of histograms (right, bin) and
    of sums (right, sums of 3 powers).
    """
    classes, bins = counts.histogram.shape[0], counts.histogram.shape[2]
    # Flat indices: a view of a row would count its owner up and down for every pixel.
    histogram, pairs, numbers = (
        counts.histogram.reshape(-1), counts.by_pair.reshape(-1), counts.by_confused.reshape(-1),
    )  # fmt: skip
    tiled, rows = tiles.row.size > 0, tiles.counts.reshape(-1)
    strip, shares, bin_of = np.zeros(STRIP), np.zeros(STRIP), np.empty(STRIP, np.int64)
    powers = np.empty((12, STRIP), np.int64)
    for start in range(0, reference.size, STRIP):
        width = min(STRIP, reference.size - start)
        for j in range(width):
            # A pixel that does not count may hold anything.
            strip[j] = values[start + j] if reference[start + j] >= 0 else 0.0
            x = strip[j] / upper
            shares[j] = x
        find_powers(shares, powers)
        find_bins(strip, shares, finder, bin_of)
        for j in range(width):
            i = start + j
            c = reference[i]
            if c < 0:
                continue
            right = np.int64(batch.predicted[i] == c)
            second = (1 - right) * np.int64(batch.second[i] == c)
            histogram[(2 * c + right) * bins + bin_of[j]] += 1
            pair = ((c * classes + batch.predicted[i]) * 2 + second) * 6
            number = (batch.confused[i] * 2 + right) * 12
            for k in range(6):
                pairs[pair + k] += powers[k, j]
            for k in range(12):
                numbers[number + k] += powers[k, j]
            if tiled:
                row = tiles.row[i] * tiles.counts.shape[1]
                rows[row + tiles.starts[0] + right * bins + bin_of[j]] += 1
                sums = row + tiles.starts[1] + right * 12
                for k in range(12):
                    rows[sums + k] += powers[k, j]


@compiled
def count_wide_values(values, upper, finder, reference, batch, counts, tiles):
    """Add values without a range: as `count_values`, without division by `upper`, with more limbs."""
    histogram, by_pair, by_confused = counts
    powers, in_pairs, in_all = np.empty(by_confused.shape[2], np.int64), by_pair.shape[3], by_confused.shape[2]
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = values[i]
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


@compiled
def find_bins(values, shares, finder, bins):
    """Find the bins of a whole strip of values; shares: the values over the range of the edges."""
    if finder.start.size == 0:
        number = finder.edges.size - 1
        for j in range(STRIP):
            b = cell(shares[j], number)
            up = np.int64(values[j] > finder.edges[b + 1]) * np.int64(b < number - 1)
            down = np.int64(values[j] <= finder.edges[b]) * np.int64(b > 0)
            bins[j] = b + up - down
    else:
        for j in range(STRIP):
            bins[j] = find_bin(values[j], shares[j], finder)


@compiled
def find_bin(value, share, finder):
    """Return the bin of one value; share: the value over the range of the edges."""
    last = finder.edges.size - 2
    if finder.octaves:
        b = finder.start[octave_cell(share)]
    else:
        b = cell(share, finder.start.size if finder.start.size > 0 else last + 1)
        if finder.start.size > 0:
            b = finder.start[b]
    while b < last and value > finder.edges[b + 1]:
        b += 1
    while b > 0 and value <= finder.edges[b]:
        b -= 1
    return b


@compiled
def cell(share, number):
    """Return which of equally wide cells over [0, 1] holds a share; the first for NaN, an end for others outside."""
    x = share * number
    return np.int64(min(x if x > 0.0 else 0.0, number - 1.0))


@compiled
def octave_cell(share):
    """Return the cell of a share as `finder` numbers them; the first for NaN, an end for others outside."""
    if share >= LINEAR_FROM:
        return LOW_CELLS + np.int64(min(share, 1.0 - 1.0 / LINEAR_CELLS) * LINEAR_CELLS - LINEAR_FROM * LINEAR_CELLS)
    x = share if share > 0.0 else 0.0
    return max((np.float64(x).view(np.int64) >> np.int64(CELL_BITS)) - LOWEST_CELL, 0)


@compiled
def fixed(x):
    """Return a value in fixed point; see `formulas.fixed_point`."""
    return np.int64(np.rint(x * np.float64(1 << FRACTION_BITS)))


@compiled
def add(q, limbs, place):
    """Add a value in fixed point to the sum of two limbs that starts at `place`."""
    limbs[place] += q >> LIMB_BITS
    limbs[place + 1] += q & LIMB_MASK


@compiled
def find_powers(shares, powers):
    """Write the limbs of x (2), x**2 (4) and x**3 (6) of a strip of x in [0, 1]; see `formulas.power_sums`."""
    for j in range(STRIP):
        q = fixed(shares[j])
        a, b = q >> LIMB_BITS, q & LIMB_MASK
        powers[0, j], powers[1, j] = a, b
        low = b * b
        middle = 2 * a * b + (low >> LIMB_BITS)
        high = a * a + (middle >> LIMB_BITS)
        s0, s1, s2, s3 = low & LIMB_MASK, middle & LIMB_MASK, high & LIMB_MASK, high >> LIMB_BITS
        powers[2, j], powers[3, j], powers[4, j], powers[5, j] = s3, s2, s1, s0
        c = s0 * b
        powers[11, j] = c & LIMB_MASK
        c = s1 * b + s0 * a + (c >> LIMB_BITS)
        powers[10, j] = c & LIMB_MASK
        c = s2 * b + s1 * a + (c >> LIMB_BITS)
        powers[9, j] = c & LIMB_MASK
        c = s3 * b + s2 * a + (c >> LIMB_BITS)
        powers[8, j] = c & LIMB_MASK
        c = s3 * a + (c >> LIMB_BITS)
        powers[7, j], powers[6, j] = c & LIMB_MASK, c >> LIMB_BITS


@compiled
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
