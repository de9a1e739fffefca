"""Parts of results with a row a setting: by threshold, by share kept, by setting of the soft confusion."""

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
    """Return the counts and scalars of a measure's uncertainty confusion, a row a threshold."""
    counts = distributions.uncertainty_confusion(evaluation, name)
    return [
        {"threshold": t, **{cell: counts[cell][i] for cell in ("TC", "FU", "FC", "TU")}, **scalars[str(t)]}
        for i, t in enumerate(evaluation.measures[name].thresholds)
    ]


def selected(evaluation: Evaluation, name: str, scalars: dict[str, Any]) -> dict[str, Any]:
    """Return what is gained when a measure decides which pixels to keep.

    Bounds say what ties within bins leave open.
    """
    right, wrong = distributions.right_and_wrong(evaluation, name)
    found: dict[str, Any] = {}
    for key, value in scalars.items():
        found[key] = value
        if key in SELECTIVE:
            found[f"{key}_bound"] = selective.bounds(SELECTIVE[key], right, wrong)
    found["risk_at_coverage"] = _points(scalars["risk_at_coverage"], COVERAGES, "coverage", "risk")
    found["coverage_at_risk"] = _points(scalars["coverage_at_risk"], RISKS, "risk", "coverage")
    return found


def _points(
    scalars: dict[str, Any], points: Iterable[float], given: str, result: str
) -> list[dict[str, Any]]:
    """Return points of a curve as rows, with the interval of each where there is one."""
    rows = []
    for x in points:
        ends = {f"{result}{INTERVAL}": scalars[f"{x}{INTERVAL}"]} if f"{x}{INTERVAL}" in scalars else {}
        rows.append({given: x, result: scalars[str(x)], **ends})
    return rows


def soft(evaluation: Evaluation, scalars: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the soft confusions of all classes, a row a setting."""
    rows = []
    for setting in soft_settings(evaluation):
        settings = setting.confusion.settings
        cells = classification.soft_cells(setting.confusion)
        rows.append(
            {
                "class": evaluation.classes[settings.class_index].name,
                **_settings(settings, setting.indices),
                **{name: values[setting.indices] for name, values in cells.items()},
                **scalars[setting.label],
                # Each weight was rounded to 2**-44: that is all the sums can be off by.
                "bound": int(evaluation.ledger.counted) * 2.0**-45,
            }
        )
    return rows


def soft_overall(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return macro and micro averages over classes of the same settings, a row a setting.

    Macro is the mean over classes that have reference support, with how many it is of and how many supported
    classes were undefined; micro is of the cells poured together.
    """
    support = confusion.support(classification.confusion_matrix(evaluation))
    rows = []
    alike: dict[SoftSettings, list[SoftConfusion]] = {}
    for one in evaluation.soft_confusion:
        alike.setdefault(replace(one.settings, class_index=0), []).append(one)
    for s, group in alike.items():
        classes = [one.settings.class_index for one in group]
        by_class = [classification.soft_cells(one) for one in group]
        cells = [np.stack([of[name] for of in by_class], axis=-1) for name in CELLS]
        metrics = confusion.cell_metrics(*cells)
        pooled = confusion.cell_metrics(*(cell.sum(axis=-1) for cell in cells))
        for index in np.ndindex(*cells[0].shape[:-1]):
            means = {name: confusion.macro(of[index], support[classes]) for name, of in metrics.items()}
            rows.append(
                {
                    "classes": [evaluation.classes[c].name for c in classes],
                    **_settings(s, index),
                    "macro": {name: mean._asdict() for name, mean in means.items()},
                    "micro": {name: values[index] for name, values in pooled.items()},
                }
            )
    return rows


def _settings(settings: SoftSettings, index: tuple[int, ...]) -> dict[str, Any]:
    return {
        "threshold": settings.thresholds[index[0]],
        "sigma": settings.sigmas[index[1]],
        "damping": settings.dampings[index[2]],
        "uncertainty": settings.uncertainty,
        "distribution": settings.distribution,
    }
