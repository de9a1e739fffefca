"""The isotonic reliability curve of the confidence (CORP), its band, and its parts of the Brier score."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.isotonic import isotonic_curve
from dask_uncert.metrics import calibration as metrics
from dask_uncert.metrics.reliability_band import reliability_band
from dask_uncert.metrics.resampling_units import Units, patients
from dask_uncert.metrics.tile_bootstrap import TileUnits
from dask_uncert.reports.figures.calibration import calibration_panels
from dask_uncert.reports.figures.layout import label_panel
from dask_uncert.reports.figures.style import BLUE, SKY, styled
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.summaries.evaluation import Evaluation


def scene_curve(evaluation: Evaluation, statistics: CohortStatistics | None = None) -> Figure:
    """Draw `corp_curve` with the band by patient of a cohort, or by tile of a scene that keeps tiles."""
    if statistics is not None:
        cohort = statistics.cohort
        return corp_curve(evaluation, patients(cohort.stack), cohort.intervals(), "patient")
    if evaluation.tiles is None or not len(evaluation.tiles.positions):
        return corp_curve(evaluation)
    return corp_curve(evaluation, TileUnits(evaluation), evaluation.tiles.confidence, "tile")


@styled
def corp_curve(
    evaluation: Evaluation, units: Units | None = None, confidence: Confidence | None = None, unit: str = ""
) -> Figure:
    """Draw the isotonic curve over fine bins, and the band of the curve over the job's bins by resampled units."""
    tallies, parts = evaluation.stated, metrics.corp(evaluation)
    fine = tallies.fine
    numbers = {
        "Brier": float(parts.score.value),
        "MCB": float(parts.miscalibration.value),
        "DSC": float(parts.discrimination.value),
        "UNC": float(parts.uncertainty),
        "debiased l2": metrics.debiased_calibration_error(evaluation),
    }
    figure, upper, lower = calibration_panels(tallies.binned(fine).number, numbers)
    band = None if units is None or confidence is None else reliability_band(units, confidence)
    if band is not None and confidence is not None:
        label = f"{100 * confidence.level:g} %, {tallies.bins} bins, by {band.units} {unit}s"
        defined = ~np.isnan(band.low)
        x, low, high = (part[defined] for part in (band.confidence, band.low, band.high))
        upper.fill_between(x, low, high, color=SKY, alpha=0.4, lw=0, label=label)
    filled = fine.number > 0
    centre = np.asarray(ratio(decode(fine.sums), fine.number))[filled]
    share = isotonic_curve(fine.number, fine.positives)[filled]
    upper.plot(
        centre, share, color=BLUE, lw=1.7, label="recalibrated", marker="o" if len(centre) < 20 else None, clip_on=False
    )
    upper.legend(loc="upper left")
    label_panel(upper, "Isotonic reliability", "", "share that is right")
    label_panel(lower, "", "confidence", "pixels")
    return figure
