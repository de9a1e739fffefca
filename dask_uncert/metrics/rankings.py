"""Each class against the rest by its probability: curves, areas and decision thresholds of an Evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas import rankings
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.rankings import Bounded
from dask_uncert.summaries.evaluation import Evaluation, class_position

if TYPE_CHECKING:
    import xarray as xr


class Threshold(NamedTuple):
    """A decision threshold: the class is found where its probability is above it; ``value`` is the metric there."""

    threshold: float
    value: float


@shared_sections
def threshold_table(evaluation: Evaluation, class_name: str) -> xr.Dataset:
    """Return the cells and metrics of a class at every decision threshold.

    {Parameters: evaluation, class name}

    Returns
    -------
    xarray.Dataset
        ``TP``, ``FP``, ``FN``, ``TN`` (int64 pixels), ``precision``, ``recall``, ``f1`` and ``youden`` (float64, NaN
        where 0/0), each over ``threshold``: the edges of the fine bins, at most .001 apart.

    {Raises: unknown class}

    Notes
    -----
    A pixel counts as found where its probability is above the threshold; at 0 all pixels do. Counts are exact. A
    threshold that is chosen here and reported on the same pixels flatters the model.

    {Examples: three pixels}
    >>> table = du.threshold_table(evaluation, "1")
    >>> table.sel(threshold=0.3, method="nearest").TP.item()
    2
    """
    import xarray as xr

    position = class_position(evaluation, class_name)
    tallies = evaluation.stated
    table = rankings.threshold_table(tallies.fine_by_class.number[position], tallies.fine_by_class.positives[position])
    names = ("TP", "FP", "FN", "TN", "precision", "recall", "f1", "youden")
    columns = {name: ("threshold", column) for name, column in zip(names, table, strict=True)}
    return xr.Dataset(columns, coords={"threshold": [*tallies.edges]}, attrs={"class": class_name})


@shared_sections
def best_threshold(
    evaluation: Evaluation,
    class_name: str,
    by: Literal["f1", "youden", "precision", "recall"] = "f1",
    at_least: float | None = None,
) -> Threshold:
    """Return the decision threshold of a class that is best by a metric, or reaches a wanted precision or recall.

    {Parameters: evaluation, class name}
    by : {"f1", "youden", "precision", "recall"}, default "f1"
        The metric to make as large as possible; of equal ones the highest threshold.
    at_least : float, optional
        For precision and recall: the value to reach. The threshold is then the one with the largest recall, or
        precision, among those that reach it.

    Returns
    -------
    Threshold
        ``threshold`` and ``value`` of the metric there; both NaN where no threshold has it.

    {Raises: unknown class}

    Notes
    -----
    A threshold that is chosen here and reported on the same pixels flatters the model.

    {Examples: three pixels}
    >>> round(du.best_threshold(evaluation, "1").threshold, 2), du.best_threshold(evaluation, "1").value
    (0.4, 1.0)
    """
    position = class_position(evaluation, class_name)
    return best_thresholds(evaluation, by, at_least)[position]


def best_thresholds(evaluation: Evaluation, by: str, at_least: float | None = None) -> list[Threshold]:
    """Return the `best_threshold` of every class, in the order of the class table."""
    if by not in ("f1", "youden", "precision", "recall"):
        raise InputError(f"by: {by!r} is not one of f1, youden, precision, recall.")
    if at_least is not None and by not in ("precision", "recall"):
        raise InputError('at_least: only with by="precision" or by="recall".')
    tallies = evaluation.stated
    table = rankings.threshold_table(tallies.fine_by_class.number, tallies.fine_by_class.positives)
    values = getattr(table, by)
    edges = rankings.best_edge(values) if at_least is None else rankings.edge_for(table, by, at_least)
    return [
        Threshold(tallies.edges[edge], float(row[edge])) if edge >= 0 else Threshold(np.nan, np.nan)
        for row, edge in zip(values, edges, strict=True)
    ]


@shared_sections
def roc_curve(evaluation: Evaluation, class_name: str) -> xr.Dataset:
    """Return the ROC curve of a class against the rest.

    {Parameters: evaluation, class name}

    Returns
    -------
    xarray.Dataset
        ``false_positive_rate`` and ``recall`` over ``threshold``, float64; NaN without pixels of the class, or of
        others.

    {Raises: unknown class}

    {Examples: three pixels}
    >>> du.roc_curve(evaluation, "1").recall.values[[0, -1]].tolist()
    [1.0, 0.0]
    """
    table = threshold_table(evaluation, class_name)
    false = ratio(table.FP, table.FP + table.TN)
    return table[["recall"]].assign(false_positive_rate=("threshold", false))


@overload
def roc_auc(evaluation: Evaluation) -> xr.DataArray: ...
@overload
def roc_auc(evaluation: Evaluation, *, bound: Literal[False]) -> xr.DataArray: ...
@overload
def roc_auc(evaluation: Evaluation, *, bound: Literal[True]) -> xr.Dataset: ...
@shared_sections
def roc_auc(evaluation: Evaluation, *, bound: bool = False) -> Any:
    """Return the area under the ROC curve of each class against the rest.

    {Parameters: evaluation, bound}

    Returns
    -------
    xarray.DataArray, or xarray.Dataset with `bound`
        Over ``class``, in [0, 1], best 1, at random 1/2; NaN without pixels of the class, or of others. With `bound`,
        ``value``, ``low`` and ``high``.

    {Examples: three pixels}
    >>> du.roc_auc(evaluation).values.tolist()
    [1.0, 1.0]
    """
    return _by_class(evaluation, rankings.auroc, bound)


@overload
def average_precision(evaluation: Evaluation) -> xr.DataArray: ...
@overload
def average_precision(evaluation: Evaluation, *, bound: Literal[False]) -> xr.DataArray: ...
@overload
def average_precision(evaluation: Evaluation, *, bound: Literal[True]) -> xr.Dataset: ...
@shared_sections
def average_precision(evaluation: Evaluation, *, bound: bool = False) -> Any:
    """Return the average precision of each class against the rest, in steps: no line is drawn between points.

    {Parameters: evaluation, bound}

    Returns
    -------
    xarray.DataArray, or xarray.Dataset with `bound`
        Over ``class``, in [0, 1], best 1, at random the share of the class; NaN without pixels of the class. With
        `bound`, ``value``, ``low`` and ``high``.

    {Examples: three pixels}
    >>> du.average_precision(evaluation).values.tolist()
    [1.0, 1.0]
    """
    return _by_class(evaluation, rankings.average_precision, bound)


def _by_class(evaluation: Evaluation, formula: Any, bound: bool) -> xr.DataArray | xr.Dataset:
    import xarray as xr

    number, positives, _ = evaluation.stated.fine_by_class
    bounded: Bounded = formula(number, positives)
    names = evaluation.class_names
    arrays = {key: xr.DataArray(part, {"class": names}, "class") for key, part in bounded._asdict().items()}
    return xr.Dataset(arrays) if bound else arrays["value"].rename(None)
