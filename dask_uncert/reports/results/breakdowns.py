"""Measures broken down by class, by number of confused classes and by pair of classes ([C23] figures 8, 9, 14, 15)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dask_uncert.formulas import distributions
from dask_uncert.metrics import distributions as distribution_metrics
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation


def _spread(one: Distribution, n: Any, sums: Any) -> dict[str, Any]:
    return {
        "n": n,
        "mean": distributions.mean(n, sums) * one.unit,
        "std": distributions.standard_deviation(n, sums) * one.unit,
    }


def by_class(evaluation: Evaluation, reference: bool) -> list[dict[str, Any]]:
    """Mean and standard deviation of every measure by reference (or predicted) class and outcome."""
    pairs = evaluation.decisions.pairs
    rows = []
    for i, one in enumerate(evaluation.classes):
        right = np.zeros(pairs.shape[:2], bool)
        chosen = right.copy()
        right[i, i] = True
        chosen[(i, slice(None)) if reference else (slice(None), i)] = True
        row: dict[str, Any] = {"code": one.code, "name": one.name, "measures": {}}
        for name, d in evaluation.measures.items():
            groups = {"correct": chosen & right, "wrong": chosen & ~right, "all": chosen}
            row["measures"][name] = {
                outcome: _spread(d, pairs[where].sum(), d.by_pair[where].sum(axis=(0, 1)))
                for outcome, where in groups.items()
            }
        rows.append(row)
    return rows


def by_confused(evaluation: Evaluation) -> list[dict[str, Any]]:
    rows = []
    for number, n in enumerate(evaluation.decisions.by_confused):
        if n.sum() == 0:
            continue
        row: dict[str, Any] = {"confused_classes": number, "n": n.sum(), "correct": n[1], "measures": {}}
        for name, d in evaluation.measures.items():
            row["measures"][name] = {
                outcome: _spread(d, n[list(chosen)].sum(), d.by_confused[number, chosen].sum(axis=0))
                for outcome, chosen in distribution_metrics.OUTCOMES.items()
            }
        rows.append(row)
    return rows


def by_second_best(evaluation: Evaluation) -> list[dict[str, Any]]:
    """By reference class, predicted class and whether the reference was second best ([C23] figure 15)."""
    pairs = evaluation.decisions.pairs
    rows = []
    for i, k, near in zip(*np.nonzero(pairs), strict=True):
        rows.append(
            {
                "reference": evaluation.classes[i].name,
                "predicted": evaluation.classes[k].name,
                "reference_second_best": bool(near),
                "n": pairs[i, k, near],
                "measures": {
                    name: _spread(d, pairs[i, k, near], d.by_pair[i, k, near])
                    for name, d in evaluation.measures.items()
                },
            }
        )
    return rows
