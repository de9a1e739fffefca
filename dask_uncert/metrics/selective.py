"""What is gained when a measure decides which pixels to keep, read off an Evaluation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from dask_uncert.formulas import selective
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.classification import right_and_wrong
from dask_uncert.summaries.evaluation import Evaluation


def risk_coverage(evaluation: Evaluation, measure: str) -> selective.RiskCoverage:
    """Share of wrong decisions among those kept, against the share kept, the most certain first.

    Two arrays (bins,): coverage and risk, both in [0, 1]; values of one bin are kept together. NaN where
    nothing is kept yet.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.risk_coverage(found, "gini").risk[[400, 999]].round(4).tolist()
    [0.0, 0.3333]
    """
    return selective.risk_coverage(*right_and_wrong(evaluation, measure))


def aurc(evaluation: Evaluation, measure: str) -> float:
    """Area under the risk-coverage curve when the measure rejects; in [0, 1], best 0. Bins count as ties.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.aurc(found, "gini"), 4)
    0.1111
    """
    return float(selective.aurc(*right_and_wrong(evaluation, measure)))


def excess_aurc(evaluation: Evaluation, measure: str) -> float:
    """AURC above that of the best possible order; in [0, 1], best 0. Bins count as ties.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.excess_aurc(found, "gini"), 4)
    0.0
    """
    return float(selective.excess_aurc(*right_and_wrong(evaluation, measure)))


def augrc(evaluation: Evaluation, measure: str) -> float:
    """Area under the generalised risk-coverage curve, in [0, 1/2], best 0. Bins count as ties.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.augrc(found, "gini"), 4)
    0.0556
    """
    return float(selective.augrc(*right_and_wrong(evaluation, measure)))


def error_auroc(evaluation: Evaluation, measure: str) -> float:
    """How well the measure tells wrong from right: ROC area, in [0, 1], best 1, chance .5. Bins count as ties.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.error_auroc(found, "gini")
    1.0
    """
    return float(selective.error_auroc(*right_and_wrong(evaluation, measure)))


def error_auprc(evaluation: Evaluation, measure: str) -> float:
    """Average precision of the measure as a detector of wrong decisions; in [0, 1], best 1. Bins count as ties.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.error_auprc(found, "gini")
    1.0
    """
    return float(selective.error_auprc(*right_and_wrong(evaluation, measure)))


def risk_at_coverage(evaluation: Evaluation, measure: str, coverage: ArrayLike) -> Floats:
    """Share of wrong decisions when the most certain share `coverage` is kept; shape of `coverage`.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.risk_at_coverage(found, "gini", [0.5, 1.0]).round(4).tolist()
    [0.0, 0.3333]
    """
    return selective.risk_at_coverage(*right_and_wrong(evaluation, measure), coverage)


def coverage_at_risk(evaluation: Evaluation, measure: str, risk: ArrayLike) -> Floats:
    """Largest share that can be kept with at most this share of wrong decisions; shape of `risk`.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.coverage_at_risk(found, "gini", 0.1).round(4).tolist()
    0.6667
    """
    return selective.coverage_at_risk(*right_and_wrong(evaluation, measure), risk)
