"""Soft confusion: how much each point counts as TP, TN, FP or FN when the threshold is uncertain [S22]."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.array_dispatch import (
    as_array,
    check_same_grid,
    elementwise,
    is_labelled,
    is_lazy,
    named,
    result_dtype,
    tolerance,
)
from dask_uncert.formulas.labels import stored_threshold
from dask_uncert.formulas.threshold_distributions import Function, named_distribution
from dask_uncert.formulas.typing import Floats

ReferenceCertainty = Literal["paper", "none"]
CELLS = ("TP", "TN", "FP", "FN")
TP, TN, FP, FN = range(4)


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
    """Return the weight of each point as TP, TN, FP and FN under an uncertain threshold.

    Each point gives its weight to exactly one of the four; at sigma 0 and damping 0 that weight is 1.

    Parameters
    ----------
    probabilities : array_like
        Predictions p in [0, 1]; values within rounding of [0, 1] are clipped. numpy, dask or xarray.
    reference : array_like
        References c in [0, 1] of the same shape; fuzzy ones, such as the share of raters, are allowed.
    threshold : float
        Threshold t in (0, 1), rounded to the dtype of the array it is compared with, so that a stored .7 is
        on the threshold .7.
    sigma : float, default 0
        Scale of the threshold's distribution, 0 or above; see `certainty`.
    u : array_like, optional
        Predicted uncertainty of the same shape, 0 or above.
    damping : float, default 0
        Damping d, 0 or above; see `damping_factor`.
    distribution : str or scipy.stats frozen distribution, default "gaussian"
        Distribution of the threshold; see `certainty`.
    df : float, optional
        Degrees of freedom of ``"student-t"``.
    damping_form : {"exponential", "reciprocal", "gaussian"}
        Form of the damping.
    reference_threshold : float, optional
        Threshold of the reference; by default `threshold`.
    reference_certainty : {"paper", "none"}
        Whether A(c) multiplies the weight; ``"none"`` leaves it out.

    Returns
    -------
    dict of str to array
        ``TP``, ``TN``, ``FP`` and ``FN``, each of the shape and kind of the inputs and in [0, 1]; float32
        when p (and u) are float32 or float16, otherwise float64. All four are NaN where p, c or u is NaN.

    Raises
    ------
    ValueError
        For shapes, dimensions or coordinates that differ, p or c outside [0, 1] or u below 0 (NaN there for
        lazy arrays), thresholds outside (0, 1), or settings that `certainty` or `damping_factor` refuses.

    Notes
    -----
    ``w = A(p) A(c) D(u)`` with `certainty` A and `damping_factor` D; it goes to TP for c > t, p >= t; to FN
    for c > t, p < t; to TN for c <= t, p <= t; to FP for c <= t, p > t. Unit: points.

    References
    ----------
    [S22] (1)-(12).

    Examples
    --------
    >>> weights = soft_weights([0.2, 0.5, 0.8], [0, 1, 1], 0.5, u=[0, 0.5, 0], damping=np.inf)
    >>> weights["TP"].tolist(), weights["TN"].tolist()
    ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    """
    arrays = {"probabilities": probabilities, "reference": reference}
    if u is not None:
        arrays["uncertainty"] = u
    arrays = {name: array if is_labelled(array) else as_array(array) for name, array in arrays.items()}
    check_same_grid(arrays)
    template = next((array for array in arrays.values() if is_labelled(array)), None)
    p, c, *rest = (as_array(array.data if is_labelled(array) else array) for array in arrays.values())
    if reference_certainty not in ("paper", "none"):
        raise ValueError(f"reference_certainty is 'paper' or 'none', found {reference_certainty!r}")
    if reference_threshold is None:
        reference_threshold = threshold
    for name, value in (("threshold", threshold), ("reference_threshold", reference_threshold)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie in (0, 1), found {value!r}")
    t, t_c = stored_threshold(threshold, p.dtype), stored_threshold(reference_threshold, c.dtype)
    dtype = result_dtype(*(array.dtype for array in (p, *rest)))
    p, c = _unit(p, "probabilities"), _unit(c, "reference")
    weight = pair_certainty(p, c, t, t_c, sigma, distribution, df, reference_certainty)
    factor = damping_factor(rest[0] if rest else np.zeros(1), damping, damping_form)  # checks the settings
    if rest:
        weight = weight * factor
    weight = weight + (p - p) + (c - c)  # NaN spreads; finite values add 0
    cells = cell_index(p, c > t_c, t)
    weights = {}
    for number, name in enumerate(CELLS):
        values = np.where((cells == number) | np.isnan(weight), weight, 0.0).astype(dtype)
        weights[name] = values if template is None else named(template.copy(data=values), name)
    return weights


def cell_index(p: Any, positive: Any, threshold: float) -> Any:
    """Return the index among `CELLS` of points with predictions p whose reference is positive (c > t) or not.

    A prediction on the threshold agrees with the reference either way. Source: [S22].

    >>> cell_index(np.array([0.2, 0.5, 0.5]), np.array([True, True, False]), 0.5).tolist()
    [3, 0, 1]
    """
    return np.where(positive, np.where(p >= threshold, TP, FN), np.where(p <= threshold, TN, FP))


def pair_certainty(
    p: Any,
    c: Any,
    threshold: float,
    reference_threshold: float,
    sigma: float,
    distribution: str | Any = "gaussian",
    df: float | None = None,
    reference_certainty: str = "paper",
) -> Any:
    """Return A(p) A(c), or A(p) alone for ``reference_certainty="none"``; c may be booleans (0 or 1).

    >>> pair_certainty(np.array([0.9]), np.array([True]), 0.8, 0.8, 0.1).round(6).tolist()
    [0.651627]
    """
    of_reference = certainty_of_reference(c, reference_threshold, sigma, distribution, df, reference_certainty)
    return certainty(p, threshold, sigma, distribution, df) * of_reference


def certainty_of_reference(
    c: Any, threshold: float, sigma: float, distribution: str | Any, df: float | None, reference_certainty: str
) -> Any:
    """Return A(c) of reference values or booleans (0 or 1); 1 for ``reference_certainty="none"``.

    >>> certainty_of_reference(np.array([True]), 0.8, 0.1, "gaussian", None, "paper").round(6).tolist()
    [0.9545]
    """
    if reference_certainty == "none":
        return 1.0
    if c.dtype.kind != "b":
        return certainty(c, threshold, sigma, distribution, df)
    both = certainty(np.array([0.0, 1.0]), threshold, sigma, distribution, df)
    return both[c.astype(np.int64)]


def reference_level(
    threshold: float,
    reference_threshold: float | None,
    dtype: np.dtype[Any],
    reference_dtype: np.dtype[Any] | None,
) -> float:
    """Return the threshold of the reference, by default that of p; rounded to the dtype of a fuzzy reference.

    dtype: of the stored probabilities; reference_dtype: of a fuzzy reference, None for a hard one.
    """
    level = threshold if reference_threshold is None else reference_threshold
    if reference_dtype is not None:
        return stored_threshold(level, reference_dtype)
    return stored_threshold(level, dtype) if reference_threshold is None else level


def certainty(
    values: Any, threshold: float, sigma: float, distribution: str | Any = "gaussian", df: float | None = None
) -> Any:
    """Return how surely each value is off the threshold: 0 on it, rising to 1; 1 everywhere for sigma = 0.

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
    function = _certainty_function(distribution, df)
    work = partial(_certainty, threshold=float(threshold), sigma=float(sigma), function=function)
    return elementwise(work, values)


