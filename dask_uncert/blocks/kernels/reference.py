"""The pass over one block in plain numpy: the definition that `compiled` is tested against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.memory import Memory
from dask_uncert.blocks.kernels.reference_ensemble import add_member, close_members, states_of  # noqa: F401 (kernels, too)
from dask_uncert.blocks.kernels.reference_soft import (  # noqa: F401 (kernels, too)
    certainties,
    class_probabilities,
    count_joint,
    damping_factors,
    find_cells,
    find_rows,
    sum_soft_weights,
)
from dask_uncert.blocks.kernels.types import (
    MISSING,
    NO_TILES,
    OFF,
    AnyFloats,
    Finder,
    Groups,
    Pixels,
    Rounding,
    RowGrid,
    ScoreCounts,
    SoftGrid,
    Stated,
    TileRows,
    ValueBins,
)
from dask_uncert.formulas import fixed_point, power_sums
from dask_uncert.formulas.fixed_point import LIMB_BITS
from dask_uncert.formulas.measure_values import measure_values
from dask_uncert.formulas.measures import Measure, is_pointwise
from dask_uncert.formulas.soft_confusion import certainty, damping_factor
from dask_uncert.formulas.typing import Bools, Counts, Floats, Indices


def measure(
    probabilities: AnyFloats,
    pixels: Indices,
    measures: tuple[Measure, ...],
    maxima: tuple[float, ...],
    rounding: Rounding,
    stated: Stated | None = None,
    memory: Memory | None = None,
) -> Pixels:
    """Return decisions and measures of these pixels, count stated probabilities; see `compiled.measure`."""
    classes = probabilities.shape[1]
    stored = np.moveaxis(probabilities, 1, 2).reshape(-1, classes)[pixels].astype(np.float64)
    predicted = stored.argmax(axis=1)
    rest = stored.copy()
    np.put_along_axis(rest, predicted[:, None], -np.inf, axis=1)
    second = rest.argmax(axis=1)
    confused = (stored > rounding.level).sum(axis=1)
    clipped = np.clip(stored, 0.0, 1.0)
    total = clipped.sum(axis=1)
    state = states_of(stored, total, rounding.tolerance, rounding.exact)
    usable = (state & (MISSING | OFF)) == 0
    p = clipped[usable] / total[usable, None]
    values = np.full((len(measures), pixels.size), np.nan)
    for row, uncertainty, maximum in zip(values, measures, maxima, strict=True):
        if is_pointwise(uncertainty):
            row[usable] = measure_values(uncertainty, p, axis=1, maximum=maximum)
    predicted, second, confused = (indices.astype(np.int16) for indices in (predicted, second, confused))
    found = Pixels(values, predicted, second, confused, np.clip(stored.max(axis=1), None, 1.0), state)
    if stated is not None:
        truth = np.where(usable, stated.truth, -1)
        count_confidence(truth, found, stated.finder, stated.winning)
        count_probabilities(probabilities, pixels, truth, stated.finder, stated.scores)
    return found


def group_decisions(reference: Indices, batch: Pixels, classes: int, memory: Memory | None = None) -> Groups:
    """Return the Groups of pixels; see `compiled.group_decisions`."""
    counted = np.flatnonzero(reference >= 0)
    wrong = batch.predicted[counted] != reference[counted]
    second = wrong & (batch.second[counted] == reference[counted])
    keys = np.stack([reference[counted], batch.predicted[counted], second, batch.confused[counted]])
    order = np.lexsort(keys[::-1])
    changes = (np.diff(keys[:, order], axis=1, prepend=-1) != 0).any(axis=0)
    starts = np.append(np.flatnonzero(changes), counted.size)
    place = np.full(reference.size, counted.size, np.int32)
    place[counted[order]] = np.arange(counted.size)
    c, k, second, number = keys[:, order[starts[:-1]]].astype(np.int64)
    pair = (c * classes + k) * 2 + second
    sorted_, right = counted[order].astype(np.int32), c == k
    return Groups(sorted_, place, starts.astype(np.int32), c * 2 + right, pair, number * 2 + right)


def count_decisions(
    groups: Groups | None,
    reference: Indices,
    batch: Pixels,
    pairs: Counts,
    by_confused: Counts,
    tiles: TileRows = NO_TILES,
) -> None:
    """Add pixels to the counts of decisions; see `compiled.count_decisions`."""
    counted = np.flatnonzero(reference >= 0)
    c, k = reference[counted], batch.predicted[counted]
    right = c == k
    second = ~right & (batch.second[counted] == c)
    np.add.at(pairs, (c, k, second.astype(np.int64)), 1)
    np.add.at(by_confused, (batch.confused[counted], right.astype(np.int64)), 1)
    if tiles.row.size:
        np.add.at(tiles.counts, (tiles.row[counted], tiles.starts[0] + c * len(pairs) + k), 1)


def count_values(
    values: AnyFloats,
    groups: Groups,
    reference: Indices,
    batch: Pixels,
    bins: Sequence[ValueBins],
    tiles: TileRows = NO_TILES,
    memory: Memory | None = None,
) -> None:
    """Add the values of all measures to their histograms and power sums; see `compiled.count_values`."""
    counted = groups.order
    c, k = reference[counted], batch.predicted[counted]
    right = (c == k).astype(np.int64)
    second = ((c != k) & (batch.second[counted] == c)).astype(np.int64)
    for i, (found, of) in enumerate(zip(values, bins, strict=True)):
        value, resolution = found[counted], power_sums.WIDE if of.wide else power_sums.BOUNDED
        cell = _bins(of.finder, value)
        np.add.at(of.counts.histogram, (c, right, cell), 1)
        sums = power_sums.encode(value if of.wide else value / of.upper, 3, resolution)
        np.add.at(of.counts.by_pair, (c, k, second), sums[:, : resolution.width(2)])
        np.add.at(of.counts.by_confused, (batch.confused[counted], right), sums)
        if tiles.row.size:
            rows = tiles._replace(starts=tiles.starts[2 * i : 2 * i + 2])
            _add_values(rows, counted, right, cell, len(of.finder.edges) - 1, sums)


def count_confidence(
    reference: Indices, batch: Pixels, finder: Finder, tally: Counts, tiles: TileRows = NO_TILES
) -> None:
    """Add the winning class's stated probability to its bins; see `compiled.count_confidence`."""
    counted = reference >= 0
    x = batch.confidence[counted]
    bins = _bins(finder, x)
    tallies = _tallies(batch.predicted[counted] == reference[counted], x)
    np.add.at(tally, bins, tallies)
    if tiles.row.size:
        _add_tallies(tiles, tiles.row[counted], int(tiles.starts[0]), bins, tallies)


