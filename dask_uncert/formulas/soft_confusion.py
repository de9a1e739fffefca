"""Soft confusion: how much each point counts as TP, TN, FP or FN when the threshold is uncertain [S22]."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.array_dispatch import (
    as_array,
    elementwise,
    is_labelled,
    is_lazy,
    result_dtype,
    same_grid,
    tolerance,
)
from dask_uncert.formulas.threshold_distributions import shape_named

ReferenceCertainty = Literal["paper", "none"]


def soft_weights(
    probabilities: Any,
    reference: Any,
    threshold: float,
    sigma: float = 0.0,
    u: Any = None,
    damping: float = 0.0,
    distribution: str | Any = "gaussian",
    *,
    df: float | None = None,
    damping_form: str = "exponential",
    reference_threshold: float | None = None,
    reference_certainty: ReferenceCertainty = "paper",
) -> dict[str, Any]:
    """Each point gives its weight to exactly one of TP, TN, FP, FN; at sigma 0 and damping 0 that is 1.

    Formula: ``w = A(p) A(c) D(u)`` with `certainty` A and `damping_factor` D; it goes to TP for c > t, p >=
    t; to FN for c > t, p < t; to TN for c <= t, p <= t; to FP for c <= t, p > t. The reference has the
    threshold `reference_threshold` (by default `threshold`), and ``reference_certainty="none"`` leaves A(c)
    out. Thresholds are rounded to the dtype of the array they are compared with, so that a stored .7 is on
    the threshold .7.

    Shapes: probabilities p, reference c (fuzzy ones too) and uncertainty u >= 0 (or None) all alike; a dict
    of four such arrays. Any real dtype; float32 when p (and u) are float32 or float16, otherwise float64.
    Unit: points. Range [0, 1]. NaN, all four, where p, c or u is NaN.
    Errors: ValueError for shapes, dimensions or coordinates that differ, p or c outside [0, 1] or u below 0
    (NaN there for lazy arrays; within rounding of [0, 1] is clipped), thresholds outside (0, 1), sigma or
    damping below 0, or what `certainty` and `damping_factor` refuse. Source: [S22] (1)-(12).

    >>> found = soft_weights([0.2, 0.5, 0.8], [0, 1, 1], 0.5, u=[0, 0.5, 0], damping=np.inf)
    >>> found["TP"].tolist(), found["TN"].tolist()
    ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    """
    given = {"probabilities": probabilities, "reference": reference}
    if u is not None:
        given["uncertainty"] = u
    given = {name: array if is_labelled(array) else as_array(array) for name, array in given.items()}
    same_grid(given)
    template = next((array for array in given.values() if is_labelled(array)), None)
    p, c, *rest = (as_array(array.data if is_labelled(array) else array) for array in given.values())
    if reference_certainty not in ("paper", "none"):
        raise ValueError(f"reference_certainty is 'paper' or 'none', found {reference_certainty!r}")
    t = _threshold(threshold, "threshold", p.dtype)
    t_c = _threshold(
        threshold if reference_threshold is None else reference_threshold, "reference_threshold", c.dtype
    )
    kind = result_dtype(*(array.dtype for array in (p, *rest)))
    p, c = _unit(p, "probabilities"), _unit(c, "reference")
    weight = certainty(p, t, sigma, distribution, df=df)
    if reference_certainty == "paper":
        weight = weight * certainty(c, t_c, sigma, distribution, df=df)
    if rest:
        weight = weight * damping_factor(rest[0], damping, damping_form)
    else:
        damping_factor(np.zeros(1), damping, damping_form)
    weight = weight + (p - p) + (c - c)  # NaN spreads; finite values add 0
    positive = c > t_c
    found = {}
    for name, here in (
        ("TP", positive & (p >= t)),
        ("TN", ~positive & (p <= t)),
        ("FP", ~positive & (p > t)),
        ("FN", positive & (p < t)),
    ):
        values = np.where(here | np.isnan(weight), weight, 0.0).astype(kind)
        found[name] = values if template is None else template.copy(data=values)
    return found


def certainty(
    values: Any, threshold: float, sigma: float, distribution: str | Any = "gaussian", df: float | None = None
) -> Any:
    """How surely a value is off the threshold: 0 on it, rising to 1 far away; 1 everywhere for sigma = 0.

    Formula: ``A(x) = |2 F(x) - 2 F(t)|``, F the CDF of the threshold's distribution, centred on t with scale
    sigma. With ``z = |x - t| / sigma``: gaussian ``erf(z / sqrt 2)``; logistic ``tanh(z / 2)``; laplace ``1 -
    exp(-z)``; uniform on t - sigma .. t + sigma: ``min(z, 1)``; triangular on the same: ``z (2 - z)``, 1 from
    z = 1; cauchy ``2/pi arctan z``; student-t with `df` degrees of freedom. A frozen `scipy.stats`
    distribution, continuous and symmetric, is used in its own units: its median is moved to t, and a distance
    of sigma from t is 1 in them, ``A = |2 F(median + z) - 1|``.

    Shapes: any to the same, float64; numpy or lazy. Unit: none. Range [0, 1]. NaN where x is NaN.
    Errors: ValueError for sigma below 0 or not finite, an unknown name, df missing or not wanted, or a
    distribution whose quantiles are not symmetric about its median. Source: [S22] (1)-(4).

    >>> certainty(np.array([0.8, 0.9]), 0.8, 0.1).round(6).tolist()
    [0.0, 0.682689]
    """
    if not (sigma >= 0 and math.isfinite(sigma)):
        raise ValueError(f"sigma must be 0 or above and finite, found {sigma!r}")
    shape = _shape(distribution, df)
    return elementwise(
        partial(_certainty, threshold=float(threshold), sigma=float(sigma), shape=shape), values
    )


def damping_factor(uncertainty: Any, damping: float, form: str = "exponential") -> Any:
    """1 at u = 0 and at d = 0, falling as ``u d`` grows, where 0 times infinity counts as 0.

    Formula: exponential ``exp(-u d)``; reciprocal ``1 / (1 + u d)``; gaussian ``exp(-(u d)**2)``.
    Shapes: any to the same, float64; numpy or lazy. Unit: none. Range [0, 1]. NaN where u is NaN.
    Errors: ValueError for damping below 0, an unknown form, or u below 0 (NaN there for lazy arrays).
    Source: [S22] (5), which has the exponential.

    >>> damping_factor(np.array([0.0, 0.5]), np.inf).tolist()
    [1.0, 0.0]
    """
    if not damping >= 0:
        raise ValueError(f"damping must be 0 or above, found {damping!r}")
    if form not in _DAMPINGS:
        raise ValueError(f"unknown damping form {form!r}; known: {', '.join(_DAMPINGS)}")
    refuse = not is_lazy(uncertainty)
    return elementwise(partial(_damped, damping=float(damping), form=form, refuse=refuse), uncertainty)


def _frozen(z: NDArray[np.float64], frozen: Any, centre: float) -> Any:
    return np.abs(2 * frozen.cdf(centre + z) - 1)


_DAMPINGS: dict[str, Callable[[NDArray[np.float64]], Any]] = {
    "exponential": lambda ud: np.exp(-ud),
    "reciprocal": lambda ud: 1 / (1 + ud),
    "gaussian": lambda ud: np.exp(-np.square(ud)),
}
DAMPING_FORMS = tuple(_DAMPINGS)


def _shape(distribution: str | Any, df: float | None) -> Callable[[NDArray[np.float64]], Any]:
    """A as a function of z = |x - t| / sigma."""
    if isinstance(distribution, str):
        return shape_named(distribution, df).value
    if df is not None:
        raise ValueError("df belongs to the distribution 'student-t'; leave it out for any other")
    if not all(hasattr(distribution, name) for name in ("cdf", "ppf", "pdf")):
        raise ValueError(
            f"a name or a frozen continuous scipy.stats distribution expected, found {distribution!r}"
        )
    centre = float(distribution.ppf(0.5))
    levels = np.array([0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4])
    low, high = distribution.ppf(levels), distribution.ppf(1 - levels)
    if not np.allclose(centre - low, high - centre, rtol=1e-6, atol=0.0):
        raise ValueError(
            "the threshold's distribution must be symmetric about its median, and this one is not"
        )
    return partial(_frozen, frozen=distribution, centre=centre)


def _certainty(
    values: NDArray[Any], threshold: float, sigma: float, shape: Callable[[NDArray[np.float64]], Any]
) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    if sigma == 0:
        return np.where(np.isnan(x), np.nan, 1.0)
    with np.errstate(over="ignore"):  # a tiny sigma makes z infinite, where A is 1
        z = np.abs(x - threshold) / sigma
    return np.asarray(np.clip(shape(z), 0.0, 1.0))


def _damped(values: NDArray[Any], damping: float, form: str, refuse: bool) -> NDArray[np.float64]:
    u = np.asarray(values, dtype=np.float64)
    negative = u < 0
    if negative.any():
        if refuse:
            raise ValueError(
                f"uncertainty must be 0 or above; {int(negative.sum())} values are not, least {np.nanmin(u)}"
            )
        u = np.where(negative, np.nan, u)
    with np.errstate(invalid="ignore", over="ignore"):
        ud = np.where((u == 0) | ((damping == 0) & ~np.isnan(u)), 0.0, u * damping)
        return np.asarray(_DAMPINGS[form](ud))


def _threshold(value: float, name: str, dtype: np.dtype[Any]) -> float:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie in (0, 1), found {value!r}")
    return float(dtype.type(value)) if dtype.kind == "f" else float(value)


def _unit(values: Any, name: str) -> Any:
    """Values in [0, 1] as float64: clipped within the storage dtype's tolerance, otherwise refused."""
    work = partial(_clipped, allowed=tolerance(values.dtype), refuse=not is_lazy(values), name=name)
    return elementwise(work, values)


def _clipped(values: NDArray[Any], allowed: float, refuse: bool, name: str) -> NDArray[np.float64]:
    x = np.asarray(values, dtype=np.float64)
    beyond = (x < -allowed) | (x > 1 + allowed)
    if beyond.any():
        if refuse:
            worst = x[beyond][int(np.argmax(np.abs(x[beyond] - 0.5)))]
            raise ValueError(
                f"{name} must lie in [0, 1]; {int(beyond.sum())} values do not, the furthest is {worst:g}"
            )
        x = np.where(beyond, np.nan, x)
    return np.clip(x, 0.0, 1.0)
