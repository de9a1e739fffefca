"""The joint histogram of p, c and u for one class against the rest: it gives any soft confusion later."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from dask_uncert.formulas.fixed_point import FIRST, SECOND
from dask_uncert.formulas.labels import stored_threshold
from dask_uncert.formulas.soft_confusion import reference_level
from dask_uncert.formulas.soft_sweep import JointMoments, moment_powers
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.summaries.summary import Summary, counts

HALVES = 0x3C01  # float16 numbers in [0, 1]; their bit patterns are 0, 1, ... in rising order
RowKind = Literal["interval", "float16", "integer"]


@dataclass(frozen=True)
class JointSettings:
    """What is counted together, and in which bins.

    thresholds: the named ones, edges of the rows as `dtype`, that of the stored probabilities, has them.
    rows: `size` equal intervals of p, cut at the thresholds; or every value that float16 or an integer times
    `scale` can have. levels: ends of the intervals of the reference. upper: the largest u, or infinity; bins:
    of u, see `formulas.damping_series`; 1 where nothing damps. reference_dtype: of a fuzzy reference, None for a hard one; its threshold is fixed beforehand, None is
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
    upper: float
    bins: int
    reference_dtype: str | None = None
    reference_threshold: float | None = None

    @property
    def powers(self) -> tuple[tuple[int, int], ...]:
        """Powers of the places in the row and in the bin whose sums are kept."""
        return moment_powers(self.rows == "interval", self.bins > 1)

    @property
    def number(self) -> int:
        """Number of rows."""
        return len(row_ends(self))

    @property
    def nbytes(self) -> int:
        """Bytes of the counts."""
        return 8 * len(self.levels) * self.number * self.bins * len(self.powers)

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
    """Sums of powers of the places y in the row and x in the bin over the pixels of every level, row and bin.

    Numbers of pixels, else in units of `fixed_point.FIRST` for the first powers and `SECOND` for higher ones.
    """

    kind = "joint_histogram"
    settings: JointSettings
    moments: Counts = counts("level", "row", "interval", "power")

    @classmethod
    def zero(cls, settings: JointSettings) -> Self:
        shape = (len(settings.levels), settings.number, settings.bins, len(settings.powers))
        return cls(settings, moments=np.zeros(shape, np.int64))

    def decoded(self) -> JointMoments:
        """Return the sums as numbers, without rows that are empty."""
        s = self.settings
        filled = self.moments[..., 0].any(axis=(0, 2))
        kept = self.moments[:, filled]
        plain = np.zeros((*kept.shape[:-1], 3, 3))
        for k, (i, j) in enumerate(s.powers):
            plain[..., i, j] = kept[..., k] / (1.0, FIRST, SECOND)[min(i + j, 2)]
        # T_2 is 2 z**2 - 1
        for i in (0, 1):
            plain[..., i, 2] = 2 * plain[..., i, 2] - plain[..., i, 0]
            plain[..., 2, i] = 2 * plain[..., 2, i] - plain[..., 0, i]
        return JointMoments(row_ends(s)[filled], np.array(s.levels), s.upper, plain)