def count_with_confidence(
    values: Floats,
    upper: float,
    bins: Finder,
    reference: Indices,
    batch: Pixels,
    confidence_bins: Finder,
    counts: Counts,
) -> None:
    """Add pixels to the joint counts of confidence and a measure; see `compiled.count_with_confidence`."""
    counted = reference >= 0
    right = (batch.predicted[counted] == reference[counted]).astype(np.int64)
    cells = (right, _bins(confidence_bins, batch.confidence[counted]), _bins(bins, values[counted]))
    np.add.at(counts, cells, 1)


def count_probabilities(
    probabilities: AnyFloats,
    pixels: Indices,
    reference: Indices,
    finder: Finder,
    counts: ScoreCounts,
    tiles: TileRows = NO_TILES,
) -> None:
    """Add every class's stated probability to bins and proper scores; see `compiled.count_probabilities`."""
    tally, squared_error, log_loss, infinite = counts
    classes = probabilities.shape[1]
    counted = reference >= 0
    c = reference[counted]
    stored = np.moveaxis(probabilities, 1, 2).reshape(-1, classes)[pixels[counted]]
    p = np.clip(stored.astype(np.float64), 0.0, 1.0)
    bins = _bins(finder, p)
    every = np.broadcast_to(np.arange(classes), p.shape)
    true = every == c[:, np.newaxis]
    single = probabilities.dtype == np.float32  # summed in steps of one limb
    tallies = _tallies(true, np.rint(p * 2.0**LIMB_BITS) * 2.0**-LIMB_BITS if single else p)
    np.add.at(tally, (every, bins), tallies)
    error = fixed_point.encode(np.square(p - true).sum(axis=1))
    squared_error += error.sum(axis=0)
    of_true = p[true]
    loss = fixed_point.encode(-np.log(np.where(of_true > 0, of_true, 1.0)))
    log_loss += loss.sum(axis=0)
    infinite += np.count_nonzero(of_true == 0)
    if tiles.row.size:
        rows = tiles.row[counted]
        for k, start in enumerate(tiles.starts[3:].tolist()):
            _add_tallies(tiles, rows, start, bins[:, k], tallies[:, k])
        _add_scores(tiles, rows, error, loss, of_true == 0)


