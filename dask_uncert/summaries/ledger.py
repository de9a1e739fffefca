"""Where every pixel went: counted, or left out for one named reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dask_uncert.summaries.summary import Counts, Summary, counts

REASONS = ("masked", "ignored", "no_reference", "no_prediction", "no_uncertainty")
"""In the order asked: the mask says no; the reference holds an ignore code; the reference, the prediction or
the predicted uncertainty is NaN or declared missing there."""
REPAIRS = ("clipped", "renormalised")


@dataclass(frozen=True, eq=False)
class Ledger(Summary):
    """counted + excluded = the pixels of the grid; repairs are of counted pixels."""

    counted: Counts = counts()
    excluded: Counts = counts("reason")
    repaired: Counts = counts("repair")

    @classmethod
    def zero(cls) -> Self:
        return cls(
            counted=np.zeros((), np.int64),
            excluded=np.zeros(len(REASONS), np.int64),
            repaired=np.zeros(len(REPAIRS), np.int64),
        )

    def reasons(self) -> dict[str, int]:
        """Excluded pixels by reason."""
        return dict(zip(REASONS, self.excluded.tolist(), strict=True))
