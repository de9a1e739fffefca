"""Statistics of a distribution, from power sums and histograms.

Power sums have shape (..., moments, 2): the fixed-point sums of x, x**2, x**3 of values x in [0, 1], two
limbs each. Histograms have shape (..., B) over ``edges`` of length B + 1; bin b holds the values in
(edges[b], edges[b + 1]], the first also its left edge.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import FRACTION_BITS, decode
from dask_uncert.formulas.typing import Counts, Floats

VARIANCE_NOISE = 3 * 2.0 ** -(FRACTION_BITS + 1)
"""Largest change of ``E x**2 - (E x)**2`` by rounding each x and x**2 to fixed point (8.5e-14)."""
SMALLEST_VARIANCE = 1e-12
"""Below it skewness would be rounding only, and is undefined."""


def mean(n: ArrayLike, sums: Counts) -> Floats:
    """Mean of n values, (...) and (..., moments >= 1, 2) to (...).

    ``sum x / n``, within 2**-45 of the mean of the values themselves. NaN where n is 0. [C23]

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> x = np.array([0.25, 0.5])
    >>> float(mean(2, encode(np.stack([x, x**2])).sum(axis=1)))
    0.375
    """
    return ratio(decode(sums[..., 0, :]), n)


def standard_deviation(n: ArrayLike, sums: Counts) -> Floats:
    """Population standard deviation of n values, (...) and (..., moments >= 2, 2) to (...).

    ``sqrt(E x**2 - (E x)**2)``, range [0, 1/2]; NaN where n is 0. Each x and x**2 was rounded separately, so
    the variance is off by up to 8.5e-14 and that of a constant may come out negative: what is within that
    noise is 0. The deviation is thus off by at most 5e-7, by less than 1e-11 where it exceeds .01. [C23]

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> x = np.array([0.1, 0.1, 0.1])
    >>> float(standard_deviation(3, encode(np.stack([x, x**2])).sum(axis=1)))
    0.0
    """
    return np.sqrt(_variance(n, sums))


def skewness(n: ArrayLike, sums: Counts) -> Floats:
    """Skewness of n values, (...) and (..., moments >= 3, 2) to (...).

    ``E (x - m)**3 / s**3``, population moments, no small-sample correction; 0 for symmetric values, positive
    for a tail of large ones. NaN where n is 0 or the variance is below 1e-12. At worst (the same few values
    over and over) it is off by ``4e-13 / s**3``: 4e-7 at s = .01 but .4 at s = 1e-4; rounding errors of
    many different values mostly cancel. [C23]

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> x = np.array([0.0, 0.0, 0.0, 1.0])
    >>> round(float(skewness(4, encode(np.stack([x, x**2, x**3])).sum(axis=1))), 12)
    1.154700538379
    """
    variance = _variance(n, sums)
    first, second, third = (ratio(decode(sums[..., power, :]), n) for power in range(3))
    central = third - first * (3 * second - 2 * first**2)
    defined = np.where(variance >= SMALLEST_VARIANCE, variance, 0.0)
    return ratio(central, defined**1.5)


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


def _variance(n: ArrayLike, sums: Counts) -> Floats:
    first, second = (ratio(decode(sums[..., power, :]), n) for power in range(2))
    variance = second - first**2
    return np.where(variance <= VARIANCE_NOISE, 0.0, variance)  # NaN stays NaN


def _edges(edges: ArrayLike, histogram: Counts) -> NDArray[np.floating]:
    bounds = np.asarray(edges)
    if bounds.dtype.kind != "f":
        bounds = bounds.astype(np.float64)
    if bounds.shape != (histogram.shape[-1] + 1,):
        raise ValueError(f"{histogram.shape[-1]} bins have {histogram.shape[-1] + 1} edges, found {bounds.shape}")
    return bounds
