"""Samples of a prediction, streamed: their mean is a prediction, their spread its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import rounding_of, three_axes
from dask_uncert.formulas.measures import SAMPLE_KINDS, Measure
from dask_uncert.inputs.names import APART, STACKED
from dask_uncert.kernels.types import CLIPPED, MISSING, OFF, RENORMALISED, Pixels, Rounding
from dask_uncert.spec.request import Request


def members_of(arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """The samples in their order, as views without the sample axis, which comes first; [] where there are none."""
    if STACKED in arrays:
        return list(arrays[STACKED])
    apart = [name for name in arrays if name.startswith(APART)]
    return [arrays[name] for name in sorted(apart, key=lambda name: int(name.removeprefix(APART)))]


@dataclass(frozen=True)
class Spread:
    """What a block's samples say, by pixel number; NaN where a member is missing or off the simplex.

    mean: (N, classes, 1), each sample normalised, added in their order; state: what `kernels.pixels` codes, of
    all members together; values: (4, N) for `formulas.measures.SAMPLE_KINDS`.
    """

    mean: NDArray[np.float64]
    state: NDArray[np.uint8]
    values: NDArray[np.float64]
    rounding: Rounding

    def on(self, found: Pixels, pixels: NDArray[np.int64], measures: tuple[Measure, ...]) -> Pixels:
        """Pixels with their measures of samples and with what was put right in the samples."""
        for row, one in zip(found.values, measures, strict=True):
            if one.kind in SAMPLE_KINDS:
                row[:] = self.values[SAMPLE_KINDS.index(one.kind), pixels]
        usable = (found.state & (MISSING | OFF)) == 0
        repairs = self.state[pixels] & (CLIPPED | RENORMALISED)
        return found._replace(state=np.where(usable, found.state | repairs, found.state))


def spread_of(
    request: Request,
    members: list[NDArray[Any]],
    class_axis: int | None,
    pixels: NDArray[np.int64],
    kernels: ModuleType,
) -> Spread:
    """The Spread of a block at the pixels asked for; other pixels hold nothing of use.

    Only one member at a time is in another form than it is stored in, and no pixel but those asked for is
    touched in the running sums.
    """
    classes = len(request.classes)
    size = members[0].size // (1 if class_axis is None else classes)
    sums, entropies = np.zeros((size, classes)), np.zeros(size)
    votes, state = np.zeros((size, classes), np.int32), np.zeros(size, np.uint8)
    values = np.zeros((len(SAMPLE_KINDS), size))
    for member in members:
        stored, dtype = three_axes(member, class_axis, request.sample_scale)
        rounding = rounding_of(dtype, classes, request.sample_scale, request.sample_tolerance)
        kernels.add_member(stored, pixels, rounding.tolerance, rounding.exact, sums, entropies, votes, state)
    number = len(members)
    kernels.close_members(pixels, number, math.log(classes), sums, entropies, votes, state, values)
    # A mean rounds once a member and once a class: one that is 1/C but for that does not exceed it.
    rounds = (number + classes) * float(np.finfo(np.float64).eps)
    return Spread(sums[:, :, np.newaxis], state, values, Rounding(math.inf, math.inf, (1 + rounds) / classes))
