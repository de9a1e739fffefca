"""How fine the joint histograms of a pass are: from a wanted error, a bound on memory and what is stored."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dask_uncert.formulas.damping_series import damping_series
from dask_uncert.formulas.labels import as_stored
from dask_uncert.formulas.measures import upper_bound
from dask_uncert.formulas.threshold_distributions import largest_between, named_distribution
from dask_uncert.spec.options import Sweep
from dask_uncert.spec.request import Request
from dask_uncert.summaries.joint_histogram import HALVES, JointSettings, RowKind
from dask_uncert.summaries.soft_confusion import SoftSettings

SIGMA, DAMPING = 0.02, 2.0
"""The wanted error is for thresholds at least this uncertain and for exponential dampings up to this."""
FEWEST_ROWS, MOST_ROWS = 16, 1 << 16
FEWEST_BINS, MOST_BINS = 8, 1 << 10
SHARES = 16
"""Intervals of a fuzzy reference whose shares may be anything."""


class _Wanted(NamedTuple):
    """What a joint histogram must resolve and how large it may be, for one sweep or for several together."""

    class_index: int
    uncertainty: str | None
    reference_threshold: float | None
    thresholds: tuple[float, ...]
    error: float
    memory: float


def joint_settings(
    request: Request,
    sweeps: Iterable[tuple[SoftSettings, Sweep]],
    dtype: np.dtype[Any],
    scale: float | None,
    stored_as_pair: bool,
    share_dtype: np.dtype[Any] | None,
) -> tuple[JointSettings, ...]:
    """Return the bins of the joint histograms from which sweeps are computed.

    dtype: of the stored probabilities (float64 where they are a mean of samples); scale: their factor.
    stored_as_pair: False where only the second of two classes' probability is stored. share_dtype: of a fuzzy reference.
    """
    wanted = []
    for soft, sweep in sweeps:
        level = None if share_dtype is None else soft.reference_threshold  # any threshold parts 0 from 1
        wanted.append(_Wanted(soft.class_index, soft.uncertainty, level, soft.thresholds, sweep.error, sweep.memory))
    return tuple(
        _sized(request, each, dtype, scale, share_dtype, _single(each, dtype, scale, stored_as_pair))
        for each in _merged(wanted)
    )


def _merged(wanted: Iterable[_Wanted]) -> Iterable[_Wanted]:
    """Return one record for each class, damping measure and reference threshold, that serves all of them."""
    merged: dict[tuple[Any, ...], _Wanted] = {}
    for each in wanted:
        before = merged.get(each[:3], each)
        merged[each[:3]] = each._replace(
            thresholds=tuple(sorted({*before.thresholds, *each.thresholds})),
            error=min(before.error, each.error),
            memory=max(before.memory, each.memory),
        )
    return merged.values()


def _single(
    wanted: _Wanted, dtype: np.dtype[Any], scale: float | None, stored_as_pair: bool
) -> tuple[RowKind, int] | None:
    """Return the kind and number of rows that are single values, where few different ones can be stored."""
    if not stored_as_pair and wanted.class_index == 0:
        return None
    if scale is None:
        return ("float16", HALVES) if dtype == np.float16 else None
    if dtype.kind not in "ui":
        return None
    codes = min(int(np.iinfo(dtype).max), math.ceil(1 / scale * (1 + 1e-6))) + 1
    return ("integer", codes) if codes <= MOST_ROWS else None


def _sized(
    request: Request,
    wanted: _Wanted,
    dtype: np.dtype[Any],
    scale: float | None,
    share_dtype: np.dtype[Any] | None,
    single: tuple[RowKind, int] | None,
) -> JointSettings:
    """Return the most exact bins that fit: single values with fewer bins of u, then intervals with fewer of both."""
    levels = _levels(request, wanted, share_dtype)
    if wanted.uncertainty is None:
        upper = 1.0
    elif wanted.uncertainty == "uncertainty":
        upper = math.inf
    else:
        measures = {measure.name: measure for measure in request.measures}
        upper = upper_bound(measures[wanted.uncertainty], len(request.classes))

    def settings(rows: RowKind, size: int, bins: int) -> JointSettings:
        return JointSettings(
            wanted.class_index, wanted.uncertainty, wanted.thresholds, dtype.newbyteorder("=").name, rows, size,
            scale, levels, upper, bins,
            None if share_dtype is None else share_dtype.name,
            None if share_dtype is None else wanted.reference_threshold,
        )  # fmt: skip

    size, finest = _rows(wanted.error), 1 if wanted.uncertainty is None else _bins(wanted.error, upper)
    if single is not None:
        bins = finest
        while (joint := settings(*single, bins)).nbytes > wanted.memory and bins > FEWEST_BINS:
            bins //= 2
        if joint.nbytes <= wanted.memory:
            return joint
    bins = finest
    while True:
        joint = settings("interval", size, bins)
        if joint.nbytes <= wanted.memory or (size <= FEWEST_ROWS and bins <= FEWEST_BINS):
            return joint
        if bins <= FEWEST_BINS or (size > FEWEST_ROWS and size >= 16 * bins):
            size //= 2
        else:
            bins //= 2


def _rows(error: float) -> int:
    """Return the number of intervals, a power of two, on which a parabola is off from A(p) by `error` at most.

    Twice as many as that: for a threshold inside one.
    """
    gaussian = named_distribution("gaussian")
    third = largest_between(gaussian.third, gaussian.turns, np.array(0.0), np.array(10.0)) / SIGMA**3
    size = 2 << max(0, math.ceil(math.log2(np.cbrt(third / (192 * error)))))
    return min(max(size, FEWEST_ROWS), MOST_ROWS)


def _bins(error: float, upper: float) -> int:
    """Return the number of bins of u, a power of two, on which a parabola is off from C(u) by `error` at most."""
    bins = FEWEST_BINS
    # where u has no limit, the last bin is open: nothing is known of C there
    while bins < MOST_BINS and damping_series("exponential", DAMPING, upper, bins).error.max() > error:
        bins *= 2
    return bins


def _levels(request: Request, wanted: _Wanted, share_dtype: np.dtype[Any] | None) -> tuple[tuple[float, float], ...]:
    """Return single values where they are known to be few, else 0, 1 and intervals that the thresholds cut."""
    if share_dtype is None:
        return ((0.0, 0.0), (1.0, 1.0))
    inverted = request.reference == "share" and wanted.class_index == 0
    if request.raters is not None:
        values = as_stored([j / request.raters for j in range(request.raters + 1)], share_dtype)
        singles = sorted(1 - values if inverted else values)
        return tuple((float(v), float(v)) for v in singles)
    named = wanted.thresholds if wanted.reference_threshold is None else (wanted.reference_threshold,)
    grid = {i / SHARES for i in range(SHARES)} | {np.nextafter(1.0, 0.0)}
    edges = sorted(grid | set(as_stored(named, share_dtype).tolist()))
    return ((0.0, 0.0), *((float(a), float(b)) for a, b in pairwise(edges)), (1.0, 1.0))
