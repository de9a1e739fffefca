"""Measures broken down by class, number of confused classes and pair of classes. [C23] figures 8, 9, 14, 15"""

from __future__ import annotations

from typing import Any

import numpy as np

from dask_uncert.formulas import distributions
from dask_uncert.metrics.distributions import OUTCOMES
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation


def _spread(distribution: Distribution, n: Any, sums: Any) -> dict[str, Any]:
    of_values = n, sums, distribution.resolution
    mean, std = distributions.mean(*of_values), distributions.standard_deviation(*of_values)
    return {"n": n, "mean": mean * distribution.unit, "std": std * distribution.unit}


def by_class(evaluation: Evaluation, reference: bool) -> list[dict[str, Any]]:
    """Return the mean and standard deviation of every measure by reference or predicted class and outcome."""
    pairs = evaluation.decisions.pairs
    right = np.eye(len(pairs), dtype=bool)
    rows = []
    for i, c in enumerate(evaluation.classes):
        chosen = np.zeros_like(right)
        chosen[(i, slice(None)) if reference else (slice(None), i)] = True
        groups = {"correct": chosen & right, "wrong": chosen & ~right, "all": chosen}
        measures = {
            name: {
                outcome: _spread(d, pairs[where].sum(), d.by_pair[where].sum(axis=(0, 1)))
                for outcome, where in groups.items()
            }
            for name, d in evaluation.measures.items()
        }
        rows.append({"code": c.code, "name": c.name, "measures": measures})
    return rows


def by_confused(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the mean and standard deviation of every measure by number of confused classes and outcome."""
    rows = []
    for number, n in enumerate(evaluation.decisions.by_confused):
        if not n.any():
            continue
        measures = {
            name: {
                outcome: _spread(d, n[list(chosen)].sum(), d.by_confused[number, chosen].sum(axis=0))
                for outcome, chosen in OUTCOMES.items()
            }
            for name, d in evaluation.measures.items()
        }
        rows.append({"confused_classes": number, "n": n.sum(), "correct": n[1], "measures": measures})
    return rows


def by_second_best(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return mean and standard deviation by reference class, predicted class and whether the former was second best."""
    pairs, names = evaluation.decisions.pairs, [c.name for c in evaluation.classes]
    return [
        {
            "reference": names[i],
            "predicted": names[k],
            "reference_second_best": bool(near),
            "n": pairs[i, k, near],
            "measures": {
                name: _spread(d, pairs[i, k, near], d.by_pair[i, k, near]) for name, d in evaluation.measures.items()
            },
        }
        for i, k, near in zip(*np.nonzero(pairs), strict=True)
    ]
