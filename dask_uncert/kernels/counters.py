"""Values to the integer counts of a Summary, compiled; each adds to the arrays it is given."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.fixed_point import FRACTION_BITS, LIMB_BITS, LIMB_MASK
from dask_uncert.kernels.measures import STRIDE, TILE, compiled


@compiled
def count_decisions(reference, predicted, second, confused, pairs, by_confused, apart):
    """Add pixels to pairs (reference, predicted, reference is second) and by_confused (number, right).

    reference: (n,) class index, negative where the pixel does not count. apart: its place is that of confusion
    matrices (reference, predicted).
    """
    rows = apart.counts.reshape(-1)
    for i in range(reference.size):
        c = reference[i]
        if c >= 0:
            right = 1 if predicted[i] == c else 0
            near = 1 if (right == 0 and second[i] == c) else 0
            pairs[c, predicted[i], near] += 1
            by_confused[confused[i], right] += 1
            if apart.owner.size > 0:
                row = apart.owner[i] * apart.counts.shape[1] + apart.places[0]
                rows[row + c * pairs.shape[1] + predicted[i]] += 1


@compiled
def count_values(
    values, upper, finder, reference, predicted, second, confused, histogram, by_pair, by_confused, apart
):
    """Add one measure's values to its histogram and to its fixed-point power sums.

    values: (n,) in [0, upper]; finder: of bins over [0, upper]. histogram: (reference, right, bin); by_pair:
    (reference, predicted, second, 2 powers, 2 limbs); by_confused: (number, right, 3 powers, 2 limbs). apart:
    its places are those of histograms (right, bin) and of sums (right, 3 powers, 2 limbs).
    """
    classes, bins = histogram.shape[0], histogram.shape[2]
    # Flat indices: a view of a row would count its owner up and down for every pixel.
    counts, pairs, numbers = histogram.reshape(-1), by_pair.reshape(-1), by_confused.reshape(-1)
    keep, rows = apart.owner.size > 0, apart.counts.reshape(-1)
    tile, shares, places = np.zeros(TILE), np.zeros(TILE), np.empty(TILE, np.int64)
    q1, q2, q3 = np.empty(TILE, np.int64), np.empty(TILE, np.int64), np.empty(TILE, np.int64)
    for start in range(0, reference.size, TILE):
        width = min(TILE, reference.size - start)
        for j in range(width):
            # A pixel that does not count may hold anything.
            tile[j] = values[start + j] if reference[start + j] >= 0 else 0.0
            x = tile[j] / upper
            shares[j] = x
            q1[j] = fixed(x)
            q2[j] = fixed(x * x)
            q3[j] = fixed(x * x * x)
        bins_of(tile, shares, finder, places)
        for j in range(width):
            i = start + j
            c = reference[i]
            if c < 0:
                continue
            right = np.int64(predicted[i] == c)
            near = (1 - right) * np.int64(second[i] == c)
            counts[(2 * c + right) * bins + places[j]] += 1
            pair = ((c * classes + predicted[i]) * 2 + near) * 4
            number = (confused[i] * 2 + right) * 6
            add(q1[j], pairs, pair)
            add(q1[j], numbers, number)
            add(q2[j], pairs, pair + 2)
            add(q2[j], numbers, number + 2)
            add(q3[j], numbers, number + 4)
            if keep:
                row = apart.owner[i] * apart.counts.shape[1]
                rows[row + apart.places[0] + right * bins + places[j]] += 1
                sums = row + apart.places[1] + right * 6
                add(q1[j], rows, sums)
                add(q2[j], rows, sums + 2)
                add(q3[j], rows, sums + 4)


@compiled
def count_wide_values(
    values, upper, finder, reference, predicted, second, confused, histogram, by_pair, by_confused, apart
):
    """As `count_values` for values without a range: no division by `upper`, bins found by halving, more limbs."""
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
        right = 1 if predicted[i] == c else 0
        near = 1 if (right == 0 and second[i] == c) else 0
        histogram[c, right, low] += 1
        power = x
        for k in range(3):
            if k < 2:
                add_wide(power, by_pair[c, predicted[i], near, k])
            add_wide(power, by_confused[confused[i], right, k])
            power *= x
        if apart.owner.size > 0:
            row, limbs = apart.counts[apart.owner[i]], by_confused.shape[3]
            row[apart.places[0] + right * histogram.shape[2] + low] += 1
            power = x
            for k in range(3):
                start = apart.places[1] + (right * 3 + k) * limbs
                add_wide(power, row[start : start + limbs])
                power *= x


@compiled
def count_confidence(confidence, reference, predicted, finder, tally, apart):
    """Add the winning class's stated probability to its bins (right-closed, the first also holds 0).

    finder: of bins over [0, 1] whose edges are as the data's dtype has them. tally: (bins, 4) of items, those that came true and the limbs of the summed probability.
    """
    flat, rows = tally.reshape(-1), apart.counts.reshape(-1)
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = confidence[i]
        b = _bin(x, 1.0, finder)
        place, q, right = 4 * b, fixed(x), 1 if predicted[i] == c else 0
        flat[place] += 1
        flat[place + 1] += right
        add(q, flat, place + 2)
        if apart.owner.size > 0:
            place = apart.owner[i] * apart.counts.shape[1] + apart.places[0] + 4 * apart.bins[b]
            rows[place] += 1
            rows[place + 1] += right
            add(q, rows, place + 2)


@compiled
def count_probabilities(
    probabilities, pixels, reference, finder, tally, squared_error, log_loss, infinite, apart
):
    """Add every class's stated probability, clipped to [0, 1], to its bins and to the proper scores.

    probabilities, pixels: as for `measure`. tally: (classes, bins, 4) as for `count_confidence`;
    squared_error, log_loss: (2 limbs,); infinite: (1,). apart: its places are those of squared errors, of log
    losses, of infinite ones and of each class's tally.
    """
    classes, inner, bins = probabilities.shape[1], probabilities.shape[2], tally.shape[1]
    flat, rows, cells = tally.reshape(-1), apart.counts.reshape(-1), apart.counts.shape[1]
    keep, owner = apart.owner.size > 0, np.zeros(TILE, np.int64)
    p, q = np.zeros((classes, STRIDE)), np.empty((classes, STRIDE), np.int64)
    places, truth, error = np.empty((classes, STRIDE), np.int64), np.empty(TILE, np.int64), np.empty(TILE)
    i = 0
    while i < reference.size:
        width = 0
        while i < reference.size and width < TILE:
            if reference[i] >= 0:
                outer = pixels[i] // inner
                within = pixels[i] - outer * inner
                for k in range(classes):
                    p[k, width] = probabilities[outer, k, within]
                truth[width] = reference[i]
                error[width] = 0.0
                if keep:
                    owner[width] = apart.owner[i] * cells
                width += 1
            i += 1
        for k in range(classes):
            row, whole = p[k], q[k]
            for j in range(TILE):
                x = row[j]
                x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
                row[j] = x
                whole[j] = fixed(x)
                gap = x - np.float64(truth[j] == k)
                error[j] += gap * gap
            bins_of(row, row, finder, places[k])
        for j in range(width):
            for k in range(classes):
                place = 4 * (k * bins + places[k, j])
                flat[place] += 1
                add(q[k, j], flat, place + 2)
            flat[4 * (truth[j] * bins + places[truth[j], j]) + 1] += 1
            whole_error = fixed(error[j])
            add(whole_error, squared_error, 0)
            x = p[truth[j], j]
            loss = fixed(-np.log(x)) if x > 0.0 else 0
            add(loss, log_loss, 0)
            infinite[0] += 0 if x > 0.0 else 1
            if keep:
                row = owner[j]
                rows[row + apart.places[3 + truth[j]] + 4 * apart.bins[places[truth[j], j]] + 1] += 1
                add(whole_error, rows, row + apart.places[0])
                add(loss, rows, row + apart.places[1])
                rows[row + apart.places[2]] += 0 if x > 0.0 else 1
        if keep:
            for k in range(classes):
                start, found, numbers = apart.places[3 + k], places[k], q[k]
                for j in range(width):
                    place = owner[j] + start + 4 * apart.bins[found[j]]
                    rows[place] += 1
                    add(numbers[j], rows, place + 2)


@compiled
def sum_soft_weights(weights, cells, sums):
    """Add weights in [0, 1] to the fixed-point sum (4 cells, 2 limbs) of their cell; negative cells are left out."""
    flat = sums.reshape(-1)
    for i in range(weights.size):
        k = cells[i]
        if k >= 0:
            add(fixed(weights[i]), flat, 2 * k)


@compiled
def bins_of(values, shares, finder, places):
    """The bins of a tile of values, given with their shares of the edges' range; all of the tile is read."""
    if finder.start.size == 0:
        bins = finder.edges.size - 1
        for j in range(TILE):
            b = min(np.int64(shares[j] * bins), bins - 1)
            up = np.int64(values[j] > finder.edges[b + 1])
            down = np.int64(values[j] <= finder.edges[b]) * np.int64(b > 0)
            places[j] = b + up - down
    else:
        for j in range(TILE):
            places[j] = search(values[j], shares[j], finder)


