"""The headline metrics of a cohort: their names, labels, best values and ranges.

Of two classes, the second is the one of interest, if no background is named; of up to ten, all are. All other metrics are in `tables/`.
"""

from __future__ import annotations

from typing import NamedTuple

from dask_uncert.metrics.scalars import soft_settings
from dask_uncert.reports.names import pretty
from dask_uncert.summaries.evaluation import Evaluation

MOST_CLASSES = 10
"""Above this number of classes only the mean is shown."""
MOST_MEASURES = 3


class Metric(NamedTuple):
    """A scalar by its name (see `metrics.scalars`), with the ends `low` and `high` of its range.

    label, short: display names, the short one for headings. axis: metrics with an equal value share an axis.
    """

    name: str
    label: str
    short: str
    best: float
    axis: str
    low: float = 0.0
    high: float = 1.0
    detail: str = ""

    @property
    def better(self) -> str:
        """Best value and, if any, setting."""
        return f"best {self.best:g}" + (f"; {self.detail}" if self.detail else "")


def headline(evaluation: Evaluation) -> tuple[Metric, ...]:
    """Return the metrics in display order, of the foreground if there is a background; cases are sorted by the first."""
    classes = evaluation.classes
    foreground = [evaluation.class_names[i] for i in evaluation.foreground or ()]
    if len(classes) == 2:
        name = foreground[0] if foreground else classes[1].name
        path = f"classes/{name}"
        metrics = [
            Metric(f"{path}/f1", f"F1 (Dice) of {name}", "F1", 1.0, "f1"),
            Metric(f"{path}/precision", f"Precision of {name}", "Precision", 1.0, "precision"),
            Metric(f"{path}/recall", f"Recall of {name}", "Recall", 1.0, "recall"),
        ]
    else:
        metrics = [Metric("overall/macro_f1", "Mean F1 (Dice) of classes", "Mean F1", 1.0, "f1")]
        if foreground:
            metrics = [Metric("overall/foreground_f1", "Mean F1 (Dice) of the foreground", "Mean F1", 1.0, "f1")]
        names = (foreground or evaluation.class_names) if len(classes) <= MOST_CLASSES else []
        metrics += [Metric(f"classes/{n}/f1", f"F1 of {n}", f"F1 {n}", 1.0, "f1") for n in names]
    metrics += soft_f1(evaluation)
    metrics += [
        Metric("overall/accuracy", "Accuracy", "Accuracy", 1.0, "accuracy"),
        Metric("overall/kappa", "Cohen’s kappa", "Kappa", 1.0, "kappa", low=-1.0),
    ]
    if evaluation.calibration is not None:
        metrics.append(Metric("calibration/ece", "Calibration error (ECE)", "ECE", 0.0, "ece"))
    measures = list(evaluation.measures)
    for measure in measures[:MOST_MEASURES]:
        label = f"Error AUROC of {pretty(measure)}"
        short = "Error AUROC" if len(measures) == 1 else label
        metrics.append(Metric(f"selective/{measure}/error_auroc", label, short, 1.0, "error_auroc"))
    return tuple(metrics)


def soft_f1(evaluation: Evaluation) -> list[Metric]:
    """Return the soft F1 of each class of the job, at its first setting with a spread or else with damping."""
    metrics: dict[str, tuple[bool, Metric]] = {}
    for setting in soft_settings(evaluation):
        name = evaluation.classes[setting.confusion.settings.class_index].name
        spread = setting.sigma > 0
        if not (spread or setting.damping > 0) or (name in metrics and metrics[name][0] >= spread):
            continue
        detail = f"t {setting.threshold:g}, σ {setting.sigma:g}, d {setting.damping:g}"
        short = "Soft F1" if len(evaluation.classes) == 2 else f"Soft F1 {name}"
        path = f"soft_confusion/{setting.label}/f1"
        metrics[name] = spread, Metric(path, f"Soft F1 of {name}", short, 1.0, "f1", detail=detail)
    return [metric for _, metric in metrics.values()][:MOST_CLASSES]
