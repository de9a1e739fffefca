"""One pure pass over one block of a regression: arrays in, (maps, RegressionEvaluation) out.

Nothing here knows where the block lies or who computes it. Pixels are taken in batches; each value is worked
out by elementwise operations in a fixed order, so it is the same in every block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.calibration import predicted_probability
from dask_uncert.formulas.fixed_point import encode
from dask_uncert.formulas.residuals import is_symmetric, nssr_of_covariances, nssr_of_variances
from dask_uncert.formulas.typing import Bools, Floats
from dask_uncert.inputs.names import BLANK, GAPS
from dask_uncert.io.maps import Layer
from dask_uncert.summaries.ledger import REASONS
from dask_uncert.summaries.regression import RegressionEvaluation

STEP = 1 << 14  # pixels at a time: what is worked out of them stays in cache
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
        """The evaluation of no pixels, in arrays of its own."""
        return RegressionEvaluation.zero(self.outputs)


class Batch(NamedTuple):
    """Some pixels: where they start, why each is left out (or COUNTED), and their numbers; all (n,) but start.

    `least`: the variance or pivot that is least; the uncertainty is usable where it is positive and symmetric.
    """

    start: int
    reason: NDArray[np.int64]
    present: Bools
    nssr: Floats
    least: Floats
    symmetric: Bools

    @property
    def usable(self) -> Bools:
        """Where the stated uncertainty is a variance or a covariance."""
        return np.asarray((self.least > 0) & self.symmetric)

    @property
    def refused(self) -> Bools:
        """Counted pixels whose stated uncertainty cannot be used."""
        return np.asarray((self.reason == COUNTED) & ~self.usable)


def evaluate_regression_block(
    request: RegressionRequest, arrays: Mapping[str, NDArray[Any]], grid: int
) -> tuple[dict[str, NDArray[np.float32]], RegressionEvaluation]:
    """One block's maps and evaluation.

    arrays: `mean` and `reference`, over `grid` grid dimensions and, for several outputs, one of outputs;
    either `variance`, shaped like them, or `covariance`, with two of outputs; where given, `mask` (true
    counts). All in the same order of dimensions, outputs last. Arrays are not written to.

    Raises UnusableBlockError for a counted variance that is not positive, or a counted covariance that is not
    symmetric and positive definite.
    """
    total = request.zero()
    shape = arrays["mean"].shape[:grid]
    size = int(np.prod(shape, dtype=np.int64))
    maps = {name: np.full(size, np.nan, np.float32) for name in request.maps}
    edges = np.asarray(total.edges)
    for batch in _batches(request, arrays, size):
        if batch.refused.any():
            what = "variance" if "variance" in arrays else "covariance"
            raise UnusableBlockError(what, f"counted pixels whose {what} cannot be used")
        counted = batch.reason == COUNTED
        shown = batch.present & batch.usable if maps else counted
        nssr = np.where(np.isfinite(batch.nssr[shown]), batch.nssr[shown], np.inf)
        stated = predicted_probability(nssr, request.outputs)
        with np.errstate(over="ignore"):
            for name, values in zip(REGRESSION_MAPS, (nssr, stated), strict=True):
                if name in maps:
                    maps[name][batch.start : batch.start + shown.size][shown] = values
        nssr, stated = nssr[counted[shown]], stated[counted[shown]]
        places = np.maximum(np.searchsorted(edges, stated, side="left") - 1, 0)
        total.histogram[...] += np.bincount(places, minlength=edges.size - 1)
        total.predicted[...] += encode(stated).sum(axis=0)
        total.not_finite[...] += np.count_nonzero(np.isinf(nssr))
        total.ledger.counted[...] += nssr.size
        total.ledger.excluded[:, 0] += np.bincount(batch.reason[~counted], minlength=len(REASONS))
    return {name: values.reshape(shape) for name, values in maps.items()}, total


def _batches(request: RegressionRequest, arrays: Mapping[str, NDArray[Any]], size: int) -> Iterator[Batch]:
    spread_name = "variance" if "variance" in arrays else "covariance"
    flat = {name: values.reshape(size, -1) for name, values in arrays.items()}
    dtype = arrays[spread_name].dtype
    rounding = float(np.finfo(dtype).eps) if dtype.kind == "f" else 0.0
    for start in range(0, size, STEP):
        part = slice(start, start + STEP)
        mean, reference, spread = (
            np.ascontiguousarray(flat[name][part].T, np.float64)
            for name in ("mean", "reference", spread_name)
        )
        no_reference = np.asarray(np.isnan(reference).any(axis=0))
        mean_nan, spread_nan = np.isnan(mean).any(axis=0), np.isnan(spread).any(axis=0)
        reason = np.full(no_reference.size, COUNTED, np.int64)
        reason[spread_nan] = REASONS.index("variance_nan")
        reason[mean_nan] = REASONS.index("mean_nan")
        reason[no_reference] = REASONS.index("reference_nan")  # the first reason that applies is set last
        gaps = flat[GAPS][part, 0].astype(np.int64) if GAPS in flat else np.zeros(reason.size, np.int64)
        blank = flat[BLANK][part, 0] if BLANK in flat else np.zeros(reason.size, bool)
        reason[gaps > 0] = gaps[gaps > 0] - 1
        if "mask" in flat:
            reason[flat["mask"][part, 0] == 0] = REASONS.index("masked")
        with np.errstate(invalid="ignore", over="ignore"):
            residual = reference - mean
        symmetric = np.ones(reason.size, bool)
        if spread_name == "variance":
            nssr, least = nssr_of_variances(residual, spread), spread.min(axis=0)
        else:
            spread = spread.reshape(request.outputs, request.outputs, -1)
            nssr, least = nssr_of_covariances(residual, spread)
            symmetric = is_symmetric(spread, rounding)
        yield Batch(
            start,
            reason,
            ~(no_reference | mean_nan | spread_nan | blank | (gaps > 0)),
            nssr,
            least,
            symmetric,
        )


@dataclass(frozen=True)
class Refused:
    """Counted pixels whose uncertainty cannot be used: how many, how many of them not symmetric, and the first."""

    number: int = 0
    asymmetric: int = 0
    least: float = np.inf
    first: tuple[int, ...] = ()

    def __add__(self, other: Refused) -> Refused:
        if not (self.number and other.number):
            return self if self.number else other
        return Refused(
            self.number + other.number,
            self.asymmetric + other.asymmetric,
            min(self.least, other.least),
            min(self.first, other.first),
        )


def refused_uncertainties(
    request: RegressionRequest, arrays: Mapping[str, NDArray[Any]], grid: int, offset: tuple[int, ...]
) -> Refused:
    """The counted pixels of a block whose variance or covariance cannot be used; read once a pass was refused."""
    found = Refused()
    shape = arrays["mean"].shape[:grid]
    for batch in _batches(request, arrays, int(np.prod(shape, dtype=np.int64))):
        if batch.refused.any():
            place = np.unravel_index(batch.start + int(np.flatnonzero(batch.refused)[0]), shape)
            least = batch.least[batch.refused]
            found += Refused(
                int(np.count_nonzero(batch.refused)),
                int(np.count_nonzero(batch.refused & ~batch.symmetric)),
                float(np.where(np.isnan(least), -np.inf, least).min()),
                tuple(int(i) + o for i, o in zip(place, offset, strict=True)),
            )
    return found


def say_refused(found: Refused, what: str, dims: tuple[str, ...], where: str) -> str:
    """One paragraph about uncertainties that cannot be used."""
    first = ", ".join(f"{d} = {i}" for d, i in zip(dims, found.first, strict=True))
    if what == "variance":
        fault, least = "whose variance is not positive", f"the least value is {found.least:.7g}"
        advice = "If these are standard deviations or logarithms, convert them"
    else:
        fault = "whose covariance is not symmetric and positive definite"
        least = f"{found.asymmetric} are not symmetric, the least pivot is {found.least:.7g}"
        advice = "If these are correlations, precisions or Cholesky factors, convert them"
    return (
        f"{what}: {where} holds {found.number} counted pixels {fault}: {least}; the first at {first}. {advice}; "
        f"or mask those pixels out. Nothing is added to make them usable."
    )
