"""Tables of a regression: the calibration curve, and the coverage at every nominal level."""

from __future__ import annotations

from typing import Any

import numpy as np

from dask_uncert.summaries.regression import RegressionEvaluation, regression_coverage, regression_curve


def regression_tables(evaluation: RegressionEvaluation) -> dict[str, list[list[Any]]]:
    """Return the rows of every table, a header first, by name."""
    predicted, observed = regression_curve(evaluation)
    pixels = [0, *np.cumsum(evaluation.histogram).tolist()]
    edges = np.searchsorted(predicted, evaluation.levels).tolist()
    shares = zip(edges, regression_coverage(evaluation).items(), strict=True)
    return {
        "curve": [
            ["predicted probability", "n (pixels)", "observed probability"],
            *map(list, zip(predicted, pixels, observed, strict=True)),
        ],
        "coverage": [
            ["nominal", "n (pixels)", "observed", "observed minus nominal"],
            *([level, pixels[edge], share, share - level] for edge, (level, share) in shares),
        ],
    }
