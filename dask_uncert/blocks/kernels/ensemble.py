"""Samples of a prediction, added one member at a time; compiled.

A member is normalised as by `measure` and added; only the running sums of a block are held in float64.
Members are added in their order, so a pixel has the same bits in every block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.measures import STRIDE, STRIP, any_layout, find_logs, gather
from dask_uncert.blocks.kernels.memory import kept, strips, zeros
from dask_uncert.blocks.kernels.types import (
    CLIPPED,
    ENTROPY_ROUNDING,
    MISSING,
    OFF,
    RENORMALISED,
    SMALLEST_SUM,
    AnyFloats,
)
from dask_uncert.formulas.typing import Floats, Indices


def add_member(
    probabilities: AnyFloats,
    pixels: Indices,
    tolerance: float,
    exact: float,
    sums: Floats,
    entropies: Floats,
    votes: NDArray[np.int32],
    state: NDArray[np.uint8],
) -> None:
    """Add one member at these pixels.

    probabilities: (a, classes, b) float32 or float64, any strides, not written to; pixel number i * b + j is
    the vector [i, :, j]. tolerance, exact: as in `Rounding`. By pixel number: sums (classes, N) of the
    normalised vectors, entropies (N,) in nats, votes (classes, N) for the largest as stored (ties to the
    lowest index), state (N,) the bits MISSING, OFF, CLIPPED, RENORMALISED of all members together.
    """
    stored, work = any_layout(probabilities), kept(_strips, len(sums))
    _add_member(stored, pixels, tolerance, exact, sums, entropies, votes, state, *work[:-1])


def _strips(classes: int) -> tuple[Any, ...]:
    p, logs = zeros((2, classes, STRIDE))
    return p, logs, strips(7, STRIP), zeros((STRIP,), np.uint8), zeros((STRIP,), np.int32)


@compiled
def _add_member(
    probabilities, pixels, tolerance, exact, sums, entropies, votes, state, p, logs, rows, codes
):  # fmt: skip
    """Add strip by strip. p, logs: (classes, STRIDE); rows: seven (STRIP,); codes: (STRIP,); overwritten."""
    classes, (best, lowest, total, entropy, first, rest, tops) = probabilities.shape[1], rows
    for start in range(0, pixels.size, STRIP):
        width = min(STRIP, pixels.size - start)
        here = pixels[start : start + width]
        gather(probabilities, pixels, start, width, p)
        for j in range(STRIP):
            best[j], lowest[j], total[j], entropy[j], rest[j] = -np.inf, np.inf, 0.0, 0.0, 0.0
            first[j] = 0.0  # stays so where all are NaN
        for c in range(classes):
            for j in range(STRIP):
                x, most, least, index = p[c, j], best[j], lowest[j], first[j]  # else stores have conditions
                first[j] = np.float64(c) if x > most else index
                best[j] = x if x > most else most
                lowest[j] = x if x < least else least
        for c in range(classes):
            for j in range(STRIP):
                x = p[c, j]
                x = 0.0 if x < 0.0 else (1.0 if x > 1.0 else x)
                p[c, j] = x
                total[j] += x
        for c in range(classes):
            for j in range(STRIP):
                p[c, j] /= total[j]  # a quotient, so that a vertex is exactly 1
                rest[j] += p[c, j] if first[j] != np.float64(c) else 0.0
        find_logs(p, first, rest, tops, logs)
        for c in range(classes):
            for j in range(STRIP):
                entropy[j] -= p[c, j] * logs[c, j]
        for j in range(STRIP):
            off = np.abs(total[j] - 1.0)
            missing = total[j] != total[j]
            clipped = (lowest[j] < 0.0) | (best[j] > 1.0)
            bad = (lowest[j] < -tolerance) | (best[j] > 1.0 + tolerance) | (off > tolerance)
            bad |= total[j] < SMALLEST_SUM
            code = (CLIPPED if clipped else 0) | (RENORMALISED if off > exact else 0)
            codes[j] = MISSING if missing else (OFF if bad else code)
        for j in range(width):
            i = np.uint64(here[j])
            state[i] |= codes[j]
            entropies[i] += entropy[j] if entropy[j] > 0.0 else 0.0
            votes[np.uint64(first[j]), i] += 1
        together = _are_neighbours(here)
        for c in range(classes):
            row = sums[c]
            if together:
                row = row[here[0] : here[0] + width]
                for j in range(width):
                    row[j] += p[c, j]
            else:
                for j in range(width):
                    row[np.uint64(here[j])] += p[c, j]


@compiled(step=True)
def _are_neighbours(pixels):
    apart = np.int64(0)
    for j in range(pixels.size):
        apart |= pixels[j] - (pixels[0] + j)
    return apart == 0


def close_members(
    pixels: Indices,
    samples: int,
    upper: float,
    sums: Floats,
    entropies: Floats,
    votes: NDArray[np.int32],
    state: NDArray[np.uint8],
    values: Floats,
) -> None:
    """Turn sums into means, in place, and write the measures of the samples.

    samples: how many were added; upper: ln classes. values: (4, N) predictive entropy, expected entropy,
    mutual information (all in [0, upper]; 0 where it may be rounding) and variation
    ratio. Where a member was missing or off, mean and
    values are NaN, and state is MISSING (which goes first) or OFF only.
    """
    p, logs, rows, _, most_votes = kept(_strips, len(sums))
    _close_members(pixels, samples, upper, sums, entropies, votes, state, values, p, logs, rows, most_votes)


@compiled
def _close_members(
    pixels, samples, upper, sums, entropies, votes, state, values, p, logs, rows, most_votes
):  # fmt: skip
    """Close strip by strip. p, logs: (classes, STRIDE); rows: seven (STRIP,); most_votes: (STRIP,); overwritten."""
    classes, noise = sums.shape[0], (samples + 2 * sums.shape[0] + 8) * ENTROPY_ROUNDING
    entropy, best, first, rest, tops, _, _ = rows
    for start in range(0, pixels.size, STRIP):
        width = min(STRIP, pixels.size - start)
        here = pixels[start : start + width]
        for j in range(STRIP):
            entropy[j], rest[j], best[j], first[j], most_votes[j] = 0.0, 0.0, -1.0, 0.0, 0
        for c in range(classes):
            for j in range(width):
                i = np.uint64(here[j])
                bad = (state[i] & (MISSING | OFF)) != 0
                p[c, j] = sums[c, i] / samples
                sums[c, i] = np.nan if bad else p[c, j]
                most_votes[j] = max(most_votes[j], votes[c, i])
        for c in range(classes):
            for j in range(STRIP):
                x, most, index = p[c, j], best[j], first[j]
                first[j] = np.float64(c) if x > most else index
                best[j] = x if x > most else most
        for c in range(classes):
            for j in range(STRIP):
                rest[j] += p[c, j] if first[j] != np.float64(c) else 0.0
        find_logs(p, first, rest, tops, logs)
        for c in range(classes):
            for j in range(STRIP):
                entropy[j] -= p[c, j] * logs[c, j]
        for j in range(width):
            i = np.uint64(here[j])
            if state[i] & (MISSING | OFF):
                state[i] = MISSING if state[i] & MISSING else OFF
                for k in range(values.shape[0]):
                    values[k, i] = np.nan
                continue
            predictive = 0.0 if entropy[j] <= 0.0 else min(entropy[j], upper)
            expected = min(entropies[i] / samples, upper)
            information = predictive - expected
            values[0, i], values[1, i] = predictive, expected
            values[2, i] = information if information > noise * predictive else 0.0
            values[3, i] = (samples - most_votes[j]) / samples
