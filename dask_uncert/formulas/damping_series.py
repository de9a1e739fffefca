"""A damping factor C_d(u) on an interval as a short series of Chebyshev polynomials, with its error bound.

So sums of T_k(u) over pixels give the sum of C_d(u) for any d afterwards. The coefficients fall faster than
any power of k: on [0, 1] twelve terms are off by less than 4e-13 for ``exp(-2 u)``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from dask_uncert.formulas.soft_confusion import damping_factor
from dask_uncert.formulas.typing import Floats

NODES = 256
ELLIPSES = 1 + np.geomspace(1e-3, 1e3, 400)


class Series(NamedTuple):
    """Coefficients (terms,) of T_0, T_1, ...; error: bound on the error of their sum."""

    coefficients: Floats
    error: float


def damping_series(form: str, damping: float, low: float, high: float, terms: int) -> Series:
    """Return the series of C_d on [low, high] in ``x = (2u - low - high) / (high - low)`` in [-1, 1].

    damping: d >= 0, finite. high may be infinite: one term, the middle of what C_d can be there.
    Exponential: ``2 (-1)^k exp(-d m) I_k(d h)``, m the middle, h half the length; reciprocal: a geometric
    series; gaussian: by interpolation, its error by the largest value on an ellipse around the interval.

    >>> series = damping_series("exponential", 2.0, 0.0, 1.0, 12)
    >>> bool(abs(series.coefficients @ np.ones(12) - math.exp(-2)) < series.error < 4e-13)
    True
    """
    if not (damping >= 0 and math.isfinite(damping)):
        raise ValueError(f"damping must be 0 or above and finite, found {damping!r}")
    if damping == 0:
        return Series(np.eye(1, terms)[0], 0.0)
    if math.isinf(high):
        most = float(damping_factor(np.array(low), damping, form)) / 2
        return Series(most * np.eye(1, terms)[0], most)
    half = (high - low) / 2
    if form == "exponential":
        return _exponential(damping, low, half, terms)
    if form == "reciprocal":
        return _reciprocal(damping, low, half, terms)
    return _interpolated(form, damping, low, half, terms)


def _exponential(damping: float, low: float, half: float, terms: int) -> Series:
    k = np.arange(terms)
    shares = np.where(k == 0, 1.0, 2.0) * special.ive(k, damping * half)
    # All of them add up to 1, which is the value at the lower end.
    left = max(0.0, 1.0 - float(shares.sum()))
    if left < 1e-6:  # that difference has few digits
        later = np.arange(terms, terms + 64)
        left = float(2 * special.ive(later, damping * half).sum())
    scale = math.exp(-damping * low)
    return Series(np.asarray(scale * shares * (1 - 2 * (k % 2)), np.float64), scale * left)


def _reciprocal(damping: float, low: float, half: float, terms: int) -> Series:
    alpha, beta = 1 + damping * (low + half), damping * half
    root = math.sqrt((alpha - beta) * (alpha + beta))
    q = beta / (alpha + root)
    k = np.arange(terms)
    coefficients = np.asarray(np.where(k == 0, 1.0, 2.0) / root * np.power(-q, k), np.float64)
    return Series(coefficients, 2 / root * q**terms / (1 - q))


def _interpolated(form: str, damping: float, low: float, half: float, terms: int) -> Series:
    angles = (np.arange(NODES) + 0.5) * (math.pi / NODES)
    values = damping_factor(low + half * (1 + np.cos(angles)), damping, form)
    k = np.arange(terms)
    coefficients = np.cos(k[:, np.newaxis] * angles) @ values * (2 / NODES)
    coefficients[0] /= 2
    # |exp(-(d u)^2)| is at most exp((d Im u)^2), and Im u at most half the ellipse's height.
    height = damping * half * (ELLIPSES - 1 / ELLIPSES) / 2
    with np.errstate(over="ignore"):
        left = 4 * np.exp(np.square(height)) * ELLIPSES ** -float(terms) / (1 - 1 / ELLIPSES)
    return Series(coefficients, float(min(left.min(), 2.0)))
