"""Proper scores of stated probabilities, from sums in fixed point and from counts per bin.

Bins are as in `calibration`: per bin of the stated probability, shape (..., M), ``n`` items, ``positives``
that came true, and ``sums`` of the stated probabilities, (..., M, 2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas.calibration import reliability
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.typing import Counts, Floats


def brier_score(n: ArrayLike, squared_error_sums: Counts) -> Floats:
    """Brier score: mean over items of ``sum_c (p_c - y_c)**2``, (...) and (..., 2) to (...).

    Range [0, 2] summed over all classes, [0, 1] for one; best 0; NaN without items. Brier 1950.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> float(brier_score(2, encode(0.25)))
    0.125
    """
    return ratio(decode(squared_error_sums), n)


class BrierTerms(NamedTuple):
    """Contribution of one class to the parts of the Brier score; ``base``: its overall share of positives."""

    reliability: Floats
    resolution: Floats
    base: Floats


def brier_terms(n: ArrayLike, positives: ArrayLike, sums: Counts) -> BrierTerms:
    """One class's terms from its bins: (..., M) and sums (..., M, 2) to three of (...).

    With p_m and o_m the mean probability and the share of positives of a bin, o the overall share:
    ``reliability = sum n_m (p_m - o_m)**2 / N``, ``resolution = sum n_m (o_m - o)**2 / N``. NaN without
    items. Murphy 1973.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> [float(term) for term in brier_terms([2, 2], [0, 2], encode([0.5, 1.5]))]
    [0.0625, 0.25, 0.5]
    """
    n, positives = np.asarray(n, np.int64), np.asarray(positives, np.int64)
    items = n.sum(axis=-1)
    base = ratio(positives.sum(axis=-1), items)
    stated, observed = reliability(n, positives, sums)
    off, spread = (np.where(n > 0, gap, 0.0) for gap in (stated - observed, observed - base[..., None]))
    return BrierTerms(ratio((n * off**2).sum(axis=-1), items), ratio((n * spread**2).sum(axis=-1), items), base)


def brier_parts(terms: BrierTerms, n: ArrayLike, squared_error_sums: Counts) -> dict[str, Floats]:
    """The Brier score and its parts, from all classes' terms: three of (..., C), (...) and (..., 2) to (...).

    Of n items. ``reliability`` (best 0) and ``resolution`` (best: uncertainty) summed over classes,
    ``uncertainty = sum o (1 - o)``. ``score = reliability - resolution + uncertainty + within_bins``, where
    ``within_bins`` is what differences inside a bin add (0 if there are none). NaN without items. Murphy
    1973; Stephenson et al. 2008 for the remainder.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> terms = brier_terms([[2, 2]], [[0, 2]], encode([[0.5, 1.5]]))
    >>> {name: float(value) for name, value in brier_parts(terms, 4, encode(0.25)).items()}
    {'score': 0.0625, 'reliability': 0.0625, 'resolution': 0.25, 'uncertainty': 0.25, 'within_bins': 0.0}
    """
    score = brier_score(n, squared_error_sums)
    parts = {
        "reliability": terms.reliability.sum(axis=-1),
        "resolution": terms.resolution.sum(axis=-1),
        "uncertainty": (terms.base * (1 - terms.base)).sum(axis=-1),
    }
    explained = parts["reliability"] - parts["resolution"] + parts["uncertainty"]
    return {"score": score, **parts, "within_bins": score - explained}


def brier_decomposition(
    n: ArrayLike, positives: ArrayLike, sums: Counts, squared_error_sums: Counts
) -> dict[str, Floats]:
    """`brier_parts` from classwise bins: (..., C, M), sums (..., C, M, 2) and (..., 2) to a dict of (...).

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> float(brier_decomposition([[2, 2]], [[0, 2]], encode([[0.5, 1.5]]), encode(0.25))["resolution"])
    0.25
    """
    items = np.asarray(n, np.int64).sum(axis=-1)[..., 0]
    return brier_parts(brier_terms(n, positives, sums), items, squared_error_sums)


def negative_log_likelihood(n: ArrayLike, sums: Counts, infinite: ArrayLike) -> dict[str, NDArray[np.generic]]:
    """Mean of ``-ln p`` of the true class, natural logarithm: (...), (..., 2), (...) to a dict of (...).

    ``n`` counts all items, ``infinite`` those whose true class got 0, ``sums`` adds the finite others.
    ``value`` has range [0, inf], best 0, is inf where any item is, NaN without items; no epsilon hides a 0.
    ``infinite`` is the count, ``finite`` the mean of the others. Good 1952.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> {k: v.tolist() for k, v in negative_log_likelihood([2, 3], encode([1.0, 1.0]), [0, 1]).items()}
    {'value': [0.5, inf], 'infinite': [0, 1], 'finite': [0.5, 0.5]}
    """
    n, infinite = np.asarray(n, np.int64), np.asarray(infinite, np.int64)
    finite = ratio(decode(sums), n - infinite)
    return {"value": np.where(infinite > 0, np.inf, finite), "infinite": infinite, "finite": finite}
