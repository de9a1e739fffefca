"""The named distributions of an uncertain threshold: how sure a value is to be off it, and how that curves.

Each is symmetric and defined by ``a(z) = |2 F(z) - 1|`` of the distance z >= 0 from the threshold in units of
its scale: 0 on it, rising to 1. Slope is its first derivative, curvature the size of its second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dask_uncert.formulas.typing import Floats

Function = Callable[[Floats], Any]
SQRT_2_PI = math.sqrt(2.0 / math.pi)


class ThresholdDistribution(NamedTuple):
    """a(z), a'(z) and |a''(z)| for z >= 0, (n,) to (n,).

    The curvature rises to its largest value at `peak` and falls from there. At `kink` the slope drops to 0 at
    once.
    """

    certainty: Function
    slope: Function
    curvature: Function
    peak: float
    kink: float | None = None


def named_distribution(name: str, df: float | None = None) -> ThresholdDistribution:
    """Return the distribution of a name; `df`: degrees of freedom of student-t, and of no other.

    Raises ValueError for unknown names, and for df missing or not wanted.

    >>> float(named_distribution("uniform").certainty(np.array([0.25]))[0])
    0.25
    """
    if name == "student-t":
        if df is None or not df > 0:
            raise ValueError(f"the distribution 'student-t' needs degrees of freedom df above 0, found {df!r}")
        return _student(float(df))
    if df is not None:
        raise ValueError("df belongs to the distribution 'student-t'; leave it out for any other")
    if name not in _NAMED:
        raise ValueError(f"unknown distribution {name!r}; known: {', '.join(DISTRIBUTIONS)}")
    return _NAMED[name]


def tangent_error(distribution: ThresholdDistribution, nearest: Floats, furthest: Floats, reach: Floats) -> Floats:
    """Return how far a tangent to a(z) can miss it within `reach` of the point where it touches.

    nearest, furthest: ends of the interval of z, (n,); reach: (n,), in the same unit. Half the largest
    curvature there times reach squared (Taylor); where a kink lies between, the drop of the slope times the
    reach.
    """
    largest = np.asarray(distribution.curvature(np.clip(distribution.peak, nearest, furthest)))
    error = 0.5 * largest * reach * reach
    kink = distribution.kink
    if kink is not None:
        drop = float(distribution.slope(np.array(kink * (1 - 1e-15))))
        error = np.where((nearest < kink) & (furthest > kink), error + drop * reach, error)
    return error


def _gaussian(z: Floats) -> Any:
    return special.erf(z / math.sqrt(2.0))


def _gaussian_slope(z: Floats) -> Any:
    return SQRT_2_PI * np.exp(-0.5 * z * z)


def _logistic_slope(z: Floats) -> Any:
    return 0.5 / np.cosh(np.minimum(z, 700.0) / 2) ** 2


def _triangular(z: Floats) -> Any:
    near = np.minimum(z, 1.0)
    return near * (2 - near)


def _cauchy_slope(z: Floats) -> Any:
    return (2 / math.pi) / (1 + np.square(z))


def _student(df: float) -> ThresholdDistribution:
    def certainty(z: Floats) -> Any:
        # the regularised beta function of z**2 / (df + z**2), in a form that z = inf survives
        with np.errstate(divide="ignore", over="ignore"):
            return special.betainc(0.5, df / 2, 1 / (1 + df / np.square(z)))

    def slope(z: Floats) -> Any:
        from scipy import stats  # it takes a third of a worker's start, for one distribution

        return 2 * stats.t.pdf(z, df)

    def curvature(z: Floats) -> Any:
        return slope(z) * (df + 1) * z / (df + np.square(z))

    return ThresholdDistribution(certainty, slope, curvature, math.sqrt(df / (df + 2)))


_NAMED: dict[str, ThresholdDistribution] = {
    "gaussian": ThresholdDistribution(_gaussian, _gaussian_slope, lambda z: z * _gaussian_slope(z), 1.0),
    "logistic": ThresholdDistribution(
        lambda z: np.tanh(z / 2),
        _logistic_slope,
        lambda z: np.tanh(z / 2) * _logistic_slope(z),
        2 * math.atanh(1 / math.sqrt(3)),
    ),
    "laplace": ThresholdDistribution(lambda z: -np.expm1(-z), lambda z: np.exp(-z), lambda z: np.exp(-z), 0.0),
    "uniform": ThresholdDistribution(
        lambda z: np.minimum(z, 1.0), lambda z: np.where(z < 1, 1.0, 0.0), np.zeros_like, 0.0, kink=1.0
    ),
    "triangular": ThresholdDistribution(
        _triangular, lambda z: 2 * (1 - np.minimum(z, 1.0)), lambda z: np.where(z < 1, 2.0, 0.0), 0.0
    ),
    "cauchy": ThresholdDistribution(
        lambda z: np.arctan(z) * (2 / math.pi),
        _cauchy_slope,
        lambda z: _cauchy_slope(z) * 2 * z / (1 + np.square(z)),
        1 / math.sqrt(3),
    ),
}
DISTRIBUTIONS = (*_NAMED, "student-t")