def certainty_at(distance: Floats, sigma: Any, function: Function) -> Floats:
    """Return A at distances from the threshold: `function` of distance / sigma, 1 where sigma is 0.

    distance and sigma broadcast. function: A of ``z = |x - t| / sigma``; see `threshold_distributions`.
    """
    return np.where(sigma > 0, np.clip(function(in_sigmas(distance, sigma)), 0.0, 1.0), 1.0)


def in_sigmas(distance: Floats, sigma: Any) -> Floats:
    """Return distances in units of sigma; infinite for a tiny sigma, as they are for sigma 0."""
    with np.errstate(over="ignore"):
        return np.asarray(distance / np.where(sigma > 0, sigma, 1.0))


def damping_factor(uncertainty: Any, damping: float, form: str = "exponential") -> Any:
    """Return the damping factor of each u: 1 at u = 0 and at d = 0, falling as ``u d`` grows.

    0 times infinity counts as 0.

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


_DAMPINGS: dict[str, Function] = {
    "exponential": lambda ud: np.exp(-ud),
    "reciprocal": lambda ud: 1 / (1 + ud),
    "gaussian": lambda ud: np.exp(-np.square(ud)),
}
DAMPING_FORMS = tuple(_DAMPINGS)


def _certainty_function(distribution: str | Any, df: float | None) -> Function:
    """Return A as a function of z = |x - t| / sigma."""
    if isinstance(distribution, str):
        return named_distribution(distribution, df).certainty
    if df is not None:
        raise ValueError("df belongs to the distribution 'student-t'; leave it out for any other")
    if not all(hasattr(distribution, name) for name in ("cdf", "ppf", "pdf")):
        raise ValueError(f"a name or a frozen continuous scipy.stats distribution expected, found {distribution!r}")
    centre = float(distribution.ppf(0.5))
    levels = np.array([0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4])
    low, high = distribution.ppf(levels), distribution.ppf(1 - levels)
    if not np.allclose(centre - low, high - centre, rtol=1e-6, atol=0.0):
        raise ValueError("the threshold's distribution must be symmetric about its median, and this one is not")
    return partial(_frozen_certainty, frozen=distribution, centre=centre)


def _frozen_certainty(z: Floats, frozen: Any, centre: float) -> Any:
    return np.abs(2 * frozen.cdf(centre + z) - 1)


def _certainty(values: NDArray[Any], threshold: float, sigma: float, function: Function) -> Floats:
    x = np.asarray(values, dtype=np.float64)
    if sigma == 0:
        return np.where(np.isnan(x), np.nan, 1.0)
    return certainty_at(np.abs(x - threshold), sigma, function)


def _damped(values: NDArray[Any], damping: float, form: str, refuse: bool) -> Floats:
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


def _unit(values: Any, name: str) -> Any:
    """Return values in [0, 1] as float64: clipped within the storage dtype's tolerance, otherwise refused."""
    work = partial(_clipped, allowed=tolerance(values.dtype), refuse=not is_lazy(values), name=name)
    return elementwise(work, values)


def _clipped(values: NDArray[Any], allowed: float, refuse: bool, name: str) -> Floats:
    x = np.asarray(values, dtype=np.float64)
    beyond = (x < -allowed) | (x > 1 + allowed)
    if beyond.any():
        if refuse:
            worst = x[beyond][int(np.argmax(np.abs(x[beyond] - 0.5)))]
            raise ValueError(f"{name} must lie in [0, 1]; {int(beyond.sum())} values do not, the furthest is {worst:g}")
        x = np.where(beyond, np.nan, x)
    return np.clip(x, 0.0, 1.0)
