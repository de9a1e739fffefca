"""Binary predictions without a class axis, compiled: decisions, calibration and joint histograms in one go.

A pixel whose p lies in [0, 1] has nothing to be repaired: its counts are those that the other kernels leave. Pixels are
taken in strips that stay in the nearest cache; of a bin, number and sums are packed into one int64 and taken apart
before they overflow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.bins import find_bins_of_singles
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.elementary import logarithm
from dask_uncert.blocks.kernels.joint import add_jointly, cell_strips, find_halves, find_rows
from dask_uncert.blocks.kernels.memory import kept, strips, zeros
from dask_uncert.blocks.kernels.probabilities import ITEMS, ONE, SUM_BITS, add_fixed, in_steps
from dask_uncert.blocks.kernels.types import BINARY_TILE as TILE
from dask_uncert.blocks.kernels.types import AnyFloats, Finder, RowGrid, ScoreCounts
from dask_uncert.formulas.fixed_point import LIMB_BITS
from dask_uncert.formulas.typing import Counts, Floats, Indices

ONE_BITS = np.int32(0x3F800000)
"""The bits of the float32 number 1."""
FINE_BITS = 2  # of float32 probabilities from 1/2 to 1, below the high limb
FINE = np.int32((1 << FINE_BITS) - 1)
MOST_WINNERS = (1 << 13) - 1  # of a packed bin, before they are taken apart
FINE_PLACE = 35  # above so many high limbs
WON_BITS = 50  # above so many of both
WON = 1 << WON_BITS


def count_binary(
    first: AnyFloats,
    second: AnyFloats,
    reference: Indices,
    finder: Finder,
    decisions: tuple[Counts, ...],
    scores: ScoreCounts,
    left: Indices,
) -> int:
    """Add pixels with p in [0, 1] to decisions and calibration; return how many others count, whose numbers are in `left`.

    second: (n,) float32, the second class's probability; first: the other's, (0,) for one minus it. reference: (n,) class index, negative where the pixel does not count.
    finder: of bins over [0, 1]. decisions: pairs and by_confused as of `count_decisions`, the tally of `count_confidence`;
    scores: the `ScoreCounts`. left: (n,), written.
    """
    work = kept(_work, scores.classwise.shape[1])
    return int(_count_binary(first, second, reference, finder, decisions, scores, left, work))


class Work(NamedTuple):
    """Memory that `_count_binary` overwrites; `packed` has zeros before and after."""

    packed: Counts  # (3, 2, bins): both classes and the winner; whether it is the true one
    p: NDArray[np.float32]  # (2, TILE)
    bin_of: NDArray[np.int32]  # (2, TILE)
    share: NDArray[np.int32]  # (2, TILE)
    place: NDArray[np.int32]  # (3, TILE)
    truth: NDArray[np.int32]  # (TILE,)
    wins: NDArray[np.int32]  # (TILE,)
    best: Indices  # (TILE,)
    errors: Floats  # (TILE,)
    stated: Floats  # (TILE,)
    losses: Floats  # (TILE,)


def _work(bins: int) -> Work:
    (truth, wins), (errors, stated, losses) = strips(2, TILE, np.int32), strips(3, TILE)
    return Work(
        packed=zeros((3, 2, bins), np.int64),
        p=zeros((2, TILE), np.float32),
        bin_of=zeros((2, TILE), np.int32),
        share=zeros((2, TILE), np.int32),
        place=zeros((3, TILE), np.int32),
        truth=truth,
        wins=wins,
        best=zeros((TILE,), np.int64),
        errors=errors,
        stated=stated,
        losses=losses,
    )


@compiled
def _count_binary(first, second, reference, finder, decisions, scores, left, work):
    tally, number, winners, start, others = scores.classwise, np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    bins, slack = np.int32(tally.shape[1]), np.float32(finder.uneven)
    packed, p, bin_of, share, place, truth, wins, best, errors, stated, losses = work
    flat = packed.reshape(-1)
    nothing, one, steps = np.float32(0.0), np.float32(1.0), np.float32(1 << LIMB_BITS + FINE_BITS)
    while start < reference.size:
        width = np.int64(0)
        end = min(start + TILE, reference.size)
        if all_plain(second[start:end], reference[start:end]):
            width = end - start
            _copy(first[start:end], second[start:end], reference[start:end], p, truth)
            start = end
        while start < reference.size and width < TILE:
            x, c = second[start], reference[start]
            usual, counts = (x >= nothing) & (x <= one), c >= 0
            truth[width], p[0, width], p[1, width] = c, one - x if first.size == 0 else first[start], x
            left[others] = start
            width += np.int64(counts & usual)
            others += np.int64(counts & (not usual))
            start += 1
        for j in range(width, TILE):
            truth[j], p[0, j], p[1, j] = np.int32(0), one, nothing
        for k in range(2):
            find_bins_of_singles(p[k], bins, slack, finder, bin_of[k])
            for j in range(TILE):
                share[k, j] = in_steps(p[k, j])
        _find_places(p, truth, bin_of, bins, wins, place)
        for j in range(TILE):
            x, y, is_second = p[0, j], p[1, j], truth[j] == np.int32(1)
            of_first, of_second = x - (nothing if is_second else one), y - (one if is_second else nothing)
            errors[j] = of_first * of_first + of_second * of_second
            stated[j] = y if is_second else x
        for j in range(TILE):
            w = np.int32(max(p[0, j], p[1, j]) * steps)  # a winner is 1/2 or more, which float32 has in these steps
            best[j] = WON + (np.int64(w & FINE) << FINE_PLACE) + np.int64(np.int32(w >> FINE_BITS))
        none = np.int64(0)
        for j in range(TILE):
            none += np.int64(stated[j] == 0.0)
            losses[j] = -logarithm(stated[j] if stated[j] > 0.0 else 1.0)
        scores.infinite[0] += none
        add_fixed(errors, scores.squared_error)
        add_fixed(losses, scores.log_loss)
        for j in range(width):
            flat[np.uint64(place[0, j])] += ONE + share[0, j]
            flat[np.uint64(place[1, j])] += ONE + share[1, j]
            flat[np.uint64(place[2, j])] += best[j]
        _add_decisions(p, truth, wins, width, decisions)
        number, winners = number + width, winners + width
        if winners > MOST_WINNERS - TILE or start == reference.size:
            _take_winners_apart(packed[2], decisions[2])
            winners = np.int64(0)
        if number > ITEMS - TILE or start == reference.size:
            _take_apart(packed, tally)
            number = np.int64(0)
    return others


@compiled(step=True)
def all_plain(second, reference):
    """Return whether all pixels count, with p in [0, 1]."""
    bits, usual, counts = second.view(np.int32), np.int32(0), np.int8(0)
    for i in range(reference.size):  # the bits of p in [0, 1], but for -0.0, lie between those of 0 and 1
        usual = np.int32(usual | np.int32(bits[i] | np.int32(ONE_BITS - bits[i])))
    for i in range(reference.size):
        counts = np.int8(counts | reference[i])
    return (usual >= 0) & (counts >= 0)


@compiled(step=True)
def _copy(first, second, reference, p, truth):
    for j in range(reference.size):
        truth[j] = reference[j]
        p[1, j] = second[j]
    for j in range(reference.size if first.size == 0 else 0):
        p[0, j] = np.float32(1.0) - second[j]
    for j in range(first.size):
        p[0, j] = first[j]


@compiled(step=True)
def _find_places(p, truth, bin_of, bins, wins, place):
    """Write whether the second class wins, and each pixel's place in packed bins: both classes', and the winner's."""
    more = np.int32(2 * bins)
    for j in range(TILE):  # as int64, half as many would fit into a SIMD register
        wins[j] = np.int32(p[1, j] > p[0, j])
    for j in range(TILE):
        place[0, j] = np.int32((np.int32(0) if truth[j] == np.int32(1) else bins) + bin_of[0, j])
    for j in range(TILE):
        place[1, j] = np.int32(more + np.int32((bins if truth[j] == np.int32(1) else np.int32(0)) + bin_of[1, j]))
    for j in range(TILE):  # without a condition, which LLVM would make a jump
        a, b = bin_of[0, j], bin_of[1, j]
        place[2, j] = np.int32(a ^ np.int32(np.int32(a ^ b) & np.int32(-wins[j])))
    for j in range(TILE):
        right = bins if wins[j] == truth[j] else np.int32(0)
        place[2, j] = np.int32(np.int32(more + more) + np.int32(right + place[2, j]))


