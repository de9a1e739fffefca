"""Calibration and proper scores, read off an Evaluation."""

from __future__ import annotations

from numpy.typing import ArrayLike

from dask_uncert.formulas import calibration, scoring_rules
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.evaluation import Evaluation


def expected_calibration_error(evaluation: Evaluation) -> float:
    """ECE of the winning class's confidence over the job's bins, in [0, 1], best 0 ([A22] (13)).

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.expected_calibration_error(found), 4)
    0.3
    """
    one = evaluation.calibration
    return float(calibration.expected_calibration_error(*one.binned(one.fine)))


def maximum_calibration_error(evaluation: Evaluation) -> float:
    """The largest gap of a bin between accuracy and mean confidence, in [0, 1], best 0.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.maximum_calibration_error(found), 4)
    0.6
    """
    one = evaluation.calibration
    return float(calibration.maximum_calibration_error(*one.binned(one.fine)))


def classwise_calibration_error(evaluation: Evaluation) -> float:
    """Mean over classes of the ECE of each class against the rest, in [0, 1], best 0.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.classwise_calibration_error(found), 4)
    0.3
    """
    one = evaluation.calibration
    return float(calibration.classwise_calibration_error(*one.binned(one.fine_by_class)))


def equal_mass_calibration_error(evaluation: Evaluation) -> float:
    """ECE over as many bins of about equal mass, merged from fine ones of .001; in [0, 1], best 0.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.equal_mass_calibration_error(found), 4)
    0.3
    """
    one = evaluation.calibration
    return float(calibration.equal_mass_calibration_error(*one.fine, one.bins))


def brier(evaluation: Evaluation) -> dict[str, float]:
    """The Brier score, summed over classes, in [0, 2], best 0; with its reliability, resolution, uncertainty.

    score = reliability - resolution + uncertainty + within_bins, over fine bins of .001.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.brier(found)["score"], 4)
    0.2733
    """
    one = evaluation.calibration
    parts = scoring_rules.brier_decomposition(*one.fine_by_class, one.squared_error)
    return {name: float(value) for name, value in parts.items()}


def negative_log_likelihood(evaluation: Evaluation) -> dict[str, float]:
    """Mean -ln p of the true class, in nats: `value` (inf where a true class got 0), `infinite`, `finite`.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(du.negative_log_likelihood(found)["value"], 4)
    0.4149
    """
    one = evaluation.calibration
    parts = scoring_rules.negative_log_likelihood(one.fine.number.sum(), one.log_loss, one.infinite)
    return {name: value.item() for name, value in parts.items()}


def windows_curve(
    evaluation: Evaluation, class_index: int, points: ArrayLike, delta: float = 0.05
) -> tuple[Counts, Floats]:
    """Of pixels whose probability of a class lies in [p - delta, p + delta], how many, and the share of it.

    points: (P,); both results (P,), NaN where the window is empty ([J22] VII).

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> [part.tolist() for part in du.windows_curve(found, 1, [0.1, 0.4], 0.05)]
    [[1, 1], [0.0, 1.0]]
    """
    one = evaluation.calibration
    chosen = one.fine_by_class
    return calibration.windows_curve(
        chosen.number[class_index], chosen.positives[class_index], one.edges, points, delta
    )


def reliability(evaluation: Evaluation) -> calibration.Reliability:
    """Mean confidence and accuracy of every calibration bin, (bins,); NaN in empty ones.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> du.reliability(found).accuracy[-3:].tolist()
    [nan, 1.0, nan]
    """
    one = evaluation.calibration
    return calibration.reliability(*one.binned(one.fine))
