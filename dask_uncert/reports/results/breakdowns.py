"""Measures broken down by class, number of confused classes and pair of classes. [C23] figures 8, 9, 14, 15"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dask_uncert.formulas import distributions
from dask_uncert.metrics.distributions import OUTCOMES, joint_counts
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation


def _spreads(evaluation: Evaluation, n: Any, sums: Callable[[Distribution], Any]) -> dict[str, dict[str, Any]]:
    """Return number, mean and standard deviation of every measure for groups of any shape.

    n: values of each group (...). sums: returns the power sums of a measure's groups, (..., width). All groups go at
    once, because a thousand calls take a second.
    """
    found = {}
    for name, d in evaluation.measures.items():
        of_values = n, sums(d), d.resolution
        mean, std = distributions.mean(*of_values), distributions.standard_deviation(*of_values)
        found[name] = {"n": n, "mean": mean * d.unit, "std": std * d.unit}
    return found


def _at(spread: dict[str, Any], *group: int) -> dict[str, Any]:
    return {key: values[group] for key, values in spread.items()}


def by_class(evaluation: Evaluation, reference: bool) -> list[dict[str, Any]]:
    """Return the mean and standard deviation of every measure by reference or predicted class and outcome."""

    def groups(by_pair: Any) -> Any:
        """Return counts (C, C, 2, ...) by class and outcome: correct, wrong, all."""
        pairs = by_pair.sum(axis=2)
        every, right = pairs.sum(axis=1 if reference else 0), pairs[np.diag_indices(len(pairs))]
        return np.stack([right, every - right, every], axis=1)

    spreads = _spreads(evaluation, groups(evaluation.decisions.pairs), lambda d: groups(d.by_pair))
    outcomes = ("correct", "wrong", "all")
    return [
        {
            "code": c.code,
            "name": c.name,
            "measures": {
                name: {outcome: _at(spread, i, k) for k, outcome in enumerate(outcomes)}
                for name, spread in spreads.items()
            },
        }
        for i, c in enumerate(evaluation.classes)
    ]


def by_confused(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the mean and standard deviation of every measure by number of confused classes and outcome."""
    counts = evaluation.decisions.by_confused

    def groups(by_confused: Any) -> Any:
        return np.stack([by_confused[:, list(chosen)].sum(axis=1) for chosen in OUTCOMES.values()], axis=1)

    spreads = _spreads(evaluation, groups(counts), lambda d: groups(d.by_confused))
    return [
        {
            "confused_classes": number,
            "n": n.sum(),
            "correct": n[1],
            "measures": {
                name: {outcome: _at(spread, number, k) for k, outcome in enumerate(OUTCOMES)}
                for name, spread in spreads.items()
            },
        }
        for number, n in enumerate(counts)
        if n.any()
    ]


def by_second_best(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return mean and standard deviation by reference class, predicted class and whether the former was second best."""
    pairs, names = evaluation.decisions.pairs, evaluation.class_names
    chosen = np.nonzero(pairs)
    spreads = _spreads(evaluation, pairs[chosen], lambda d: d.by_pair[chosen])
    return [
        {
            "reference": names[i],
            "predicted": names[k],
            "reference_second_best": bool(near),
            "n": pairs[i, k, near],
            "measures": {name: _at(spread, row) for name, spread in spreads.items()},
        }
        for row, (i, k, near) in enumerate(zip(*chosen, strict=True))
    ]


def joint_distributions(evaluation: Evaluation) -> dict[str, Any]:
    """Return the pixels of each bin of the confidence and of each measure that was counted with it, by outcome."""
    found = {}
    for joint in evaluation.confidence_joint:
        correct, wrong = joint_counts(evaluation, joint.measure)[0]
        edges = {"confidence_edges": joint.confidence_edges, "edges": joint.edges}
        found[joint.measure] = {**edges, "correct": correct, "wrong": wrong}
    return found
