"""Sets of classes that hold the true one at a stated rate, read from an Evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas import prediction_sets as formulas
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.typing import Floats
from dask_uncert.summaries.evaluation import Evaluation

if TYPE_CHECKING:
    import xarray as xr


class SetThreshold(NamedTuple):
    """The fine edge above which classes are in the sets of a wanted coverage."""

    wanted: float
    edge: int


def thresholds_of_sets(evaluation: Evaluation) -> list[SetThreshold]:
    """Return the thresholds of the coverages that the job wants, chosen on all its pixels."""
    wanted = evaluation.report_options.coverages
    if not wanted:
        return []
    positives = evaluation.stated.fine_by_class.positives.sum(axis=0)
    return [SetThreshold(level, int(formulas.conformal_edge(positives, level))) for level in wanted]


@shared_sections
def prediction_sets(evaluation: Evaluation, threshold: float | Sequence[float]) -> xr.Dataset:
    """Return how the sets of all classes with a probability of at least a threshold do.

    {Parameters: evaluation}
    threshold : float or sequence of float
        Thresholds in [0, 1].

    Returns
    -------
    xarray.Dataset
        Over ``threshold``: ``coverage``, the share of pixels whose true class is in their set; ``mean_size``, the mean
        number of classes in a set; ``class_coverage``, also over ``class``, the coverage of the pixels of each class.
        Each with ``_low`` and ``_high``: probabilities between the fine edges around a threshold may lie on either
        side of it. NaN without pixels.

    Raises
    ------
    InputError
        If a threshold lies outside [0, 1].

    References
    ----------
    Sadinle, Lei and Wasserman, Journal of the American Statistical Association 114, 2019.

    {Examples: three pixels}
    >>> sets = du.prediction_sets(evaluation, 0.3)
    >>> sets.coverage.item(), round(sets.mean_size.item(), 4)
    (1.0, 1.3333)
    """
    import xarray as xr

    at = np.atleast_1d(np.asarray(threshold, np.float64))
    if at.ndim != 1 or not np.all((at >= 0) & (at <= 1)):
        raise InputError(f"threshold: must lie in [0, 1], found {threshold!r}.")
    tallies = evaluation.stated
    number, positives, _ = tallies.fine_by_class
    found = {
        "coverage": formulas.coverage(positives.sum(axis=0), tallies.edges, at),
        "mean_size": formulas.mean_size(number, tallies.edges, at),
        "class_coverage": formulas.coverage(positives, tallies.edges, at),
    }
    columns: dict[str, tuple[tuple[str, ...], Floats]] = {}
    for name, bounded in found.items():
        dims = ("class", "threshold") if name == "class_coverage" else ("threshold",)
        parts = zip(("", "_low", "_high"), bounded, strict=True)
        columns |= {f"{name}{ending}": (dims, part) for ending, part in parts}
    return xr.Dataset(columns, coords={"threshold": at, "class": evaluation.class_names})


@shared_sections
def conformal_threshold(evaluation: Evaluation, coverage: float = 0.9, *, by_class: bool = False) -> xr.DataArray:
    """Return the threshold whose sets hold the true class of new pixels at least at a wanted rate.

    {Parameters: evaluation}
    coverage : float, default 0.9
        The wanted coverage, in (0, 1).
    by_class : bool, default False
        Whether each class gets its own threshold, so that the pixels of each class are covered at that rate.

    Returns
    -------
    xarray.DataArray
        One number, or one for each ``class``: sets of the classes with a probability above it reach the coverage. 0,
        at which every set is full, where there are too few pixels.

    Raises
    ------
    InputError
        If the coverage lies outside (0, 1).

    Notes
    -----
    Split conformal prediction promises the coverage for pixels that are exchangeable with those evaluated.
    Neighbouring pixels are not, nor are pixels of other patients or scenes: check it on units of their own.

    References
    ----------
    Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005.

    {Examples: three pixels}
    >>> round(du.conformal_threshold(evaluation, 0.5).item(), 3)
    0.799
    """
    import xarray as xr

    if not 0 < coverage < 1:
        raise InputError(f"coverage: must lie between 0 and 1, found {coverage!r}.")
    tallies = evaluation.stated
    positives = tallies.fine_by_class.positives
    edges = formulas.conformal_edge(positives if by_class else positives.sum(axis=0), coverage)
    thresholds = np.asarray(tallies.edges)[edges]
    return xr.DataArray(
        thresholds, {"class": evaluation.class_names} if by_class else {}, ["class"] if by_class else []
    )
