"""Numbers read off an Evaluation: each is a formula of counts, applied to the counts that stand there."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas import confusion, distributions
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftConfusion

Outcome = Literal["correct", "wrong", "all"]
OUTCOMES: dict[Outcome, tuple[int, ...]] = {"correct": (1,), "wrong": (0,), "all": (0, 1)}


def confusion_matrix(evaluation: Evaluation) -> Counts:
    """Counts (reference class, predicted class), int64, in the order of the class table.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.confusion_matrix(found).tolist()
    [[1, 0], [1, 1]]
    """
    return evaluation.decisions.confusion


def accuracy(evaluation: Evaluation) -> float:
    """Overall accuracy, the share of counted pixels decided right; NaN where none is counted.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.accuracy(found), 4)
    0.6667
    """
    return float(confusion.accuracy(confusion_matrix(evaluation)))


def kappa(evaluation: Evaluation) -> float:
    """Cohen's kappa in [-1, 1], best 1; NaN where chance alone agrees everywhere.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.kappa(found), 4)
    0.4
    """
    return float(confusion.kappa(confusion_matrix(evaluation)))


def precision(evaluation: Evaluation) -> Floats:
    """User's accuracy of each class, (classes,) in [0, 1]; NaN where a class was never predicted.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.precision(found).tolist()
    [0.5, 1.0]
    """
    return confusion.precision(confusion_matrix(evaluation))


def recall(evaluation: Evaluation) -> Floats:
    """Producer's accuracy of each class, (classes,) in [0, 1]; NaN where a class has no reference.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.recall(found).tolist()
    [1.0, 0.5]
    """
    return confusion.recall(confusion_matrix(evaluation))


def f1(evaluation: Evaluation) -> Floats:
    """F1 (Dice) of each class, (classes,) in [0, 1]; NaN where a class neither occurs nor is predicted.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.f1(found).round(4).tolist()
    [0.6667, 0.6667]
    """
    return confusion.f1(confusion_matrix(evaluation))


def iou(evaluation: Evaluation) -> Floats:
    """Intersection over union of each class, (classes,) in [0, 1]; NaN as for `f1`.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.iou(found).tolist()
    [0.5, 0.5]
    """
    return confusion.iou(confusion_matrix(evaluation))


def distribution(evaluation: Evaluation, measure: str) -> Distribution:
    """The Distribution of a measure; KeyError naming those there are.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.distribution(found, "gini").upper
    1.0
    """
    if measure not in evaluation.measures:
        raise KeyError(f"no measure {measure!r} was evaluated; there are {', '.join(evaluation.measures)}")
    return evaluation.measures[measure]


def histogram(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> Counts:
    """Counts (bins,) of a measure over `distribution(...).edges`, right-closed, the first also holds 0.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> int(du.histogram(found, "gini", "wrong").sum())
    1
    """
    counts = distribution(evaluation, measure).histogram
    return np.asarray(counts[:, OUTCOMES[outcome]].sum(axis=(0, 1)))


def ecdf(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> tuple[Floats, Floats]:
    """Upper bin edges and the share of values at or below them, both (bins,); NaN where there is no value.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.ecdf(found, "gini")[1][[350, 399, 999]].round(4).tolist()
    [0.0, 0.3333, 1.0]
    """
    edges = np.asarray(distribution(evaluation, measure).edges)[1:]
    return edges, distributions.ecdf(histogram(evaluation, measure, outcome))


def moments(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> dict[str, float]:
    """n, mean, std (population) and skewness of a measure over right, wrong or all decisions.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.moments(found, "gini")["mean"], 4)
    0.6533
    """
    one = distribution(evaluation, measure)
    chosen = OUTCOMES[outcome]
    n = evaluation.decisions.by_confused[:, chosen].sum()
    sums = one.by_confused[:, chosen].sum(axis=(0, 1))
    return {
        "n": int(n),
        "mean": float(distributions.mean(n, sums)) * one.unit,
        "std": float(distributions.standard_deviation(n, sums)) * one.unit,
        "skewness": float(distributions.skewness(n, sums)),
    }


def quantiles(evaluation: Evaluation, measure: str, q: ArrayLike, outcome: Outcome = "all") -> Floats:
    """Values below which the shares q lie, to a bin's width: .001 of the measure's range, 2.2 % of a predicted uncertainty.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.quantiles(found, "gini", [0.5]).round(2).tolist()
    [0.64]
    """
    one = distribution(evaluation, measure)
    return distributions.quantiles(histogram(evaluation, measure, outcome), np.asarray(one.edges), q)


def uncertainty_confusion(
    evaluation: Evaluation, measure: str, thresholds: ArrayLike | None = None
) -> dict[str, Counts | Floats]:
    """TC, FU, FC, TU and USen, USpe, UPre, UAcc at thresholds that are bin edges ([A22] (7)-(10)).

    thresholds: by default those the job named. Every multiple of .001 of a bounded measure's range is an edge too.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> [int(n) for n in du.uncertainty_confusion(found, "gini", 0.5)["TU"].ravel()]
    [1]
    """
    one = distribution(evaluation, measure)
    taus = one.thresholds if thresholds is None else thresholds
    right, wrong = right_and_wrong(evaluation, measure)
    return distributions.uncertainty_confusion(right, wrong, np.asarray(one.edges), taus)


def right_and_wrong(evaluation: Evaluation, measure: str) -> tuple[Counts, Counts]:
    """The histograms (bins,) of a measure over right and over wrong decisions."""
    return histogram(evaluation, measure, "correct"), histogram(evaluation, measure, "wrong")


def soft_cells(one: SoftConfusion) -> dict[str, Floats]:
    """Summed weights TP, TN, FP, FN, each (thresholds, sigmas, dampings)."""
    weights = decode(one.weights)
    return {name: weights[..., i] for i, name in enumerate(CELLS)}


def soft_metrics(one: SoftConfusion) -> dict[str, Floats]:
    """The metrics of the soft confusion, each (thresholds, sigmas, dampings) ([S22] (13)-(17))."""
    cells = soft_cells(one)
    return confusion.cell_metrics(cells["TP"], cells["TN"], cells["FP"], cells["FN"])
