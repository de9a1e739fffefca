"""Figures of a regression: the calibration curve, and the maps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dask_uncert.io.map_types import Maps
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.calibration import calibration_panels, fill_gaps
from dask_uncert.reports.figures.maps import map_figure_names, value_map
from dask_uncert.reports.figures.style import BLUE, GREY, styled
from dask_uncert.reports.names import pretty
from dask_uncert.summaries.regression import (
    RegressionEvaluation,
    regression_area,
    regression_coverage,
    regression_curve,
    regression_distance,
)

BARS = 20
BOUNDED = "predicted_probability"


def regression_figures(evaluation: RegressionEvaluation, maps: Maps) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the drawing of every figure."""
    yield "calibration_curve", calibration_curve(evaluation)
    for name, file_name in map_figure_names(maps).items():
        values, dims = maps[name]
        extend = "neither" if name == BOUNDED else "max"
        yield file_name, value_map(values, dims, regression_norm(name, values), pretty(name), extend=extend)


def regression_norm(name: str, values: NDArray[Any]) -> Normalize:
    """Return the scale from the values of a map to colours, from 0 to 1 or, where there is no bound, to the 99th percentile."""
    finite = values[np.isfinite(values)]
    return Normalize(0.0, 1.0 if name == BOUNDED else (finite.size and float(np.percentile(finite, 99))) or 1.0)


@styled
def calibration_curve(evaluation: RegressionEvaluation) -> Figure:
    """Draw observed against predicted probability, and the distribution of predicted probabilities below.

    The dashed line is the even distribution of calibrated uncertainty.
    """
    predicted, observed = regression_curve(evaluation)
    levels, shares = zip(*regression_coverage(evaluation).items(), strict=True)
    errors = {"area": regression_area(evaluation), "squared distance": regression_distance(evaluation)}
    starts = np.searchsorted(predicted, [i / BARS for i in range(BARS)])
    pixels = np.add.reduceat(evaluation.histogram, starts)
    figure, upper, lower = calibration_panels(pixels, errors)
    overconfident, underconfident = fill_gaps(upper, predicted, observed)
    overconfident.set_label("overconfident")
    underconfident.set_label("underconfident")
    upper.plot(predicted, observed, color=BLUE, lw=1.8, label="observed")
    upper.plot(levels, shares, "o", color=BLUE, ms=4, clip_on=False, label="nominal levels")
    upper.legend(loc="upper left")
    layout.label_panel(upper, "Calibration of the uncertainty", "", "observed probability")
    lower.axhline(pixels.sum() / BARS, color=GREY, lw=1, ls=(0, (4, 3)))
    layout.label_panel(lower, "", "predicted probability", "pixels")
    return figure
