"""Parts of results with a row per threshold, share of pixels kept, or setting of the soft confusion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dask_uncert.formulas import confusion, selective
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.metrics import classification, distributions
from dask_uncert.metrics.scalars import COVERAGES, RISKS, SELECTIVE, soft_settings
from dask_uncert.reports.results.intervals import INTERVAL
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings


def uncertainty_confusion(evaluation: Evaluation, name: str, scalars: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the counts and scalars of a measure's uncertainty confusion, a row per threshold."""
    counts = distributions.uncertainty_confusion(evaluation, name)
    return [
        {"threshold": t, **{cell: counts[cell][i] for cell in ("TC", "FU", "FC", "TU")}, **scalars[str(t)]}
        for i, t in enumerate(evaluation.measures[name].thresholds)
    ]


def selective_prediction(evaluation: Evaluation, name: str, scalars: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of selective prediction, where a measure decides which pixels to keep.

    Bounds are due to ties within bins.
    """
    right, wrong = distributions.right_and_wrong(evaluation, name)
    numbers: dict[str, Any] = {}
    for key, value in scalars.items():
        numbers[key] = value
        if key in SELECTIVE:
            numbers[f"{key}_bound"] = selective.bounds(SELECTIVE[key], right, wrong)
    numbers["risk_at_coverage"] = _points(scalars["risk_at_coverage"], COVERAGES, "coverage", "risk")
    numbers["coverage_at_risk"] = _points(scalars["coverage_at_risk"], RISKS, "risk", "coverage")
    return numbers


def _points(scalars: dict[str, Any], points: Iterable[float], x: str, y: str) -> list[dict[str, Any]]:
    """Return points of a curve as rows, with intervals if there are any."""
    return [
        {x: p} | {f"{y}{end}": scalars[f"{p}{end}"] for end in ("", INTERVAL) if f"{p}{end}" in scalars} for p in points
    ]


def soft_confusion(evaluation: Evaluation, scalars: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the soft confusions of all classes, a row per setting."""
    bound = int(evaluation.ledger.counted) * 2.0**-45  # the weight of each pixel was rounded to 2**-44
    rows = []
    for setting in soft_settings(evaluation):
        settings, index = setting.confusion.settings, setting.indices
        cells = classification.soft_cells(setting.confusion)
        head = {"class": evaluation.classes[settings.class_index].name, **_settings(settings, index)}
        numbers = {name: values[index] for name, values in cells.items()} | scalars[setting.label]
        rows.append({**head, **numbers, "bound": bound})
    return rows


def by_settings(evaluation: Evaluation) -> dict[SoftSettings, list[SoftConfusion]]:
    """Return the soft confusions that have the same settings except for the class."""
    groups: dict[SoftSettings, list[SoftConfusion]] = {}
    for soft in evaluation.soft_confusion:
        groups.setdefault(replace(soft.settings, class_index=0), []).append(soft)
    return groups


def soft_confusion_overall(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return macro and micro averages over the classes that have the same settings, a row per setting.

    A macro average is the mean over classes with reference support, with the number of classes it includes and of those
    where the metric is undefined. A micro average is computed from the sums of the cells over classes.
    """
    support = confusion.support(evaluation.decisions.confusion)
    rows = []
    for settings, group in by_settings(evaluation).items():
        classes = [soft.settings.class_index for soft in group]
        names = [evaluation.classes[c].name for c in classes]
        by_class = [classification.soft_cells(soft) for soft in group]
        cells = [np.stack([values[name] for values in by_class], axis=-1) for name in CELLS]
        metrics = confusion.cell_metrics(*cells)
        pooled = confusion.cell_metrics(*(cell.sum(axis=-1) for cell in cells))
        for index in np.ndindex(*cells[0].shape[:-1]):
            means = {name: confusion.macro(values[index], support[classes]) for name, values in metrics.items()}
            macro = {name: mean._asdict() for name, mean in means.items()}
            micro = {name: values[index] for name, values in pooled.items()}
            rows.append({"classes": names, **_settings(settings, index), "macro": macro, "micro": micro})
    return rows


def _settings(settings: SoftSettings, index: tuple[int, ...]) -> dict[str, Any]:
    return {
        "threshold": settings.thresholds[index[0]],
        "sigma": settings.sigmas[index[1]],
        "damping": settings.dampings[index[2]],
        "uncertainty": settings.uncertainty,
        "distribution": settings.distribution,
    }
