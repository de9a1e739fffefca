"""Values to the integer counts of a Summary, compiled; each adds to the arrays it is given."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.fixed_point import FRACTION_BITS, LIMB_BITS, LIMB_MASK
from dask_uncert.kernels.tiles import compiled


@compiled
def count_decisions(  # type: ignore[no-untyped-def]
    reference, predicted, second, confused, pairs, by_confused
):
    """Add pixels to pairs (reference, predicted, reference is second) and by_confused (number, right).

    reference: (n,) class index, negative where the pixel does not count.
    """
    for i in range(reference.size):
        c = reference[i]
        if c >= 0:
            right = 1 if predicted[i] == c else 0
            near = 1 if (right == 0 and second[i] == c) else 0
            pairs[c, predicted[i], near] += 1
            by_confused[confused[i], right] += 1


@compiled
def count_values(  # type: ignore[no-untyped-def]
    values, upper, edges, guess, reference, predicted, second, confused, histogram, by_pair, by_confused
):
    """Add one measure's values to its histogram and to its fixed-point power sums.

    values: (n,) in [0, upper]; edges: (bins + 1,) rising from 0 to upper, bins right-closed, the first also
    holds 0; guess: (cells,) a bin at or below the first bin of each of equally wide cells. histogram:
    (reference, right, bin); by_pair: (reference, predicted, second, 2 powers, 2 limbs); by_confused:
    (number, right, 3 powers, 2 limbs).
    """
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = values[i] / upper
        right = 1 if predicted[i] == c else 0
        near = 1 if (right == 0 and second[i] == c) else 0
        histogram[c, right, _bin(values[i], x, edges, guess)] += 1
        pair = by_pair[c, predicted[i], near]
        number = by_confused[confused[i], right]
        q = _fixed(x)
        _add(q, pair[0])
        _add(q, number[0])
        q = _fixed(x * x)
        _add(q, pair[1])
        _add(q, number[1])
        _add(_fixed(x * x * x), number[2])


@compiled
def count_wide_values(  # type: ignore[no-untyped-def]
    values, upper, edges, guess, reference, predicted, second, confused, histogram, by_pair, by_confused
):
    """As `count_values` for values without a range: no division by `upper`, bins found by halving, more limbs."""
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = values[i]
        low, high = 0, edges.size - 2
        while low < high:
            middle = (low + high) // 2
            if x > edges[middle + 1]:
                low = middle + 1
            else:
                high = middle
        right = 1 if predicted[i] == c else 0
        near = 1 if (right == 0 and second[i] == c) else 0
        histogram[c, right, low] += 1
        power = x
        for k in range(3):
            if k < 2:
                _add_wide(power, by_pair[c, predicted[i], near, k])
            _add_wide(power, by_confused[confused[i], right, k])
            power *= x


@compiled
def count_confidence(  # type: ignore[no-untyped-def]
    confidence, reference, predicted, edges, guess, number, right, sums
):
    """Add the winning class's stated probability to its bins (right-closed, the first also holds 0).

    edges: (bins + 1,) from 0 to 1, as the data's dtype has them; guess: as for `count_values`.
    """
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        x = confidence[i]
        b = _bin(x, x, edges, guess)
        number[b] += 1
        right[b] += 1 if predicted[i] == c else 0
        _add(_fixed(x), sums[b])


@compiled
def count_probabilities(  # type: ignore[no-untyped-def]
    probabilities, pixels, reference, edges, guess, number, positives, sums, squared_error, log_loss, infinite
):
    """Add every class's stated probability, clipped to [0, 1], to its bins and to the proper scores.

    probabilities, pixels: as for `measure`. number, positives: (classes, bins); sums: (classes, bins, 2
    limbs); squared_error, log_loss: (2 limbs,); infinite: (1,).
    """
    classes, inner = probabilities.shape[1], probabilities.shape[2]
    for i in range(reference.size):
        c = reference[i]
        if c < 0:
            continue
        outer = pixels[i] // inner
        place = pixels[i] - outer * inner
        error = 0.0
        for k in range(classes):
            stored = np.float64(probabilities[outer, k, place])
            if stored <= 0.0:  # most of a sharp prediction
                number[k, 0] += 1
                error += 1.0 if k == c else 0.0
                continue
            x = 1.0 if stored > 1.0 else stored
            b = _bin(x, x, edges, guess)
            number[k, b] += 1
            _add(_fixed(x), sums[k, b])
            gap = x - (1.0 if k == c else 0.0)
            error += gap * gap
        _add(_fixed(error), squared_error)
        stored = np.float64(probabilities[outer, c, place])
        if stored > 0.0:
            x = 1.0 if stored > 1.0 else stored
            positives[c, _bin(x, x, edges, guess)] += 1
            _add(_fixed(-np.log(x)), log_loss)
        else:
            positives[c, 0] += 1
            infinite[0] += 1


@compiled
def sum_soft_weights(weights, cells, sums):  # type: ignore[no-untyped-def]
    """Add weights in [0, 1] to the fixed-point sum (4 cells, 2 limbs) of their cell; negative cells are left out."""
    for i in range(weights.size):
        k = cells[i]
        if k >= 0:
            _add(_fixed(weights[i]), sums[k])


@compiled
def _bin(value, share, edges, guess):  # type: ignore[no-untyped-def]
    """The bin of a value, given its share of the edges' range."""
    b = guess[min(np.int64(share * guess.size), guess.size - 1)]
    while value > edges[b + 1]:
        b += 1
    return b


@compiled
def _fixed(x):  # type: ignore[no-untyped-def]
    return np.int64(np.rint(x * np.float64(1 << FRACTION_BITS)))


@compiled
def _add(q, limbs):  # type: ignore[no-untyped-def]
    limbs[0] += q >> LIMB_BITS
    limbs[1] += q & LIMB_MASK


@compiled
def _add_wide(x, limbs):  # type: ignore[no-untyped-def]
    """Add x >= 0 to a sum of any number of limbs; each step is exact."""
    rest = np.rint(x * np.float64(1 << FRACTION_BITS))
    for i in range(limbs.size):
        weight = 1.0
        for _ in range(limbs.size - 1 - i):
            weight *= np.float64(1 << LIMB_BITS)
        part = np.floor(rest / weight)
        limbs[i] += np.int64(part)
        rest -= part * weight
