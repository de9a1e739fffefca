"""The pass over one block, compiled with numba and without the interpreter's lock.

Pixels are gathered into strips of 128 or 256, class by class; a short one is padded with a harmless pixel. Only
IEEE basic operations, no fastmath, so vector body and remainder agree and so do all CPUs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels import measures as steps
from dask_uncert.blocks.kernels import singles
from dask_uncert.blocks.kernels.binary import count_binary, count_binary_jointly
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.confidence_joint import count_with_confidence
from dask_uncert.blocks.kernels.elementary_singles import NOTHING, ONE
from dask_uncert.blocks.kernels.ensemble import add_member, close_members
from dask_uncert.blocks.kernels.histograms import (
    count_codes,
    count_confidence,
    count_decisions,
    group_decisions,
)
from dask_uncert.blocks.kernels.joint import class_probabilities, count_joint, find_rows
from dask_uncert.blocks.kernels.measures import STRIDE, STRIP
from dask_uncert.blocks.kernels.memory import Memory, kept, strips, zeros
from dask_uncert.blocks.kernels.probabilities import (
    ITEMS,
    Work,
    count_probabilities,
    count_tile,
    stated_work,
    take_apart,
)
from dask_uncert.blocks.kernels.singles import PITCH, ROWS, TILE
from dask_uncert.blocks.kernels.soft import (
    certainties,
    count_binary_softly,
    count_cells,
    damping_factors,
    find_cells,
    sum_soft_weights,
)
from dask_uncert.blocks.kernels.sparse_rows import filled_cells, sort_by_zone
from dask_uncert.blocks.kernels.types import NO_TILES, AnyFloats, Pixels, Rounding, ScoreCounts, Stated, finder
from dask_uncert.blocks.kernels.values import count_values
from dask_uncert.formulas.homophily import squared_distances
from dask_uncert.formulas.measures import Measure
from dask_uncert.formulas.typing import Floats, Indices

__all__ = [
    "add_member",
    "certainties",
    "class_probabilities",
    "close_members",
    "count_binary",
    "count_binary_jointly",
    "count_binary_softly",
    "count_cells",
    "count_codes",
    "count_confidence",
    "count_decisions",
    "count_joint",
    "count_probabilities",
    "count_values",
    "count_with_confidence",
    "damping_factors",
    "filled_cells",
    "find_cells",
    "find_rows",
    "group_decisions",
    "measure",
    "sort_by_zone",
    "sum_soft_weights",
]

(
    EUCLIDEAN,
    KULLBACK_LEIBLER,
    FISHER_RAO,
    RENYI,
    TSALLIS,
    T_ENTROPY,
    VARIANCE,
    HOMOPHILY,
    MAX_PROBABILITY,
    MARGIN,
    OTHER,
) = range(11)
GEOMETRIC_CODES = {
    "euclidean": EUCLIDEAN,
    "kullback-leibler": KULLBACK_LEIBLER,
    "fisher-rao": FISHER_RAO,
    "renyi": RENYI,
}
SINGLES = (
    EUCLIDEAN,
    KULLBACK_LEIBLER,
    FISHER_RAO,
    VARIANCE,
    MAX_PROBABILITY,
    MARGIN,
    HOMOPHILY,
    OTHER,
)  # in float32 where the data are
CODES = {
    "renyi": RENYI,
    "tsallis": TSALLIS,
    "t_entropy": T_ENTROPY,
    "variance": VARIANCE,
    "max_probability": MAX_PROBABILITY,
    "margin": MARGIN,
    "homophily": HOMOPHILY,
}
NO_COUNTS = np.empty(0, np.int64)
NOT_STATED = Stated(NO_COUNTS, finder((0.0, 1.0), 1.0), NO_COUNTS, ScoreCounts(*[NO_COUNTS] * 4))
NO_WORK = stated_work(0, NOT_STATED.finder)


def measure(
    probabilities: AnyFloats,
    pixels: Indices,
    measures: tuple[Measure, ...],
    maxima: tuple[float, ...],
    rounding: Rounding,
    stated: Stated | None = None,
    memory: Memory | None = None,
) -> Pixels:
    """Return decisions and measures of these pixels; where they are to be counted, also count probabilities as stated.

    probabilities: (a, classes, b) float32 or float64, any strides, not written to; pixel number i * b + j is
    the vector [i, :, j]. pixels: (n,) such numbers. maxima: for homophily `homophily_maximum` of its
    `squared_distances`, else unused. Rows of measures that are not functions of the vector alone are left
    NaN. stated: pixels count where its truth is not negative and the vector is usable. memory: where the result may lie.
    """
    tables, memory = _tables(measures, maxima, probabilities.shape[1]), memory or Memory()
    n = pixels.size
    values, is_single = steps.any_layout(probabilities), probabilities.dtype == np.float32
    in_float32, in_float64 = _rows(measures, maxima, probabilities.shape[1])
    narrow = is_single and not in_float64.size and OTHER not in tables[0]  # own values are float64
    predicted, second, confused = (memory.empty(name, (n,), np.int16) for name in ("predicted", "second", "confused"))
    out = Pixels(
        # The values of a pixel lie side by side.
        memory.empty("values", (n, len(measures)), np.float32 if narrow else np.float64).T,
        predicted,
        second,
        confused,
        memory.empty("confidence", (n,), np.float64),
        memory.empty("state", (n,), np.uint8),
    )
    if is_single:
        codes, orders, _, squares = tables
        work = *kept(_tile, probabilities.shape[1]), *_counting(stated, probabilities.shape[1])
        _measure_singles(values, pixels, in_float32, codes, orders, squares, rounding, out, *work)
    if in_float64.size or not is_single:
        rows = in_float64 if is_single else np.arange(len(measures))
        _measure(values, pixels, rows, *tables, rounding, out, *kept(_strips, probabilities.shape[1]))
    if stated is not None and not is_single:
        truth = np.where(out.state & 3, -1, stated.truth)
        count_confidence(truth, out, stated.finder, stated.winning, NO_TILES)
        count_probabilities(probabilities, pixels, truth, stated.finder, stated.scores, NO_TILES)
    return out


def _tile(classes: int) -> tuple[NDArray[Any], ...]:
    tile, shared = zeros((classes, PITCH), np.float32), zeros((ROWS, PITCH), np.float32)
    floats_and_bits = tile, tile.view(np.int32), shared, shared.view(np.int32)
    return *floats_and_bits, zeros((TILE,)), zeros((TILE,), np.int64)


def _strips(classes: int) -> tuple[Any, ...]:
    return *zeros((2, classes, STRIDE)), strips(12, STRIP), zeros((STRIP,), np.uint8)


def _counting(stated: Stated | None, classes: int) -> tuple[Stated, Work]:
    """Return `stated` with flat tallies, and the memory for counting; empty ones for None."""
    if stated is None:
        return NOT_STATED, NO_WORK
    scores = stated.scores._replace(classwise=stated.scores.classwise.reshape(-1))
    flat = stated._replace(winning=stated.winning.reshape(-1), scores=scores)
    return flat, stated_work(classes, stated.finder)


@lru_cache(maxsize=64)
def _rows(measures: tuple[Measure, ...], maxima: tuple[float, ...], classes: int) -> tuple[Indices, Indices]:
    """Return the numbers of the measures that float32 data get in float32, and of the others."""
    single = np.isin(_tables(measures, maxima, classes)[0], SINGLES)
    return np.flatnonzero(single), np.flatnonzero(~single)


@lru_cache(maxsize=64)
def _tables(
    measures: tuple[Measure, ...], maxima: tuple[float, ...], classes: int
) -> tuple[Indices, Indices, Floats, Floats]:
    codes = np.full(len(measures), OTHER, np.int64)
    orders = np.ones(len(measures), np.int64)
    alphas = np.ones(len(measures))
    squares = np.zeros((len(measures), *[classes + -classes % 4] * 2))
    for i, measure in enumerate(measures):
        code = (
            GEOMETRIC_CODES[measure.distance or ""] if measure.kind == "geometric" else CODES.get(measure.kind, OTHER)
        )
        codes[i], orders[i] = code, measure.n or 1
        alphas[i] = 1.0 if measure.alpha is None or abs(measure.alpha - 1.0) <= 1e-6 else measure.alpha
        if code in (RENYI, TSALLIS) and alphas[i] == 1.0:
            codes[i] = KULLBACK_LEIBLER
        if code == HOMOPHILY:
            squares[i, :classes, :classes] = squared_distances(measure.distances or ()) / maxima[i]
    return codes, orders, alphas, squares


@compiled
def _measure_singles(
    probabilities, pixels, wanted, codes, orders, squares, rounding, result, p, bits, floats, rows, total, places, stated, work
):  # fmt: skip
    """Measure tile by tile, and count; bits, rows: p and floats as int32, in the same memory."""
    n, level, truth = pixels.size, np.float32(rounding.level), rows[singles.ODD]
    best, rest, top, hole, values = (
        floats[singles.BEST], floats[singles.REST], floats[singles.TOP], floats[singles.HOLE], floats[singles.VALUE],
    )  # fmt: skip
    for start in range(0, n, TILE):
        width = min(TILE, n - start)
        singles.gather(probabilities, pixels, start, width, p, places)
        singles.decide(bits, p, level, rounding, rows)
        singles.add_up(p, floats, rows, total, rounding)
        if stated.truth.size > 0:
            of_tile = stated.truth[start : start + width]
            for j in range(width):
                usable = np.int32(rows[singles.STATE, j] & np.int32(3)) == np.int32(0)
                truth[j] = np.int32(of_tile[j]) if usable else np.int32(-1)
            count_tile(p, truth, rows[singles.FIRST], best, width, stated.finder, stated.winning, stated.scores, work)
            if start % ITEMS == ITEMS - TILE:
                take_apart(work, stated.scores.classwise, stated.winning)
        if wanted.size > 0:
            singles.normalise(p, floats, rows, total)
        end = start + width
        for row, target in (
            (rows[singles.FIRST], result.predicted), (rows[singles.SECOND], result.second), (rows[singles.OVER], result.confused),
        ):  # fmt: skip
            kept = target[start:end]
            for j in range(width):
                kept[j] = row[j]
        confidence, states = result.confidence[start:end], result.state[start:end]
        for j in range(width):
            confidence[j] = best[j]
        for j in range(width):
            states[j] = rows[singles.STATE, j]
        for m in wanted:
            if codes[m] == EUCLIDEAN:
                singles.euclidean(p, floats, rows, orders[m])
            elif codes[m] == KULLBACK_LEIBLER:
                singles.kullback_leibler(p, floats, orders[m])
            elif codes[m] == FISHER_RAO:
                singles.fisher_rao(p, floats, rows, orders[m])
            elif codes[m] == HOMOPHILY:
                singles.homophily(p, floats, squares[m])
            else:
                for j in range(TILE):
                    x, code = rest[j], codes[m]
                    more = rest[j] + p[rows[singles.SECOND, j], j] if code == MARGIN else x
                    x = np.float32(4.0) * top[j] * x if code == VARIANCE else more
                    values[j] = x if code != OTHER else np.float32(np.nan)
            for j in range(TILE):
                x = values[j]
                values[j] = (NOTHING if x <= NOTHING else (ONE if x > ONE else x)) + hole[j]
            for j in range(width):
                result.values[np.uint64(m), np.uint64(start + j)] = values[j]
    take_apart(work, stated.scores.classwise, stated.winning)


@compiled
def _measure(
    probabilities, pixels, rows, codes, orders, alphas, squares, rounding, result, p, logs, work, states
):  # fmt: skip
    """Measure strip by strip. p, logs: (classes, STRIDE); work: twelve (STRIP,); states: (STRIP,); overwritten."""
    n, wants_logs = pixels.size, False
    best, runner, lowest, total, first_index, second_index, over, rest, tops, hole, values, scratch = work
    for m in rows:
        if codes[m] == KULLBACK_LEIBLER or codes[m] == RENYI or codes[m] == TSALLIS:
            wants_logs = True
    for start in range(0, n, STRIP):
        width = min(STRIP, n - start)
        steps.gather(probabilities, pixels, start, width, p)
        steps.decide(p, rounding.level, best, runner, lowest, first_index, second_index, over)
        steps.normalise(p, first_index, best, rest, total, lowest, hole, rounding, states)
        if wants_logs:
            steps.find_logs(p, first_index, rest, tops, logs)
        for j in range(width):
            result.predicted[start + j] = np.int64(first_index[j])
            result.second[start + j] = np.int64(second_index[j])
            result.confused[start + j] = np.int64(over[j])
            result.confidence[start + j] = best[j]
            result.state[start + j] = states[j]
        for m in rows:
            if codes[m] == EUCLIDEAN:
                steps.euclidean(p, first_index, rest, orders[m], values, scratch)
            elif codes[m] == KULLBACK_LEIBLER:
                steps.kullback_leibler(p, logs, orders[m], values)
            elif codes[m] == FISHER_RAO:
                steps.fisher_rao(p, first_index, best, total, rest, orders[m], values, scratch)
            elif codes[m] == RENYI:
                steps.renyi(p, logs, first_index, rest, tops, alphas[m], orders[m], values)
            elif codes[m] == TSALLIS:
                steps.tsallis(p, logs, first_index, rest, alphas[m], values)
            elif codes[m] == T_ENTROPY:
                steps.t_entropy(p, first_index, rest, values)
            elif codes[m] == VARIANCE:
                for j in range(STRIP):
                    values[j] = 4.0 * (best[j] / total[j]) * rest[j]
            elif codes[m] == MAX_PROBABILITY:
                for j in range(STRIP):
                    values[j] = rest[j]
            elif codes[m] == MARGIN:
                for j in range(STRIP):
                    second = runner[j] if runner[j] > 0.0 else 0.0
                    values[j] = rest[j] + (second if second < 1.0 else 1.0) / total[j]
            elif codes[m] == HOMOPHILY:
                steps.homophily(p, squares[m], values, scratch)
            else:
                for j in range(STRIP):
                    values[j] = np.nan
            steps.bounded(values, hole)
            for j in range(width):
                result.values[m, start + j] = values[j]
