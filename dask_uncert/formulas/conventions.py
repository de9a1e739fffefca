"""Numbers by the rules of other packages, from counts.

Packages differ from ours where a class is empty, in the classes over which a mean is taken, and in which bin a value on
an edge lies. Confusion matrices are (..., C, C) with the reference in rows; bins are right-closed, in rising order. What
counts cannot tell has bounds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas import confusion
from dask_uncert.formulas.calibration import expected_calibration_error, maximum_calibration_error
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.rankings import Bounded
from dask_uncert.formulas.typing import Bools, Counts, Floats

STEP = 2.0**-22  # in which probabilities of float32 data are summed


def present(matrix: ArrayLike) -> Bools:
    """Whether each class occurs in the reference or the prediction, (..., C, C) to (..., C).

    >>> present([[3, 0, 0], [1, 0, 0], [0, 0, 0]]).tolist()
    [True, True, False]
    """
    m = np.asarray(matrix)
    return np.asarray((m.sum(axis=-1) + m.sum(axis=-2)) > 0)


def mean_of_present(matrix: ArrayLike, values: ArrayLike) -> Floats:
    """Mean over classes that occur in the reference or the prediction, an undefined one counting 0.

    (..., C, C) and (..., C) to (...). So torchmetrics and scikit-learn average.

    >>> float(mean_of_present([[2, 0], [1, 0]], [0.8, float("nan")]))
    0.4
    """
    kept = present(matrix)
    filled = np.where(kept, np.nan_to_num(np.asarray(values, np.float64)), 0.0)
    return ratio(filled.sum(axis=-1), kept.sum(axis=-1))


def mean_with_empty(matrix: ArrayLike, values: ArrayLike) -> Floats:
    """Mean over all classes, where one without reference counts 1 if it is not predicted either, else 0.

    (..., C, C) and (..., C) to (...). So MONAI averages with ``ignore_empty=False``.

    >>> float(mean_with_empty([[2, 0], [0, 0]], [1.0, float("nan")]))
    1.0
    """
    missing = confusion.support(matrix) == 0
    filled = np.where(missing, ~present(matrix), np.asarray(values, np.float64))
    return np.asarray(filled.mean(axis=-1))


def matthews_or_limit(matrix: ArrayLike) -> Floats:
    """Matthews correlation of torchmetrics: (C, C) to one number, defined also where all pixels are of one class.

    Of more than two classes it is then 0. Of two it is 1 or -1 where all pixels are right or wrong, else the difference
    of the two filled cells over the root of the product of the three filled margins.

    >>> float(matthews_or_limit([[3, 1], [0, 0]])), float(matthews_or_limit([[0, 2], [0, 0]]))
    (0.5773502691896258, -1.0)
    """
    m, value = np.asarray(matrix, np.float64), confusion.matthews(matrix)
    if not np.isnan(value) or not m.sum():
        return value
    if len(m) > 2:
        return np.zeros(())
    wrong, right = m[0, 1] + m[1, 0], np.trace(m)
    if not wrong or not right:
        return np.asarray(1.0 if right else -1.0)
    margins = np.concatenate([m.sum(axis=0), m.sum(axis=1)])
    return np.asarray((right - wrong) / np.sqrt(margins[margins > 0].prod()))


def left_closed_errors(
    n: ArrayLike, hits: ArrayLike, sums: Counts, edges: ArrayLike, bins: int
) -> tuple[Bounded, Bounded]:
    """Expected and maximum calibration error over left-closed bins, with 1 in a bin of its own: torchmetrics' bins.

    n, hits (B,), sums (B, 2): of fine bins between `edges` (B + 1), as many in each of the `bins`. Returns ours, between
    bounds over all pixels of the fine bins below each edge that may lie on it. Exact where there can be none.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> [part.tolist() for part in left_closed_errors([2, 0], [1, 0], encode([0.5, 0.0]), [0.0, 0.5, 1.0], 1)[0]]
    [0.25, 0.25, 0.25]
    """
    items, came_true, stated = np.asarray(n, np.int64), np.asarray(hits, np.int64), decode(sums)
    width = len(items) // bins
    low, high = np.asarray(edges, np.float64)[:-1], np.asarray(edges, np.float64)[1:]
    most = np.floor((stated + items * (STEP - low)) / (high - low)).clip(0, items)[width - 1 :: width]
    at, right, wrong = high[width - 1 :: width], came_true[width - 1 :: width], (items - came_true)[width - 1 :: width]
    moved = np.maximum(np.minimum(most, right) * (1 - at), np.minimum(most, wrong) * at)
    coarse = tuple(part.reshape(bins, width).sum(axis=1) for part in (items, came_true, stated))
    total, gap = items.sum(), np.abs(coarse[1] - coarse[2])
    ours = tuple(np.asarray(np.add.reduceat(part, np.arange(bins) * width)) for part in (items, came_true, sums))
    expected, largest = expected_calibration_error(*ours), maximum_calibration_error(*ours)
    inner = ratio(2 * moved[:-1].sum(), total)
    ece = Bounded(
        expected, np.maximum(expected - inner, 0.0), np.minimum(expected + inner + ratio(2 * moved[-1], total), 1.0)
    )
    if not most.any():
        return ece, Bounded(largest, largest, largest)
    change = moved + np.concatenate([[0.0], moved[:-1]])
    least = ratio((gap - change).clip(0), coarse[0] + np.concatenate([[0.0], most[:-1]]))
    return ece, Bounded(largest, np.nan_to_num(least).max(), np.ones(()))


def shifted(value: ArrayLike, least: ArrayLike, most: ArrayLike) -> Bounded:
    """Return a value with its bounds as one record.

    >>> float(shifted(0.5, 0.25, 1.0).high)
    1.0
    """
    return Bounded(*(np.asarray(part, np.float64) for part in (value, least, most)))
