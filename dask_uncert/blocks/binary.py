"""Pixels of a binary prediction without a class axis that need no repair, counted without a vector for each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.accumulate import cached_finder
from dask_uncert.blocks.encoding import as_slice, rounding_of
from dask_uncert.blocks.kernels.types import ScoreCounts
from dask_uncert.blocks.soft_confusion import OneVsRest, row_grid, soft_grid
from dask_uncert.formulas.fixed_point import LIMB_BITS
from dask_uncert.formulas.labels import stored_threshold
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Indices
from dask_uncert.inputs.scene import Encoding
from dask_uncert.io.large_pages import empty
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointSettings
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings

Pair = tuple[NDArray[np.float32], NDArray[np.float32]]
STEP = 1 << 14  # pixels at a time, whose weights stay in a near cache
LEAST_TOLERANCE = {np.dtype(np.float32): 2.0**-24, np.dtype(np.float16): 2.0**-11}
"""Rounding 1 - p to the dtype of p puts the sum of both off by less."""


def is_plain(request: Request, arrays: Mapping[str, Any], encoding: Encoding) -> bool:
    """Return whether decisions, calibration and soft confusion by p and u are all that a block is asked for."""
    p = arrays.get("probabilities")
    if (
        p is None
        or encoding.class_axis is not None
        or encoding.probabilities.scale is not None
        or p.dtype not in LEAST_TOLERANCE
    ):
        return False
    more = request.measures or request.layers or request.tiles or request.weight_unit
    if more or request.reference != "codes" or len(arrays.get("samples", ())):
        return False
    if rounding_of(p.dtype, 2, encoding.probabilities).tolerance < LEAST_TOLERANCE[p.dtype]:
        return False
    return all(joint.uncertainty in (None, "uncertainty") for joint in request.joint)


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

    probabilities: the second class's, float32 or float16, of the shape of the block. reference: (n,) int8 class index,
    negative where the pixel does not count. u: (n,). pixels: those of this part of the block that count, in rising order; None for all.
    """
    flat = probabilities.reshape(-1)
    part: slice | Indices = slice(0, None)
    if pixels is not None:
        if not pixels.size:
            return pixels
        part = as_slice(pixels)
    flat, reference, u = np.ascontiguousarray(flat[part]), reference[part], None if u is None else u[part]
    pair, dtype = _pair(flat), flat.dtype
    bins, decisions = total.stated, total.decisions
    finder = cached_finder(bins.edges, 1.0, False, dtype)
    scores = ScoreCounts(bins.classwise, bins.squared_error, bins.log_loss, bins.infinite.reshape(1))
    left: Indices = empty((flat.size,), np.int64)
    tallies = (decisions.pairs, decisions.by_confused, bins.winning)
    others = kernels.count_binary(*pair, reference, finder, tallies, scores, left)
    for joint in total.joint:
        s = joint.settings
        damp = _damping_values(flat.size, u, s)
        kernels.count_binary_jointly(*pair, reference, damp, s.class_index, row_grid(s), s.upper, joint.moments)
    for soft in total.soft_confusion:
        count_soft(request, soft, pair, dtype, reference, u, kernels)
    return left[:others] + part.start if isinstance(part, slice) else part[left[:others]]


def count_soft(
    request: Request,
    soft: SoftConfusion,
    pair: Pair,
    dtype: np.dtype[Any],
    reference: Indices,
    u: NDArray[Any] | None,
    kernels: ModuleType,
) -> None:
    """Add the pixels that count and whose p is in [0, 1] to the direct settings of a class; dtype: of stored p."""
    s, (first, second) = soft.settings, pair
    if not any(s.sigmas) and not any(s.dampings):  # all weights are 1
        for i, threshold in enumerate(s.thresholds):
            cells = np.zeros(len(CELLS), np.int64)
            kernels.count_cells(*pair, reference, s.class_index, stored_threshold(threshold, dtype), cells)
            soft.weights[i, :, :, :, 0] += cells << LIMB_BITS
        return
    if s.distribution == "gaussian":
        kernels.count_binary_softly(
            *pair, reference, _damping_values(second.size, u, s), soft_grid(s, dtype), soft.weights
        )
        return
    plain = (reference >= 0) & (second >= 0) & (second <= 1)
    for start in range(0, second.size, STEP):
        chosen = start + np.flatnonzero(plain[start : start + STEP])
        truth, p = reference[chosen], second[chosen]
        pairs = np.stack([first[chosen] if first.size else 1 - p, p], axis=1)[:, :, np.newaxis]
        chosen_u = None if u is None else u[chosen].astype(np.float64)
        OneVsRest(request, dtype, kernels, None, truth, pairs, np.arange(p.size), chosen_u).add_to(soft)


def _damping_values(size: int, u: NDArray[Any] | None, settings: SoftSettings | JointSettings) -> NDArray[Any]:
    """Return u (size,), zeros if the settings have none; float32 where it is no coarser, else float64."""
    if u is None or settings.uncertainty is None:
        return np.zeros(size, np.float32)
    return u.astype(np.float32 if u.dtype in LEAST_TOLERANCE else np.float64, copy=False)


def _pair(values: NDArray[Any]) -> Pair:
    """Return the first class's p where it is not one minus the second's in float32, else nothing; and the second's."""
    if values.dtype == np.float32:
        return np.empty(0, np.float32), values
    bits, (first, second) = values.view(np.uint16), _of_halves()
    return first.take(bits), second.take(bits)


@cache
def _of_halves() -> Pair:
    """Return both classes' p by the bits of a float16: the second's, and one minus it, rounded to float16."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        return (1.0 - halves.astype(np.float64)).astype(np.float16).astype(np.float32), halves.astype(np.float32)
