"""Prediction sets at the coverages of a job, and sets that miss no more of a class by case than it allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dask_uncert.formulas import prediction_sets as formulas
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.distributions import rank_of_share
from dask_uncert.formulas.rankings import above_edges
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.metrics.prediction_sets import thresholds_of_sets
from dask_uncert.metrics.resampling_units import DENSE_UNITS, Units, ranges
from dask_uncert.summaries.evaluation import Evaluation

LOW = 0.05


def prediction_sets(evaluation: Evaluation, scalars: Mapping[str, Any], units: Units | None) -> list[dict[str, Any]]:
    """Return a row per wanted coverage; units: patients or tiles, whose own coverage is described."""
    found = thresholds_of_sets(evaluation)
    if not found:
        return []
    edges, positives = np.asarray(evaluation.stated.edges), evaluation.stated.fine_by_class.positives
    by_unit, rows = None, []
    if units is not None and units.names:
        by_unit = _coverages(units, [at.edge for at in found])
    for i, at in enumerate(found):
        numbers = dict(scalars[str(at.wanted)])
        classes = numbers.pop("classes")
        own = np.where(positives.sum(axis=1) > 0, edges[formulas.conformal_edge(positives, at.wanted)], np.nan)
        row = {"coverage_wanted": at.wanted, "threshold": edges[at.edge], **numbers}
        row["by_unit"] = None if by_unit is None else _described(by_unit[:, i], at.wanted)
        names = evaluation.class_names
        row["classes"] = [{"name": c, **classes[c], "own_threshold": own[k]} for k, c in enumerate(names)]
        rows.append(row)
    return rows


def risk_control(evaluation: Evaluation, units: Units | None) -> list[dict[str, Any]]:
    """Return a row per class whose missed share is to be small; cases are the units that have the class."""
    rows = []
    for name, wanted in evaluation.report_options.missed:
        row: dict[str, Any] = {"class": name, "missed_wanted": wanted, "threshold": None, "missed": None}
        row |= {"units": 0, "without_class": 0}
        if units is not None and units.names:
            counts = _all(units, f"true/{evaluation.class_names.index(name)}")
            edge, n = formulas.risk_controlling_edge(counts, wanted)
            row |= {"units": n, "without_class": len(units.names) - n}
            if edge >= 0:
                missed = formulas.missed_share(counts)[:, edge]
                row |= {"threshold": evaluation.stated.edges[edge], "missed": missed[~np.isnan(missed)].mean()}
        rows.append(row)
    return rows


def _all(units: Units, marginal: str) -> Counts:
    """Return a marginal of all units."""
    parts = [units.counts(marginal, a, b) for a, b in ranges(len(units.names), DENSE_UNITS)]
    return np.concatenate([part for part in parts if part is not None])


def _coverages(units: Units, edges: list[int]) -> Floats:
    """Return the coverage of every unit above these edges, (units, edges)."""
    parts = []
    for a, b in ranges(len(units.names), DENSE_UNITS):
        counts = units.counts("items", a, b)
        assert counts is not None
        above = above_edges(counts[..., 1])
        parts.append(ratio(above[:, edges], above[:, :1]))
    return np.concatenate(parts)


def _described(coverage: Floats, wanted: float) -> dict[str, Any]:
    """Return how the coverages of units lie; units without pixels take no part."""
    values = np.sort(coverage[~np.isnan(coverage)])
    n = len(values)
    if not n:
        return {"n": 0, "mean": None, "lowest": None, "quantile_0.05": None, "below_wanted": 0}
    rank = max(int(np.ceil(rank_of_share(LOW, n))) - 1, 0)
    below = int((values < wanted).sum())
    return {"n": n, "mean": values.mean(), "lowest": values[0], "quantile_0.05": values[rank], "below_wanted": below}
