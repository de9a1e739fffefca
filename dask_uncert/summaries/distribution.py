"""The distribution of one uncertainty measure over right and wrong decisions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from dask_uncert.formulas.measures import Measure, upper_bound
from dask_uncert.formulas.power_sums import BOUNDED, WIDE, Resolution
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts

BINS = 1000  # steps of .001 of the range: every threshold with three decimals is an edge already
PER_OCTAVE = 32  # bins between u and 2 u of a predicted uncertainty: each 2.2 % wide
SMALLEST = 2.0**-20  # below it a predicted uncertainty is in the first bin


@lru_cache(maxsize=256)  # the same for every block
def edges_with(thresholds: tuple[float, ...], upper: float) -> tuple[float, ...]:
    """Return the edges of `BINS` equal bins over [0, upper] and the thresholds among them, rising."""
    grid = {upper * i / BINS for i in range(BINS + 1)}
    return tuple(sorted(grid | {t for t in thresholds if 0.0 < t < upper}))


@lru_cache(maxsize=256)
def wide_edges_with(thresholds: tuple[float, ...], upper: float) -> tuple[float, ...]:
    """Return 0, `PER_OCTAVE` edges an octave from `SMALLEST` to `upper`, and the thresholds, rising."""
    steps = round(np.log2(upper / SMALLEST) * PER_OCTAVE)
    grid = {0.0, upper} | {SMALLEST * 2.0 ** (i / PER_OCTAVE) for i in range(steps)}
    return tuple(sorted(grid | {t for t in thresholds if 0.0 < t < upper}))


@dataclass(frozen=True, eq=False)
class Distribution(Summary):
    """Counts over right-closed bins (the first also holds 0) and power sums, of values in [0, upper].

    `thresholds` are the named ones among the edges, at which counts are reported.
    Sums are of (value / unit) to the powers 1, 2 (and 3), in whole numbers; see `formulas.power_sums`. A
    predicted uncertainty has no fixed range: its bins are equally wide on a logarithmic scale, its unit
    is 1 and its sums have more limbs.
    """

    kind = "distribution"
    measure: Measure
    upper: float
    edges: tuple[float, ...]
    thresholds: tuple[float, ...]
    histogram: Counts = counts("reference_class", "right", "bin")
    by_pair: Counts = counts("reference_class", "predicted_class", "second", "sum2")
    by_confused: Counts = counts("confused_classes", "right", "sum3")

    @classmethod
    def zero(cls, measure: Measure, thresholds: tuple[float, ...], classes: int) -> Self:
        upper = upper_bound(measure, classes)
        wide = measure.kind == "uncertainty"
        edges = (wide_edges_with if wide else edges_with)(thresholds, upper)
        resolution = WIDE if wide else BOUNDED
        return cls(
            measure,
            upper,
            edges,
            thresholds,
            histogram=np.zeros((classes, 2, len(edges) - 1), np.int64),
            by_pair=np.zeros((classes, classes, 2, resolution.width(2)), np.int64),
            by_confused=np.zeros((classes + 1, 2, resolution.width(3)), np.int64),
        )

    @property
    def wide(self) -> bool:
        """Whether bins are equally wide on a logarithmic scale."""
        return self.measure.kind == "uncertainty"

    @property
    def unit(self) -> float:
        """Divisor of the values in the power sums."""
        return 1.0 if self.wide else self.upper

    @property
    def resolution(self) -> Resolution:
        """Of the power sums."""
        return WIDE if self.wide else BOUNDED

    @property
    def reach(self) -> float:
        """End of the axis that shows all values: `upper`, or the upper edge of the highest filled bin."""
        filled = np.flatnonzero(self.histogram.sum(axis=(0, 1)))
        if not self.wide:
            return self.upper
        return self.edges[int(filled[-1]) + 1] if filled.size else 1.0
