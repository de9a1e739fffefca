"""Logits to probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.typing import Floats


def softmax(logits: NDArray[Any], axis: int) -> Floats:
    """Return ``exp(z_i) / sum_j exp(z_j)`` along `axis`, float64 of the same shape; NaN where a logit is.

    Shifted by the largest, so that none overflows; of infinite ones the largest share evenly.

    >>> softmax(np.array([[0.0, np.log(3.0)], [1e4, 0.0]]), 1).round(4).tolist()
    [[0.25, 0.75], [1.0, 0.0]]
    """
    z = np.array(logits, np.float64)  # the only array of its size: blocks are large
    top = z.max(axis=axis, keepdims=True)
    vectors, unbounded = np.moveaxis(z, axis, -1), np.isinf(np.moveaxis(top, axis, -1)[..., 0])
    infinite = vectors[unbounded]
    with np.errstate(invalid="ignore"):
        z -= top
        np.exp(z, out=z)
    vectors[unbounded] = np.where(np.isnan(infinite), infinite, infinite == infinite.max(axis=-1, keepdims=True))
    z /= z.sum(axis=axis, keepdims=True)
    return z


def sigmoid(logits: NDArray[Any]) -> Floats:
    """Return ``1 / (1 + exp(-z))``, float64 of the same shape: the probability of the second of two classes.

    >>> sigmoid(np.array([0.0, -1000.0, np.log(3.0)])).tolist()
    [0.5, 0.0, 0.75]
    """
    z = np.asarray(logits, np.float64)
    small = np.asarray(np.abs(z))
    np.negative(small, out=small)
    np.exp(small, out=small)
    shares = np.where(z >= 0, 1.0, small)
    small += 1.0
    shares /= small
    return np.asarray(shares)
