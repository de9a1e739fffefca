"""Numbers that come once a setting: selection by a measure, soft confusion at every (t, sigma, d)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dask_uncert.formulas import confusion, selective
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.metrics import classification
from dask_uncert.metrics.scalars import COVERAGES, RISKS, SELECTIVE
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftConfusion


def selected(evaluation: Evaluation, name: str) -> dict[str, Any]:
    """What is gained when a measure decides which pixels to keep; bounds say what ties within bins leave open."""
    right, wrong = (classification.histogram(evaluation, name, outcome) for outcome in ("correct", "wrong"))
    found: dict[str, Any] = {}
    for key, formula in SELECTIVE.items():
        found[key] = formula(right, wrong)
        found[f"{key}_bound"] = [bound[()] for bound in selective.bounds(formula, right, wrong)]
    found["risk_at_coverage"] = [
        {"coverage": c, "risk": risk}
        for c, risk in zip(COVERAGES, selective.risk_at_coverage(right, wrong, COVERAGES), strict=True)
    ]
    found["coverage_at_risk"] = [
        {"risk": risk, "coverage": c}
        for risk, c in zip(RISKS, selective.coverage_at_risk(right, wrong, RISKS), strict=True)
    ]
    return found


def soft(evaluation: Evaluation, one: SoftConfusion) -> list[dict[str, Any]]:
    """The soft confusion of one class, a row a setting."""
    s = one.settings
    cells, metrics = classification.soft_cells(one), classification.soft_metrics(one)
    rows = []
    for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
        rows.append(
            {
                "class": evaluation.classes[s.class_index].name,
                "threshold": s.thresholds[i],
                "sigma": s.sigmas[k],
                "damping": s.dampings[m],
                "uncertainty": s.uncertainty,
                "distribution": s.distribution,
                **{name: values[i, k, m] for name, values in cells.items()},
                **{name: values[i, k, m] for name, values in metrics.items()},
                # Each weight was rounded to 2**-44: that is all the sums can be off by.
                "bound": int(evaluation.ledger.counted) * 2.0**-45,
            }
        )
    return rows


def soft_overall(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Macro and micro over classes of the same settings: a row a setting.

    Macro is the mean over classes that have reference support, with how many it is of and how many supported
    classes were undefined; micro is of the cells poured together.
    """
    support = confusion.support(classification.confusion_matrix(evaluation))
    rows = []
    alike: dict[Any, list[SoftConfusion]] = {}
    for one in evaluation.soft_confusion:
        alike.setdefault(replace(one.settings, class_index=0), []).append(one)
    for s, group in alike.items():
        of_class = [one.settings.class_index for one in group]
        cells = {
            name: np.stack([classification.soft_cells(one)[name] for one in group], axis=-1) for name in CELLS
        }
        metrics = confusion.cell_metrics(*(cells[name] for name in CELLS))
        pooled = confusion.cell_metrics(*(cells[name].sum(axis=-1) for name in CELLS))
        for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
            row: dict[str, Any] = {
                "classes": [evaluation.classes[c].name for c in of_class],
                "threshold": s.thresholds[i],
                "sigma": s.sigmas[k],
                "damping": s.dampings[m],
                "uncertainty": s.uncertainty,
                "distribution": s.distribution,
                "macro": {},
                "micro": {name: values[i, k, m] for name, values in pooled.items()},
            }
            for name, values in metrics.items():
                value, n, undefined = confusion.macro(values[i, k, m], support[of_class])
                row["macro"][name] = {"value": value, "n": n, "undefined": undefined}
            rows.append(row)
    return rows