@compiled(step=True)
def _add_decisions(p, truth, wins, width, decisions):
    pairs, by_confused, _ = decisions
    positive, ones, both = np.int32(0), np.int32(0), np.int32(0)
    even, even_right = np.int32(0), np.int32(0)  # no class is above 1/2: the first is on it and wins
    half = np.float32(0.5)
    for j in range(width):
        c, middle = truth[j], np.int32((p[0, j] <= half) & (p[1, j] <= half))
        positive = np.int32(positive + c)
        ones = np.int32(ones + wins[j])
        both = np.int32(both + np.int32(c & wins[j]))
        even = np.int32(even + middle)
        even_right = np.int32(even_right + np.int32(middle & np.int32(np.int32(1) - c)))
    wrong = positive + ones - 2 * both
    pairs[0, 0, 0] += width - positive - ones + both
    pairs[0, 1, 1] += ones - both
    pairs[1, 0, 1] += positive - both
    pairs[1, 1, 0] += both
    by_confused[0, 1] += even_right
    by_confused[0, 0] += even - even_right
    by_confused[1, 1] += width - wrong - even_right
    by_confused[1, 0] += wrong - even + even_right


@compiled(step=True)
def _take_apart(packed, tally):
    """Add both classes' packed bins to the tally, and set them to 0: items above their shares in steps of one limb."""
    for k in range(2):
        for true in range(2):
            for b in range(packed.shape[2]):
                item = packed[k, true, b]
                tally[k, b, 0] += item >> SUM_BITS
                tally[k, b, 1] += true * (item >> SUM_BITS)
                tally[k, b, 2] += item & (ONE - 1)
                packed[k, true, b] = 0


