"""Agreement of decisions and reference, hard and soft."""

from __future__ import annotations

import numpy as np

from dask_uncert.formulas import confusion
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftConfusion


@shared_sections
def confusion_matrix(evaluation: Evaluation) -> Counts:
    """Return the confusion matrix.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of int64, (classes, classes)
        Pixels by reference class (rows) and predicted class (columns), in the order of the class table.

    {Examples: three pixels}
    >>> du.confusion_matrix(evaluation).tolist()
    [[1, 0], [1, 1]]
    """
    return evaluation.decisions.confusion


@shared_sections
def accuracy(evaluation: Evaluation) -> float:
    """Return the overall accuracy: the share of counted pixels decided right.

    {Parameters: evaluation}

    Returns
    -------
    float
        In [0, 1], best 1; NaN where no pixel is counted.

    {Examples: three pixels}
    >>> round(du.accuracy(evaluation), 4)
    0.6667
    """
    return float(confusion.accuracy(confusion_matrix(evaluation)))


@shared_sections
def kappa(evaluation: Evaluation) -> float:
    """Return Cohen's kappa: agreement beyond chance.

    {Parameters: evaluation}

    Returns
    -------
    float
        In [-1, 1], best 1, by chance 0; NaN where chance alone agrees everywhere.

    {Examples: three pixels}
    >>> round(du.kappa(evaluation), 4)
    0.4
    """
    return float(confusion.kappa(confusion_matrix(evaluation)))


@shared_sections
def precision(evaluation: Evaluation) -> Floats:
    """Return the precision (user's accuracy) of each class.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of float64, (classes,)
        In [0, 1], best 1; NaN where a class was never predicted.

    {Examples: three pixels}
    >>> du.precision(evaluation).tolist()
    [0.5, 1.0]
    """
    return confusion.precision(confusion_matrix(evaluation))


@shared_sections
def recall(evaluation: Evaluation) -> Floats:
    """Return the recall (producer's accuracy) of each class.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of float64, (classes,)
        In [0, 1], best 1; NaN where the reference lacks a class.

    {Examples: three pixels}
    >>> du.recall(evaluation).tolist()
    [1.0, 0.5]
    """
    return confusion.recall(confusion_matrix(evaluation))


@shared_sections
def f1(evaluation: Evaluation) -> Floats:
    """Return the F1 score (Dice coefficient) of each class.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of float64, (classes,)
        In [0, 1], best 1; NaN where a class neither occurs nor is predicted.

    {Examples: three pixels}
    >>> du.f1(evaluation).round(4).tolist()
    [0.6667, 0.6667]
    """
    return confusion.f1(confusion_matrix(evaluation))


@shared_sections
def iou(evaluation: Evaluation) -> Floats:
    """Return the intersection over union (Jaccard index) of each class.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of float64, (classes,)
        In [0, 1], best 1; NaN where a class neither occurs nor is predicted.

    {Examples: three pixels}
    >>> du.iou(evaluation).tolist()
    [0.5, 0.5]
    """
    return confusion.iou(confusion_matrix(evaluation))


def soft_cells(soft: SoftConfusion) -> dict[str, Floats]:
    """Return the summed weights TP, TN, FP, FN, each (thresholds, sigmas, dampings)."""
    return dict(zip(CELLS, np.moveaxis(decode(soft.weights), -1, 0), strict=True))


def soft_metrics(soft: SoftConfusion) -> dict[str, Floats]:
    """Return the metrics of a soft confusion, each (thresholds, sigmas, dampings). [S22] (13)-(17)"""
    return confusion.cell_metrics(*soft_cells(soft).values())
