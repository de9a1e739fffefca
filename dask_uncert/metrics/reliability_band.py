"""How far the isotonic reliability curve of the confidence could move with other tiles or patients."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Confidence, percentile_interval
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.isotonic import isotonic_curve
from dask_uncert.formulas.resampling import bootstrap_weights, weighted_sums
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.metrics.resampling_units import DENSE_UNITS, Units, ranges
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.marginals import in_bins

MOST = 500  # replicates: a band is read by eye


class ReliabilityBand(NamedTuple):
    """Mean confidence, isotonic share that was right, and the ends of its band, for each of the job's filled bins."""

    confidence: Floats
    curve: Floats
    low: Floats
    high: Floats
    units: int


def reliability_band(units: Units, confidence: Confidence) -> ReliabilityBand | None:
    """Return the pointwise percentile band of the isotonic curve over the job's bins, (filled bins,) each.

    Each replicate draws the units anew and fits the curve again; replicates whose bin is empty take no part there.
    None where fewer than two units exist, no pixel is counted, or units keep no confidence.
    """
    tallies, number = units.total.stated, len(units.names)
    total = tallies.binned(tallies.fine)
    filled = total.number > 0
    if number < 2 or not filled.any():
        return None
    replicates = min(confidence.replicates, MOST)
    weights: Counts = bootstrap_weights(units.names, range(replicates), confidence.seed)
    sums = np.zeros((replicates, tallies.bins, 4), np.int64)
    for a, b in ranges(number, DENSE_UNITS):
        counts = units.counts("winning", a, b)
        if counts is None:
            return None
        sums += weighted_sums(weights[:, a:b], in_bins(counts, tallies))  # few bins: their products are cheap
    drawn = Bins.of(sums)
    ends = percentile_interval(isotonic_curve(drawn.number, drawn.positives)[:, filled], confidence.level)
    centre = np.asarray(ratio(decode(total.sums), total.number))
    curve = isotonic_curve(total.number, total.positives)
    return ReliabilityBand(centre[filled], curve[filled], ends.low, ends.high, number)
