"""The pass over one block in plain numpy: the definition that `compiled` is held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas import fixed_point
from dask_uncert.formulas.entropies import shannon_nats
from dask_uncert.formulas.measure_values import measure_values
from dask_uncert.formulas.measures import Measure, is_pointwise
from dask_uncert.formulas.typing import Counts
from dask_uncert.kernels.joint_reference import count_joint, find_rows  # noqa: F401, kernels
from dask_uncert.kernels.tiles_reference import filled_cells as filled_cells
from dask_uncert.kernels.tiles_reference import scores_apart, tally_apart, values_apart
from dask_uncert.kernels.types import (
    CLIPPED,
    MISSING,
    NOTHING_APART,
    OFF,
    RENORMALISED,
    AnyFloats,
    Apart,
    Finder,
    Pixels,
    Rounding,
)


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
    reference: Counts,
    predicted: Counts,
    second: Counts,
    confused: Counts,
    pairs: Counts,
    by_confused: Counts,
    apart: Apart = NOTHING_APART,
) -> None:
    """Add pixels to the counts of decisions; see `compiled.count_decisions`."""
    counted = reference >= 0
    c, k = reference[counted], predicted[counted]
    right = c == k
    near = ~right & (second[counted] == c)
    np.add.at(pairs, (c, k, near.astype(np.int64)), 1)
    np.add.at(by_confused, (confused[counted], right.astype(np.int64)), 1)
    if apart.owner.size:
        np.add.at(apart.counts, (apart.owner[counted], apart.places[0] + c * len(pairs) + k), 1)


def count_values(
    values: NDArray[np.float64],
    upper: float,
    finder: Finder,
    reference: Counts,
    predicted: Counts,
    second: Counts,
    confused: Counts,
    histogram: Counts,
    by_pair: Counts,
    by_confused: Counts,
    apart: Apart = NOTHING_APART,
) -> None:
    """Add one measure's values to its histogram and power sums; see `compiled.count_values`."""
    _count_scaled(
        values, upper, finder.edges, reference, predicted, second, confused,
        histogram, by_pair, by_confused, apart,
    )  # fmt: skip


def count_wide_values(
    values: NDArray[np.float64],
    upper: float,
    finder: Finder,
    reference: Counts,
    predicted: Counts,
    second: Counts,
    confused: Counts,
    histogram: Counts,
    by_pair: Counts,
    by_confused: Counts,
    apart: Apart = NOTHING_APART,
) -> None:
    """As `count_values` for values without a range; see `compiled.count_wide_values`."""
    _count_scaled(
        values, 1.0, finder.edges, reference, predicted, second, confused,
        histogram, by_pair, by_confused, apart,
    )  # fmt: skip


def _count_scaled(
    values: NDArray[np.float64],
    unit: float,
    edges: NDArray[np.float64],
    reference: Counts,
    predicted: Counts,
    second: Counts,
    confused: Counts,
    histogram: Counts,
    by_pair: Counts,
    by_confused: Counts,
    apart: Apart,
) -> None:
    counted = reference >= 0
    c, k, value = reference[counted], predicted[counted], values[counted]
    right = (c == k).astype(np.int64)
    near = ((c != k) & (second[counted] == c)).astype(np.int64)
    bins = np.maximum(np.searchsorted(edges, value, side="left") - 1, 0)
    np.add.at(histogram, (c, right, bins), 1)
    x = value / unit
    limbs = fixed_point.encode(np.stack([x, x * x, x * x * x], axis=1), by_pair.shape[-1])
    np.add.at(by_pair, (c, k, near), limbs[:, :2])
    np.add.at(by_confused, (confused[counted], right), limbs)
    if apart.owner.size:
        values_apart(apart, counted, right, bins, len(edges) - 1, limbs)


def count_confidence(
    confidence: NDArray[np.float64],
    reference: Counts,
    predicted: Counts,
    finder: Finder,
    tally: Counts,
    apart: Apart = NOTHING_APART,
) -> None:
    """Add the winning class's stated probability to its bins; see `compiled.count_confidence`."""
    counted = reference >= 0
    x = confidence[counted]
    bins = np.maximum(np.searchsorted(finder.edges, x, side="left") - 1, 0)
    right = predicted[counted] == reference[counted]
    np.add.at(tally, bins, _tallies(right, x))
    if apart.owner.size:
        tally_apart(apart, apart.owner[counted], int(apart.places[0]), bins, _tallies(right, x))


