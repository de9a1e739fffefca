"""The joint histogram of p, c and u for one class against the rest: any soft confusion can be read off it later."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.soft_sweep import Piece, Record
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts

HALVES = 0x3C01  # float16 numbers in [0, 1]; their bit patterns are 0, 1, ... in rising order
Rows = Literal["interval", "float16", "integer"]


@dataclass(frozen=True)
class JointSettings:
    """What is counted together, and in which bins.

    thresholds: the named ones, edges of the rows as `dtype`, that of the stored probabilities, has them.
    rows: `size` equal intervals of p, cut at the thresholds; or every value that float16 or an integer times
    `scale` can have. levels: ends of the intervals of the reference; pieces: of the u axis, see
    `formulas.sweep.Piece`. reference_dtype: of a fuzzy reference, None for a hard one; its threshold is fixed
    beforehand, None is that of p.
    """

    class_index: int
    uncertainty: str | None
    thresholds: tuple[float, ...]
    dtype: str
    rows: Rows
    size: int
    scale: float | None
    levels: tuple[tuple[float, float], ...]
    pieces: tuple[tuple[float, float, int, int], ...]
    reference_dtype: str | None = None
    reference_threshold: float | None = None

    @property
    def columns(self) -> tuple[int, int]:
        """How many zeroth and first moments a group has."""
        return sum(piece[2] for piece in self.pieces), sum(piece[3] for piece in self.pieces)

    @property
    def number(self) -> int:
        """How many rows."""
        return len(row_ends(self))

    @property
    def nbytes(self) -> int:
        """Of the counts."""
        return 16 * len(self.levels) * self.number * sum(self.columns)

    def stored(self, threshold: float) -> float:
        """The threshold as the dtype of p has it."""
        return _as_dtype(threshold, self.dtype)

    def reference_level(self, threshold: float, reference_threshold: float | None) -> float:
        """The reference's threshold, by default that of p; as its dtype has it where it is fuzzy."""
        if self.reference_dtype is None:
            return self.stored(threshold) if reference_threshold is None else reference_threshold
        level = threshold if self.reference_threshold is None else self.reference_threshold
        return _as_dtype(level, self.reference_dtype)


def _as_dtype(threshold: float, name: str) -> float:
    dtype = np.dtype(name)
    return float(dtype.type(threshold)) if dtype.kind == "f" else threshold


@lru_cache(maxsize=64)  # every block asks for the same
def row_ends(settings: JointSettings) -> NDArray[np.float64]:
    """Ends (rows, 2) of the intervals of p, rising; equal for single values. Not to be written to."""
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
    """Fixed-point sums of T_k(x) and of y T_k(x) over the pixels of every level and row; see `formulas.sweep`."""

    settings: JointSettings
    moments: Counts = counts("level", "row", "column", "limb")

    @classmethod
    def zero(cls, settings: JointSettings) -> Self:
        shape = (len(settings.levels), settings.number, sum(settings.columns), 2)
        return cls(settings, moments=np.zeros(shape, np.int64))

    def record(self) -> Record:
        """The sums as numbers, without rows that are empty."""
        s = self.settings
        starts = np.cumsum([0, *(piece[2] for piece in s.pieces)])[:-1]
        filled = (self.moments[:, :, starts] != 0).any(axis=(0, 2, 3))
        sums = decode(self.moments[:, filled])
        zeroth = s.columns[0]
        return Record(
            rows=row_ends(s)[filled],
            levels=np.array(s.levels),
            pieces=tuple(Piece(*piece) for piece in s.pieces),
            zeroth=sums[..., :zeroth],
            first=sums[..., zeroth:],
        )


def pieces_of(upper: float, zeroth: int, first: int) -> tuple[tuple[float, float, int, int], ...]:
    """One piece for a measure in [0, upper]; for one without a range, pieces that double and an open last one.

    On a piece that doubles, exp(-u d) is off by at most 8e-8, 5e-11, 4e-14 with 8, 12, 16 moments, for any d.
    """
    if math.isfinite(upper):
        return ((0.0, upper, zeroth, first),)
    ends = [0.0, *(2.0**i for i in range(-1, 7))]
    closed = [(low, high, zeroth, first) for low, high in pairwise(ends)]
    return (*closed, (ends[-1], math.inf, 1, min(first, 1)))
