"""What every block of a pass is asked, complete and compared field by field."""

from __future__ import annotations

from dataclasses import dataclass

from dask_uncert.formulas.measures import Measure, upper_bound
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Class, Evaluation
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings

MAPS = {"correct": ("uint8", 255), "predicted": ("uint16", 65535), "confused_classes": ("uint16", 65535)}
"""Maps beside the measures (float32, NaN): dtype and the value that means undefined."""


@dataclass(frozen=True)
class Request:
    """What every block is asked: complete, and compared field by field.

    `maxima` and `thresholds` have an entry a measure: the maximum of H∘H over the simplex for homophily (else
    unused), and the values that must be edges. `scale` is the declared factor of integer probabilities;
    `tolerance` overrides the storage dtype's.
    """

    classes: tuple[Class, ...]
    ignore: tuple[int, ...] = ()
    measures: tuple[Measure, ...] = ()
    maxima: tuple[float, ...] = ()
    thresholds: tuple[tuple[float, ...], ...] = ()
    calibration_bins: int = 15
    soft: tuple[SoftSettings, ...] = ()
    maps: tuple[str, ...] = ()
    class_metric: str | None = None
    scale: float | None = None
    tolerance: float | None = None

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each class, in the order of the class axis."""
        return tuple(one.code for one in self.classes)

    def zero(self) -> Evaluation:
        """The Evaluation of no pixels, in arrays of its own."""
        classes, bins = len(self.classes), self.calibration_bins
        distributions = []
        for one, thresholds in zip(self.measures, self.thresholds, strict=True):
            upper = upper_bound(one, classes)
            distributions.append(Distribution.zero(one, upper, thresholds, classes))
        return Evaluation(
            classes=self.classes,
            class_metric=self.class_metric,
            ledger=Ledger.zero(),
            decisions=Decisions.zero(classes),
            distributions=tuple(distributions),
            calibration=Calibration.zero(tuple(m / bins for m in range(bins + 1))),
            soft_confusion=tuple(SoftConfusion.zero(settings) for settings in self.soft),
        )
