"""Confidence and uncertainty to their joint counts, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.bins import find_bins
from dask_uncert.blocks.kernels.compiling import compiled
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.memory import kept, strips
from dask_uncert.blocks.kernels.types import AnyFloats, Finder, Pixels
from dask_uncert.formulas.typing import Counts, Indices


def count_with_confidence(
    values: AnyFloats,
    upper: float,
    bins: Finder,
    reference: Indices,
    batch: Pixels,
    confidence_bins: Finder,
    counts: Counts,
) -> None:
    """Add pixels to counts (right, confidence, bin) of one measure's values and the winning class's probability.

    values: (n,) in [0, upper]. bins, confidence_bins: `Finder`s over [0, upper] and [0, 1]. reference: (n,) class index,
    negative where the pixel does not count.
    """
    _count_with_confidence(values, upper, bins, reference, batch, confidence_bins, counts, *kept(_strips))


def _strips() -> tuple[NDArray[Any], ...]:
    return *strips(3, STRIP), *strips(2, STRIP, np.int64)


@compiled
def _count_with_confidence(
    values, upper, bins, reference, batch, confidence_bins, counts, strip, shares, confidence, bin_of, row_of
):
    flat, rows, columns = counts.reshape(-1), counts.shape[1], counts.shape[2]
    for start in range(0, reference.size, STRIP):
        width = min(STRIP, reference.size - start)
        for j in range(width):
            counted = reference[start + j] >= 0
            strip[j] = values[start + j] if counted else 0.0
            confidence[j] = batch.confidence[start + j] if counted else 0.0
        for j in range(STRIP):
            shares[j] = strip[j] / upper
        find_bins(strip, shares, bins, bin_of)
        find_bins(confidence, confidence, confidence_bins, row_of)
        for j in range(width):
            c = reference[start + j]
            if c >= 0:
                right = np.int64(batch.predicted[start + j] == c)
                flat[(right * rows + row_of[j]) * columns + bin_of[j]] += 1
