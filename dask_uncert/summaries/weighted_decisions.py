"""Predicted against reference classes, weighed by a number per pixel, such as its area."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.fixed_point import decode, encode
from dask_uncert.formulas.typing import Counts, Floats, Indices
from dask_uncert.summaries.summary import Summary, counts

LIMBS = 4  # the highest limb of a weight stays below 2**28: sums of 2**35 of the largest ones do not overflow
LARGEST = 2.0**50
"""Largest weight of a pixel: the Earth's surface has 5.1e14 m², less than half of it."""


@dataclass(frozen=True, eq=False)
class WeightedDecisions(Summary):
    """Sums of weights by reference and predicted class, in fixed point: exact in any order.

    unit: the unit of the weights; each is rounded to a multiple of 2**-44 of it.
    """

    kind = "weighted_decisions"
    unit: str
    pairs: Counts = counts("reference_class", "predicted_class", "limb")

    @classmethod
    def zero(cls, classes: int, unit: str = "1") -> Self:
        """Return the sums over no pixels."""
        return cls(unit, pairs=np.zeros((classes, classes, LIMBS), np.int64))

    @property
    def confusion(self) -> Floats:
        """Confusion matrix (reference, predicted), each cell the sum of its pixels' weights."""
        return decode(self.pairs)

    def add(self, truth: Indices, predicted: NDArray[np.integer[Any]], weights: Floats) -> None:
        """Add pixels, all (n,); those with a negative class index count nowhere."""
        classes = len(self.pairs)
        counted = truth >= 0
        cell = truth[counted] * classes + predicted[counted]
        limbs = encode(weights[counted], LIMBS)
        for i in range(LIMBS):  # limbs are whole and small: float64 adds them exactly
            sums = np.bincount(cell, limbs[:, i], classes * classes).astype(np.int64)
            self.pairs[..., i] += sums.reshape(classes, classes)
