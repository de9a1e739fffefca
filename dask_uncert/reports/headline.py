"""The few numbers that a cohort is shown by: which, what they are called, what is best, where they end.

Of two classes the second is what is looked for; of more, every class counts while there are few. All other
numbers stand in `tables/`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dask_uncert.reports.names import pretty
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.scalars import setting_labels

MOST_CLASSES = 10
"""With more, the mean over classes stands for them."""
MOST_MEASURES = 3


class Metric(NamedTuple):
    """A number by its name among `summaries.scalars`; `low` and `high` are the ends of its range.

    axis: metrics of the same one are shown on the same axis.
    """

    name: str
    label: str
    best: float
    axis: str
    low: float = 0.0
    high: float = 1.0

    @property
    def better(self) -> str:
        """Which way is better."""
        return f"best {self.best:g}"


def headline(evaluation: Evaluation) -> tuple[Metric, ...]:
    """The metrics in the order shown; cases are sorted by the first."""
    classes = evaluation.classes
    found = []
    if len(classes) == 2:
        at, name = f"classes/{classes[1].name}", classes[1].name
        found += [
            Metric(f"{at}/f1", f"F1 (Dice) of {name}", 1.0, "f1"),
            Metric(f"{at}/precision", f"Precision of {name}", 1.0, "precision"),
            Metric(f"{at}/recall", f"Recall of {name}", 1.0, "recall"),
        ]
    else:
        found.append(Metric("overall/macro_f1", "Mean F1 (Dice) of classes", 1.0, "f1"))
        if len(classes) <= MOST_CLASSES:
            found += [Metric(f"classes/{c.name}/f1", f"F1 of {c.name}", 1.0, "f1") for c in classes]
    found += soft(evaluation)
    found += [
        Metric("overall/accuracy", "Accuracy", 1.0, "accuracy"),
        Metric("overall/kappa", "Cohen’s kappa", 1.0, "kappa", low=-1.0),
        Metric("calibration/ece", "Calibration error (ECE)", 0.0, "ece"),
    ]
    for measure in list(evaluation.measures)[:MOST_MEASURES]:
        name, label = f"selective/{measure}/error_auroc", f"Error AUROC of {pretty(measure)}"
        found.append(Metric(name, label, 1.0, "error_auroc"))
    return tuple(found)


def soft(evaluation: Evaluation) -> list[Metric]:
    """The soft F1 of each class that the job names, at its first setting that is soft at all."""
    labels = iter(setting_labels(evaluation))
    found: dict[str, Metric] = {}
    for one in evaluation.soft_confusion:
        s = one.settings
        name = evaluation.classes[s.class_index].name
        for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
            label = next(labels)
            if (s.sigmas[k] > 0 or s.dampings[m] > 0) and name not in found and len(found) < MOST_CLASSES:
                at = f"t {s.thresholds[i]:g}, σ {s.sigmas[k]:g}, d {s.dampings[m]:g}"
                found[name] = Metric(f"soft_confusion/{label}/f1", f"Soft F1 of {name} ({at})", 1.0, "f1")
    return list(found.values())