def count_probabilities(
    probabilities: AnyFloats,
    pixels: Counts,
    reference: Counts,
    finder: Finder,
    tally: Counts,
    squared_error: Counts,
    log_loss: Counts,
    infinite: Counts,
    apart: Apart = NOTHING_APART,
) -> None:
    """Add every class's stated probability to its bins and proper scores; see `compiled.count_probabilities`."""
    classes = probabilities.shape[1]
    counted = reference >= 0
    c = reference[counted]
    stored = np.moveaxis(probabilities, 1, 2).reshape(-1, classes)[pixels[counted]]
    p = np.clip(stored.astype(np.float64), 0.0, 1.0)
    bins = np.maximum(np.searchsorted(finder.edges, p, side="left") - 1, 0)
    every = np.broadcast_to(np.arange(classes), p.shape)
    true = every == c[:, np.newaxis]
    np.add.at(tally, (every, bins), _tallies(true, p))
    error = fixed_point.encode(np.square(p - true).sum(axis=1))
    squared_error += error.sum(axis=0)
    of_true = p[true]
    loss = fixed_point.encode(-np.log(np.where(of_true > 0, of_true, 1.0)))
    log_loss += loss.sum(axis=0)
    infinite += np.count_nonzero(of_true == 0)
    if apart.owner.size:
        rows = apart.owner[counted]
        for k, place in enumerate(apart.places[3:].tolist()):
            tally_apart(apart, rows, place, bins[:, k], _tallies(true[:, k], p[:, k]))
        scores_apart(apart, rows, error, loss, of_true == 0)


def _tallies(came_true: NDArray[np.bool_], stated: NDArray[np.float64]) -> Counts:
    """What each item adds to its bin (..., 4)."""
    counts = np.stack([np.ones_like(came_true, np.int64), came_true.astype(np.int64)], axis=-1)
    return np.concatenate([counts, fixed_point.encode(stated)], axis=-1)


def sum_soft_weights(weights: NDArray[np.float64], cells: Counts, sums: Counts) -> None:
    """Add weights to the fixed-point sum of their cell; see `compiled.sum_soft_weights`."""
    taken = cells >= 0
    np.add.at(sums, cells[taken], fixed_point.encode(weights[taken]))


def add_member(
    probabilities: AnyFloats,
    pixels: NDArray[np.int64],
    tolerance: float,
    exact: float,
    sums: NDArray[np.float64],
    entropies: NDArray[np.float64],
    votes: NDArray[np.int32],
    state: NDArray[np.uint8],
) -> None:
    """Add one member of samples at the pixels asked for; see `compiled.add_member`."""
    classes = probabilities.shape[1]
    stored = np.moveaxis(probabilities, 1, 2).reshape(-1, classes)[pixels].astype(np.float64)
    lowest, highest = stored.min(axis=1), stored.max(axis=1)
    clipped = np.clip(stored, 0.0, 1.0)
    total = np.zeros(pixels.size)
    for c in range(classes):  # in the order of the classes, so that means are equal to the last bit
        total += clipped[:, c]
    off = np.abs(total - 1.0)
    bad = (lowest < -tolerance) | (highest > 1 + tolerance) | (off > tolerance)
    repairs = np.where((lowest < 0) | (highest > 1), CLIPPED, 0) | np.where(off > exact, RENORMALISED, 0)
    missing = np.isnan(total)
    state[pixels] |= np.where(missing, MISSING, np.where(bad, OFF, repairs)).astype(np.uint8)
    votes[pixels, stored.argmax(axis=1)] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        p = clipped / total[:, np.newaxis]
    sums[pixels] += p
    entropies[pixels] += shannon_nats(p, axis=1)


def close_members(
    pixels: NDArray[np.int64],
    samples: int,
    upper: float,
    sums: NDArray[np.float64],
    entropies: NDArray[np.float64],
    votes: NDArray[np.int32],
    state: NDArray[np.uint8],
    values: NDArray[np.float64],
) -> None:
    """Turn sums of samples into means and measures; see `compiled.close_members`."""
    bits = state[pixels]
    state[pixels] = np.where(bits & MISSING, MISSING, np.where(bits & OFF, OFF, bits))
    usable = (bits & (MISSING | OFF)) == 0
    mean = np.where(usable[:, np.newaxis], sums[pixels] / samples, np.nan)
    sums[pixels] = mean
    predictive = np.minimum(shannon_nats(mean, axis=1), upper)
    expected = np.where(usable, np.minimum(entropies[pixels] / samples, upper), np.nan)
    ratio = np.where(usable, (samples - votes[pixels].max(axis=1)) / samples, np.nan)
    values[:, pixels] = [predictive, expected, np.maximum(predictive - expected, 0.0), ratio]
