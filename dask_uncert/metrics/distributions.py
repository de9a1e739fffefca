"""Distributions of uncertainty measures over right and wrong decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.errors import InputError, listed
from dask_uncert.formulas import distributions
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.confidence_joint import ConfidenceJoint
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation

if TYPE_CHECKING:
    import xarray as xr

Outcome = Literal["correct", "wrong", "all"]
OUTCOMES: dict[Outcome, tuple[int, ...]] = {"correct": (1,), "wrong": (0,), "all": (0, 1)}
"""Entries of the dimension ``right`` that belong to each outcome."""


@shared_sections
def distribution(evaluation: Evaluation, measure: str) -> Distribution:
    """Return the distribution of a measure: its histograms and power sums.

    {Parameters: evaluation, measure}

    Returns
    -------
    Distribution
        Counts over right-closed bins, by outcome and by class.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> du.distribution(evaluation, "gini").upper
    1.0
    """
    if measure not in evaluation.measures:
        raise KeyError(f"no measure {measure!r} was evaluated; there are {', '.join(evaluation.measures)}")
    return evaluation.measures[measure]


@shared_sections
def histogram(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> Counts:
    """Return the histogram of a measure.

    {Parameters: evaluation, measure, outcome}

    Returns
    -------
    ndarray of int64, (bins,)
        Pixels in each bin of ``distribution(evaluation, measure).edges``; bins are right-closed, the first
        also holds 0.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> int(du.histogram(evaluation, "gini", "wrong").sum())
    1
    """
    counts = distribution(evaluation, measure).histogram
    return np.asarray(counts[:, OUTCOMES[outcome]].sum(axis=(0, 1)))


@shared_sections
def ecdf(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> tuple[Floats, Floats]:
    """Return the empirical cumulative distribution of a measure.

    {Parameters: evaluation, measure, outcome}

    Returns
    -------
    edges : ndarray of float64, (bins,)
        Upper edge of each bin.
    shares : ndarray of float64, (bins,)
        Share of values at or below it, in [0, 1]; NaN where there is no value.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> edges, shares = du.ecdf(evaluation, "gini")
    >>> shares[edges >= 0.4][0].round(4).item()
    0.3333
    """
    edges = np.asarray(distribution(evaluation, measure).edges)[1:]
    return edges, distributions.ecdf(histogram(evaluation, measure, outcome))


@shared_sections
def moments(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> dict[str, float]:
    """Return the number of values, mean, standard deviation and skewness of a measure.

    {Parameters: evaluation, measure, outcome}

    Returns
    -------
    dict of str to float
        ``n``, ``mean``, ``std`` (of the population) and ``skewness``; NaN where undefined. Skewness is undefined
        where the values are too close together for it to be known: ``std`` below 3e-8 of the measure's range,
        7e-15 for a predicted uncertainty.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> round(du.moments(evaluation, "gini")["mean"], 4)
    0.6533
    """
    values, chosen = distribution(evaluation, measure), OUTCOMES[outcome]
    n = evaluation.decisions.by_confused[:, chosen].sum()
    sums = values.by_confused[:, chosen].sum(axis=(0, 1)), values.resolution
    return {
        "n": int(n),
        "mean": float(distributions.mean(n, *sums)) * values.unit,
        "std": float(distributions.standard_deviation(n, *sums)) * values.unit,
        "skewness": float(distributions.skewness(n, *sums)),
    }


@shared_sections
def quantiles(evaluation: Evaluation, measure: str, q: ArrayLike, outcome: Outcome = "all") -> Floats:
    """Return quantiles of a measure.

    {Parameters: evaluation, measure}
    q : float or array_like
        Shares in [0, 1].
    {outcome}

    Returns
    -------
    ndarray of float64, shape of q
        Values below which the shares lie; NaN where there is no value.

    {Raises: unknown measure}
    ValueError
        If a share is outside [0, 1].

    Notes
    -----
    Quantiles are exact to a bin's width: at most .001 of the measure's range, 1.6 % of a predicted uncertainty (6 %
    below 6e-8); 1.6 % of small values of a measure, too.

    {Examples: three pixels}
    >>> du.quantiles(evaluation, "gini", [0.5]).round(2).tolist()
    [0.64]
    """
    edges = np.asarray(distribution(evaluation, measure).edges)
    return distributions.quantiles(histogram(evaluation, measure, outcome), edges, q)


@shared_sections
def uncertainty_confusion(
    evaluation: Evaluation, measure: str, thresholds: ArrayLike | None = None
) -> dict[str, Counts | Floats]:
    """Return right and wrong against certain and uncertain decisions, at thresholds of a measure.

    {Parameters: evaluation, measure}
    thresholds : float or array_like, optional
        Bin edges; by default the thresholds that the job named. Every multiple of .001 of a bounded measure's
        range is a bin edge.

    Returns
    -------
    dict of str to ndarray, shape of thresholds
        Counts ``TC``, ``FU``, ``FC``, ``TU`` (true or false, certain or uncertain) and the scores ``USen``,
        ``USpe``, ``UPre``, ``UAcc``, in [0, 1], best 1; NaN where undefined.

    {Raises: unknown measure}
    ValueError
        If a threshold is not a bin edge: counts would not be exact.

    References
    ----------
    [A22], equations (7)-(10).

    {Examples: three pixels}
    >>> [int(n) for n in du.uncertainty_confusion(evaluation, "gini", 0.5)["TU"].ravel()]
    [1]
    """
    values = distribution(evaluation, measure)
    taus = values.thresholds if thresholds is None else thresholds
    counts = right_and_wrong(evaluation, measure)
    return distributions.uncertainty_confusion(*counts, np.asarray(values.edges), taus)


def right_and_wrong(evaluation: Evaluation, measure: str) -> tuple[Counts, Counts]:
    """Return the histograms (bins,) of a measure over right and over wrong decisions."""
    return histogram(evaluation, measure, "correct"), histogram(evaluation, measure, "wrong")


@shared_sections
def joint_distribution(evaluation: Evaluation, measure: str) -> xr.DataArray:
    """Return the joint distribution of the confidence and a measure, over correct and over wrong predictions.

    {Parameters: evaluation, measure}

    Returns
    -------
    xarray.DataArray of int64
        Pixels over ``outcome`` (correct, wrong), ``confidence``, the stated probability of the winning class, and
        ``uncertainty``, the measure. The coordinates are the upper edges of the bins; bins are right-closed, and the
        first also hold 0.

    Raises
    ------
    InputError
        If the joint distribution of this measure was not kept.

    References
    ----------
    [A22], figure 5.

    Examples
    --------
    >>> import dask_uncert as du
    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    >>> evaluation = du.evaluate(p, [0, 1, 1], measures="gini", joint_distributions="gini")
    >>> joint = du.joint_distribution(evaluation, "gini")
    >>> joint.sum(["confidence", "uncertainty"]).values.tolist()
    [2, 1]
    """
    import xarray as xr

    counts, joint = joint_counts(evaluation, measure)
    return xr.DataArray(
        counts,
        dims=("outcome", "confidence", "uncertainty"),
        coords={
            "outcome": ["correct", "wrong"],
            "confidence": np.asarray(joint.confidence_edges)[1:],
            "uncertainty": np.asarray(joint.edges)[1:],
        },
        name=measure,
    )


def joint_counts(evaluation: Evaluation, measure: str) -> tuple[Counts, ConfidenceJoint]:
    """Return pixels (correct and wrong, confidence, uncertainty), and where they are kept."""
    kept = {joint.measure: joint for joint in evaluation.confidence_joint}
    if measure not in kept:
        raise InputError(
            f"the joint distribution of {measure!r} and the confidence was not kept; there are "
            f"{listed([*kept] or ['none'], 10)}. Name the measure in `joint_distributions` of the job or of `evaluate`."
        )
    return kept[measure].pixels[[1, 0]], kept[measure]
