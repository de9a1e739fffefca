"""One pure pass over one block of a regression: arrays in, (maps, RegressionEvaluation) out.

Nothing here knows where the block is or who computes it. Pixels are taken in batches, and each value is computed
by elementwise operations in a fixed order, so it is the same in every block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import BLANK, GAPS
from dask_uncert.errors import UnusableBlockError, plural
from dask_uncert.formulas.calibration import predicted_probability
from dask_uncert.formulas.fixed_point import encode
from dask_uncert.formulas.residuals import is_symmetric, nssr_of_covariances, nssr_of_variances
from dask_uncert.formulas.typing import Bools, Counts, Floats
from dask_uncert.io.maps import Layer
from dask_uncert.summaries.ledger import REASONS
from dask_uncert.summaries.regression import RegressionEvaluation

STEP = 1 << 14  # pixels of a batch: its intermediate arrays stay in cache
REGRESSION_MAPS = ("nssr", "predicted_probability")
COUNTED = -1


@dataclass(frozen=True)
class RegressionRequest:
    """What every block is asked: the number of outputs and the maps wanted."""

    outputs: int
    maps: tuple[str, ...] = ()

    @property
    def layers(self) -> dict[str, Layer]:
        """Every map asked for, by its name."""
        return dict.fromkeys(self.maps, Layer("float32", float("nan"), {}))

    def zero(self) -> RegressionEvaluation:
        """Return the evaluation of no pixels, in new arrays."""
        return RegressionEvaluation.zero(self.outputs)


class Batch(NamedTuple):
    """Some pixels from `start` on, all else (n,); `reason` why each is left out, or COUNTED.

    present: both numbers are there. least: the least variance or pivot; usable: that is positive, and a covariance is
    symmetric; refused: counted, but not usable.
    """

    start: int
    reason: Counts
    present: Bools
    nssr: Floats
    least: Floats
    symmetric: Bools
    usable: Bools
    refused: Bools


def evaluate_regression_block(
    request: RegressionRequest, arrays: Mapping[str, NDArray[Any]], ndim: int
) -> tuple[dict[str, NDArray[np.float32]], RegressionEvaluation]:
    """Return one block's maps and evaluation.

    arrays: `mean` and `reference`, over `ndim` grid dimensions and, for several outputs, one of outputs; either
    `variance`, shaped like them, or `covariance`, with two of outputs; where given, `mask` (true counts). All in the
    same order of dimensions, outputs last. Arrays are not written to.

    Raises UnusableBlockError for a counted variance that is not positive, or a counted covariance that is not
    symmetric and positive definite.
    """
    total, shape = request.zero(), arrays["mean"].shape[:ndim]
    maps = {name: np.full(np.prod(shape, dtype=np.int64), np.nan, np.float32) for name in request.maps}
    edges = np.asarray(total.edges)
    for batch in _batches(request, arrays, shape):
        if batch.refused.any():
            name = "variance" if "variance" in arrays else "covariance"
            raise UnusableBlockError(name, f"counted pixels whose {name} cannot be used")
        counted = batch.reason == COUNTED
        shown = batch.present & batch.usable if maps else counted
        nssr = np.where(np.isfinite(batch.nssr[shown]), batch.nssr[shown], np.inf)
        probability = predicted_probability(nssr, request.outputs)
        with np.errstate(over="ignore"):
            for name, values in zip(REGRESSION_MAPS, (nssr, probability), strict=True):
                if name in maps:
                    maps[name][batch.start : batch.start + shown.size][shown] = values
        nssr, probability = nssr[counted[shown]], probability[counted[shown]]
        bins = np.maximum(np.searchsorted(edges, probability, side="left") - 1, 0)
        total.histogram[...] += np.bincount(bins, minlength=edges.size - 1)
        total.predicted[...] += encode(probability).sum(axis=0)
        total.not_finite[...] += np.count_nonzero(np.isinf(nssr))
        total.ledger.counted[...] += nssr.size
        total.ledger.excluded[:, 0] += np.bincount(batch.reason[~counted], minlength=len(REASONS))
    return {name: values.reshape(shape) for name, values in maps.items()}, total


def _batches(request: RegressionRequest, arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Iterator[Batch]:
    size = int(np.prod(shape, dtype=np.int64))
    stated = "variance" if "variance" in arrays else "covariance"
    flat = {name: values.reshape(size, -1) for name, values in arrays.items()}
    dtype = arrays[stated].dtype
    rounding = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    for start in range(0, size, STEP):
        part = slice(start, start + STEP)
        values = {name: np.ascontiguousarray(flat[name][part].T, np.float64) for name in (stated, "mean", "reference")}
        reason = np.full(min(STEP, size - start), COUNTED, np.int64)
        for name, numbers in values.items():  # the first reason that applies is set last
            reason[np.isnan(numbers).any(axis=0)] = REASONS.index("variance_nan" if name == stated else f"{name}_nan")
        if GAPS in flat:
            gaps = flat[GAPS][part, 0].astype(np.int64)
            reason[gaps > 0] = gaps[gaps > 0] - 1
        present = reason == COUNTED
        if BLANK in flat:
            present &= ~flat[BLANK][part, 0]
        if "mask" in flat:
            reason[flat["mask"][part, 0] == 0] = REASONS.index("masked")
        with np.errstate(invalid="ignore", over="ignore"):
            residual = values["reference"] - values["mean"]
        spread, symmetric = values[stated], np.ones(reason.size, bool)
        if stated == "variance":
            nssr, least = nssr_of_variances(residual, spread), spread.min(axis=0)
        else:
            spread = spread.reshape(request.outputs, request.outputs, -1)
            nssr, least = nssr_of_covariances(residual, spread)
            symmetric = is_symmetric(spread, rounding)
        usable = np.asarray((least > 0) & symmetric)
        refused = (reason == COUNTED) & ~usable
        yield Batch(start, reason, present, nssr, least, symmetric, usable, refused)


@dataclass(frozen=True)
class UnusableUncertainties:
    """Counted pixels whose uncertainty cannot be used: how many, how many of them not symmetric, and the first."""

    number: int = 0
    asymmetric: int = 0
    least: float = np.inf
    first: tuple[int, ...] = ()

    def __add__(self, other: UnusableUncertainties) -> UnusableUncertainties:
        if not (self.number and other.number):
            return self if self.number else other
        return UnusableUncertainties(
            self.number + other.number,
            self.asymmetric + other.asymmetric,
            min(self.least, other.least),
            min(self.first, other.first),
        )


def unusable_uncertainties(
    request: RegressionRequest, arrays: Mapping[str, NDArray[Any]], offset: tuple[int, ...]
) -> UnusableUncertainties:
    """Return the counted pixels of a block whose variance or covariance cannot be used; called once a pass was refused."""
    total, shape = UnusableUncertainties(), arrays["mean"].shape[: len(offset)]
    for batch in _batches(request, arrays, shape):
        if batch.refused.any():
            first = np.unravel_index(batch.start + int(np.flatnonzero(batch.refused)[0]), shape)
            least = batch.least[batch.refused]
            total += UnusableUncertainties(
                int(np.count_nonzero(batch.refused)),
                int(np.count_nonzero(batch.refused & ~batch.symmetric)),
                float(np.where(np.isnan(least), -np.inf, least).min()),
                tuple(int(i) + o for i, o in zip(first, offset, strict=True)),
            )
    return total


def unusable_uncertainties_message(pixels: UnusableUncertainties, name: str, dims: tuple[str, ...], where: str) -> str:
    """Return one paragraph about uncertainties that cannot be used."""
    first = ", ".join(f"{d} = {i}" for d, i in zip(dims, pixels.first, strict=True))
    if name == "variance":
        fault, least = "whose variance is not positive", f"the least value is {pixels.least:.7g}"
        advice = "If these are standard deviations or logarithms, convert them"
    else:
        fault = "whose covariance is not symmetric and positive definite"
        least = f"{pixels.asymmetric} are not symmetric, the least pivot is {pixels.least:.7g}"
        advice = "If these are correlations, precisions or Cholesky factors, convert them"
    return (
        f"{name}: {where} holds {plural(pixels.number, 'counted pixel')} {fault}: {least}; the first at {first}. {advice}; "
        f"or mask those pixels out. Nothing is added to make them usable."
    )
