"""Logits to probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def softmax(logits: NDArray[Any], axis: int) -> NDArray[np.float64]:
    """``exp(z_i) / sum_j exp(z_j)`` along `axis`, float64 of the same shape; NaN where a logit is.

    Shifted by the largest, so that none overflows; of infinite ones the largest share evenly.

    >>> softmax(np.array([[0.0, np.log(3.0)], [1e4, 0.0]]), 1).round(4).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    z = np.asarray(logits, np.float64)
    top = z.max(axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        raised = np.where(np.isinf(top), np.where(np.isnan(z), z, z == top), np.exp(z - top))
    return np.asarray(raised / raised.sum(axis=axis, keepdims=True))


def sigmoid(logits: NDArray[Any]) -> NDArray[np.float64]:
    """``1 / (1 + exp(-z))``, float64 of the same shape: the probability of the second of two classes.

    >>> sigmoid(np.array([0.0, -1000.0, np.log(3.0)])).tolist()
    [0.5, 0.0, 0.75]
    """
    z = np.asarray(logits, np.float64)
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, small) / (1.0 + small))
