"""Confidence intervals of every scalar: units are resampled by name, and no pixel is read again."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.resampling import bootstrap_weights, left_out_means, weighted_means
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.resampling_units import Units, jackknife, ranges, weighted_totals
from dask_uncert.metrics.scalars import Scalars, concatenated, scalars

WEIGHTS = 1 << 22  # of units in replicates, held at a time


def bootstrap_replicates(units: Units, confidence: Confidence) -> Scalars:
    """Return the scalars of every bootstrap replicate of the units, (replicates,) each."""
    pieces = []
    for a, b in ranges(confidence.replicates, max(1, WEIGHTS // len(units.names))):
        weights = bootstrap_weights(units.names, range(a, b), confidence.seed)
        pieces.append(scalars(units.total, weighted_totals(units, weights)))
    return concatenated(pieces)


def pooled_intervals(units: Units, confidence: Confidence, groups: int | None = None) -> dict[str, Interval]:
    """Return the intervals of the scalars of all units together, by name; NaN where there are fewer than two units.

    groups: as for `jackknife`. A scalar whose marginals the units do not keep has no interval.
    """
    estimates, replicates = scalars(units.total), bootstrap_replicates(units, confidence)
    left_out = jackknife(units, groups) if confidence.method == "bca" else {}
    return {
        name: defined(confidence.interval(estimates[name], values, left_out.get(name)), len(units.names))
        for name, values in replicates.items()
    }


def mean_interval(values: Floats, names: tuple[str, ...], confidence: Confidence) -> Interval:
    """Return the intervals of the means over units of their values, (units, metrics) to three of (metrics,).

    Units without a value take no part in a mean; NaN where there are fewer than two units.
    """
    replicates = [
        weighted_means(bootstrap_weights(names, range(a, b), confidence.seed), values)
        for a, b in ranges(confidence.replicates, max(1, WEIGHTS // len(names)))
    ]
    estimate = weighted_means(np.ones((1, len(names))), values)[0]
    interval = confidence.interval(estimate, np.concatenate(replicates), left_out_means(values))
    return defined(interval, len(names))


def defined(interval: Interval, units: int) -> Interval:
    """Return the interval, with ends of NaN where there are fewer than two units to tell how units differ."""
    undefined = np.full_like(interval.low, np.nan)
    return interval if units > 1 else Interval(undefined, undefined, interval.undefined)
