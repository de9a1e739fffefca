"""The account of every pixel: counted, or left out for one named reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts

INPUTS = (
    "mask",
    "reference",
    "uncertainty",
    "weight",
    "samples",
    "probabilities",
    "mean",
    "variance",
    "zones",
    "prediction",
)
FAULTS = ("outside", "missing_chunk", "nodata", "nan", "off")
"""Faults of an input: the pixel is outside of it; its chunk is not in the store; the stored number means no data;
it is NaN; it is off by more than the tolerance, where the job leaves such pixels out."""
CHOSEN = ("masked", "ignored")
"""Left out by choice: the mask says no; the reference holds an ignore code."""
NO_ZONE = "zones_nodata"
"""Also left out by choice: the zones say that the pixel is in none."""
REASONS = (*CHOSEN, *(f"{name}_{fault}" for name in INPUTS for fault in FAULTS))
"""A pixel without a zone is left out for that; any other for the first reason that applies, in this order."""
OF_INPUT = {name: tuple(REASONS.index(f"{name}_{fault}") for fault in FAULTS) for name in INPUTS}
"""Positions in REASONS of each input's faults."""
REPAIRS = ("clipped", "renormalised")


@dataclass(frozen=True, eq=False)
class Ledger(Summary):
    """counted + excluded = the pixels of the grid; repairs are of counted pixels.

    excluded: (reasons, classes + 1), by the class of the reference; the last column where it is not known. incomplete:
    counted pixels of which a fuzzy reference labels a part only: their shares sum to less than 1.
    """

    kind = "ledger"
    counted: Counts = counts()
    excluded: Counts = counts("reason", "known_class")
    repaired: Counts = counts("repair")
    incomplete: Counts = counts()

    @classmethod
    def zero(cls, classes: int = 0) -> Self:
        """Return the ledger of no pixels."""
        return cls(
            counted=np.zeros((), np.int64),
            excluded=np.zeros((len(REASONS), classes + 1), np.int64),
            repaired=np.zeros(len(REPAIRS), np.int64),
            incomplete=np.zeros((), np.int64),
        )

    @property
    def pixels(self) -> int:
        """Number of pixels of the whole grid."""
        return int(self.counted + self.excluded.sum())

    def reasons(self) -> dict[str, int]:
        """Return excluded pixels by reason; see `by_reason`."""
        return by_reason(self.excluded.sum(axis=1))

    def lost(self) -> Counts:
        """Return the pixels left out, but not by choice, (classes + 1,); bounds are computed from them."""
        chosen = [REASONS.index(reason) for reason in (*CHOSEN, NO_ZONE)]
        return np.asarray(np.delete(self.excluded, chosen, axis=0).sum(axis=0))


def by_reason(pixels: Counts) -> dict[str, int]:
    """Return numbers of pixels (reasons,) by reason: those by choice always, others where there are any."""
    pairs = zip(REASONS, pixels.tolist(), strict=True)
    return {reason: n for reason, n in pairs if n or reason in CHOSEN}