def _bins(finder: Finder, values: Floats) -> Indices:
    """Return the bins of values; the first or the last for values out of range."""
    return np.clip(np.searchsorted(finder.edges, values, side="left") - 1, 0, finder.edges.size - 2)


def _tallies(came_true: Bools, stated: Floats) -> Counts:
    """Return the contribution of each item to the tally of its bin, (..., 4)."""
    counts = np.stack([np.ones_like(came_true, np.int64), came_true.astype(np.int64)], axis=-1)
    return np.concatenate([counts, fixed_point.encode(stated)], axis=-1)


def count_binary(
    first: AnyFloats,
    second: AnyFloats,
    reference: Indices,
    finder: Finder,
    decisions: tuple[Counts, ...],
    scores: ScoreCounts,
    left: Indices,
) -> int:
    """Add pixels of a binary prediction that need no repair; see `binary.count_binary`."""
    probabilities, pixels = _plain_pairs(first, second, reference)
    batch, truth = measure(probabilities, pixels, (), (), Rounding(1.0, 1.0, 0.5)), reference[pixels]
    pairs, by_confused, winning = decisions
    count_decisions(None, truth, batch, pairs, by_confused)
    count_confidence(truth, batch, finder, winning)
    count_probabilities(probabilities, pixels, truth, finder, scores)
    others = np.setdiff1d(np.flatnonzero(reference >= 0), pixels)
    left[: others.size] = others
    return others.size


def count_binary_jointly(
    first: AnyFloats,
    second: AnyFloats,
    reference: Indices,
    u: AnyFloats,
    class_index: int,
    grid: RowGrid,
    upper: float,
    moments: Counts,
) -> None:
    """Add pixels that need no repair to a joint histogram; see `binary.count_binary_jointly`."""
    probabilities, pixels = _plain_pairs(first, second, reference)
    positive = reference[pixels] == class_index
    rows, offsets = np.empty(pixels.size, np.int64), np.empty(pixels.size)
    if grid.edges.size:
        find_rows(probabilities[pixels, class_index, 0], positive, grid, rows, offsets)
    else:
        rows[:] = (probabilities[pixels, class_index, 0] + 0.0).astype(np.float16).view(np.uint16)
    count_joint(rows, offsets, positive.astype(np.int64), u[pixels].astype(np.float64), upper, moments)


