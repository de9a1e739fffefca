"""Stated probabilities against how often they came true."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts

FINE = 1000  # fine bins at least, below the job's: for bins of equal mass and for windows


class Bins(NamedTuple):
    """Items, those that came true, and summed stated probability of each bin (..., M); sums have 2 limbs."""

    number: Counts
    positives: Counts
    sums: Counts

    @classmethod
    def of(cls, tally: Counts) -> Self:
        """Return the bins of tallies (..., M, 4), as `Calibration` keeps them."""
        return cls(tally[..., 0], tally[..., 1], tally[..., 2:])


@lru_cache(maxsize=64)
def fine_edges(bins: int) -> tuple[float, ...]:
    """Return the edges of at least `FINE` equal bins over [0, 1], as many in each of the job's."""
    parts = -(-FINE // bins)
    inner = [(m + k / parts) / bins for m in range(bins) for k in range(1, parts)]
    return tuple(sorted([*inner, *(m / bins for m in range(bins + 1))]))


@dataclass(frozen=True, eq=False)
class Calibration(Summary):
    """Counts over right-closed fine bins of stated probability (the first also holds 0), and proper scores.

    A tally holds, in this order, the items of a bin, those that came true, and the two limbs of their summed
    probability: four numbers side by side, which a pixel changes together. `winning` is of the winning class,
    `classwise` of every class against the rest, each pixel once a class; of float16 and float32 data these
    probabilities are summed in steps of 2**-22, so a mean is off by 1.2e-7 at most. `squared_error`: sum of the Brier
    score; `log_loss`: of -ln p of the true class where that is finite, in nats; `infinite`: pixels whose true
    class got 0.
    """

    kind = "calibration"
    bins: int
    edges: tuple[float, ...]
    winning: Counts = counts("bin", "tally")
    classwise: Counts = counts("class", "bin", "tally")
    squared_error: Counts = counts("limb")
    log_loss: Counts = counts("limb")
    infinite: Counts = counts()

    @classmethod
    def zero(cls, bins: int, classes: int) -> Self:
        edges = fine_edges(bins)
        fine = len(edges) - 1
        return cls(
            bins,
            edges,
            winning=np.zeros((fine, 4), np.int64),
            classwise=np.zeros((classes, fine, 4), np.int64),
            squared_error=np.zeros(2, np.int64),
            log_loss=np.zeros(2, np.int64),
            infinite=np.zeros((), np.int64),
        )

    @property
    def fine(self) -> Bins:
        """Fine bins of the winning class."""
        return Bins.of(self.winning)

    @property
    def fine_by_class(self) -> Bins:
        """Fine bins of every class against the rest, (classes, ...)."""
        return Bins.of(self.classwise)

    def binned(self, fine: Bins) -> Bins:
        """Return fine bins summed to the job's equally wide ones."""
        starts = np.searchsorted(self.edges, [m / self.bins for m in range(self.bins)])
        axis = fine.number.ndim - 1
        return Bins(*(np.add.reduceat(counts, starts, axis=axis) for counts in fine))
