"""The named distributions of an uncertain threshold: how sure a value is to be off it, and how smooth that is.

Each is symmetric and defined by ``a(z) = |2 F(z) - 1|`` of the distance z >= 0 from the threshold in units of
its scale: 0 on it, rising to 1.
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
FAR = 1e100
"""Every a(z) is 1 here, and its cube is still a number."""


class ThresholdDistribution(NamedTuple):
    """a(z) and its third derivative a'''(z) for z >= 0, (n,) to (n,).

    turns: where a''' has its largest sizes, inside an interval. At z = 1 the first derivative may drop by
    `kinks[0]` and the second by `kinks[1]`. fold: twice |a''(0)|, the jump at the threshold of the second derivative
    of a(z) with the sign of x - t. a(z) is concave.
    """

    certainty: Function
    third: Function
    turns: tuple[float, ...] = ()
    kinks: tuple[float, float] = (0.0, 0.0)
    fold: float = 0.0


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


def parabola_error(distribution: ThresholdDistribution, nearest: Floats, furthest: Floats) -> Floats:
    """Return how far the parabola through a(z) at three Chebyshev nodes can miss it from nearest to furthest, (n,).

    ``max |a'''| h**3 / 24`` with h half the length [Davis 1975, theorem 3.3.1]. Across z = 1 also 8/3 times how
    far a drop of the first derivative, ``kinks[0] h / 4``, and one of the second, ``kinks[1] h**2 / 8``, keep
    a(z) from its best parabola: interpolation at three nodes enlarges errors 5/3 times at most. An interval with the
    threshold inside has `nearest` below 0, and a(z) has the sign of z there.
    """
    nearest, furthest = np.clip(nearest, -FAR, FAR), np.clip(furthest, -FAR, FAR)
    half, across = (furthest - nearest) / 2, nearest < 0
    ends = np.where(across, 0.0, nearest), np.maximum(furthest, -nearest)
    error = largest_between(distribution.third, distribution.turns, *ends) * half**3 / 24
    slope, bend = distribution.kinks
    for place in (-1, 1):
        error += np.where((nearest < place) & (furthest > place), (slope * half * 2 + bend * half**2) / 3, 0.0)
    return error + np.where(across, distribution.fold * half**2 / 3, 0.0)


def largest_between(function: Function, turns: tuple[float, ...], low: Floats, high: Floats) -> Floats:
    """Return the largest size of a function on intervals (n,), which it takes at their ends or at its turns."""
    largest = np.maximum(np.abs(function(low)), np.abs(function(high)))
    for turn in turns:
        inside = (low < turn) & (turn < high)
        largest = np.where(inside, np.maximum(largest, abs(float(function(np.array(turn))))), largest)
    return np.asarray(largest)


def _gaussian(z: Floats) -> Any:
    return special.erf(z / math.sqrt(2.0))


def _gaussian_third(z: Floats) -> Any:
    square = np.square(z)
    return SQRT_2_PI * (square - 1) * np.exp(-0.5 * square)


def _logistic_third(z: Floats) -> Any:
    t = np.square(np.tanh(z / 2))
    return (1 - t) * (3 * t - 1) / 4


def _triangular(z: Floats) -> Any:
    near = np.minimum(z, 1.0)
    return near * (2 - near)


def _cauchy_third(z: Floats) -> Any:
    w = 1 / (1 + np.square(z))
    return (4 / math.pi) * np.square(w) * (3 - 4 * w)


def _student(df: float) -> ThresholdDistribution:
    def certainty(z: Floats) -> Any:
        # the regularised beta function of z**2 / (df + z**2), in a form that z = inf survives
        with np.errstate(divide="ignore", over="ignore"):
            return special.betainc(0.5, df / 2, 1 / (1 + df / np.square(z)))

    def third(z: Floats) -> Any:
        from scipy import stats  # it takes a third of a worker's start, for one distribution

        w = 1 / (df + np.square(z))
        return 2 * stats.t.pdf(z, df) * (df + 1) * w * (df + 2 - (df + 2) * df * w - df * w)

    return ThresholdDistribution(certainty, third, (math.sqrt(3 * df / (df + 2)),))


_NAMED: dict[str, ThresholdDistribution] = {
    "gaussian": ThresholdDistribution(_gaussian, _gaussian_third, (math.sqrt(3),)),
    "logistic": ThresholdDistribution(lambda z: np.tanh(z / 2), _logistic_third, (2 * math.atanh(math.sqrt(2 / 3)),)),
    "laplace": ThresholdDistribution(lambda z: -np.expm1(-z), lambda z: np.exp(-z), fold=2.0),
    "uniform": ThresholdDistribution(lambda z: np.minimum(z, 1.0), np.zeros_like, kinks=(1.0, 0.0)),
    "triangular": ThresholdDistribution(_triangular, np.zeros_like, kinks=(0.0, 2.0), fold=4.0),
    "cauchy": ThresholdDistribution(lambda z: np.arctan(z) * (2 / math.pi), _cauchy_third, (1.0,)),
}
DISTRIBUTIONS = (*_NAMED, "student-t")
