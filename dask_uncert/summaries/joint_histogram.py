"""The joint histogram of p, c and u for one class against the rest: it gives any soft confusion later."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Self

import numpy as np

from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.labels import stored_threshold
from dask_uncert.formulas.soft_confusion import reference_level
from dask_uncert.formulas.soft_sweep import JointMoments, UncertaintyInterval
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.summary import Summary, counts

HALVES = 0x3C01  # float16 numbers in [0, 1]; their bit patterns are 0, 1, ... in rising order
RowKind = Literal["interval", "float16", "integer"]
Intervals = tuple[tuple[float, float, int, int], ...]
"""Intervals of the u axis as plain tuples; see `formulas.soft_sweep.UncertaintyInterval`."""


@dataclass(frozen=True)
class JointSettings:
    """What is counted together, and in which bins.

    thresholds: the named ones, edges of the rows as `dtype`, that of the stored probabilities, has them.
    rows: `size` equal intervals of p, cut at the thresholds; or every value that float16 or an integer times
    `scale` can have. levels: ends of the intervals of the reference. intervals: of the u axis.
    reference_dtype: of a fuzzy reference, None for a hard one; its threshold is fixed beforehand, None is
    that of p.
    """

    class_index: int
    uncertainty: str | None
    thresholds: tuple[float, ...]
    dtype: str
    rows: RowKind
    size: int
    scale: float | None
    levels: tuple[tuple[float, float], ...]
    intervals: Intervals
    reference_dtype: str | None = None
    reference_threshold: float | None = None

    @property
    def columns(self) -> tuple[int, int]:
        """Numbers of zeroth and first moments of a group."""
        _, _, zeroth, first = zip(*self.intervals, strict=True)
        return sum(zeroth), sum(first)

    @property
    def number(self) -> int:
        """Number of rows."""
        return len(row_ends(self))

    @property
    def nbytes(self) -> int:
        """Bytes of the counts."""
        return 16 * len(self.levels) * self.number * sum(self.columns)

    def stored(self, threshold: float) -> float:
        """Return the threshold as the dtype of p has it."""
        return stored_threshold(threshold, np.dtype(self.dtype))

    def reference_level(self, threshold: float, reference_threshold: float | None) -> float:
        """Return the reference's threshold, by default that of p; that of a fuzzy reference is fixed."""
        dtype = np.dtype(self.dtype)
        if self.reference_dtype is None:
            return reference_level(threshold, reference_threshold, dtype, None)
        return reference_level(threshold, self.reference_threshold, dtype, np.dtype(self.reference_dtype))


@lru_cache(maxsize=64)  # every block asks for the same
def row_ends(settings: JointSettings) -> Floats:
    """Return the ends (rows, 2) of the intervals of p, rising; equal for single values. Read only."""
    if settings.rows == "interval":
        named = (settings.stored(t) for t in settings.thresholds)
        grid = {i / settings.size for i in range(settings.size + 1)}
        edges = np.array(sorted(grid | {t for t in named if 0 < t < 1}))
        return np.stack([edges[:-1], edges[1:]], axis=1)
    if settings.rows == "float16":
        values = np.arange(HALVES, dtype=np.uint16).view(np.float16).astype(np.float64)
    else:
        assert settings.scale is not None
        values = np.minimum(np.arange(settings.size) * settings.scale, 1.0)
    return np.stack([values, values], axis=1)


@dataclass(frozen=True, eq=False)
class JointHistogram(Summary):
    """Fixed-point sums of T_k(x) and of y T_k(x) over the pixels of every level and row; see
    `formulas.soft_sweep`.
    """

    kind = "joint_histogram"
    settings: JointSettings
    moments: Counts = counts("level", "row", "column", "limb")

    @classmethod
    def zero(cls, settings: JointSettings) -> Self:
        shape = (len(settings.levels), settings.number, sum(settings.columns), 2)
        return cls(settings, moments=np.zeros(shape, np.int64))

    def decoded(self) -> JointMoments:
        """Return the sums as numbers, without rows that are empty."""
        s = self.settings
        starts = np.cumsum([0, *(interval[2] for interval in s.intervals)])[:-1]
        filled = (self.moments[:, :, starts] != 0).any(axis=(0, 2, 3))
        sums = decode(self.moments[:, filled])
        zeroth = s.columns[0]
        return JointMoments(
            rows=row_ends(s)[filled],
            levels=np.array(s.levels),
            intervals=tuple(UncertaintyInterval(*interval) for interval in s.intervals),
            zeroth=sums[..., :zeroth],
            first=sums[..., zeroth:],
        )


def uncertainty_intervals(upper: float, zeroth: int, first: int) -> Intervals:
    """Return one interval for a measure in [0, upper]; for one without a range, intervals that double.

    The last of these is open. On an interval that doubles, exp(-u d) is off by at most 8e-8, 5e-11, 4e-14
    with 8, 12, 16 moments, for any d.
    """
    if math.isfinite(upper):
        return ((0.0, upper, zeroth, first),)
    ends = [0.0, *(2.0**i for i in range(-1, 7))]
    closed = [(low, high, zeroth, first) for low, high in pairwise(ends)]
    return (*closed, (ends[-1], math.inf, 1, min(first, 1)))
