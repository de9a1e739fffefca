"""Reliability by isotonic regression, and the Brier score in its parts, from counts per fine bin of probability.

Inputs are, per right-closed bin in rising order, ``n`` items (..., B), ``hits`` that came true, ``sums`` of the stated
probabilities in fixed point (..., B, 2), and the ``edges`` (B + 1). CORP: Dimitriadis, Gneiting and Jordan, PNAS 118,
2021. What a bin hides of its items is bounded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.rankings import Bounded
from dask_uncert.formulas.typing import Counts, Floats


class Corp(NamedTuple):
    """``score = miscalibration - discrimination + uncertainty``, each with its bounds."""

    score: Bounded
    miscalibration: Bounded
    discrimination: Bounded
    uncertainty: Floats


def isotonic_curve(n: ArrayLike, hits: ArrayLike) -> Floats:
    """Share that came true as a rising function of the stated probability, (..., B) to (..., B).

    Pool-adjacent-violators over the bins, weighed by their items: no choice of bins changes it beyond their width.
    Range [0, 1], calibrated where it equals the mean stated probability; NaN in empty bins.

    >>> isotonic_curve([2, 0, 2, 4], [1, 0, 0, 4]).tolist()
    [0.25, nan, 0.25, 1.0]
    """
    from scipy.optimize import isotonic_regression  # loading it takes a third of a second

    items, came_true = np.broadcast_arrays(np.asarray(n, np.int64), np.asarray(hits, np.int64))
    curve = np.full(items.shape, np.nan)
    for index in np.ndindex(items.shape[:-1]):
        filled = items[index] > 0
        if filled.any():
            weights = items[index][filled].astype(np.float64)
            curve[index][filled] = isotonic_regression(came_true[index][filled] / weights, weights=weights).x
    return curve


def corp_values(n: ArrayLike, hits: ArrayLike, sums: Counts) -> dict[str, Floats]:
    """CORP's parts without bounds, as of items that all lie at the mean of their bin: (..., B) to four of (...).

    ``brier = mcb - dsc + unc``: miscalibration, discrimination and uncertainty. NaN without items.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> [float(part) for part in corp_values([2, 2], [0, 2], encode([0.5, 1.5])).values()]
    [0.0625, 0.0625, 0.25, 0.25]
    """
    items, came_true, stated = np.asarray(n, np.int64), np.asarray(hits, np.int64), decode(sums)
    total = items.sum(axis=-1)
    centre = np.where(items > 0, ratio(stated, items), 0.0)
    brier = ratio((stated * centre - 2 * came_true * centre + came_true).sum(axis=-1), total)
    recalibrated = _squared_error(items, came_true)
    share = ratio(came_true.sum(axis=-1), total)
    unc = np.asarray(share * (1 - share))
    mcb = np.asarray(np.maximum(brier - recalibrated, 0.0))  # -1e-17 is rounding
    return {"brier": brier, "mcb": mcb, "dsc": np.asarray(np.maximum(unc - recalibrated, 0.0)), "unc": unc}


def corp(n: ArrayLike, hits: ArrayLike, sums: Counts, edges: ArrayLike) -> Corp:
    """Brier score of "did it come true", in CORP's parts: (..., B) and sums (..., B, 2) to numbers (...).

    Miscalibration is what recalibration would gain, discrimination what the recalibrated probabilities gain over the
    base rate, uncertainty that of the base rate. Each is at least 0; score in [0, 1], best 0; NaN without items.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> parts = corp([2, 2], [0, 2], encode([0.5, 1.5]), [0.0, 0.5, 1.0])
    >>> [float(parts.score.value), float(parts.miscalibration.value), float(parts.discrimination.value)]
    [0.0625, 0.0625, 0.25]
    """
    items, came_true, stated = np.asarray(n, np.int64), np.asarray(hits, np.int64), decode(sums)
    value = corp_values(items, came_true, sums)
    others, total = items - came_true, items.sum(axis=-1)
    low, high = np.asarray(edges, np.float64)[:-1], np.asarray(edges, np.float64)[1:]
    # The sum of p**2 - 2 p y + y in a bin: its items lie in it and add to `stated`.
    centre = np.where(items > 0, ratio(stated, items), 0.0)
    smallest = stated * centre - 2 * np.minimum(came_true * high, stated - others * low) + came_true
    largest = (
        stated * (low + high) - items * low * high - 2 * np.maximum(came_true * low, stated - others * high) + came_true
    )
    least = np.minimum(ratio(smallest.sum(axis=-1), total), value["brier"])
    most = np.maximum(ratio(largest.sum(axis=-1), total), value["brier"])
    # In the best order, all others of a bin come before those that came true.
    split = (np.stack(pair, axis=-1) for pair in ((others, came_true), (0 * items, came_true)))
    best = _squared_error(*(pair.reshape(*items.shape[:-1], -1) for pair in split))
    recalibrated = value["unc"] - value["dsc"]
    return Corp(
        Bounded(value["brier"], least, most),
        Bounded(value["mcb"], np.asarray(np.maximum(least - recalibrated, 0.0)), np.asarray(most - best)),
        Bounded(value["dsc"], value["dsc"], np.asarray(value["unc"] - best)),
        value["unc"],
    )


def _squared_error(n: Counts, hits: Counts) -> Floats:
    """Return the mean squared error of the isotonic curve."""
    fitted = np.where(n > 0, isotonic_curve(n, hits), 0.0)
    return ratio((fitted**2 * n - 2 * fitted * hits + hits).sum(axis=-1), n.sum(axis=-1))
