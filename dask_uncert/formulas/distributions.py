"""Statistics of a distribution, from power sums and histograms.

Power sums have shape (..., width): the sums of x, x**2, x**3 in whole numbers, see `power_sums`. Histograms have
shape (..., B) over ``edges`` of length B + 1; bin b holds the values in (edges[b], edges[b + 1]], the first also
its left edge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas import power_sums
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.power_sums import BOUNDED, Resolution
from dask_uncert.formulas.typing import Counts, Floats

SMALLEST_DEVIATION = 2.0**19
"""In steps of the power sums: below it the rounding of values could change skewness by more than 1e-5."""


def mean(n: ArrayLike, sums: Counts, resolution: Resolution = BOUNDED) -> Floats:
    """Mean of n values, (...) and (..., width) to (...).

    ``sum x / n``, within half a step (2.8e-14 for values in [0, 1]) of the mean of the values themselves. NaN
    where n is 0. [C23]

    >>> from dask_uncert.formulas.power_sums import encode
    >>> float(mean(2, encode([0.25, 0.5], 2).sum(axis=0)))
    0.375
    """
    return ratio(power_sums.total(sums, resolution), n)


def standard_deviation(n: ArrayLike, sums: Counts, resolution: Resolution = BOUNDED) -> Floats:
    """Population standard deviation of n values, (...) and (..., width of 2 powers or more) to (...).

    ``sqrt(E x**2 - (E x)**2)``, taken in whole numbers: within half a step (2.8e-14 for values in [0, 1]) of that
    of the values themselves, however large their mean. Exactly 0 for a constant; NaN where n is 0. [C23]

    >>> from dask_uncert.formulas.power_sums import WIDE, encode
    >>> x = [1e6 + 1, 1e6 + 2, 1e6 + 3]
    >>> round(float(standard_deviation(3, encode(x, 2, WIDE).sum(axis=0), WIDE)), 12)
    0.816496580928
    """
    return np.ldexp(_deviation(n, sums, resolution), -resolution.bits)


def skewness(n: ArrayLike, sums: Counts, resolution: Resolution = BOUNDED) -> Floats:
    """Skewness of n values, (...) and (..., width of 3 powers) to (...).

    ``E (x - m)**3 / s**3``, population moments, no small-sample correction; 0 for symmetric values, positive
    for a tail of large ones. Taken in whole numbers, and off by at most ``6 e / s (1 + |skewness|)``, e half a step.
    NaN where n is 0, and where that could exceed 1e-5: where values differ by less than s = 3e-8 of [0, 1], or
    7e-15 without a range, rounding might be all there is. [C23]

    >>> from dask_uncert.formulas.power_sums import encode
    >>> round(float(skewness(4, encode([0.0, 0.0, 0.0, 1.0], 3).sum(axis=0))), 12)
    1.154700538379
    """
    deviation = _deviation(n, sums, resolution)
    defined = np.where(deviation >= SMALLEST_DEVIATION, deviation, 0.0)
    count = np.asarray(n, np.float64)
    return ratio(power_sums.third_moment(n, sums, resolution), (defined * count) ** 3)


def ecdf(histogram: ArrayLike) -> Floats:
    """Share of values at or below each bin's upper edge: (..., B) to (..., B).

    Rises to exactly 1; exact at the edges. NaN where the histogram is empty. [C23]

    >>> ecdf([1, 0, 3]).tolist()
    [0.25, 0.25, 1.0]
    """
    cumulative = np.cumsum(np.asarray(histogram), axis=-1, dtype=np.int64)
    return ratio(cumulative, cumulative[..., -1:])


def quantiles(histogram: ArrayLike, edges: ArrayLike, q: ArrayLike) -> Floats:
    """Values below which the shares q lie: (..., B), edges (B + 1), q (Q,) or a number, to (..., Q) or (...).

    The bin is the one that holds the smallest x with ``share(values <= x) >= q``; inside it the counts are
    taken as spread evenly. So the answer is off by at most that bin's width. NaN where the histogram is
    empty. Raises ValueError for q outside [0, 1]. [C23]

    >>> quantiles([0, 2, 2, 0], [0.0, 0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.5, 1.0]).tolist()
    [0.25, 0.375, 0.5, 0.75]
    """
    counts = np.asarray(histogram, np.int64)
    shares = np.asarray(q, np.float64)
    bounds = _edges(edges, counts)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"quantiles need shares in [0, 1], found {shares.tolist()}")
    cumulative = np.cumsum(counts, axis=-1)
    total = cumulative[..., -1]
    result = np.empty((*counts.shape[:-1], shares.size))
    for index, share in enumerate(shares.ravel()):
        rank = rank_of_share(share, total)[..., None]
        bin_ = np.argmax((cumulative >= rank) & (counts > 0), axis=-1)
        here, upto = (np.take_along_axis(a, bin_[..., None], axis=-1) for a in (counts, cumulative))
        inside = ratio(rank - (upto - here), here)[..., 0]
        result[..., index] = bounds[bin_] + inside * (bounds[bin_ + 1] - bounds[bin_])
    return result.reshape((*counts.shape[:-1], *shares.shape))


def rank_of_share(share: float, total: ArrayLike) -> Floats:
    """Return ``share * total``, made whole where only the rounding of a decimal share keeps it from being so.

    >>> 0.7 * 10, float(rank_of_share(0.7, 10)), float(rank_of_share(0.25, 10))
    (7.0, 7.0, 2.5)
    """
    rank = np.asarray(share * np.asarray(total, np.float64))
    whole = np.rint(rank)
    return np.where(np.abs(rank - whole) <= 4 * np.finfo(np.float64).eps * rank, whole, rank)


def uncertainty_confusion(
    correct_histogram: ArrayLike, wrong_histogram: ArrayLike, edges: ArrayLike, thresholds: ArrayLike
) -> dict[str, Counts | Floats]:
    """Counts of right or wrong against certain or uncertain (u > tau), for every threshold tau at once.

    Histograms of u (..., B), edges (B + 1), thresholds (T,) or a number, to a dict of (..., T) or (...):
    counts ``TC`` (correct, certain), ``FU`` (correct, uncertain), ``FC`` (wrong, certain), ``TU`` (wrong,
    uncertain), and ``USen = TU/(TU+FC)``, ``USpe = TC/(TC+FU)``, ``UPre = TU/(TU+FU)``,
    ``UAcc = (TU+TC)/all``: range [0, 1], best 1, NaN where 0/0. [A22] (7)-(10)

    Thresholds are rounded to the edges' dtype and must be edges, so that the counts are exact; the lowest
    edge is none, as the first bin holds both sides of it. Raises ValueError naming the others.

    >>> table = uncertainty_confusion([97, 28], [1, 5], [0.0, 0.3, 1.0], 0.3)
    >>> int(table["TU"]), round(float(table["USpe"]), 3)
    (5, 0.776)
    """
    right, wrong = (np.asarray(h, np.int64) for h in (correct_histogram, wrong_histogram))
    bounds = _edges(edges, right)
    taus = np.asarray(thresholds).astype(bounds.dtype)
    upto = np.searchsorted(bounds, taus, side="right") - 1  # the number of bins at or below tau
    unknown = (upto < 1) | (bounds[upto] != taus)
    if np.any(unknown):
        raise ValueError(
            f"thresholds {taus[unknown].tolist()} are not edges of the histogram above its lowest, "
            f"{bounds[0]:g}: counts at them would not be exact; name them when the histogram is made"
        )

    def split(histogram: Counts) -> tuple[Counts, Counts]:
        cumulative = np.cumsum(histogram, axis=-1)
        below = np.take(cumulative, upto - 1, axis=-1)
        total = cumulative[..., -1][(..., *(None,) * taus.ndim)]
        return below, total - below

    (tc, fu), (fc, tu) = split(right), split(wrong)
    counts = {"TC": tc, "FU": fu, "FC": fc, "TU": tu}
    return counts | {
        "USen": ratio(tu, tu + fc),
        "USpe": ratio(tc, tc + fu),
        "UPre": ratio(tu, tu + fu),
        "UAcc": ratio(tu + tc, tu + tc + fu + fc),
    }


def _deviation(n: ArrayLike, sums: Counts, resolution: Resolution) -> Floats:
    """Return the standard deviation in steps of the power sums; NaN where n is 0."""
    return ratio(np.sqrt(power_sums.second_moment(n, sums, resolution)), n)


def _edges(edges: ArrayLike, histogram: Counts) -> NDArray[np.floating]:
    bounds = np.asarray(edges)
    if bounds.dtype.kind != "f":
        bounds = bounds.astype(np.float64)
    if bounds.shape != (histogram.shape[-1] + 1,):
        raise ValueError(f"{histogram.shape[-1]} bins have {histogram.shape[-1] + 1} edges, found {bounds.shape}")
    return bounds


def gaussian_density(x: ArrayLike, at: ArrayLike) -> Floats:
    """Density of values (n,) at points (m,) to (m,): a normal curve around each, summed.

    Their width is Scott's: the sample standard deviation times ``n**(-1/5)`` (Scott 1992). NaN where it is 0 or
    undefined.

    >>> gaussian_density([0.0, 1.0], [0.5]).round(6).tolist()
    [0.46598]
    """
    x, at = np.asarray(x, np.float64), np.asarray(at, np.float64)
    width = x.std(ddof=1) * x.size**-0.2 if x.size > 1 else 0.0
    if width == 0:
        return np.full(at.shape, np.nan)
    total = np.zeros(at.shape)
    for start in range(0, x.size, 1 << 14):  # a bounded table for any number of values
        total += np.exp(-0.5 * ((at[:, np.newaxis] - x[start : start + (1 << 14)]) / width) ** 2).sum(axis=1)
    return np.asarray(total / (x.size * width * np.sqrt(2 * np.pi)))
