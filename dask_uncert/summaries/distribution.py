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
OCTAVES = {-62: 16, -24: 64, -14: 128}  # bins of an octave, from this power of 2 of the range on
WIDE_OCTAVES = {-62: 16, -24: 64}  # of a predicted uncertainty, which has no range: each at most 1.6 % wide
LINEAR = -3  # from this power of 2 on, steps of .001 are the finer ones


@lru_cache(maxsize=256)  # the same for every block
def edges_with(thresholds: tuple[float, ...], upper: float) -> tuple[float, ...]:
    """Return the edges of `BINS` equal bins over [0, upper] and the thresholds among them, rising."""
    grid = {upper * i / BINS for i in range(BINS + 1)}
    return tuple(sorted(grid | {t for t in thresholds if 0.0 < t < upper}))


def octave_edges(octaves: dict[int, int], highest: int) -> tuple[float, ...]:
    """Return edges up to 2**highest, in equal steps within each octave: floats of few leading bits."""
    steps = {e: octaves[max(start for start in octaves if start <= e)] for e in range(min(octaves), highest)}
    return tuple(2.0**e * (1 + i / n) for e, n in steps.items() for i in range(n))


@lru_cache(maxsize=256)
def value_edges_with(thresholds: tuple[float, ...], upper: float) -> tuple[float, ...]:
    """Return the edges of `edges_with` and, in the lowest eighth of the range, those of every octave, rising.

    The uncertainties of a sure network differ in their order of magnitude: equal steps would make them ties.
    """
    octaves = {upper * x for x in octave_edges(OCTAVES, LINEAR)}
    return tuple(sorted(octaves.union(edges_with(thresholds, upper))))


@lru_cache(maxsize=256)
def wide_edges_with(thresholds: tuple[float, ...], upper: float) -> tuple[float, ...]:
    """Return 0, the edges of every octave up to `upper`, a power of two, and the thresholds, rising."""
    grid = {0.0, upper}.union(octave_edges(WIDE_OCTAVES, round(np.log2(upper))))
    return tuple(sorted(grid | {t for t in thresholds if 0.0 < t < upper}))


@dataclass(frozen=True, eq=False)
class Distribution(Summary):
    """Counts over right-closed bins (the first also holds 0) and power sums, of values in [0, upper].

    Bins follow the values: equally wide over the bulk of the range, and towards 0 equally wide in each octave.

    `thresholds` are the named ones among the edges, at which counts are reported.
    Sums are of (value / unit) to the powers 1, 2 (and 3), in whole numbers; see `formulas.power_sums`. A
    predicted uncertainty has no fixed range: all its bins are of octaves, its unit is 1 and its sums have more limbs.
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
        edges = (wide_edges_with if wide else value_edges_with)(thresholds, upper)
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
        """The resolution of the power sums."""
        return WIDE if self.wide else BOUNDED

    @property
    def reach(self) -> float:
        """End of the axis that shows all values: `upper`, or the upper edge of the highest filled bin."""
        filled = np.flatnonzero(self.histogram.sum(axis=(0, 1)))
        if not self.wide:
            return self.upper
        return self.edges[int(filled[-1]) + 1] if filled.size else 1.0
