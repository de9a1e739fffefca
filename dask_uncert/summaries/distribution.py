"""How one uncertainty measure is distributed over right and wrong decisions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from dask_uncert.formulas.measures import Measure
from dask_uncert.summaries.summary import Counts, Summary, counts

BINS = 1000  # steps of .001: every threshold with three decimals is an edge already


@lru_cache(maxsize=256)  # every block asks for the same
def edges_with(thresholds: tuple[float, ...], upper: float) -> tuple[float, ...]:
    """Edges of `BINS` equal bins over [0, upper] and the thresholds among them, rising."""
    grid = {upper * i / BINS for i in range(BINS + 1)}
    named = {float(t) for t in thresholds if 0.0 < t < upper}
    return tuple(sorted(grid | named))


@dataclass(frozen=True, eq=False)
class Distribution(Summary):
    """Counts over right-closed bins (the first also holds 0) and power sums, of values in [0, upper].

    `thresholds` are the named ones among the edges, at which counts are asked for.
    Sums are of (value / upper) to the powers 1, 2 (and 3), in fixed point; see `formulas.fixed_point`.
    """

    measure: Measure
    upper: float
    edges: tuple[float, ...]
    thresholds: tuple[float, ...]
    histogram: Counts = counts("reference_class", "right", "bin")
    by_pair: Counts = counts("reference_class", "predicted_class", "second", "power2", "limb")
    by_confused: Counts = counts("confused_classes", "right", "power", "limb")

    @classmethod
    def zero(cls, measure: Measure, upper: float, thresholds: tuple[float, ...], classes: int) -> Self:
        edges = edges_with(thresholds, upper)
        return cls(
            measure,
            upper,
            edges,
            thresholds,
            histogram=np.zeros((classes, 2, len(edges) - 1), np.int64),
            by_pair=np.zeros((classes, classes, 2, 2, 2), np.int64),
            by_confused=np.zeros((classes + 1, 2, 3, 2), np.int64),
        )
