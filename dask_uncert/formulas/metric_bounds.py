"""Bounds on the errors of the metrics of TP, TN, FP, FN when these are known to within errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.typing import Floats

SIGNED = ("matthews", "kappa")
"""Metrics that lie in [-1, 1]; all others in [0, 1]."""


def metric_bounds(values: ArrayLike, errors: ArrayLike) -> dict[str, Floats]:
    """Return the largest error of every metric of `cell_metrics`, (..., 4) twice to a dict of (...).

    values, errors: of TP, TN, FP, FN in this order; true cells lie within values +- errors, and not below 0.
    Every metric rises with TP and TN and falls with FP and FN (false_positive_rate the other way round), so
    it is furthest at two corners of that box; kappa does so only where it is not negative, and elsewhere is
    bounded by the extremes of its numerator and denominator. NaN where the value is undefined; the whole
    range where only the value is defined.

    >>> bounds = metric_bounds([3.0, 3.0, 1.0, 1.0], [0.1, 0.1, 0.1, 0.1])
    >>> round(float(bounds["f1"]), 4)
    0.025
    """
    v, e = np.asarray(values, np.float64), np.asarray(errors, np.float64)
    low, high = np.maximum(v - e, 0.0), v + e
    middle = cell_metrics(*_cells(v))
    worst = cell_metrics(*_cells(_mixed(low, high)))
    best = cell_metrics(*_cells(_mixed(high, low)))
    # Where its cells may all be 0, a ratio may be undefined or anything.
    emptied = cell_metrics(*_cells(low))
    bounds = {}
    for name, value in middle.items():
        ends = [worst[name], best[name]]
        if name == "kappa":
            ends = _kappa_ends(low, high, *ends)
        off = np.maximum(np.abs(ends[0] - value), np.abs(ends[1] - value))
        least = -1.0 if name in SIGNED else 0.0
        loose = np.isnan(off) | (np.isnan(emptied[name]) & (e.max(axis=-1) > 0))
        off = np.where(loose, np.maximum(1.0 - value, value - least), off)
        bounds[name] = np.where(np.isnan(value), np.nan, off)
    return bounds


def _cells(cells: Floats) -> tuple[Floats, ...]:
    return tuple(np.moveaxis(cells, -1, 0))


def _mixed(right: Floats, wrong: Floats) -> Floats:
    """Return TP and TN of one end of the box, FP and FN of the other."""
    return np.concatenate([right[..., :2], wrong[..., 2:]], axis=-1)


def _kappa_ends(low: Floats, high: Floats, worst: Floats, best: Floats) -> list[Floats]:
    """Return the least and largest kappa in the box: at its corners, unless chance would agree more often."""
    with np.errstate(invalid="ignore", divide="ignore"):
        least = np.maximum(_excess(_mixed(low, high)) / _spread(low), -1.0)
        most = np.minimum(_excess(_mixed(high, low)) / _spread(high), 0.0)
    return [
        np.where(_excess(_mixed(low, high)) >= 0, worst, np.where(np.isnan(least), -1.0, least)),
        np.where(_excess(_mixed(high, low)) >= 0, best, np.where(np.isnan(most), 0.0, most)),
    ]


def _excess(cells: Floats) -> Floats:
    tp, tn, fp, fn = _cells(cells)
    return 2 * (tp * tn - fp * fn)


def _spread(cells: Floats) -> Floats:
    tp, tn, fp, fn = _cells(cells)
    return (tp + fp) * (tn + fp) + (tp + fn) * (tn + fn)
