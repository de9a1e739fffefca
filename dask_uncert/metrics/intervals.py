"""Confidence intervals of any scalar, read by its name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dask_uncert.errors import InputError
from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.metrics.bootstrap import pooled_intervals
from dask_uncert.metrics.cohort import matching_metrics
from dask_uncert.metrics.resampling_units import RestrictedUnits, Units, patients
from dask_uncert.metrics.scalars import scalars
from dask_uncert.metrics.tile_bootstrap import GROUPS, TileUnits
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Stack


def intervals(
    evaluation: Evaluation | Stack,
    metrics: str | Sequence[str] | None = None,
    *,
    replicates: int | None = None,
    level: float | None = None,
    seed: int | None = None,
) -> dict[str, Interval]:
    """Return confidence intervals by the names of the numbers, without reading a pixel.

    Parameters
    ----------
    evaluation : Evaluation or Stack
        A scene that was evaluated with `confidence`, whose tiles are resampled; or cases, whose patients are.
    metrics : str or sequence of str, optional
        Names or patterns such as ``"classes/*/f1"``; by default every number.
    replicates, level, seed : int, float, int, optional
        Number of bootstrap replicates, level and seed instead of the job's; of cases 1000, 0.95 and 0.

    Returns
    -------
    dict of str to Interval
        ``low``, ``high`` (NaN where undefined) and the number of ``undefined`` replicates. Numbers that tiles do not
        keep (weighted ones, the parts of the Brier score and rankings) are not in it.

    Raises
    ------
    InputError
        If a scene has no tiles, or there is no such number.

    Examples
    --------
    >>> import dask_uncert as du
    >>> good, poor = (du.evaluate([[0.9, 0.1], [p, 1 - p]], [0, 1]) for p in (0.2, 0.7))
    >>> stack = du.Stack.of({"P1": good, "P2": good, "P3": poor})
    >>> low, high, _ = du.intervals(stack, "overall/accuracy")["overall/accuracy"]
    >>> round(float(low), 4), float(high)
    (0.5, 1.0)
    """
    groups: int | None
    units: Units
    if isinstance(evaluation, Stack):
        units, confidence, groups = patients(evaluation), Confidence(), None
    elif evaluation.tiles is None:
        raise InputError(
            "this evaluation has no tiles to resample. Evaluate the scene with confidence={'unit': 'tile'}, or put the "
            "cases in a Stack."
        )
    else:
        units, confidence, groups = TileUnits(evaluation), evaluation.tiles.confidence, GROUPS
    if replicates is not None:
        confidence = replace(confidence, replicates=replicates)
    if level is not None:
        confidence = replace(confidence, level=level)
    if seed is not None:
        confidence = replace(confidence, seed=seed)
    patterns = [metrics] if isinstance(metrics, str) else metrics
    chosen = matching_metrics(tuple(scalars(units.total)), patterns)
    found = pooled_intervals(units if metrics is None else RestrictedUnits(units, chosen), confidence, groups)
    return {name: found[name] for name in chosen if name in found}
