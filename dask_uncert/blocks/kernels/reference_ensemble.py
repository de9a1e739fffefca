"""Samples of probabilities to their mean and measures in plain numpy; see `reference`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.types import (
    CLIPPED,
    ENTROPY_ROUNDING,
    MISSING,
    OFF,
    RENORMALISED,
    SMALLEST_SUM,
    AnyFloats,
)
from dask_uncert.formulas.entropies import shannon_nats
from dask_uncert.formulas.typing import Floats, Indices


def states_of(stored: Floats, total: Floats, tolerance: float, exact: float) -> NDArray[np.uint8]:
    """Return the state of stored vectors (n, classes) whose clipped parts add up to `total`."""
    lowest, highest, off = stored.min(axis=1), stored.max(axis=1), np.abs(total - 1.0)
    bad = (lowest < -tolerance) | (highest > 1 + tolerance) | (off > tolerance) | (total < SMALLEST_SUM)
    repairs = np.where((lowest < 0) | (highest > 1), CLIPPED, 0) | np.where(off > exact, RENORMALISED, 0)
    return np.where(np.isnan(total), MISSING, np.where(bad, OFF, repairs)).astype(np.uint8)


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
    """Add one member of samples at these pixels; see `compiled.add_member`."""
    classes = probabilities.shape[1]
    stored = np.moveaxis(probabilities, 1, 2).reshape(-1, classes)[pixels].astype(np.float64)
    clipped = np.clip(stored, 0.0, 1.0)
    total = np.zeros(pixels.size)
    for c in range(classes):  # in the order of the classes, so that means are equal to the last bit
        total += clipped[:, c]
    state[pixels] |= states_of(stored, total, tolerance, exact)
    votes[stored.argmax(axis=1), pixels] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        p = clipped / total[:, np.newaxis]
    sums[:, pixels] += p.T
    entropies[pixels] += shannon_nats(p, axis=1)


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
    """Turn sums of samples into means and measures; see `compiled.close_members`."""
    bits = state[pixels]
    state[pixels] = np.where(bits & MISSING, MISSING, np.where(bits & OFF, OFF, bits))
    usable = (bits & (MISSING | OFF)) == 0
    mean = np.where(usable[:, np.newaxis], sums[:, pixels].T / samples, np.nan)
    sums[:, pixels] = mean.T
    predictive = np.minimum(shannon_nats(mean, axis=1), upper)
    expected = np.where(usable, np.minimum(entropies[pixels] / samples, upper), np.nan)
    ratio = np.where(usable, (samples - votes[:, pixels].max(axis=0)) / samples, np.nan)
    noise = (samples + 2 * len(sums) + 8) * ENTROPY_ROUNDING * predictive
    information = predictive - expected
    values[:, pixels] = [predictive, expected, np.where(information <= noise, 0.0, information), ratio]
