"""Agreement of predicted and reference classes, from counts.

Counts come as confusion matrices of shape (..., C, C), row = reference, column = predicted, or as the four
cells TP, TN, FP, FN of any shape; either may also hold sums of weights (float64) [S22]. A ratio 0/0 is NaN.
Every formula avoids products of int64 counts and differences of large products, so counts up to 2**40 lose no
digits beyond rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas.typing import Counts, Floats


class Cells(NamedTuple):
    """The four cells of one class against the rest; counts (int64) or sums of weights (float64)."""

    tp: Counts | Floats
    tn: Counts | Floats
    fp: Counts | Floats
    fn: Counts | Floats


class Macro(NamedTuple):
    """Mean over the ``n`` classes where a value is defined; ``undefined`` counts other supported ones."""

    value: Floats
    n: Counts
    undefined: Counts


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> Floats:
    """``numerator / denominator`` as float64, NaN where the denominator is 0; no warning.

    >>> ratio([1, 0], [4, 0]).tolist()
    [0.25, nan]
    """
    top, bottom = np.broadcast_arrays(np.asarray(numerator, np.float64), np.asarray(denominator, np.float64))
    quotient = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=quotient, where=bottom != 0)
    return quotient


def support(matrix: ArrayLike) -> Counts:
    """Reference count of each class, ``sum_j m_ij``: (..., C, C) to (..., C), int64.

    >>> support([[3, 1], [0, 2]]).tolist()
    [4, 2]
    """
    return np.asarray(_matrix(matrix).sum(axis=-1))


def cells(matrix: ArrayLike) -> Cells:
    """TP, TN, FP, FN of each class against the rest: (..., C, C) to four of (..., C), int64.

    >>> [cell.tolist() for cell in cells([[3, 1], [0, 2]])]
    [[3, 2], [2, 3], [0, 1], [1, 0]]
    """
    m = _matrix(matrix)
    tp = np.diagonal(m, axis1=-2, axis2=-1).copy()
    fn = m.sum(axis=-1) - tp
    fp = m.sum(axis=-2) - tp
    tn = m.sum(axis=(-2, -1))[..., None] - tp - fn - fp
    return Cells(tp, tn, fp, fn)


def accuracy(matrix: ArrayLike) -> Floats:
    """Overall accuracy: ``sum_i m_ii / sum_ij m_ij``, (..., C, C) to (...).

    Range [0, 1], best 1; NaN for an empty matrix. [C23]

    >>> float(accuracy([[3, 1], [0, 4]]))
    0.875
    """
    m = _matrix(matrix)
    return ratio(np.trace(m, axis1=-2, axis2=-1), m.sum(axis=(-2, -1)))


def kappa(matrix: ArrayLike) -> Floats:
    """Cohen's kappa: ``(p_o - p_e) / (1 - p_e)``, (..., C, C) to (...).

    Range [-1, 1], best 1, 0 is chance; NaN where reference and prediction are the same single class
    throughout (``p_e = 1``) or the matrix is empty. [C23]

    >>> float(kappa([[2, 1], [1, 2]]))
    0.3333333333333333
    """
    disagreement, expected, _, _ = _disagreements(_matrix(matrix))
    return ratio(expected - disagreement, expected)


def matthews(matrix: ArrayLike) -> Floats:
    """Matthews correlation of C classes: ``cov(r, p) / sqrt(cov(r, r) cov(p, p))``, (..., C, C) to (...).

    ``r`` and ``p`` are reference and prediction as one-hot vectors. Range [-1, 1], best 1, 0 is chance; NaN
    where either is one class throughout. For two classes it is the usual coefficient of ``cell_metrics``.
    Gorodkin, Computational Biology and Chemistry 28, 2004.

    >>> float(matthews([[3, 1], [1, 3]]))
    0.5
    """
    disagreement, expected, reference, predicted = _disagreements(_matrix(matrix))
    value = ratio(expected - disagreement, np.sqrt(reference * predicted))
    return np.asarray(np.clip(value, -1.0, 1.0))


def weighted_kappa(matrix: ArrayLike, weights: str = "linear") -> Floats:
    """Cohen's kappa of ordered classes, whose disagreements weigh by their distance: (..., C, C) to (...).

    ``1 - sum_ij w_ij m_ij / sum_ij w_ij r_i c_j / n`` with ``w = |i - j|``, or ``(i - j)**2`` for ``"quadratic"``.
    Range [-1, 1], best 1, 0 is chance; NaN where reference and prediction are one class throughout. Raises
    ValueError for other weights. Cohen, Psychological Bulletin 70, 1968.

    >>> float(weighted_kappa([[2, 1, 0], [0, 2, 1], [0, 0, 2]]))
    0.7142857142857143
    """
    if weights not in ("linear", "quadratic"):
        raise ValueError(f'weights are "linear" or "quadratic", found {weights!r}')
    m = _matrix(matrix).astype(np.float64)
    position = np.arange(m.shape[-1])
    distance = np.abs(np.subtract.outer(position, position)).astype(np.float64) ** (1 + (weights == "quadratic"))
    r, c = m.sum(axis=-1), m.sum(axis=-2)
    observed = (distance * m).sum(axis=(-2, -1)) * m.sum(axis=(-2, -1))
    expected = (distance * r[..., :, None] * c[..., None, :]).sum(axis=(-2, -1))
    return ratio(expected - observed, expected)


def quantity_disagreement(matrix: ArrayLike) -> Floats:
    """Share of items that no rearrangement of the map could set right, by class: (..., C, C) to (..., C).

    ``|predicted_c - reference_c| / n``; half the sum over classes is the total, and with the total of
    `allocation_disagreement` it is 1 - accuracy. Range [0, 1], best 0; NaN for an empty matrix. Pontius and Millones,
    International Journal of Remote Sensing 32, 2011.

    >>> quantity_disagreement([[3, 1], [0, 4]]).tolist()
    [0.125, 0.125]
    """
    m = _matrix(matrix)
    return ratio(np.abs(m.sum(axis=-2) - m.sum(axis=-1)), m.sum(axis=(-2, -1))[..., None])


def allocation_disagreement(matrix: ArrayLike) -> Floats:
    """Share of items that are wrong by their place only, by class: (..., C, C) to (..., C).

    ``2 min(FP, FN) / n``; half the sum over classes is the total. Range [0, 1], best 0; NaN for an empty matrix.
    Pontius and Millones, International Journal of Remote Sensing 32, 2011.

    >>> allocation_disagreement([[3, 1], [1, 3]]).tolist()
    [0.25, 0.25]
    """
    tp, tn, fp, fn = cells(matrix)
    return ratio(2 * np.minimum(fp, fn), tp + tn + fp + fn)


def precision(matrix: ArrayLike) -> Floats:
    """User's accuracy of each class: ``TP / (TP + FP)``, (..., C, C) to (..., C).

    Range [0, 1], best 1; NaN for a class that is never predicted. [S22] (14), [C23]

    >>> precision([[3, 1], [1, 3]]).tolist()
    [0.75, 0.75]
    """
    tp, _, fp, _ = cells(matrix)
    return ratio(tp, tp + fp)


def recall(matrix: ArrayLike) -> Floats:
    """Producer's accuracy of each class: ``TP / (TP + FN)``, (..., C, C) to (..., C).

    Range [0, 1], best 1; NaN for a class without reference. [S22] (15), [C23]

    >>> recall([[3, 1], [0, 0]]).tolist()
    [0.75, nan]
    """
    tp, _, _, fn = cells(matrix)
    return ratio(tp, tp + fn)


def f1(matrix: ArrayLike) -> Floats:
    """F1, or Dice, of each class: ``2 TP / (2 TP + FP + FN)``, (..., C, C) to (..., C).

    Range [0, 1], best 1; NaN for a class neither in the reference nor predicted. [S22] (17)

    >>> f1([[3, 1], [1, 3]]).tolist()
    [0.75, 0.75]
    """
    tp, _, fp, fn = cells(matrix)
    return ratio(2 * tp, 2 * tp + fp + fn)


def iou(matrix: ArrayLike) -> Floats:
    """Intersection over union, or Jaccard, of each class: ``TP / (TP + FP + FN)``, (..., C, C) to (..., C).

    Range [0, 1], best 1; NaN for a class neither in the reference nor predicted. ``F1 / (2 - F1)``. Jaccard,
    New Phytologist 11, 1912.

    >>> iou([[3, 1], [1, 3]]).tolist()
    [0.6, 0.6]
    """
    tp, _, fp, fn = cells(matrix)
    return ratio(tp, tp + fp + fn)


def macro(values: ArrayLike, support: ArrayLike) -> Macro:
    """Mean of per-class values over the classes that have reference support: (..., C) to (...).

    Supported classes whose value is NaN (a precision of a class never predicted) are left out of the mean
    and counted as undefined; NaN where nothing is left.

    >>> value, n, undefined = macro([0.5, np.nan, 1.0, 0.0], [3, 1, 2, 0])
    >>> float(value), int(n), int(undefined)
    (0.75, 2, 1)
    """
    values = np.asarray(values, np.float64)
    supported = np.broadcast_to(np.asarray(support) > 0, values.shape)
    defined = supported & ~np.isnan(values)
    n = defined.sum(axis=-1)
    value = ratio(np.where(defined, values, 0.0).sum(axis=-1), n)
    return Macro(value, n, supported.sum(axis=-1) - n)


def micro(per_class: Cells) -> Cells:
    """Sums of the cells over all classes, (..., C) to (...): ``cell_metrics(*micro(...))``.

    From a confusion matrix, where each item has one class, micro precision, recall and F1 all equal the
    overall accuracy.

    >>> [int(cell) for cell in micro(cells([[3, 1], [0, 2]]))]
    [5, 5, 1, 1]
    """
    return Cells(*(np.asarray(cell).sum(axis=-1) for cell in per_class))


def cell_metrics(tp: ArrayLike, tn: ArrayLike, fp: ArrayLike, fn: ArrayLike) -> dict[str, Floats]:
    """Return every metric of the four cells, counts or sums of weights: (...) to a dict of (...).

    ``accuracy, precision, recall, false_positive_rate, f1`` are [S22] (13)-(17); besides ``specificity,
    negative_predictive_value, balanced_accuracy`` (mean of recall and specificity), ``iou, matthews,
    kappa``. Range [0, 1], the last two [-1, 1]; best 1, for the false-positive rate 0. NaN where 0/0.

    >>> metrics = cell_metrics(3, 3, 1, 1)
    >>> float(metrics["accuracy"]), float(metrics["f1"]), float(metrics["matthews"])
    (0.75, 0.75, 0.5)
    """
    tp, tn, fp, fn = _scaled(tp, tn, fp, fn)
    recall_, specificity_ = ratio(tp, tp + fn), ratio(tn, tn + fp)
    # tp tn and fp fn are each at most the denominators below, so their difference keeps its digits.
    excess = tp * tn - fp * fn
    spread = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
    return {
        "accuracy": ratio(tp + tn, tp + tn + fp + fn),
        "precision": ratio(tp, tp + fp),
        "recall": recall_,
        "false_positive_rate": ratio(fp, fp + tn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "specificity": specificity_,
        "negative_predictive_value": ratio(tn, tn + fn),
        "balanced_accuracy": np.asarray((recall_ + specificity_) / 2),
        "iou": ratio(tp, tp + fp + fn),
        "matthews": np.asarray(np.clip(ratio(excess, spread), -1.0, 1.0)),
        "kappa": ratio(2 * excess, (tp + fp) * (tn + fp) + (tp + fn) * (tn + fn)),
    }


def _matrix(matrix: ArrayLike) -> NDArray[Any]:
    m = np.asarray(matrix)
    if m.ndim < 2 or m.shape[-1] != m.shape[-2]:
        raise ValueError(f"a confusion matrix has shape (..., C, C), found {m.shape}")
    return m if m.dtype in (np.int64, np.float64) else m.astype(np.int64, casting="safe")


def _disagreements(m: NDArray[Any]) -> tuple[Floats, Floats, Floats, Floats]:
    """Return 1 - p_o, 1 - p_e and the two self-disagreements, each times n**2.

    Sums of non-negative terms ``r_i (n - c_i)``: no cancellation where nearly all items are of one class,
    which the usual ``n tr(m) - r'c`` does not survive. The terms pass int64, hence float64 from here on.
    """
    r, c, n = m.sum(axis=-1), m.sum(axis=-2), m.sum(axis=(-2, -1))
    not_r, not_c = ((n[..., None] - part).astype(np.float64) for part in (r, c))
    off = (n - np.trace(m, axis1=-2, axis2=-1)).astype(np.float64)
    return (
        np.asarray(off * n),
        np.asarray((r * not_c).sum(axis=-1)),
        np.asarray((r * not_r).sum(axis=-1)),
        np.asarray((c * not_c).sum(axis=-1)),
    )


def _scaled(*four: ArrayLike) -> tuple[Floats, ...]:
    """Return the cells times one power of two each: exact, and products neither overflow nor vanish."""
    cells = np.broadcast_arrays(*(np.asarray(cell, np.float64) for cell in four))
    _, exponent = np.frexp(np.max(cells, axis=0))
    return tuple(np.ldexp(cell, -exponent) for cell in cells)