def count_binary_softly(
    first: AnyFloats, second: AnyFloats, reference: Indices, u: AnyFloats, grid: SoftGrid, weights: Counts
) -> None:
    """Add pixels that need no repair to the weights at every setting; see `soft.count_binary_softly`."""
    probabilities, pixels = _plain_pairs(first, second, reference)
    p, positive = probabilities[pixels, grid.class_index, 0].astype(np.float64), reference[pixels] == grid.class_index
    for i, k, m in np.ndindex(weights.shape[:3]):
        t, factor = (
            float(grid.thresholds[i]),
            damping_factor(u[pixels].astype(np.float64), float(grid.dampings[m]), grid.form),
        )
        weight = certainty(p, t, float(grid.sigmas[k])) * grid.certainty[i, k][positive.astype(np.int64)] * factor
        sum_soft_weights(weight, find_cells(p, positive, t), weights[i, k, m])


def count_cells(
    first: AnyFloats, second: AnyFloats, reference: Indices, class_index: int, threshold: float, counts: Counts
) -> None:
    """Add binary pixels that need no repair to counts of cells; see `soft.count_cells`."""
    probabilities, pixels = _plain_pairs(first, second, reference)
    cells = find_cells(probabilities[pixels, class_index, 0], reference[pixels] == class_index, threshold)
    counts += np.bincount(cells, minlength=counts.size)


def count_codes(codes: NDArray[np.uint8], reference: Indices, cells: Counts) -> None:
    """Count pixels by class and code; see `histograms.count_codes`."""
    np.add.at(cells[0], (np.where(reference >= 0, reference, -1), codes), 1)


def _plain_pairs(first: AnyFloats, second: AnyFloats, reference: Indices) -> tuple[AnyFloats, Indices]:
    """Return both classes' probabilities (n, 2, 1), and which pixels count and have them in [0, 1]."""
    pixels = np.flatnonzero((reference >= 0) & (second >= 0) & (second <= 1))
    return np.stack([first if first.size else 1 - second, second], axis=1)[:, :, np.newaxis], pixels


def filled_cells(counts: Counts) -> tuple[Counts, Indices, Counts]:
    """Turn rows into sparse ones; see `sparse_rows.filled_cells`."""
    rows, cells = np.nonzero(counts)
    return np.bincount(rows, minlength=len(counts)), cells, counts[rows, cells]


def sort_by_zone(of: Indices, selected: Bools, zones: int) -> tuple[Indices, Counts, Counts]:
    """Sort pixels by zone; see `sparse_rows.sort_by_zone`."""
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(np.bincount(of[selected], minlength=zones))
    return order[selected[order]], np.bincount(of, minlength=zones), ends


def _add_values(
    tiles: TileRows, counted: NDArray[np.int32], right: Indices, bins: Indices, number: int, powers: Counts
) -> None:
    """Add values of counted pixels to histograms (right, bin) and power sums (right, sums).

    right, bins: (counted,); powers: (counted, sums); number: of bins.
    """
    rows = tiles.row[counted]
    np.add.at(tiles.counts, (rows, tiles.starts[0] + right * number + bins), 1)
    start = tiles.starts[1] + right * powers.shape[1]
    np.add.at(tiles.counts, _cells(rows, start, powers.shape[1]), powers)


def _add_tallies(tiles: TileRows, rows: Indices, start: int, bins: Indices, tallies: Counts) -> None:
    """Add tallies (n, 4) to those of the job's bins, which start at a cell of each row."""
    np.add.at(tiles.counts, _cells(rows, start + 4 * tiles.bins[bins], 4), tallies)


def _add_scores(tiles: TileRows, rows: Indices, error: Counts, loss: Counts, infinite: Bools) -> None:
    """Add proper scores in fixed point, (n, 2) each, and count infinite ones."""
    for start, limbs in zip(tiles.starts[:2], (error, loss), strict=True):
        np.add.at(tiles.counts, _cells(rows, np.full(len(rows), start), 2), limbs)
    np.add.at(tiles.counts, (rows[infinite], tiles.starts[2]), 1)


def _cells(rows: Indices, start: Indices, width: int) -> tuple[Indices, Indices]:
    """Return the indices of `width` neighbouring cells of each row, from `start` on."""
    return rows[:, np.newaxis], start[:, np.newaxis] + np.arange(width)
