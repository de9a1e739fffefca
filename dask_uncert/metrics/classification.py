"""Agreement of decisions and reference, hard and soft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dask_uncert.formulas import confusion
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Floats
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftConfusion

if TYPE_CHECKING:
    import xarray as xr


@shared_sections
def confusion_matrix(evaluation: Evaluation) -> xr.DataArray:
    """Return the confusion matrix.

    {Parameters: evaluation}

    Returns
    -------
    xarray.DataArray of int64, (reference, predicted)
        Pixels by reference class (rows) and predicted class (columns), labelled by the names of the classes.

    {Examples: three pixels}
    >>> du.confusion_matrix(evaluation).sel(reference="1").values.tolist()
    [1, 1]
    """
    import xarray as xr

    names = evaluation.class_names
    coordinates = {"reference": names, "predicted": names}
    attributes = {"long_name": "confusion matrix", "units": "pixels"}
    return xr.DataArray(evaluation.decisions.confusion, coordinates, name="confusion_matrix", attrs=attributes)


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
    return float(confusion.accuracy(evaluation.decisions.confusion))


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
    return float(confusion.kappa(evaluation.decisions.confusion))


@shared_sections
def matthews(evaluation: Evaluation) -> float:
    """Return the Matthews correlation of all classes.

    {Parameters: evaluation}

    Returns
    -------
    float
        In [-1, 1], best 1, by chance 0; NaN where reference or prediction is one class throughout.

    References
    ----------
    Gorodkin, Computational Biology and Chemistry 28, 2004.

    {Examples: three pixels}
    >>> du.matthews(evaluation)
    0.5
    """
    return float(confusion.matthews(confusion_matrix(evaluation)))


@shared_sections
def weighted_kappa(evaluation: Evaluation, weights: Literal["linear", "quadratic"] = "linear") -> float:
    """Return Cohen's kappa of ordered classes: disagreements weigh by their distance in the class table.

    {Parameters: evaluation}
    weights : {"linear", "quadratic"}, default "linear"
        Whether a disagreement weighs by the distance or by its square.

    Returns
    -------
    float
        In [-1, 1], best 1, by chance 0; NaN where one class is everywhere.

    Raises
    ------
    ValueError
        For other weights.

    References
    ----------
    Cohen, Psychological Bulletin 70, 1968.

    {Examples: three pixels}
    >>> round(du.weighted_kappa(evaluation), 4)
    0.4
    """
    return float(confusion.weighted_kappa(confusion_matrix(evaluation), weights))


@shared_sections
def quantity_disagreement(evaluation: Evaluation) -> Floats:
    """Return the share of pixels by which the predicted amount of each class differs from the reference.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of float64, (classes,)
        In [0, 1], best 0; half their sum is the total. NaN where no pixel is counted.

    References
    ----------
    Pontius and Millones, International Journal of Remote Sensing 32, 2011.

    {Examples: three pixels}
    >>> du.quantity_disagreement(evaluation).round(4).tolist()
    [0.3333, 0.3333]
    """
    return confusion.quantity_disagreement(confusion_matrix(evaluation))


@shared_sections
def allocation_disagreement(evaluation: Evaluation) -> Floats:
    """Return the share of pixels of each class that are wrong by their place only.

    {Parameters: evaluation}

    Returns
    -------
    ndarray of float64, (classes,)
        In [0, 1], best 0; half their sum is the total, and with that of `quantity_disagreement` it is 1 - accuracy.
        NaN where no pixel is counted.

    References
    ----------
    Pontius and Millones, International Journal of Remote Sensing 32, 2011.

    {Examples: three pixels}
    >>> du.allocation_disagreement(evaluation).tolist()
    [0.0, 0.0]
    """
    return confusion.allocation_disagreement(confusion_matrix(evaluation))


@shared_sections
def precision(evaluation: Evaluation) -> xr.DataArray:
    """Return the precision (user's accuracy) of each class.

    {Parameters: evaluation}

    Returns
    -------
    xarray.DataArray of float64, (class,)
        In [0, 1], best 1, labelled by the names of the classes; NaN where a class was never predicted.

    {Examples: three pixels}
    >>> du.precision(evaluation).values.tolist()
    [0.5, 1.0]
    """
    return _by_class(evaluation, "precision")


@shared_sections
def recall(evaluation: Evaluation) -> xr.DataArray:
    """Return the recall (producer's accuracy) of each class.

    {Parameters: evaluation}

    Returns
    -------
    xarray.DataArray of float64, (class,)
        In [0, 1], best 1, labelled by the names of the classes; NaN where the reference lacks a class.

    {Examples: three pixels}
    >>> du.recall(evaluation).values.tolist()
    [1.0, 0.5]
    """
    return _by_class(evaluation, "recall")


@shared_sections
def f1(evaluation: Evaluation) -> xr.DataArray:
    """Return the F1 score (Dice coefficient) of each class.

    {Parameters: evaluation}

    Returns
    -------
    xarray.DataArray of float64, (class,)
        In [0, 1], best 1, labelled by the names of the classes; NaN where a class neither occurs nor is predicted.

    {Examples: three pixels}
    >>> du.f1(evaluation).round(4).values.tolist()
    [0.6667, 0.6667]
    """
    return _by_class(evaluation, "f1")


@shared_sections
def iou(evaluation: Evaluation) -> xr.DataArray:
    """Return the intersection over union (Jaccard index) of each class.

    {Parameters: evaluation}

    Returns
    -------
    xarray.DataArray of float64, (class,)
        In [0, 1], best 1, labelled by the names of the classes; NaN where a class neither occurs nor is predicted.

    {Examples: three pixels}
    >>> du.iou(evaluation).values.tolist()
    [0.5, 0.5]
    """
    return _by_class(evaluation, "iou")


def _by_class(evaluation: Evaluation, metric: str) -> xr.DataArray:
    """Return a metric of the confusion matrix, labelled by class."""
    import xarray as xr

    values: Any = getattr(confusion, metric)(evaluation.decisions.confusion)
    names = evaluation.class_names
    return xr.DataArray(values, {"class": names}, name=metric, attrs={"long_name": metric, "units": "1"})


def soft_cells(soft: SoftConfusion) -> dict[str, Floats]:
    """Return the summed weights TP, TN, FP, FN, each (thresholds, sigmas, dampings)."""
    return dict(zip(CELLS, np.moveaxis(decode(soft.weights), -1, 0), strict=True))


def soft_metrics(soft: SoftConfusion) -> dict[str, Floats]:
    """Return the metrics of a soft confusion, each (thresholds, sigmas, dampings). [S22] (13)-(17)"""
    return confusion.cell_metrics(*soft_cells(soft).values())