@compiled(step=True)
def _take_winners_apart(packed, winning):
    """Add the winner's packed bins, and set them to 0: items above low limbs, in steps of 2**-24, above high ones."""
    for true in range(2):
        for b in range(packed.shape[1]):
            item = packed[true, b]
            if item != 0:
                winning[b, 0] += item >> WON_BITS
                winning[b, 1] += true * (item >> WON_BITS)
                winning[b, 2] += item & ((1 << FINE_PLACE) - 1)
                winning[b, 3] += ((item & (WON - 1)) >> FINE_PLACE) << (LIMB_BITS - FINE_BITS)
                packed[true, b] = 0


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
    """Add pixels with p in [0, 1] to the moments of a joint histogram, as `find_rows` and `count_joint` do.

    first, second, reference: as for `count_binary`; u: (n,), 0 or above. class_index: whose p it is. grid: the `RowGrid`;
    without edges, rows are the numbers of float16.
    """
    given = first, second, reference, u, class_index, grid, upper, moments
    _count_binary_jointly(*given, *kept(_strips), *kept(cell_strips))


def _strips() -> tuple[NDArray[Any], ...]:
    return *strips(3, TILE), *strips(2, TILE, np.int64), zeros((TILE,), np.bool_)


@compiled
def _count_binary_jointly(
    first, second, reference, u, class_index, grid, upper, moments, p, damp, offsets, rows, levels, above, x, cell,
):  # fmt: skip
    for start in range(0, reference.size, TILE):
        end = min(start + TILE, reference.size)
        width = plain_strip(
            first[start:end], second[start:end], reference[start:end], u[start:end], class_index, p, above, damp
        )
        for j in range(width):
            levels[j] = above[j]
        if grid.edges.size > 0:
            find_rows(p[:width], above, grid, rows, offsets)
        else:
            find_halves(p[:width], rows)
        add_jointly(rows[:width], offsets, levels, damp, upper, moments, x, cell)


@compiled(step=True)
def plain_strip(first, second, reference, u, class_index, p, positive, damp):
    """Write p of a class, whether the reference is it, and u of the pixels that count with p in [0, 1]; return how many."""
    number, one, is_second, computed = np.int8(class_index), np.float32(1.0), class_index == 1, first.size == 0
    if all_plain(second, reference):  # nothing is left out: SIMD
        for j in range(second.size):
            p[j] = second[j] if is_second else one - second[j]
            damp[j] = u[j]
        if not (is_second or computed):
            for j in range(second.size):
                p[j] = first[j]
        for j in range(second.size):
            positive[j] = reference[j] == number
        return second.size
    width = np.int64(0)
    for i in range(second.size):
        x, c = second[i], reference[i]
        p[width] = x if is_second else (one - x if computed else first[i])
        positive[width], damp[width] = c == number, u[i]
        width += np.int64((c >= 0) & (x >= np.float32(0.0)) & (x <= one))
    return width
