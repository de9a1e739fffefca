"""One pure pass over one block: arrays in, (maps, Evaluation) out.

Probabilities are normalised once, the decision is taken once and each measure is computed once; the same
values feed the maps and the counts. Nothing here knows where the block lies or who computes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.measures import Measure, upper_bound
from dask_uncert.formulas.soft import certainty, damping_factor
from dask_uncert.kernels.pixels import CLIPPED, MISSING, OFF, RENORMALISED, Pixels
from dask_uncert.stored import (
    NO_CODE,
    UNKNOWN,
    UNLABELLED,
    as_stored,
    class_indices,
    rounding_of,
    three_axes,
)
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Class, Evaluation
from dask_uncert.summaries.ledger import REASONS, Ledger
from dask_uncert.summaries.soft_confusion import CELLS, SoftConfusion, SoftSettings

STEP = 1 << 14  # pixels at a time: their measures stay in a core's second-level cache
GUESSES = 2048  # cells of the table that finds a value's bin; two to a bin of the default grid
LEFT_OUT = -4  # and below: left out for the reason with that number
Indices = NDArray[np.int64]
Values = NDArray[np.float64]

MAPS = {"correct": ("uint8", 255), "predicted": ("uint16", 65535), "confused_classes": ("uint16", 65535)}
"""Maps beside the measures (float32, NaN): dtype and the value that means undefined."""


@dataclass(frozen=True)
class Request:
    """What every block is asked: complete, and compared field by field.

    `maxima` and `thresholds` have an entry a measure: the maximum of H∘H over the simplex for homophily (else
    unused), and the values that must be edges. `scale` is the declared factor of integer probabilities;
    `tolerance` overrides the storage dtype's.
    """

    classes: tuple[Class, ...]
    ignore: tuple[int, ...] = ()
    measures: tuple[Measure, ...] = ()
    maxima: tuple[float, ...] = ()
    thresholds: tuple[tuple[float, ...], ...] = ()
    calibration_bins: int = 15
    soft: tuple[SoftSettings, ...] = ()
    maps: tuple[str, ...] = ()
    class_metric: str | None = None
    scale: float | None = None
    tolerance: float | None = None

    @property
    def codes(self) -> tuple[int, ...]:
        """The code of each class, in the order of the class axis."""
        return tuple(one.code for one in self.classes)

    def zero(self) -> Evaluation:
        """The Evaluation of no pixels, in arrays of its own."""
        classes, bins = len(self.classes), self.calibration_bins
        distributions = []
        for one, thresholds in zip(self.measures, self.thresholds, strict=True):
            upper = upper_bound(one, classes)
            distributions.append(Distribution.zero(one, upper, thresholds, classes))
        return Evaluation(
            classes=self.classes,
            class_metric=self.class_metric,
            ledger=Ledger.zero(),
            decisions=Decisions.zero(classes),
            distributions=tuple(distributions),
            calibration=Calibration.zero(tuple(m / bins for m in range(bins + 1))),
            soft_confusion=tuple(SoftConfusion.zero(settings) for settings in self.soft),
        )


def evaluate_block(
    request: Request, arrays: Mapping[str, NDArray[Any]], class_axis: int | None, kernels: ModuleType
) -> tuple[dict[str, NDArray[Any]], Evaluation]:
    """One block's maps and Evaluation.

    arrays: `probabilities` (grid dimensions, with the classes on `class_axis`; None for a binary prediction,
    which holds the second class's probability), `reference` codes and, where given, `mask` (true counts) and
    `uncertainty`, each over the same grid dimensions in the same order. Arrays are not written to.
    kernels: `kernels.compiled` or `kernels.reference`.

    Raises UnusableBlockError for unknown reference codes and for counted probabilities out of tolerance.
    """
    total = request.zero()
    excluded = total.ledger.excluded
    stored, dtype = three_axes(arrays["probabilities"], class_axis, request.scale)
    rounding = rounding_of(dtype, len(request.classes), request.scale, request.tolerance)
    reference = counted_pixels(request, arrays, excluded)
    u = arrays["uncertainty"].ravel() if "uncertainty" in arrays else None
    if u is not None and off_range(request, u[reference >= 0]).any():
        raise UnusableBlockError("uncertainty", "predicted uncertainty out of range")
    wanted = np.arange(reference.size) if request.maps else np.flatnonzero(reference >= 0)
    maps = {name: _empty_map(name, reference.size) for name in request.maps}
    counter = _Counter(request, total, dtype, kernels)
    for start in range(0, wanted.size, STEP):
        pixels = wanted[start : start + STEP]
        found = kernels.measure(stored, pixels, request.measures, request.maxima, rounding)
        truth = reference[pixels]
        _leave_out(truth, (truth >= 0) & (found.state == MISSING), "no_prediction", excluded)
        if ((truth >= 0) & (found.state == OFF)).any():
            raise UnusableBlockError("probabilities", "probabilities out of tolerance")
        counter.add(found, truth, stored, pixels, None if u is None else u[pixels].astype(np.float64))
        for name, values in maps.items():
            values[pixels] = _map_values(name, found, truth, request)
    total.ledger.counted[...] = reference.size - excluded.sum()
    shape = arrays["reference"].shape
    return {name: values.reshape(shape) for name, values in maps.items()}, total


def counted_pixels(
    request: Request, arrays: Mapping[str, NDArray[Any]], excluded: Indices | None = None
) -> Indices:
    """Class indices (n,) of the pixels that count as far as all inputs but the prediction say, else < 0."""
    excluded = np.zeros(len(REASONS), np.int64) if excluded is None else excluded
    reference = class_indices(arrays["reference"], request.codes, request.ignore)
    if (reference == UNKNOWN).any():
        raise UnusableBlockError("codes", "unknown reference codes")
    if "mask" in arrays:
        _leave_out(reference, arrays["mask"].ravel() == 0, "masked", excluded)
    _leave_out(reference, reference == UNLABELLED, "ignored", excluded)
    _leave_out(reference, reference == NO_CODE, "no_reference", excluded)
    if "uncertainty" in arrays:
        _leave_out(reference, np.isnan(arrays["uncertainty"].ravel()), "no_uncertainty", excluded)
    return reference


def largest_uncertainty(request: Request) -> float:
    """The largest predicted uncertainty that can be used: 1 as a measure of its own, else no limit."""
    return 1.0 if any(one.kind == "uncertainty" for one in request.measures) else np.inf


def off_range(request: Request, u: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a predicted uncertainty is negative or larger than can be used."""
    return np.asarray((u < 0) | (u > largest_uncertainty(request)))


def _leave_out(reference: Indices, where: NDArray[np.bool_], reason: str, excluded: Indices) -> None:
    """Leave out pixels for a reason; a pixel is left out once, for the first reason that applies."""
    fresh = where & (reference > LEFT_OUT)
    number = REASONS.index(reason)
    excluded[number] += np.count_nonzero(fresh)
    reference[fresh] = LEFT_OUT - number


def _empty_map(name: str, size: int) -> NDArray[Any]:
    dtype, fill = MAPS.get(name, ("float32", np.nan))
    return np.full(size, fill, dtype)


def _map_values(name: str, found: Pixels, truth: Indices, request: Request) -> NDArray[Any]:
    usable = (found.state & 3) == 0
    if name == "correct":
        return np.where(truth >= 0, found.predicted == truth, MAPS[name][1])
    if name == "predicted":
        return np.where(usable, np.asarray(request.codes)[found.predicted], MAPS[name][1])
    if name == "confused_classes":
        return np.where(usable, found.confused, MAPS[name][1])
    return np.asarray(found.values[[one.name for one in request.measures].index(name)])


class _Counter:
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