@compiled
def _bin(value, upper, finder):
    """The bin of one value in [0, upper]."""
    return search(value, value / upper, finder)


@compiled
def search(value, share, finder):
    if finder.start.size == 0:
        b = min(np.int64(share * (finder.edges.size - 1)), finder.edges.size - 2)
    else:
        b = finder.start[min(np.int64(share * finder.start.size), finder.start.size - 1)]
    while value > finder.edges[b + 1]:
        b += 1
    while b > 0 and value <= finder.edges[b]:
        b -= 1
    return b


@compiled
def fixed(x):
    """A value in fixed point; see `formulas.fixed_point`."""
    return np.int64(np.rint(x * np.float64(1 << FRACTION_BITS)))


@compiled
def add(q, limbs, place):
    """Add a value in fixed point to the sum of two limbs that starts at a place."""
    limbs[place] += q >> LIMB_BITS
    limbs[place + 1] += q & LIMB_MASK


@compiled
def add_wide(x, limbs):
    """Add x >= 0 to a sum of any number of limbs; each step is exact."""
    rest = np.rint(x * np.float64(1 << FRACTION_BITS))
    for i in range(limbs.size):
        weight = 1.0
        for _ in range(limbs.size - 1 - i):
            weight *= np.float64(1 << LIMB_BITS)
        part = np.floor(rest / weight)
        limbs[i] += np.int64(part)
        rest -= part * weight
