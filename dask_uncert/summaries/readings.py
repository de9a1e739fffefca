"""Numbers read off an Evaluation: each is a formula of counts, applied to the counts that stand there."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas import agreement, calibration, distributions, selective
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import CELLS, SoftConfusion

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Outcome = Literal["correct", "wrong", "all"]
OUTCOMES: dict[Outcome, tuple[int, ...]] = {"correct": (1,), "wrong": (0,), "all": (0, 1)}


def confusion_matrix(evaluation: Evaluation) -> Counts:
    """Counts (reference class, predicted class), int64, in the order of the class table."""
    return evaluation.decisions.confusion


def accuracy(evaluation: Evaluation) -> float:
    """Overall accuracy, the share of counted pixels decided right; NaN where none is counted."""
    return float(agreement.accuracy(confusion_matrix(evaluation)))


def kappa(evaluation: Evaluation) -> float:
    """Cohen's kappa in [-1, 1], best 1; NaN where chance alone agrees everywhere."""
    return float(agreement.kappa(confusion_matrix(evaluation)))


def precision(evaluation: Evaluation) -> Floats:
    """User's accuracy of each class, (classes,) in [0, 1]; NaN where a class was never predicted."""
    return agreement.precision(confusion_matrix(evaluation))


def recall(evaluation: Evaluation) -> Floats:
    """Producer's accuracy of each class, (classes,) in [0, 1]; NaN where a class has no reference."""
    return agreement.recall(confusion_matrix(evaluation))


def f1(evaluation: Evaluation) -> Floats:
    """F1 (Dice) of each class, (classes,) in [0, 1]; NaN where a class neither occurs nor is predicted."""
    return agreement.f1(confusion_matrix(evaluation))


def iou(evaluation: Evaluation) -> Floats:
    """Intersection over union of each class, (classes,) in [0, 1]; NaN as for `f1`."""
    return agreement.iou(confusion_matrix(evaluation))


def expected_calibration_error(evaluation: Evaluation) -> float:
    """ECE of the winning class's confidence over the job's bins, in [0, 1], best 0 ([A22] (13))."""
    one = evaluation.calibration
    return float(calibration.expected_calibration_error(*one.binned(one.fine)))


def maximum_calibration_error(evaluation: Evaluation) -> float:
    """The largest gap of a bin between accuracy and mean confidence, in [0, 1], best 0."""
    one = evaluation.calibration
    return float(calibration.maximum_calibration_error(*one.binned(one.fine)))


def classwise_calibration_error(evaluation: Evaluation) -> float:
    """Mean over classes of the ECE of each class against the rest, in [0, 1], best 0."""
    one = evaluation.calibration
    return float(calibration.classwise_calibration_error(*one.binned(one.fine_by_class)))


def equal_mass_calibration_error(evaluation: Evaluation) -> float:
    """ECE over as many bins of about equal mass, merged from fine ones of .001; in [0, 1], best 0."""
    one = evaluation.calibration
    return float(calibration.equal_mass_calibration_error(*one.fine, one.bins))


def brier(evaluation: Evaluation) -> dict[str, float]:
    """The Brier score, summed over classes, in [0, 2], best 0; with its reliability, resolution, uncertainty.

    score = reliability - resolution + uncertainty + within_bins, over fine bins of .001.
    """
    one = evaluation.calibration
    parts = calibration.brier_decomposition(*one.fine_by_class, one.squared_error)
    return {name: float(value) for name, value in parts.items()}


def negative_log_likelihood(evaluation: Evaluation) -> dict[str, float]:
    """Mean -ln p of the true class, in nats: `value` (inf where a true class got 0), `infinite`, `finite`."""
    one = evaluation.calibration
    parts = calibration.negative_log_likelihood(one.number.sum(), one.log_loss, one.infinite)
    return {name: value.item() for name, value in parts.items()}


def windows_curve(
    evaluation: Evaluation, class_index: int, points: ArrayLike, delta: float = 0.05
) -> tuple[Counts, Floats]:
    """Of pixels whose probability of a class lies in [p - delta, p + delta], how many, and the share of it.

    points: (P,); both results (P,), NaN where the window is empty ([J22] VII).
    """
    one = evaluation.calibration
    chosen = one.fine_by_class
    return calibration.windows_curve(
        chosen.number[class_index], chosen.positives[class_index], one.edges, points, delta
    )


def reliability(evaluation: Evaluation) -> calibration.Reliability:
    """Mean confidence and accuracy of every calibration bin, (bins,); NaN in empty ones."""
    one = evaluation.calibration
    return calibration.reliability(*one.binned(one.fine))


def distribution(evaluation: Evaluation, measure: str) -> Distribution:
    """The Distribution of a measure; KeyError naming those there are."""
    if measure not in evaluation.measures:
        raise KeyError(f"no measure {measure!r} was evaluated; there are {', '.join(evaluation.measures)}")
    return evaluation.measures[measure]


def histogram(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> Counts:
    """Counts (bins,) of a measure over `distribution(...).edges`, right-closed, the first also holds 0."""
    counts = distribution(evaluation, measure).histogram
    return np.asarray(counts[:, OUTCOMES[outcome]].sum(axis=(0, 1)))


def ecdf(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> tuple[Floats, Floats]:
    """Upper bin edges and the share of values at or below them, both (bins,); NaN where there is no value."""
    edges = np.asarray(distribution(evaluation, measure).edges)[1:]
    return edges, distributions.ecdf(histogram(evaluation, measure, outcome))


def moments(evaluation: Evaluation, measure: str, outcome: Outcome = "all") -> dict[str, float]:
    """n, mean, std (population) and skewness of a measure over right, wrong or all decisions."""
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
    """Values below which the shares q lie, to a bin's width: .001 of the measure's range, 2.2 % of a predicted uncertainty."""
    one = distribution(evaluation, measure)
    return distributions.quantiles(histogram(evaluation, measure, outcome), np.asarray(one.edges), q)


def uncertainty_confusion(
    evaluation: Evaluation, measure: str, thresholds: ArrayLike | None = None
) -> dict[str, Counts | Floats]:
    """TC, FU, FC, TU and USen, USpe, UPre, UAcc at thresholds that are bin edges ([A22] (7)-(10)).

    thresholds: by default those the job named. Every multiple of .001 of a bounded measure's range is an edge too.
    """
    one = distribution(evaluation, measure)
    taus = one.thresholds if thresholds is None else thresholds
    right, wrong = (histogram(evaluation, measure, outcome) for outcome in ("correct", "wrong"))
    return distributions.uncertainty_confusion(right, wrong, np.asarray(one.edges), taus)


def aurc(evaluation: Evaluation, measure: str) -> float:
    """Area under the risk-coverage curve when the measure rejects; in [0, 1], best 0. Bins count as ties."""
    right, wrong = (histogram(evaluation, measure, outcome) for outcome in ("correct", "wrong"))
    return float(selective.aurc(right, wrong))


def soft_cells(one: SoftConfusion) -> dict[str, Floats]:
    """Summed weights TP, TN, FP, FN, each (thresholds, sigmas, dampings)."""
    weights = decode(one.weights)
    return {name: weights[..., i] for i, name in enumerate(CELLS)}


def soft_metrics(one: SoftConfusion) -> dict[str, Floats]:
    """The metrics of the soft confusion, each (thresholds, sigmas, dampings) ([S22] (13)-(17))."""
    cells = soft_cells(one)
    return agreement.cell_metrics(cells["TP"], cells["TN"], cells["FP"], cells["FN"])
