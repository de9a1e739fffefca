"""A damping factor C_d(u) on the bins of a u axis, as a parabola on each, with its error bound.

A bin is an interval of ``v``: ``u / (1 + u)`` for a u without an upper limit, else ``u / upper``. The parabola
goes through C_d at the three Chebyshev nodes of the bin. So the sums of 1, x and x**2 over pixels, x the place
of v in the bin, give the sum of C_d(u) for any d afterwards.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dask_uncert.formulas.soft_confusion import damping_factor
from dask_uncert.formulas.threshold_distributions import largest_between
from dask_uncert.formulas.typing import Floats

NODES = np.array([math.sqrt(0.75), 0.0, -math.sqrt(0.75)])
"""Where T_3 is 0."""
EXPONENTIAL_TURNS = (0.9358222275240878, 3.305407289332279, 7.758770483143634)
"""Where ``s**4 (s**2 - 6 s + 6) exp(-s)`` is largest: zeros of the Laguerre polynomial L_3^(1)."""
HERMITE_TURNS = (
    (math.sqrt(0.5),),
    (0.0, math.sqrt(1.5)),
    (math.sqrt(1.5 - math.sqrt(1.5)), math.sqrt(1.5 + math.sqrt(1.5))),
)
"""Where the first, second and third derivative of ``exp(-x**2)`` are largest."""


class Series(NamedTuple):
    """A parabola on every bin: coefficients of 1, x and 2 x**2 - 1 for x in [-1, 1] (bins, 3).

    error: bound on its error; least, most: the values of C_d at the ends; all (bins,).
    """

    coefficients: Floats
    error: Floats
    least: Floats
    most: Floats


def damping_series(form: str, damping: float, upper: float, bins: int) -> Series:
    """Return C_d, d >= 0 and finite, on equal bins of v; upper: the largest u, or infinity.

    The error is ``max |C_d'''| h**3 / 24``, h half the length of a bin and derivatives after v [Davis 1975, theorem
    3.3.1]. Where that exceeds half the change of C_d over the bin, the parabola is the constant in its middle.

    >>> series = damping_series("exponential", 2.0, 1.0, 32)
    >>> values = series.coefficients @ [1.0, 1.0, 1.0]  # at the upper ends
    >>> bool((abs(values - np.exp(-2 * np.arange(1, 33) / 32)) < series.error).all() and series.error.max() < 2e-6)
    True
    """
    if not (damping >= 0 and math.isfinite(damping)):
        raise ValueError(f"damping must be 0 or above and finite, found {damping!r}")
    half = 0.5 / bins
    v = (np.arange(bins)[:, np.newaxis] + 0.5 + 0.5 * np.array([-1.0, *NODES, 1.0])) / bins
    u = _u(v, upper)
    factor = damping_factor(u, damping, form)
    most, least = factor[:, 0], factor[:, -1]
    coefficients = parabolas(factor[:, 1:4])
    error = _largest_third(form, damping, upper, v[:, 0], v[:, -1]) * half**3 / 24
    flat = ~(error <= (most - least) / 2)  # also where it is not a number
    coefficients[flat] = np.stack([(most + least) / 2, 0 * most, 0 * most], axis=-1)[flat]
    return Series(coefficients, np.where(flat, (most - least) / 2, error), least, most)


def parabolas(values: Floats) -> Floats:
    """Return the coefficients of 1, x and 2 x**2 - 1 of parabolas with these values at `NODES`, (..., 3) to (..., 3).

    >>> x = NODES
    >>> parabolas(1 + 2 * x + 3 * (2 * x**2 - 1)).round(12).tolist()
    [1.0, 2.0, 3.0]
    """
    right, middle, left = np.moveaxis(values, -1, 0)
    return np.stack(
        [(right + middle + left) / 3, (right - left) / math.sqrt(3), (right + left - 2 * middle) / 3], axis=-1
    )


def _u(v: Floats, upper: float) -> Floats:
    if math.isfinite(upper):
        return upper * v
    with np.errstate(divide="ignore"):
        return np.asarray(v / (1 - v))


def _largest_third(form: str, d: float, upper: float, low: Floats, high: Floats) -> Floats:
    """Return a bound on the third derivative of C_d after v on intervals of v, (n,); inf where none is known."""
    if d == 0:
        return np.zeros_like(low)
    finite = math.isfinite(upper)
    reach = d * upper if finite else d
    if form == "reciprocal":
        # 1 / (1 + d u) is (1 - v) / (1 + (d - 1) v), or 1 / (1 + reach v)
        factor, slope = (6 * reach**3, reach) if finite else (6 * d * (d - 1) ** 2, d - 1)
        return factor / np.minimum(1 + slope * low, 1 + slope * high) ** 4
    with np.errstate(all="ignore"):
        if form == "exponential" and finite:
            return np.asarray(reach**3 * np.exp(-reach * low))
        if form == "exponential":
            # s**4 (s**2 - 6 s + 6) exp(-s) exp(d) / d**3 of s = d (1 + u)
            def third(s: Any) -> Any:
                value = (s / d) ** 3 * s * (s * s - 6 * s + 6) * np.exp(d - s)
                return np.where(s > d + 800, 0.0, value)

            return largest_between(third, EXPONENTIAL_TURNS, d / (1 - low), d / (1 - high))
        if finite:
            return reach**3 * _hermite(3, reach * low, reach * high)
        low, high = _u(low, upper), _u(high, upper)
        parts = zip((1, 2, 3), (6, 6, 1), (4, 5, 6), strict=True)
        return np.asarray(sum(k * (1 + high) ** power * d**n * _hermite(n, d * low, d * high) for n, k, power in parts))


def _hermite(order: int, low: Floats, high: Floats) -> Floats:
    """Return the largest size of a derivative of ``exp(-x**2)`` on intervals of x."""
    polynomial = ((0.0, 2.0), (-2.0, 0.0, 4.0), (0.0, -12.0, 0.0, 8.0))[order - 1]

    def derivative(x: Any) -> Any:
        return np.polynomial.polynomial.polyval(x, polynomial) * np.exp(-x * x)

    return largest_between(derivative, HERMITE_TURNS[order - 1], low, high)
