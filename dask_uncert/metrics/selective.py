"""Selective prediction and error detection: what is gained when a measure decides which pixels to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, overload

from numpy.typing import ArrayLike

from dask_uncert.formulas import selective
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.distributions import right_and_wrong
from dask_uncert.summaries.evaluation import Evaluation


class Bounded(NamedTuple):
    """A value, and the lowest and the highest that any order of the values within the bins gives."""

    value: float
    lowest: float
    highest: float


@shared_sections
def risk_coverage(evaluation: Evaluation, measure: str) -> selective.RiskCoverage:
    """Return the risk-coverage curve: the share of wrong decisions among the most certain ones.

    {Parameters: evaluation, measure}

    Returns
    -------
    RiskCoverage
        Two arrays (bins,), ``coverage`` and ``risk``, both in [0, 1]; NaN where nothing is kept yet.

    {Raises: unknown measure}

    Notes
    -----
    Values of one bin are kept together, the most certain first.

    {Examples: three pixels}
    >>> du.risk_coverage(evaluation, "gini").risk[-1].round(4).item()
    0.3333
    """
    return selective.risk_coverage(*right_and_wrong(evaluation, measure))


@overload
def aurc(evaluation: Evaluation, measure: str, bound: Literal[False] = False) -> float: ...
@overload
def aurc(evaluation: Evaluation, measure: str, bound: Literal[True]) -> Bounded: ...
@shared_sections
def aurc(evaluation: Evaluation, measure: str, bound: bool = False) -> float | Bounded:
    """Return the area under the risk-coverage curve when the measure rejects.

    {Parameters: evaluation, measure, bound}

    Returns
    -------
    float, or Bounded with the fields ``value``, ``lowest`` and ``highest``
        In [0, 1], best 0. Values of one bin count as ties.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> round(du.aurc(evaluation, "gini"), 4)
    0.1111
    >>> value, lowest, highest = du.aurc(evaluation, "gini", bound=True)
    >>> lowest == value == highest  # no bin holds right and wrong decisions
    True
    """
    return _area(selective.aurc, evaluation, measure, bound)


@overload
def excess_aurc(evaluation: Evaluation, measure: str, bound: Literal[False] = False) -> float: ...
@overload
def excess_aurc(evaluation: Evaluation, measure: str, bound: Literal[True]) -> Bounded: ...
@shared_sections
def excess_aurc(evaluation: Evaluation, measure: str, bound: bool = False) -> float | Bounded:
    """Return the area under the risk-coverage curve above that of the best possible order.

    {Parameters: evaluation, measure, bound}

    Returns
    -------
    float, or Bounded with the fields ``value``, ``lowest`` and ``highest``
        In [0, 1], best 0. Values of one bin count as ties.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> round(du.excess_aurc(evaluation, "gini"), 4)
    0.0
    """
    return _area(selective.excess_aurc, evaluation, measure, bound)


@overload
def augrc(evaluation: Evaluation, measure: str, bound: Literal[False] = False) -> float: ...
@overload
def augrc(evaluation: Evaluation, measure: str, bound: Literal[True]) -> Bounded: ...
@shared_sections
def augrc(evaluation: Evaluation, measure: str, bound: bool = False) -> float | Bounded:
    """Return the area under the generalised risk-coverage curve.

    {Parameters: evaluation, measure, bound}

    Returns
    -------
    float, or Bounded with the fields ``value``, ``lowest`` and ``highest``
        In [0, 1/2], best 0. Values of one bin count as ties.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> round(du.augrc(evaluation, "gini"), 4)
    0.0556
    """
    return _area(selective.augrc, evaluation, measure, bound)


@overload
def error_auroc(evaluation: Evaluation, measure: str, bound: Literal[False] = False) -> float: ...
@overload
def error_auroc(evaluation: Evaluation, measure: str, bound: Literal[True]) -> Bounded: ...
@shared_sections
def error_auroc(evaluation: Evaluation, measure: str, bound: bool = False) -> float | Bounded:
    """Return how well the measure tells wrong from right decisions: the area under the ROC curve.

    {Parameters: evaluation, measure, bound}

    Returns
    -------
    float, or Bounded with the fields ``value``, ``lowest`` and ``highest``
        In [0, 1], best 1, by chance .5. Values of one bin count as ties.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> du.error_auroc(evaluation, "gini")
    1.0
    """
    return _area(selective.error_auroc, evaluation, measure, bound)


@overload
def error_auprc(evaluation: Evaluation, measure: str, bound: Literal[False] = False) -> float: ...
@overload
def error_auprc(evaluation: Evaluation, measure: str, bound: Literal[True]) -> Bounded: ...
@shared_sections
def error_auprc(evaluation: Evaluation, measure: str, bound: bool = False) -> float | Bounded:
    """Return the average precision of the measure as a detector of wrong decisions.

    {Parameters: evaluation, measure, bound}

    Returns
    -------
    float, or Bounded with the fields ``value``, ``lowest`` and ``highest``
        In [0, 1], best 1. Values of one bin count as ties.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> du.error_auprc(evaluation, "gini")
    1.0
    """
    return _area(selective.error_auprc, evaluation, measure, bound)


@shared_sections
def risk_at_coverage(evaluation: Evaluation, measure: str, coverage: ArrayLike) -> Floats:
    """Return the share of wrong decisions when the most certain decisions are kept.

    {Parameters: evaluation, measure}
    coverage : float or array_like
        Shares to keep, in [0, 1].

    Returns
    -------
    ndarray of float64, shape of coverage
        In [0, 1], best 0; NaN at coverage 0.

    {Raises: unknown measure}
    ValueError
        If a coverage is outside [0, 1].

    {Examples: three pixels}
    >>> du.risk_at_coverage(evaluation, "gini", [0.5, 1.0]).round(4).tolist()
    [0.0, 0.3333]
    """
    return selective.risk_at_coverage(*right_and_wrong(evaluation, measure), coverage)


@shared_sections
def coverage_at_risk(evaluation: Evaluation, measure: str, risk: ArrayLike) -> Floats:
    """Return the largest share that can be kept with at most this share of wrong decisions.

    {Parameters: evaluation, measure}
    risk : float or array_like
        Shares of wrong decisions to accept.

    Returns
    -------
    ndarray of float64, shape of risk
        In [0, 1], best 1; 0 where nothing may be kept.

    {Raises: unknown measure}

    {Examples: three pixels}
    >>> du.coverage_at_risk(evaluation, "gini", 0.1).round(4).tolist()
    0.6667
    """
    return selective.coverage_at_risk(*right_and_wrong(evaluation, measure), risk)


def _area(
    formula: Callable[[ArrayLike, ArrayLike], Floats], evaluation: Evaluation, measure: str, bound: bool
) -> float | Bounded:
    counts = right_and_wrong(evaluation, measure)
    value = float(formula(*counts))
    return Bounded(value, *(float(end) for end in selective.bounds(formula, *counts))) if bound else value
