"""The pass over one block in plain numpy: the definition that `compiled` is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas import fixed_point
from dask_uncert.formulas.measures import Measure, is_pointwise
from dask_uncert.formulas.values import measure_values
from dask_uncert.kernels.pixels import (
    CLIPPED,
    MISSING,
    OFF,
    RENORMALISED,
    AnyFloats,
    Pixels,
    Rounding,
)

Counts = NDArray[np.int64]


def measure(
    probabilities: AnyFloats,
    pixels: NDArray[np.int64],
    measures: tuple[Measure, ...],
    maxima: tuple[float, ...],
    rounding: Rounding,
) -> Pixels:
    """Decisions and measures of the pixels asked for; see `compiled.measure`."""
    classes = probabilities.shape[1]
    stored = np.moveaxis(probabilities, 1, 2).reshape(-1, classes)[pixels].astype(np.float64)
    predicted = stored.argmax(axis=1)
    rest = stored.copy()
    np.put_along_axis(rest, predicted[:, None], -np.inf, axis=1)
    second = rest.argmax(axis=1)
    confused = (stored > rounding.level).sum(axis=1)
    missing = np.isnan(stored).any(axis=1)
    lowest, highest = stored.min(axis=1), stored.max(axis=1)
    clipped = np.clip(stored, 0.0, 1.0)
    total = clipped.sum(axis=1)
    off = np.abs(total - 1.0)
    bad = (lowest < -rounding.tolerance) | (highest > 1 + rounding.tolerance) | (off > rounding.tolerance)
    repairs = np.where((lowest < 0) | (highest > 1), CLIPPED, 0) | np.where(
        off > rounding.exact, RENORMALISED, 0
    )
    state = np.where(missing, MISSING, np.where(bad, OFF, repairs)).astype(np.uint8)
    usable = ~missing & ~bad
    p = clipped[usable] / total[usable, None]
    values = np.full((len(measures), pixels.size), np.nan)
    for row, one, maximum in zip(values, measures, maxima, strict=True):
        if is_pointwise(one):
            row[usable] = measure_values(one, p, axis=1, maximum=maximum)
    return Pixels(values, predicted, second, confused, np.clip(highest, None, 1.0), state)


def count_decisions(
    reference: Counts, predicted: Counts, second: Counts, confused: Counts, pairs: Counts, by_confused: Counts
) -> None:
    """Add pixels to the counts of decisions; see `compiled.count_decisions`."""
    counted = reference >= 0
    c, k = reference[counted], predicted[counted]
    right = c == k
    near = ~right & (second[counted] == c)
    np.add.at(pairs, (c, k, near.astype(np.int64)), 1)
    np.add.at(by_confused, (confused[counted], right.astype(np.int64)), 1)


def count_values(
    values: NDArray[np.float64],
    upper: float,
    edges: NDArray[np.float64],
    guess: Counts,
    reference: Counts,
    predicted: Counts,
    second: Counts,
    confused: Counts,
    histogram: Counts,
    by_pair: Counts,
    by_confused: Counts,
) -> None:
    """Add one measure's values to its histogram and power sums; see `compiled.count_values`."""
    counted = reference >= 0
    c, k, value = reference[counted], predicted[counted], values[counted]
    right = (c == k).astype(np.int64)
    near = ((c != k) & (second[counted] == c)).astype(np.int64)
    bins = np.maximum(np.searchsorted(edges, value, side="left") - 1, 0)
    np.add.at(histogram, (c, right, bins), 1)
    x = value / upper
    limbs = fixed_point.encode(np.stack([x, x * x, x * x * x], axis=1))
    np.add.at(by_pair, (c, k, near), limbs[:, :2])
    np.add.at(by_confused, (confused[counted], right), limbs)


def count_confidence(
    confidence: NDArray[np.float64],
    reference: Counts,
    predicted: Counts,
    edges: NDArray[np.float64],
    counts: Counts,
    hits: Counts,
    sums: Counts,
) -> None:
    """Add pixels to the calibration bins; see `compiled.count_confidence`."""
    counted = reference >= 0
    x = confidence[counted]
    bins = np.clip(np.searchsorted(edges, x, side="left") - 1, 0, counts.size - 1)
    np.add.at(counts, bins, 1)
    np.add.at(hits, bins, (predicted[counted] == reference[counted]).astype(np.int64))
    np.add.at(sums, bins, fixed_point.encode(x))


def sum_soft_weights(weights: NDArray[np.float64], cells: Counts, sums: Counts) -> None:
    """Add weights to the fixed-point sum of their cell; see `compiled.sum_soft_weights`."""
    taken = cells >= 0
    np.add.at(sums, cells[taken], fixed_point.encode(weights[taken]))
