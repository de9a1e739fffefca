"""Uncertainty as closeness to the centre of the simplex of probabilities, by a distance of choice [C23]."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from dask_uncert.formulas.array_dispatch import over_classes
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.entropies import bounded, renyi_nats
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
    return over_classes(partial(geometric_values, distance=distance, n=n, alpha=alpha), probabilities, axis)


def geometric_values(
    p: Floats, distance: str | Distance = "euclidean", n: int = 2, alpha: float | None = None, axis: int = -1
) -> Floats:
    """Return `geometric_uncertainty` of normalised float64 vectors, without checks.

    >>> geometric_values(np.array([0.5, 0.5]), "fisher-rao").item()
    1.0
    """
    shape = [1] * p.ndim
    shape[axis] = classes = p.shape[axis]
    uniform = np.full(shape, 1.0 / classes)
    vertex = np.zeros(shape)
    vertex.flat[0] = 1.0
    if callable(distance):
        function = distance
    elif distance == "renyi":
        function = partial(renyi_divergence, alpha=2.0 if alpha is None else alpha)
    else:
        function = _DISTANCES[distance]
    furthest = float(np.asarray(function(vertex, uniform, axis)).item())
    if not (np.isfinite(furthest) and furthest > 0):
        raise ValueError(f"the distance from vertex to centre must be finite and positive, found {furthest}")
    with np.errstate(invalid="ignore"):
        ratio = np.clip(np.asarray(function(p, uniform, axis), dtype=np.float64) / furthest, 0.0, 1.0)
    return bounded(1.0 - ratio**n, p, axis)


def euclidean(p: Floats, u: Floats, axis: int) -> Floats:
    """Return ``||p - u||`` along `axis`."""
    return np.asarray(np.sqrt(np.square(p - u).sum(axis=axis)))


def kullback_leibler(p: Floats, u: Floats, axis: int) -> Floats:
    """Return ``sum p ln(p / u)`` along `axis`, from terms ``p ln(p / u) - p + u``, 0 where p = u."""
    return np.asarray(special.kl_div(p, u).sum(axis=axis))


def fisher_rao(p: Floats, u: Floats, axis: int) -> Floats:
    """Return ``2 arccos(sum sqrt(p u))`` along `axis`, in the chord form that keeps its digits near p = u."""
    chord = np.sqrt(np.square(np.sqrt(p) - np.sqrt(u)).sum(axis=axis))
    return np.asarray(4.0 * np.arcsin(np.minimum(chord / 2.0, 1.0)))


def renyi_divergence(p: Floats, u: Floats, axis: int, alpha: float) -> Floats:
    """Return the Rényi divergence of order `alpha` from the uniform vector: ln C less the Rényi entropy."""
    return np.asarray(np.log(u.size) - renyi_nats(p, alpha, axis))


_DISTANCES: dict[str, Distance] = {
    "euclidean": euclidean,
    "kullback-leibler": kullback_leibler,
    "fisher-rao": fisher_rao,
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
