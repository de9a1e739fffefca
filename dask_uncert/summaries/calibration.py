"""How often decisions of a given confidence were right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dask_uncert.summaries.summary import Counts, Summary, counts


@dataclass(frozen=True, eq=False)
class Calibration(Summary):
    """Pixels, right decisions and summed confidence per right-closed bin (the first also holds 0)."""

    edges: tuple[float, ...]
    number: Counts = counts("bin")
    right: Counts = counts("bin")
    confidence: Counts = counts("bin", "limb")

    @classmethod
    def zero(cls, edges: tuple[float, ...]) -> Self:
        bins = len(edges) - 1
        return cls(
            edges,
            number=np.zeros(bins, np.int64),
            right=np.zeros(bins, np.int64),
            confidence=np.zeros((bins, 2), np.int64),
        )
