"""Uncertainty as closeness to the centre of the simplex of probabilities, by a distance of choice [C23]."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dask_uncert.formulas.array_dispatch import named, over_classes
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.entropies import Split, bounded, gini_sum, renyi_values
from dask_uncert.formulas.measures import DISTANCES
from dask_uncert.formulas.typing import Floats

Distance = Callable[[Floats, Floats, int], Any]
"""``d(p, u, axis)``: see `geometric_uncertainty`."""


@shared_sections
def geometric_uncertainty(
    probabilities: Any,
    distance: str | Distance = "euclidean",
    n: int = 2,
    alpha: float | None = None,
    axis: int | str = -1,
) -> Any:
    """Return how close each probability vector is to the uniform one, by a distance of choice.

    1 where all classes are equally probable, exactly 0 where one has probability 1, and between elsewhere.

    {Parameters: probabilities}
    distance : str or callable, default "euclidean"
        - ``"euclidean"``: ``||p - u||``; n=2 is the normalised Gini index.
        - ``"kullback-leibler"``: ``sum p ln(C p)``, 0 ln 0 = 0; n=1 is the normalised Shannon entropy.
        - ``"fisher-rao"``: ``4 arcsin(||sqrt p - sqrt u|| / 2)``, the geodesic on the sphere of sqrt p.
        - ``"renyi"``: divergence of order `alpha` > 0 (within 1e-6 of 1: Kullback-Leibler; inf:
          ``ln(C max p)``).
        - a function ``d(p, u, axis)``: p float64 with the classes along `axis`; u the uniform vector, length
          1 along the other axes; returns distances >= 0 of p's shape without `axis`. It must not depend on
          the order of classes, and is called once more with p the vertex of class 0, to obtain d(e, u), which
          must be finite and positive. For lazy arrays it must be picklable.
    n : int, default 2
        Exponent, 1 or above; the uncertainty grows with it.
    alpha : float, optional
        Order of ``"renyi"``.
    {axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For an unknown distance, n that is not a positive integer, `alpha` missing or not wanted, or p beyond
        the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    ``GU = 1 - (d(p, u) / d(e, u))**n`` with u the uniform vector and e a vertex; it does not change when
    classes are permuted.

    References
    ----------
    [C23] (2)-(5).

    Examples
    --------
    >>> geometric_uncertainty([[0.51, 0.49, 0, 0], [0, 1, 0, 0]]).round(6).tolist()
    [0.6664, 0.0]
    """
    _check(distance, n, alpha)
    function = partial(geometric_values, distance=distance, n=n, alpha=alpha)
    values = over_classes(function, probabilities, axis)
    return named(values, "geometric_uncertainty", distance=distance, n=n, alpha=alpha)


def geometric_values(
    p: Floats, distance: str | Distance = "euclidean", n: int = 2, alpha: float | None = None, axis: int = -1
) -> Floats:
    """Return `geometric_uncertainty` of normalised float64 vectors, without checks.

    >>> geometric_values(np.array([0.5, 0.5]), "fisher-rao").item()
    1.0
    """
    if callable(distance):
        deficit = _deficit_of_function(p, distance, axis)
    elif distance == "renyi":
        deficit = renyi_values(p, 2.0 if alpha is None else alpha, axis)
    else:
        deficit = _DEFICITS[distance](p, axis)
    deficit = np.clip(deficit, 0.0, 1.0)
    if n > 1:
        with np.errstate(divide="ignore"):
            deficit = -np.expm1(n * np.log1p(-deficit))
    return bounded(deficit, p, axis)


def _deficit_of_function(p: Floats, distance: Distance, axis: int) -> Floats:
    """Return 1 - d(p, u) / d(e, u) of a user's distance."""
    shape = [1] * p.ndim
    shape[axis] = classes = p.shape[axis]
    uniform = np.full(shape, 1.0 / classes)
    vertex = np.zeros(shape)
    vertex.flat[0] = 1.0
    furthest = float(np.asarray(distance(vertex, uniform, axis)).item())
    if not (np.isfinite(furthest) and furthest > 0):
        raise ValueError(f"the distance from vertex to centre must be finite and positive, found {furthest}")
    with np.errstate(invalid="ignore"):
        return np.asarray(1.0 - np.asarray(distance(p, uniform, axis), dtype=np.float64) / furthest)


# Each deficit, 1 - d(p, u) / d(e, u), has two forms: from the distance where p is near the centre, and from
# what is left of the way where p is near a vertex. Each keeps all its digits there.


def _euclidean_deficit(p: Floats, axis: int) -> Floats:
    """From ``||p - u||``, and from the Gini index, ``1 - (d / d(e, u))**2``."""
    scale = p.shape[axis] / (p.shape[axis] - 1.0)
    ratio = np.sqrt(scale * np.square(p - 1.0 / p.shape[axis]).sum(axis=axis))
    return np.asarray(np.where(ratio < 0.5, 1.0 - ratio, scale * gini_sum(p, axis) / (1.0 + ratio)))


def _fisher_rao_deficit(p: Floats, axis: int) -> Floats:
    """From ``4 arcsin(||sqrt p - sqrt u|| / 2)``, and from the sine of the angle that is left to the vertex."""
    root = math.sqrt(1.0 / p.shape[axis])
    furthest = math.acos(root)
    chord = np.sqrt(np.square(np.sqrt(p) - root).sum(axis=axis))
    ratio = 2.0 * np.arcsin(np.minimum(chord / 2.0, 1.0)) / furthest
    others, largest, rest = parts = Split.of(p, axis)
    more = root * parts.total(np.sqrt(others), -rest / (1.0 + np.sqrt(largest)), axis)  # cosine, less the vertex's
    cosine = root + more
    sine = math.sqrt(1.0 - root * root) * cosine + root * np.sqrt(np.maximum(1.0 - cosine * cosine, 0.0))
    left = np.arcsin(np.minimum(more * (cosine + root) / sine, 1.0))
    return np.where(ratio < 0.5, 1.0 - ratio, left / furthest)


def _entropy(p: Floats, axis: int) -> Floats:
    """``sum p ln(C p)`` is ln C less the entropy."""
    return renyi_values(p, 1.0, axis)


_DEFICITS: dict[str, Callable[[Floats, int], Floats]] = {
    "euclidean": _euclidean_deficit,
    "kullback-leibler": _entropy,
    "fisher-rao": _fisher_rao_deficit,
}


def _check(distance: str | Distance, n: int, alpha: float | None) -> None:
    if not callable(distance) and distance not in DISTANCES:
        raise ValueError(f"unknown distance {distance!r}; known: {', '.join(DISTANCES)}, or a function d(p, u, axis)")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n must be a positive integer, found {n!r}")
    if alpha is not None and distance != "renyi":
        raise ValueError("alpha is the order of the distance 'renyi'; leave it out for any other")
    if distance == "renyi" and (alpha is None or not alpha > 0):
        raise ValueError(f"the distance 'renyi' needs an order alpha above 0, found {alpha!r}")
