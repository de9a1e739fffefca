"""Residuals of a regression against its stated uncertainty, and the numbers read off that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from dask_uncert.errors import plural
from dask_uncert.formulas import calibration
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries import display
from dask_uncert.summaries.distribution import edges_with
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.summary import Summary, counts

LEVELS = (0.5, 0.6827, 0.9, 0.95, 0.99)
"""Nominal levels of coverage; edges of bins, so that coverage at them is exact."""


@dataclass(frozen=True, eq=False)
class RegressionEvaluation(Summary):
    """All counts of one pass over a regression and its stated uncertainty, or the sum of several.

    Evaluations of as many outputs add.

    Attributes
    ----------
    outputs : int
        Number of outputs.
    levels : tuple of float
        Nominal levels of coverage.
    edges : tuple of float
        Edges of the bins of predicted probability.
    ledger : Ledger
        Pixels counted, and pixels left out by reason.
    histogram : numpy.ndarray
        Pixels over right-closed bins of the predicted probability (the first also holds 0), which is the
        chi-square CDF, of `outputs` degrees of freedom, of the normalised sum of squared residuals (NSSR).
    predicted : numpy.ndarray
        Sum of the predicted probabilities in fixed point.
    not_finite : numpy.ndarray
        Number of pixels whose NSSR is not finite; they count as infinite, in the last bin.

    Examples
    --------
    >>> evaluation = RegressionEvaluation.zero(outputs=2)
    >>> int((evaluation + evaluation).ledger.counted)
    0
    >>> evaluation.to_dataframe().index[:3].tolist()
    ['area', 'distance', 'coverage/0.5']
    """

    kind = "regression"
    outputs: int
    levels: tuple[float, ...]
    edges: tuple[float, ...]
    ledger: Ledger
    histogram: Counts = counts("bin")
    predicted: Counts = counts("limb")
    not_finite: Counts = counts()

    @classmethod
    def zero(cls, outputs: int, levels: tuple[float, ...] = LEVELS) -> Self:
        """Return the evaluation of no pixels.

        Parameters
        ----------
        outputs : int
            Number of outputs.
        levels : tuple of float, optional
            Nominal levels of coverage.

        Returns
        -------
        RegressionEvaluation
            All counts are 0.
        """
        edges = edges_with(levels, 1.0)
        return cls(
            outputs,
            levels,
            edges,
            Ledger.zero(),
            histogram=np.zeros(len(edges) - 1, np.int64),
            predicted=np.zeros(2, np.int64),
            not_finite=np.zeros((), np.int64),
        )

    def _title(self) -> str:
        counted, left_out = int(self.ledger.counted), int(self.ledger.excluded.sum())
        outputs = plural(self.outputs, "output")
        return f"Evaluation of a regression, {outputs}: {counted:,} pixels counted, {left_out:,} left out"

    def _numbers(self) -> dict[str, float]:
        coverage = {f"coverage/{level:g}": share for level, share in regression_coverage(self).items()}
        return {"area": regression_area(self), "distance": regression_distance(self), **coverage}

    def _text(self) -> str:
        side = f" ({side})" if (side := regression_side(self)) else ""
        return (
            f"area under the calibration curve {display.number(regression_area(self))}{side}, squared distance to the "
            f"diagonal {display.number(regression_distance(self))}"
        )

    def _coverage(self) -> list[list[Any]]:
        rows = regression_coverage(self).items()
        return [["nominal", "observed"], *([f"{level:g}", share] for level, share in rows)]

    def __repr__(self) -> str:
        table = display.text_table(self._coverage(), display.LINES - 2, "all are in to_dataframe()")
        return "\n".join([self._title(), self._text(), *table])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the area, the coverage at each level, and the calibration curve."""
        curve = zip(*(part[:: max(1, len(part) // 30)] for part in regression_curve(self)), strict=True)
        return display.html(
            self._title(),
            display.html_text(self._text()),
            display.html_table(self._coverage(), "Coverage"),
            display.html_curve(curve, "predicted", "observed", "Calibration: observed by predicted probability"),
        )

    def to_dataframe(self) -> Any:
        """Return area, distance and coverage as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            Column ``value``; the index holds names such as ``coverage/0.9``. NaN where undefined.
        """
        numbers = self._numbers()
        return display.dataframe("name", [*numbers], {"value": [*numbers.values()]})


class Curve(NamedTuple):
    """A calibration curve: `observed` shares at the `predicted` probabilities, both (points,)."""

    predicted: Floats
    observed: Floats


@shared_sections
def regression_curve(evaluation: RegressionEvaluation) -> Curve:
    """Return predicted and observed probability at every edge, exact there; calibrated where equal.

    {Parameters: regression}

    Returns
    -------
    Curve
        ``predicted`` and ``observed``, both (points,). Observed is the share of pixels whose predicted
        probability is at most that; NaN without pixels. Below the diagonal: overconfident, above it:
        underconfident.

    References
    ----------
    [J22] (51), (52).

    Examples
    --------
    >>> [part[[0, -1]].tolist() for part in regression_curve(RegressionEvaluation.zero(1))]
    [[0.0, 1.0], [nan, nan]]
    """
    return Curve(np.asarray(evaluation.edges), calibration.regression_curve(evaluation.histogram))


@shared_sections
def regression_area(evaluation: RegressionEvaluation) -> float:
    """Return the area under the calibration curve.

    {Parameters: regression}

    Returns
    -------
    float
        In [0, 1]; .5 is calibrated on average, less is overconfident. NaN without pixels.

    Notes
    -----
    One minus the mean predicted probability, which is the area under its empirical CDF itself, not under the
    curve's points.

    References
    ----------
    [J22] (53).

    Examples
    --------
    >>> regression_area(RegressionEvaluation.zero(1))
    nan
    """
    return float(1.0 - ratio(decode(evaluation.predicted), evaluation.ledger.counted))


@shared_sections
def regression_distance(evaluation: RegressionEvaluation) -> float:
    """Return the squared distance of the calibration curve to the diagonal.

    {Parameters: regression}

    Returns
    -------
    float
        In [0, 1/3], best 0; NaN without pixels.

    Notes
    -----
    Of the straight pieces through the curve's points: off from that of the empirical CDF by at most .002
    times the largest gap.

    References
    ----------
    [J22] (54).

    Examples
    --------
    >>> regression_distance(RegressionEvaluation.zero(1))
    nan
    """
    return float(calibration.calibration_distance(*regression_curve(evaluation)))


@shared_sections
def regression_coverage(evaluation: RegressionEvaluation) -> dict[float, float]:
    """Return the share of pixels whose predicted probability is at most each nominal level.

    {Parameters: regression}

    Returns
    -------
    dict of float to float
        Coverage by nominal level; calibrated where equal. NaN without pixels.

    Notes
    -----
    For one output: the share of references within the central interval of that probability. Exact, because
    the levels are edges.

    Examples
    --------
    >>> list(regression_coverage(RegressionEvaluation.zero(1)))
    [0.5, 0.6827, 0.9, 0.95, 0.99]
    """
    predicted, observed = regression_curve(evaluation)
    points = np.searchsorted(predicted, evaluation.levels)
    return dict(zip(evaluation.levels, observed[points].tolist(), strict=True))


@shared_sections
def regression_side(evaluation: RegressionEvaluation) -> str | None:
    """Return whether the regression is overconfident or underconfident on average.

    {Parameters: regression}

    Returns
    -------
    str or None
        ``"overconfident"`` where the area is below .5, ``"underconfident"`` above, ``"neither"`` at .5; None
        without pixels.

    Examples
    --------
    >>> regression_side(RegressionEvaluation.zero(1)) is None
    True
    """
    area = regression_area(evaluation)
    if np.isnan(area):
        return None
    return "overconfident" if area < 0.5 else "underconfident" if area > 0.5 else "neither"
