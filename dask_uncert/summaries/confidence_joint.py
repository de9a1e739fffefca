"""The joint distribution of the confidence and an uncertainty measure over right and wrong decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.distribution import BINS, Distribution
from dask_uncert.summaries.summary import Summary, counts

COARSE = 50  # bins of the confidence, and of a measure that has a range: enough for a picture
LOWEST = -20  # power of 2 at which bins of a measure without a range, an octave each, start


@dataclass(frozen=True, eq=False)
class ConfidenceJoint(Summary):
    """Pixels by outcome, right-closed bin of the winning class's stated probability and bin of a measure.

    The first bins also hold 0. edges: of the measure, some of those of its Distribution, so that both count alike.
    """

    kind = "confidence_joint"
    measure: str
    confidence_edges: tuple[float, ...]
    edges: tuple[float, ...]
    pixels: Counts = counts("right", "confidence", "bin")

    @classmethod
    def zero(cls, distribution: Distribution) -> Self:
        upper = distribution.upper
        if distribution.wide:
            edges = (0.0, *(2.0**e for e in range(LOWEST, round(np.log2(upper)) + 1)))
        else:
            edges = tuple(upper * i / BINS for i in range(0, BINS + 1, BINS // COARSE))
        confidence = tuple(i / COARSE for i in range(COARSE + 1))
        shape = (2, COARSE, len(edges) - 1)
        return cls(distribution.measure.name, confidence, edges, pixels=np.zeros(shape, np.int64))
