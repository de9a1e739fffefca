"""Predicted against reference classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts


@dataclass(frozen=True, eq=False)
class Decisions(Summary):
    """Pixels by reference and predicted class, and by the number of confused classes.

    The last axis of `pairs` says whether the reference class was the second best of a wrong decision.
    """

    kind = "decisions"
    pairs: Counts = counts("reference_class", "predicted_class", "second")
    by_confused: Counts = counts("confused_classes", "right")

    @classmethod
    def zero(cls, classes: int) -> Self:
        return cls(pairs=np.zeros((classes, classes, 2), np.int64), by_confused=np.zeros((classes + 1, 2), np.int64))

    @property
    def confusion(self) -> Counts:
        """Confusion matrix (reference, predicted)."""
        return np.asarray(self.pairs.sum(axis=2))
