"""Pixels of a binary prediction without a class axis that need no repair, counted without a vector for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.accumulate import cached_finder
from dask_uncert.blocks.encoding import rounding_of
from dask_uncert.blocks.kernels.types import ScoreCounts
from dask_uncert.blocks.soft_confusion import OneVsRest, row_grid, soft_grid
from dask_uncert.formulas.fixed_point import LIMB_BITS
from dask_uncert.formulas.labels import as_stored, stored_threshold
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Indices
from dask_uncert.inputs.scene import Encoding
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointSettings
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings

STEP = 1 << 14  # pixels at a time, whose weights stay in a near cache
LEAST_TOLERANCE = 2.0**-24
"""Rounding 1 - p to float32 puts the sum of both off by less."""


def is_plain(request: Request, arrays: Mapping[str, Any], encoding: Encoding) -> bool:
    """Return whether decisions, calibration and soft confusion by p and u are all that a block is asked for."""
    p = arrays.get("probabilities")
    if (
        p is None
        or encoding.class_axis is not None
        or encoding.probabilities.scale is not None
        or p.dtype != np.float32
    ):
        return False
    more = request.measures or request.layers or request.tiles or request.weight_unit
    if more or request.reference != "codes" or len(arrays.get("samples", ())):
        return False
    if rounding_of(p.dtype, 2, encoding.probabilities).tolerance < LEAST_TOLERANCE:
        return False
    return all(joint.rows == "interval" and joint.uncertainty in (None, "uncertainty") for joint in request.joint)


def count_plain(
    request: Request,
    total: Evaluation,
    probabilities: NDArray[Any],
    reference: Indices,
    u: NDArray[Any] | None,
    kernels: ModuleType,
    pixels: Indices | None,
) -> Indices:
    """Add the pixels that count and whose p is in [0, 1]; return the numbers of the others that count.

    probabilities: the second class's, float32, of the shape of the block. reference: (n,) int8 class index, negative where
    the pixel does not count. u: (n,). pixels: those of this part of the block that count, in rising order; None for all.
    """
    second = probabilities.reshape(-1)
    part: slice | Indices = slice(0, None)
    if pixels is not None:
        if not pixels.size:
            return pixels
        first, last = int(pixels[0]), int(pixels[-1])
        # Without a copy, where what lies in between does not count.
        part = slice(first, last + 1) if last - first < pixels.size else pixels
    second, reference, u = second[part], reference[part], None if u is None else u[part]
    second = np.ascontiguousarray(second, np.float32)
    bins, decisions = total.stated, total.decisions
    finder = cached_finder(tuple(as_stored(bins.edges, second.dtype).tolist()), 1.0)
    scores = ScoreCounts(bins.classwise, bins.squared_error, bins.log_loss, bins.infinite.reshape(1))
    left = np.empty(second.size, np.int64)
    tallies = (decisions.pairs, decisions.by_confused, bins.winning)
    others = kernels.count_binary(second, reference, finder, tallies, scores, left)
    for joint in total.joint:
        s = joint.settings
        damp = _damping_values(second, u, s)
        kernels.count_binary_jointly(second, reference, damp, s.class_index, row_grid(s), s.upper, joint.moments)
    for soft in total.soft_confusion:
        count_soft(request, soft, second, reference, u, kernels)
    return left[:others] + part.start if isinstance(part, slice) else part[left[:others]]


def count_soft(
    request: Request,
    soft: SoftConfusion,
    second: NDArray[Any],
    reference: Indices,
    u: NDArray[Any] | None,
    kernels: ModuleType,
) -> None:
    """Add the pixels that count and whose p is in [0, 1] to the direct settings of a class."""
    s = soft.settings
    if not any(s.sigmas) and not any(s.dampings):  # all weights are 1
        for i, threshold in enumerate(s.thresholds):
            cells = np.zeros(len(CELLS), np.int64)
            kernels.count_cells(second, reference, s.class_index, stored_threshold(threshold, second.dtype), cells)
            soft.weights[i, :, :, :, 0] += cells << LIMB_BITS
        return
    if s.distribution == "gaussian":
        kernels.count_binary_softly(
            second, reference, _damping_values(second, u, s), soft_grid(s, second.dtype), soft.weights
        )
        return
    plain = (reference >= 0) & (second >= 0) & (second <= 1)
    for start in range(0, second.size, STEP):
        chosen = start + np.flatnonzero(plain[start : start + STEP])
        p, truth = second[chosen], reference[chosen]
        pairs = np.stack([1 - p, p], axis=1)[:, :, np.newaxis]
        chosen_u = None if u is None else u[chosen].astype(np.float64)
        OneVsRest(request, p.dtype, kernels, None, truth, pairs, np.arange(p.size), chosen_u).add_to(soft)


def _damping_values(
    second: NDArray[Any], u: NDArray[Any] | None, settings: SoftSettings | JointSettings
) -> NDArray[Any]:
    """Return u, zeros if the settings have none; of the dtype of p or float64."""
    if u is None or settings.uncertainty is None:
        return np.zeros_like(second)
    return u if u.dtype == second.dtype else u.astype(np.float64)
