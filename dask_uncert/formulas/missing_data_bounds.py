"""Bounds on accuracy and F1, had the pixels counted that were lost."""

from __future__ import annotations

from typing import Any

import numpy as np

from dask_uncert.formulas.typing import Floats


def accuracy_bounds(confusion: Any, lost: Any) -> Floats:
    """Return overall accuracy if all lost pixels were wrong, and if all were right.

    confusion: (C, C) counts, reference by prediction. lost: (C + 1,) pixels by the class of the reference,
    the last where that is not known. Returns (2,) in [0, 1]: the least and the largest; NaN where no pixel is
    counted or lost. No distributions are assumed: every number between can come true.

    >>> accuracy_bounds([[3, 1], [0, 4]], [0, 1, 1]).tolist()
    [0.7, 0.9]
    """
    matrix, missing = np.asarray(confusion, np.float64), float(np.asarray(lost).sum())
    right, total = np.trace(matrix), matrix.sum() + missing
    if not total:
        return np.full(2, np.nan)
    return np.array([right / total, (right + missing) / total])


def f1_bounds(confusion: Any, lost: Any) -> Floats:
    """Return F1 (Dice) of every class, had the lost pixels been predicted in the worst and in the best way.

    confusion, lost: as for `accuracy_bounds`. In the worst case a lost pixel of the class is missed, and one
    of another or an unknown class is taken for it; in the best case one of the class or unknown is found.
    Returns (2, C) in [0, 1]; NaN where neither reference nor prediction can have the class. Where it has no F1 in the
    best case, both are 0, the only F1 that it can have.

    >>> f1_bounds([[3, 1], [0, 4]], [0, 1, 0]).round(4).tolist()
    [[0.75, 0.8], [0.8571, 0.9091]]
    """
    matrix, missing = np.asarray(confusion, np.float64), np.asarray(lost, np.float64)
    right = np.diag(matrix)
    off = matrix.sum(axis=0) + matrix.sum(axis=1) - 2 * right
    own, unknown = missing[:-1], missing[-1]
    best = right + own + unknown
    with np.errstate(invalid="ignore", divide="ignore"):
        low = 2 * right / (2 * right + off + missing.sum())
        high = 2 * best / (2 * best + off)
    return np.stack([low, np.where(np.isnan(high), low, high)])
