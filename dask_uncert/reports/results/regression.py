"""`results.json` of a regression: every number, as plain data. Undefined numbers are null."""

from __future__ import annotations

from typing import Any

from dask_uncert.reports.results.scene import FORMAT, undefined_as_null
from dask_uncert.summaries.regression import (
    RegressionEvaluation,
    regression_area,
    regression_coverage,
    regression_curve,
    regression_distance,
    regression_side,
)


def regression_results(evaluation: RegressionEvaluation) -> dict[str, Any]:
    """Return every number of an evaluation, ready for JSON.

    >>> regression_results(RegressionEvaluation.zero(2))["regression"]["area"] is None
    True
    """
    coverage = regression_coverage(evaluation)
    return undefined_as_null(
        {
            "format": FORMAT,
            "counted": int(evaluation.ledger.counted),
            "excluded": evaluation.ledger.reasons(),
            "regression": {
                "outputs": evaluation.outputs,
                "not_finite": int(evaluation.not_finite),
                "area": regression_area(evaluation),
                "side": regression_side(evaluation),
                "distance": regression_distance(evaluation),
                "coverage": [{"level": level, "observed": share} for level, share in coverage.items()],
                "curve": regression_curve(evaluation)._asdict(),
            },
        }
    )
