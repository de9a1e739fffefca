"""Where every pixel went: counted, or left out for one named reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts

INPUTS = ("mask", "reference", "uncertainty", "weight", "samples", "probabilities", "mean", "variance")
FAULTS = ("outside", "missing_chunk", "nodata", "nan", "off")
"""Of an input: the pixel lies outside of it; its chunk is not in the store; the stored number is declared to mean
no data; it is NaN; it is further off what it should be than the tolerance, where the job leaves such pixels out."""
CHOSEN = ("masked", "ignored")
"""Left out by choice: the mask says no; the reference holds an ignore code."""
REASONS = (*CHOSEN, *(f"{name}_{fault}" for name in INPUTS for fault in FAULTS))
"""In the order asked: a pixel is left out for the first that applies."""
REPAIRS = ("clipped", "renormalised")


@dataclass(frozen=True, eq=False)
class Ledger(Summary):
    """counted + excluded = the pixels of the grid; repairs are of counted pixels.

    excluded: (reasons, classes + 1), by the class of the reference; the last column where that is not known.
    """

    counted: Counts = counts()
    excluded: Counts = counts("reason", "known_class")
    repaired: Counts = counts("repair")

    @classmethod
    def zero(cls, classes: int = 0) -> Self:
        """The ledger of no pixels."""
        return cls(
            counted=np.zeros((), np.int64),
            excluded=np.zeros((len(REASONS), classes + 1), np.int64),
            repaired=np.zeros(len(REPAIRS), np.int64),
        )

    @property
    def pixels(self) -> int:
        """Of the whole grid."""
        return int(self.counted + self.excluded.sum())

    def reasons(self) -> dict[str, int]:
        """Excluded pixels by reason: those by choice always, others where there are any."""
        return told(self.excluded.sum(axis=1))

    def lost(self) -> NDArray[np.int64]:
        """Pixels left out though nobody chose it, (classes + 1,): what bounds are made of."""
        return np.asarray(self.excluded[len(CHOSEN) :].sum(axis=0))


def told(numbers: NDArray[np.int64]) -> dict[str, int]:
    """Numbers (reasons,) by reason: those by choice always, others where there are any."""
    found = dict(zip(REASONS, numbers.tolist(), strict=True))
    return {reason: n for reason, n in found.items() if n or reason in CHOSEN}
