"""One class against the rest by its probability: curves, areas and thresholds, from counts per bin.

Inputs are, per right-closed bin of the probability in rising order, (..., B): ``n`` items and ``positives``, those of
the class. A threshold is an edge of the bins: an item counts as found where its probability is above the edge. The
lowest edge finds all, so there are B + 1 thresholds. At edges all numbers are exact; items of one bin are ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas import selective
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Counts, Floats


class Bounded(NamedTuple):
    """A ``value`` and the bounds of what the items themselves, without bins, would give."""

    value: Floats
    low: Floats
    high: Floats


class ThresholdTable(NamedTuple):
    """Cells and metrics of a class at every edge, each (..., B + 1)."""

    tp: Counts
    fp: Counts
    fn: Counts
    tn: Counts
    precision: Floats
    recall: Floats
    f1: Floats
    youden: Floats


def threshold_table(n: ArrayLike, positives: ArrayLike) -> ThresholdTable:
    """Cells and metrics when all items above an edge count as found, for every edge: (..., B) to (..., B + 1).

    ``youden`` is ``recall - FP / (FP + TN)``, Youden's J in [-1, 1]; Youden, Cancer 3, 1950. Metrics are NaN where
    0/0.

    >>> table = threshold_table([2, 2], [0, 2])
    >>> table.tp.tolist(), table.fp.tolist(), table.f1.tolist(), table.youden.tolist()
    ([2, 2, 0], [2, 0, 0], [0.6666666666666666, 1.0, 0.0], [0.0, 1.0, 0.0])
    """
    tp, found = above_edges(positives), above_edges(n)
    fp = found - tp
    fn, tn = tp[..., :1] - tp, fp[..., :1] - fp
    recall = ratio(tp, tp + fn)
    return ThresholdTable(
        tp, fp, fn, tn, ratio(tp, found), recall, ratio(2 * tp, 2 * tp + fp + fn), recall - ratio(fp, fp + tn)
    )


def auroc(n: ArrayLike, positives: ArrayLike) -> Bounded:
    """Area under the ROC curve: the chance that an item of the class has a higher probability than another, ties half.

    (..., B) to three of (...). Range [0, 1], best 1, at random 1/2; NaN without items of the class, or without others.
    The bound is ``sum_b positives_b negatives_b / (2 P N)`` to either side. Hanley and McNeil, Radiology 143, 1982.

    >>> [round(float(part), 4) for part in auroc([2, 2], [0, 1])]
    [0.8333, 0.6667, 1.0]
    """
    others, own = _split(n, positives)
    value = selective.error_auroc(others, own)
    pairs = (own * others.astype(np.float64)).sum(axis=-1)
    slack = ratio(pairs, 2 * own.sum(axis=-1) * others.sum(axis=-1).astype(np.float64))
    return Bounded(value, value - slack, value + slack)


def average_precision(n: ArrayLike, positives: ArrayLike) -> Bounded:
    """Average precision: precision averaged over the items of the class in steps, (..., B) to three of (...).

    ``sum_b positives_b / P precision_b``; no line is drawn between points. Range [0, 1], best 1, at random the
    class's share; NaN without items of the class. The bounds are those of the best and worst order inside bins.

    >>> [round(float(part), 4) for part in average_precision([2, 2], [0, 1])]
    [0.5, 0.5, 1.0]
    """
    others, own = _split(n, positives)
    low, high = selective.bounds(selective.error_auprc, others, own)
    return Bounded(selective.error_auprc(others, own), low, high)


def best_edge(values: ArrayLike) -> Counts:
    """Return the highest edge at which a metric is largest, (..., B + 1) to (...); -1 where it is NaN everywhere.

    >>> best_edge([[0.5, 0.7, 0.7, float("nan")], [float("nan")] * 4]).tolist()
    [2, -1]
    """
    v = np.asarray(values, np.float64)
    filled = np.where(np.isnan(v), -np.inf, v)
    last = v.shape[-1] - 1 - np.argmax(filled[..., ::-1], axis=-1)
    return np.where(np.isnan(v).all(axis=-1), -1, last)


def edge_for(table: ThresholdTable, metric: str, wanted: float) -> Counts:
    """Return the edge with the largest recall, or precision, that gives at least the wanted precision, or recall.

    metric: ``"precision"``: the lowest edge with at least this precision; ``"recall"``: the highest edge with at least
    this recall. (..., B + 1) to (...); -1 where no edge does.

    >>> table = threshold_table([2, 2, 2], [0, 1, 2])
    >>> int(edge_for(table, "precision", 0.7)), int(edge_for(table, "recall", 0.9)), int(edge_for(table, "recall", 1.1))
    (1, 1, -1)
    """
    if metric not in ("precision", "recall"):
        raise ValueError(f"the metric is precision or recall, found {metric}")
    enough = getattr(table, metric) >= wanted
    first = np.argmax(enough, axis=-1)
    last = enough.shape[-1] - 1 - np.argmax(enough[..., ::-1], axis=-1)
    return np.where(enough.any(axis=-1), first if metric == "precision" else last, -1)


def _split(n: ArrayLike, positives: ArrayLike) -> tuple[Counts, Counts]:
    own = np.asarray(positives, np.int64)
    return np.asarray(n, np.int64) - own, own


def above_edges(counts: ArrayLike) -> Counts:
    """Return the items above every edge: (..., B) to (..., B + 1)."""
    c = np.asarray(counts, np.int64)
    upper = np.cumsum(c[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([upper, np.zeros_like(c[..., :1])], axis=-1)
