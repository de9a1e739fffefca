"""Uncertainty that counts confusion of distant classes for more than confusion of near ones [C23]."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.errors import listed
from dask_uncert.formulas.array_dispatch import named, over_classes
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.entropies import bounded
from dask_uncert.formulas.simplex_maximum import simplex_maximum
from dask_uncert.formulas.typing import Floats


@shared_sections
def homophily_uncertainty(probabilities: Any, distances: ArrayLike, axis: int | str = -1) -> Any:
    """Return an uncertainty in which confusion of distant classes counts for more.

    Exactly 0 where one class has probability 1; 1 at the p that spreads over the most distant classes.

    {Parameters: probabilities}
    distances : array_like
        Class distances H (C, C): symmetric, non-negative, zero diagonal. Their scale does not matter.
    {axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For an H that `check_distances` refuses or of another size, or p beyond the tolerance of `normalise`,
        which gives NaN in lazy arrays.

    Notes
    -----
    ``HU = p'Sp / max q'Sq`` over the simplex, ``S = H * H`` element by element. With all distances equal it
    is the normalised Gini index; permuting classes in p and H alike changes nothing. The maximum is global
    (`simplex_maximum`): exact up to 20 classes; where only a bound is known, the bound divides, so that HU
    never exceeds 1.

    References
    ----------
    [C23] (7)-(8).

    Examples
    --------
    >>> H = [[0, 2, 1], [2, 0, 1], [1, 1, 0]]
    >>> homophily_uncertainty([[1/3, 1/3, 1/3], [0.5, 0.5, 0], [0, 0, 1]], H).round(6).tolist()
    [0.666667, 1.0, 0.0]
    """
    squared = squared_distances(distances)
    function = partial(_sized_values, squared=squared, maximum=homophily_maximum(squared))
    return named(over_classes(function, probabilities, axis), "homophily_uncertainty")


def check_distances(distances: ArrayLike) -> Floats:
    """Return the table H as float64: symmetric to the last bit, finite, non-negative, zero diagonal.

    Formula: ``H[i, j] == H[j, i] >= 0``, ``H[i, i] == 0``, not all 0. Nothing is repaired.
    Shapes: (C, C), C >= 2. Any real dtype to float64. Unit: the user's. Errors: ValueError that names the
    offending entries, counted from 0. Source: [C23] (7); its printed table (10) is refused (.33 and .36).

    >>> check_distances([[0, 0.33], [0.36, 0]])
    Traceback (most recent call last):
    ...
    ValueError: class distances must be symmetric: H[0, 1] = 0.33 but H[1, 0] = 0.36
    """
    table = np.asarray(distances)
    if table.dtype.kind not in "biuf":
        raise ValueError(f"class distances must be numbers, found dtype {table.dtype}")
    h = table.astype(np.float64)
    if h.ndim != 2 or h.shape[0] != h.shape[1] or len(h) < 2:
        raise ValueError(f"class distances must be a square table of at least 2 classes, found shape {h.shape}")
    faults = []
    for wrong, rule in (
        (~np.isfinite(h), "finite"),
        (h < 0, "non-negative"),
        (np.diag(np.diagonal(h) != 0), "zero on the diagonal"),
    ):
        entries = [f"H[{i}, {j}] = {h[i, j]:g}" for i, j in np.argwhere(wrong)]
        if entries:
            faults.append(f"{rule}: {listed(entries, 8)}")
    pairs = [
        f"H[{i}, {j}] = {h[i, j]:.12g} but H[{j}, {i}] = {h[j, i]:.12g}"
        for i, j in np.argwhere(h != h.T)
        if i < j and np.isfinite(h[i, j]) and np.isfinite(h[j, i])
    ]
    if pairs:
        faults.append(f"symmetric: {listed(pairs, 8)}")
    if faults:
        raise ValueError(f"class distances must be {'; '.join(faults)}")
    if not h.any():
        raise ValueError("class distances must not be all 0")
    return h


def squared_distances(distances: ArrayLike) -> Floats:
    """Return ``S = H * H`` of the checked H, scaled by a power of two so that no square over- or underflows.

    >>> squared_distances([[0, 3], [3, 0]]).tolist()
    [[0.0, 0.5625], [0.5625, 0.0]]
    """
    h = check_distances(distances)
    # scaled by ldexp: 2**1074, the reciprocal of the smallest float, is not a float itself
    exponent = int(np.frexp(h.max())[1])
    return np.asarray(np.square(np.ldexp(h, -exponent)))


def homophily_maximum(squared: Floats) -> float:
    """Return the divisor of p'Sp: the global maximum, or its upper bound where only that is certified.

    >>> homophily_maximum(squared_distances([[0, 1], [1, 0]]))
    0.125
    """
    result = simplex_maximum(squared)
    return result.value if result.certificate.kind == "exact" else result.certificate.upper_bound


def homophily_values(p: Floats, squared: Floats, maximum: float, axis: int = -1) -> Floats:
    """Return `homophily_uncertainty` of normalised float64 vectors from S and its maximum, without checks."""
    last = np.moveaxis(p, axis, -1)
    # summed by numpy, not by BLAS: a vector has the same bits whatever its neighbours
    form = np.zeros(last.shape[:-1])
    for i, row in enumerate(squared):
        form += last[..., i] * (last * row).sum(axis=-1)
    return bounded(form / maximum, p, axis)


def _sized_values(p: Floats, squared: Floats, maximum: float, axis: int) -> Floats:
    if p.shape[axis] != len(squared):
        raise ValueError(f"{p.shape[axis]} classes along axis {axis}, but distances between {len(squared)}")
    return homophily_values(p, squared, maximum, axis)
