"""What a batch of pixels adds to the Summaries of its block."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.soft import certainty, damping_factor
from dask_uncert.kernels.pixels import CLIPPED, RENORMALISED, Pixels
from dask_uncert.request import Request
from dask_uncert.stored import as_stored
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import CELLS, SoftConfusion, SoftSettings

GUESSES = 2048  # cells of the table that finds a value's bin; two to a bin of the default grid
Indices = NDArray[np.int64]
Values = NDArray[np.float64]


class Counter:
    """Adds pixels to the Summaries of one block; what depends on the job alone is prepared once."""

    def __init__(
        self, request: Request, total: Evaluation, dtype: np.dtype[Any], kernels: ModuleType
    ) -> None:
        self.request, self.total, self.dtype, self.kernels = request, total, dtype, kernels
        self.lookups = [_lookup(one.edges, one.upper) for one in total.distributions]
        self.confidence_edges = as_stored(total.calibration.edges, dtype)

    def add(
        self, found: Pixels, truth: Indices, stored: NDArray[Any], pixels: Indices, u: Values | None
    ) -> None:
        """truth: (n,) class indices, negative where the pixel does not count."""
        total, kernels = self.total, self.kernels
        for number, bit in enumerate((CLIPPED, RENORMALISED)):
            total.ledger.repaired[number] += np.count_nonzero((truth >= 0) & (found.state & bit > 0))
        for row, one in zip(found.values, self.request.measures, strict=True):
            if one.kind == "uncertainty" and u is not None:
                row[:] = u
        kernels.count_decisions(
            truth, found.predicted, found.second, found.confused,
            total.decisions.pairs, total.decisions.by_confused,
        )  # fmt: skip
        for row, (edges, guess), d in zip(found.values, self.lookups, total.distributions, strict=True):
            kernels.count_values(
                row, d.upper, edges, guess, truth, found.predicted, found.second, found.confused,
                d.histogram, d.by_pair, d.by_confused,
            )  # fmt: skip
        bins = total.calibration
        kernels.count_confidence(
            found.confidence, truth, found.predicted, self.confidence_edges,
            bins.number, bins.right, bins.confidence,
        )  # fmt: skip
        for soft in total.soft_confusion:
            outer, inner = np.divmod(pixels, stored.shape[2])
            p = np.clip(stored[outer, soft.settings.class_index, inner].astype(np.float64), 0.0, 1.0)
            self._add_soft(soft, p, truth, self._uncertainty(soft.settings, found, u))

    def _uncertainty(self, settings: SoftSettings, found: Pixels, u: Values | None) -> Values | None:
        if settings.uncertainty is None:
            return None
        if settings.uncertainty == "uncertainty":
            return u
        names = [one.name for one in self.request.measures]
        return np.asarray(found.values[names.index(settings.uncertainty)])

    def _add_soft(self, soft: SoftConfusion, p: Values, truth: Indices, u: Values | None) -> None:
        """One class against the rest: the reference is 1 where it is the class, else 0."""
        s = soft.settings
        counted = truth >= 0
        p, positive = p[counted], truth[counted] == s.class_index
        factors = [1.0 if u is None else damping_factor(u[counted], d, s.damping_form) for d in s.dampings]
        for i, t in enumerate(as_stored(s.thresholds, self.dtype)):
            level = t if s.reference_threshold is None else s.reference_threshold
            # c > t is a positive; p on the threshold agrees with the reference either way ([S22]).
            cells = np.where(
                positive,
                np.where(p >= t, CELLS.index("TP"), CELLS.index("FN")),
                np.where(p <= t, CELLS.index("TN"), CELLS.index("FP")),
            )
            for k, sigma in enumerate(s.sigmas):
                weight = certainty(p, t, sigma, s.distribution, s.df)
                if s.reference_certainty == "paper":
                    sides = certainty(np.array([0.0, 1.0]), level, sigma, s.distribution, s.df)
                    weight = weight * sides[positive.astype(np.int64)]
                for m, factor in enumerate(factors):
                    self.kernels.sum_soft_weights(weight * factor, cells, soft.weights[i, k, m])


@lru_cache(maxsize=256)
def _lookup(edges: tuple[float, ...], upper: float) -> tuple[Values, Indices]:
    """Edges as an array, and for each of equally wide cells of [0, upper] a bin to start looking from.

    That bin is no later than the bin of the cell's smallest value.
    """
    bounds = np.asarray(edges)
    left = np.arange(GUESSES) / GUESSES * upper * (1 - 1e-12)
    return bounds, np.maximum(np.searchsorted(bounds, left, side="left") - 1, 0)
