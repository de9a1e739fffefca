"""Samples of a prediction, streamed: their mean is a prediction, their spread its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import rounding_of, three_axes
from dask_uncert.blocks.kernels.types import CLIPPED, MISSING, OFF, RENORMALISED, Pixels, Rounding
from dask_uncert.formulas.measures import SAMPLE_KINDS, Measure
from dask_uncert.formulas.typing import Floats, Indices
from dask_uncert.inputs.scene import Encoding

STEP = 1 << 12  # pixels at a time, whose sums stay in a near cache


@dataclass(frozen=True)
class Spread:
    """Mean and measures of a block's samples, by pixel number; NaN where a sample is missing or off the simplex.

    mean: (1, classes, N), of each sample normalised, added in their order; state: coded as in `kernels.types`, of all
    samples together; values: (4, N) for `formulas.measures.SAMPLE_KINDS`.
    """

    mean: Floats
    state: NDArray[np.uint8]
    values: Floats
    rounding: Rounding

    def add_to(self, measured: Pixels, pixels: Indices, measures: tuple[Measure, ...]) -> Pixels:
        """Return pixels with their measures of samples and with the repairs of the samples."""
        for row, measure in zip(measured.values, measures, strict=True):
            if measure.kind in SAMPLE_KINDS:
                row[:] = self.values[SAMPLE_KINDS.index(measure.kind), pixels]
        usable = (measured.state & (MISSING | OFF)) == 0
        repairs = self.state[pixels] & (CLIPPED | RENORMALISED)
        return measured._replace(state=np.where(usable, measured.state | repairs, measured.state))


def _is_view(sample: NDArray[Any], encoding: Encoding) -> bool:
    """Return whether the kernels take a sample as it lies in memory, so that it can be taken in parts."""
    return np.may_share_memory(sample, three_axes(sample, encoding.class_axis, encoding.samples.scale)[0])


def spread_of(
    samples: Sequence[NDArray[Any]], classes: int, encoding: Encoding, pixels: Indices, kernels: ModuleType
) -> Spread:
    """Return the Spread of a block at the pixels asked for; others hold nothing of use.

    Only one sample at a time is in another form than it is stored in, and then all its pixels are added at once. Only
    the pixels asked for are touched in the running sums.
    """
    size = samples[0].size // (1 if encoding.class_axis is None else classes)
    sums, entropies = np.zeros((classes, size)), np.zeros(size)
    votes, state = np.zeros((classes, size), np.int32), np.zeros(size, np.uint8)
    values = np.zeros((len(SAMPLE_KINDS), size))
    number, in_parts = len(samples), all(_is_view(sample, encoding) for sample in samples)
    step = STEP if in_parts else max(pixels.size, 1)
    for start in range(0, pixels.size, step):
        part = pixels[start : start + step]
        for sample in samples:
            stored, dtype = three_axes(sample, encoding.class_axis, encoding.samples.scale)
            rounding = rounding_of(dtype, classes, encoding.samples)
            kernels.add_member(stored, part, rounding.tolerance, rounding.exact, sums, entropies, votes, state)
        kernels.close_members(part, number, math.log(classes), sums, entropies, votes, state, values)
    # A mean rounds once a sample and once a class: one that is 1/C but for that does not exceed it.
    rounds = (number + classes) * float(np.finfo(np.float64).eps)
    return Spread(sums[np.newaxis], state, values, Rounding(math.inf, math.inf, (1 + rounds) / classes))
