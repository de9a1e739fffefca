"""Numbers of an Evaluation as other packages define them, beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dask_uncert.errors import InputError, listed
from dask_uncert.formulas import confusion, rankings
from dask_uncert.formulas import conventions as formulas
from dask_uncert.formulas.conventions import shifted
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.rankings import Bounded
from dask_uncert.metrics.scalars import scalars
from dask_uncert.summaries.evaluation import Evaluation

SMALLEST = float(np.finfo(np.float64).eps)
DEAREST = 745.2  # -ln of the smallest number above 0
OVERLAP = {"precision": "precision", "recall": "recall", "f1": "f1_score", "iou": "jaccard_index"}
SCORES = {"precision": "precision_score", "recall": "recall_score", "f1": "f1_score", "iou": "jaccard_score"}
AREAS = {"auroc": rankings.auroc, "average_precision": rankings.average_precision}
PRESENT = (
    "A ratio 0/0 counts 0, and the mean is over all classes that occur in the reference or the prediction; ours leaves "
    "out undefined ratios and classes without reference."
)
NEEDS_ALL = "Undefined as soon as a class has no reference; our mean is over the classes that have."


class Convention(NamedTuple):
    """A number by the rule of another package: ours, theirs between bounds, and how the rules differ.

    number: its name with us. function: what computes it there. NaN where undefined, or where counts cannot tell.
    """

    package: str
    number: str
    function: str
    ours: float
    value: float
    low: float
    high: float
    reason: str


@shared_sections
def conventions(evaluation: Evaluation, packages: str | Sequence[str]) -> list[Convention]:
    """Return the numbers for which other packages have other rules, by their rules and by ours.

    {Parameters: evaluation}
    packages : str or sequence of str
        ``"torchmetrics"``, ``"scikit-learn"``, ``"monai"``, ``"metrics-reloaded"``.

    Returns
    -------
    list of Convention
        With ``package``, ``number``, ``function``, ``ours``, ``value``, ``low``, ``high`` and ``reason``. The bounds
        equal the value unless counts leave it open. All pixels are taken together as one image.

    Raises
    ------
    InputError
        If a package is none of these.

    {Examples: three pixels}
    >>> du.conventions(evaluation, "scikit-learn")[0].function
    'precision_score(average="macro")'
    """
    chosen = [packages] if isinstance(packages, str) else [*packages]
    unknown = [name for name in chosen if name not in PACKAGES]
    if unknown:
        raise InputError(f"conventions: there is no package {unknown[0]!r}; there are {listed([*PACKAGES], 9)}.")
    ours = {**scalars(evaluation), **{f"ranking/macro_{key}": area.value for key, area in _areas(evaluation).items()}}
    return [
        Convention(name, number, function, float(ours[number]), float(value), float(low), float(high), reason)
        for name in chosen
        for number, function, (value, low, high), reason in PACKAGES[name](evaluation)
    ]


Row = tuple[str, str, Bounded, str]


def _torchmetrics(evaluation: Evaluation) -> Iterator[Row]:
    matrix = evaluation.decisions.confusion
    for key, function in OVERLAP.items():
        value = formulas.mean_of_present(matrix, getattr(confusion, key)(matrix))
        yield f"overall/macro_{key}", f'multiclass_{function}(average="macro")', exactly(value), PRESENT
    yield (
        "overall/matthews", "multiclass_matthews_corrcoef", exactly(formulas.matthews_or_limit(matrix)),
        "Defined also where reference or prediction has one class only; ours is undefined there.",
    )  # fmt: skip
    if evaluation.calibration is None:
        return
    bins = evaluation.calibration.bins
    errors = formulas.left_closed_errors(*evaluation.calibration.fine, evaluation.calibration.edges, bins)
    for key, norm, found in zip(("ece", "mce"), ("l1", "max"), errors, strict=True):
        yield (
            f"calibration/{key}", f'multiclass_calibration_error(n_bins={bins}, norm="{norm}")', found,
            "Bins include their lower edge, and 1 has a bin of its own; ours include the upper edge. Counts do not tell "
            "which pixels lie on an edge.",
        )  # fmt: skip
    yield _mean_area(
        evaluation, "auroc", 'multiclass_auroc(average="macro")', 0.0,
        "A class without reference counts 0 in the mean; ours leaves it out.",
    )  # fmt: skip


def _scikit_learn(evaluation: Evaluation) -> Iterator[Row]:
    matrix = evaluation.decisions.confusion
    for key, function in SCORES.items():
        value = formulas.mean_of_present(matrix, getattr(confusion, key)(matrix))
        yield f"overall/macro_{key}", f'{function}(average="macro")', exactly(value), PRESENT
    value = np.nan_to_num(confusion.matthews(matrix))
    yield (
        "overall/matthews", "matthews_corrcoef", exactly(value),
        "0 where reference or prediction has one class only; ours is undefined there.",
    )  # fmt: skip
    calibration = evaluation.calibration
    if calibration is None:
        return
    yield _mean_area(evaluation, "auroc", 'roc_auc_score(multi_class="ovr")', np.nan, NEEDS_ALL)
    yield _mean_area(
        evaluation, "average_precision", 'average_precision_score(average="macro")', 0.0,
        "A class without reference counts 0 in the mean; ours leaves it out.",
    )  # fmt: skip
    n = calibration.fine.number.sum()
    if len(evaluation.classes) == 2:
        half = confusion.ratio(decode(calibration.squared_error), 2 * n)
        yield (
            "calibration/brier/score", "brier_score_loss", exactly(half),
            "Of two classes only the second counts; ours adds both, which is twice as much.",
        )  # fmt: skip
    cost, infinite = -np.log(SMALLEST), int(calibration.infinite)
    value = confusion.ratio(decode(calibration.log_loss) + cost * infinite, n)
    tiny = calibration.fine_by_class.positives[:, 0].sum() - infinite  # may lie below SMALLEST, at most at DEAREST
    least = np.maximum(value - confusion.ratio(tiny * (DEAREST - cost), n), confusion.ratio(cost * infinite, n))
    yield (
        "calibration/nll/value", "log_loss", shifted(value, least, value),
        "Probabilities below 2.2e-16 are raised to it, so a 0 costs 36 nats; ours is infinite there and counts them.",
    )  # fmt: skip


def _monai(evaluation: Evaluation) -> Iterator[Row]:
    matrix = evaluation.decisions.confusion
    support = confusion.support(matrix)
    for key, function in (("f1", "DiceMetric"), ("iou", "MeanIoU")):
        values = np.where(support > 0, getattr(confusion, key)(matrix), np.nan)
        others = values[1:][~np.isnan(values[1:])]
        yield (
            f"overall/macro_{key}", f"{function}(include_background=False)",
            exactly(others.mean() if others.size else 0.0),
            "The first class is left out as background; ours has it in the mean.",
        )  # fmt: skip
        yield (
            f"overall/macro_{key}", f"{function}(ignore_empty=False)",
            exactly(formulas.mean_with_empty(matrix, values)),
            "A class without reference counts 1 if it is not predicted either, else 0; ours leaves it out.",
        )  # fmt: skip
        for i in np.flatnonzero(support == 0):
            yield (
                f"classes/{evaluation.classes[i].name}/{key}", f"{function}(reduction=\"none\")", exactly(np.nan),
                "Undefined for a class without reference, also if it is predicted; ours is 0 then.",
            )  # fmt: skip
    if evaluation.calibration is None:
        return
    yield _mean_area(evaluation, "auroc", 'compute_roc_auc(average="macro")', np.nan, NEEDS_ALL)
    yield _mean_area(evaluation, "average_precision", 'compute_average_precision(average="macro")', np.nan, NEEDS_ALL)


def _metrics_reloaded(evaluation: Evaluation) -> Iterator[Row]:
    matrix = evaluation.decisions.confusion
    support, predicted, recall = confusion.support(matrix), matrix.sum(axis=0), confusion.recall(matrix)
    yield "overall/macro_recall", "balanced_accuracy", exactly(recall.mean()), NEEDS_ALL
    for i in np.flatnonzero((support == 0) & (predicted == 0)):
        yield (
            f"classes/{evaluation.classes[i].name}/f1", "dsc, fbeta", exactly(1.0),
            "1 where reference and prediction lack the class; ours is undefined.",
        )  # fmt: skip
    for i in np.flatnonzero((support > 0) & (predicted == 0)):
        yield (
            f"classes/{evaluation.classes[i].name}/precision", "positive_predictive_values", exactly(0.0),
            "0 for a class that is never predicted though it is there; ours is undefined.",
        )  # fmt: skip
    calibration = evaluation.calibration
    if calibration is None:
        return
    n, infinite, classes = calibration.fine.number.sum(), int(calibration.infinite), len(evaluation.classes)
    error = scalars(evaluation)["calibration/classwise_ece"]
    slack = confusion.ratio(infinite, n * classes)
    yield (
        "calibration/classwise_ece", f"class_wise_expectation_calibration_error(bins_ece={calibration.bins})",
        shifted(error, np.maximum(error - slack, 0.0), error + slack),
        "A probability of exactly 0 is in no bin; ours has it in the first. That matters where a true class got 0.",
    )  # fmt: skip
    loss = np.inf if infinite else decode(calibration.log_loss)
    yield (
        "calibration/nll/value", "negative_log_likelihood", exactly(loss),
        "The sum over pixels; ours is the mean.",
    )  # fmt: skip
    yield (
        "ranking/macro_average_precision", "average_precision", shifted(np.nan, 0.0, 1.0),
        "The area under straight lines between points, over at most 1500 thresholds that are values themselves, so counts "
        "in bins cannot give it; ours adds steps.",
    )  # fmt: skip


PACKAGES: dict[str, Callable[[Evaluation], Iterator[Row]]] = {
    "torchmetrics": _torchmetrics,
    "scikit-learn": _scikit_learn,
    "monai": _monai,
    "metrics-reloaded": _metrics_reloaded,
}


def exactly(value: object) -> Bounded:
    """Return a value that counts give exactly."""
    return shifted(value, value, value)  # type: ignore[arg-type]


def _areas(evaluation: Evaluation) -> dict[str, Bounded]:
    """Return the means of areas over the classes for which they are defined, with bounds."""
    found = {}
    for key, area in _areas_by_class(evaluation).items():
        kept = ~np.isnan(area.value)
        found[key] = Bounded(*(part[kept].mean() if kept.any() else np.asarray(np.nan) for part in area))
    return found


def _areas_by_class(evaluation: Evaluation) -> dict[str, Bounded]:
    if evaluation.calibration is None:
        return {}
    number, positives, _ = evaluation.calibration.fine_by_class
    return {key: formula(number, positives) for key, formula in AREAS.items()}


def _mean_area(evaluation: Evaluation, key: str, function: str, empty: float, reason: str) -> Row:
    """Return a mean of areas over all classes, of which undefined ones count as `empty`."""
    area = _areas_by_class(evaluation)[key]
    undefined = np.isnan(area.value)
    parts = (np.asarray(np.where(undefined, empty, part).mean()) for part in area)
    return f"ranking/macro_{key}", function, Bounded(*parts), reason
