"""Every scalar number with an interval: units resampled by name, without reading a pixel again."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.resampling import bootstrap_weights, left_out_means, weighted_means
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.resampling_units import Units, jackknife, parts, weighted_totals
from dask_uncert.metrics.scalars import Scalars, concatenated, scalars

WEIGHTS = 1 << 22  # of units in replicates, held at a time


def bootstrap_replicates(units: Units, confidence: Confidence) -> Scalars:
    """The scalars of every bootstrap replicate of the units, (replicates,) each."""
    pieces = []
    for a, b in parts(confidence.replicates, max(1, WEIGHTS // len(units.names))):
        weights = bootstrap_weights(units.names, range(a, b), confidence.seed)
        pieces.append(scalars(units.like, weighted_totals(units, weights)))
    return concatenated(pieces)


def pooled_intervals(units: Units, confidence: Confidence, groups: int | None = None) -> dict[str, Interval]:
    """Intervals of the scalars of all units together, by name; NaN where there are fewer than two units.

    groups: where there are more units, BCa leaves out so many groups of neighbours instead of single ones. A
    number that the units' counts do not give has none.
    """
    estimates = scalars(units.like)
    replicates = bootstrap_replicates(units, confidence)
    left_out = jackknife(units, groups) if confidence.method == "bca" else {}
    found = {}
    for name, values in replicates.items():
        found[name] = confidence.interval(estimates[name], values, left_out.get(name))
    return found if len(units.names) > 1 else {name: without_ends(one) for name, one in found.items()}


def mean_interval(values: Floats, names: tuple[str, ...], confidence: Confidence) -> Interval:
    """Intervals of the means over units of their values, (units, metrics) to three of (metrics,).

    Units without a value take no part in a mean; NaN where there are fewer than two units.
    """
    found = []
    for a, b in parts(confidence.replicates, max(1, WEIGHTS // len(names))):
        found.append(weighted_means(bootstrap_weights(names, range(a, b), confidence.seed), values))
    estimate = weighted_means(np.ones((1, len(names))), values)[0]
    interval = confidence.interval(estimate, np.concatenate(found), left_out_means(values))
    return interval if len(names) > 1 else without_ends(interval)


def without_ends(one: Interval) -> Interval:
    """One unit says nothing of how units differ."""
    nothing = np.full_like(one.low, np.nan)
    return Interval(nothing, nothing, one.undefined)
