"""Sets of classes that hold the true one at a stated rate, from classwise counts per bin of probability.

The set of an item is ``{c: p_c >= q}``: least ambiguous sets (Sadinle, Lei and Wasserman, JASA 114, 2019). Inputs are,
per right-closed bin in rising order, ``n`` (..., C, B), every item once a class, and ``positives`` (..., C, B), those
of the class. The sets of items above an edge are counted exactly. For a q between two edges, or on one, the value is
that of the edge below q, and the bounds are those of the edges around it: items of the bin that holds q may lie on
either side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.distributions import rank_of_share
from dask_uncert.formulas.rankings import Bounded, above_edges
from dask_uncert.formulas.typing import Counts, Floats


def coverage(positives: ArrayLike, edges: ArrayLike, q: ArrayLike) -> Bounded:
    """Share of items whose true class is in their set, (..., B) and (Q,) to three of (..., Q).

    positives: of one class, or summed over classes. Range [0, 1]; NaN without items.

    >>> [part.tolist() for part in coverage([1, 0, 3], [0.0, 0.25, 0.5, 1.0], [0.3])]
    [[0.75], [0.75], [0.75]]
    """
    above = above_edges(positives)
    return _at(ratio(above, above[..., :1]), edges, q)


def mean_size(n: ArrayLike, edges: ArrayLike, q: ArrayLike) -> Bounded:
    """Mean number of classes in a set, (..., C, B) and (Q,) to three of (..., Q).

    Range [0, C], the smaller the better at one coverage; NaN without items.

    >>> mean_size([[1, 1], [1, 1]], [0.0, 0.5, 1.0], [0.6]).high.tolist()
    [1.0]
    """
    above = above_edges(n)
    items = above[..., :1, :1].sum(axis=-2)
    return _at(ratio(above.sum(axis=-2), items), edges, q)


def conformal_edge(positives: ArrayLike, level: float) -> Counts:
    """Return the edge above which the sets hold the true class at a level, by split conformal prediction.

    positives: of the true class, (..., B): of one class (Mondrian sets), or summed over classes. The edge is the one
    below the k-th highest probability of a true class, ``k = ceil((n + 1) level)``; 0, at which every set is full,
    where k is above n. (..., B) to (...). Items, or units of them, must be exchangeable. Vovk, Gammerman and Shafer
    2005; Romano, Sesia and Candes, NeurIPS 2020.

    >>> int(conformal_edge([0, 1, 2, 6], 0.7)), int(conformal_edge([0, 1, 2, 6], 0.95))
    (2, 0)
    """
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, found {level}")
    above = above_edges(positives)
    k = np.ceil(rank_of_share(level, above[..., 0] + 1))[..., None]
    return np.asarray((above >= k).sum(axis=-1) - 1).clip(0)


def missed_share(positives: ArrayLike) -> Floats:
    """Share of the items of a class at or below every edge, (..., B) to (..., B + 1); NaN without items.

    >>> missed_share([1, 3]).tolist()
    [0.0, 0.25, 1.0]
    """
    above = above_edges(positives)
    return ratio(above[..., :1] - above, above[..., :1])


def risk_controlling_edge(positives: ArrayLike, risk: float) -> tuple[int, int]:
    """Return the highest edge whose mean missed share on new cases is at most `risk`, and the cases it is based on.

    positives: items of a class by case, (cases, B). Cases without the class are left out. The edge is the highest with
    ``n / (n + 1) mean_i missed_i + 1 / (n + 1) <= risk``; -1 where n is too small for any. Cases must be exchangeable.
    Angelopoulos, Bates, Fisch, Lei and Schuster, ICLR 2024.

    >>> risk_controlling_edge([[1, 3], [2, 2], [0, 0]], 0.7), risk_controlling_edge([[1, 3]], 0.4)
    ((1, 2), (-1, 1))
    """
    missed = missed_share(np.asarray(positives, np.int64))
    missed = missed[~np.isnan(missed[:, 0])]
    n = len(missed)
    controlled = (missed.sum(axis=0) + 1) / (n + 1) <= risk
    return int(controlled.sum()) - 1, n


def _at(values: Floats, edges: ArrayLike, q: ArrayLike) -> Bounded:
    """Return values (..., B + 1), which fall along the edges, for the sets ``p >= q``, and their bounds."""
    bounds, at = np.asarray(edges, np.float64), np.asarray(q, np.float64)
    if not np.all((at >= 0) & (at <= 1)):
        raise ValueError(f"a threshold of sets lies in [0, 1], found {at.tolist()}")
    over = np.searchsorted(bounds, at, side="left")
    under = np.maximum(over - 1, 0)
    return Bounded(values[..., under], values[..., over], values[..., under])
