"""Values of any measure of the table, for the pass over a block."""

from __future__ import annotations

from dask_uncert.formulas.entropies import renyi_values, t_entropy_values, tsallis_values, variance_values
from dask_uncert.formulas.homophily import homophily_maximum, homophily_values, squared_distances
from dask_uncert.formulas.measures import Measure
from dask_uncert.formulas.simplex_distances import geometric_values
from dask_uncert.formulas.top_probabilities import margin_values, max_probability_values
from dask_uncert.formulas.typing import Floats


def measure_values(measure: Measure, p: Floats, axis: int = -1, maximum: float | None = None) -> Floats:
    """Return the values of a measure: in [0, 1], 0.0 where a class has probability 1, NaN where p has a NaN.

    `p` (..., C, ...) is float64 and already normalised; nothing is checked. `maximum`: for homophily
    `measure_maximum(measure)`, so that many blocks share one search; without it the search is done here.

    Errors: ValueError for kinds that are not of one probability vector, or homophily without distances.

    >>> import numpy as np
    >>> from dask_uncert.formulas.measures import MEASURES
    >>> measure_values(MEASURES["variance"], np.array([0.5, 0.25, 0.25])).item()
    1.0
    """
    if measure.kind == "geometric":
        return geometric_values(p, measure.distance or "euclidean", measure.n or 2, measure.alpha, axis)
    if measure.kind == "renyi":
        return renyi_values(p, 2.0 if measure.alpha is None else measure.alpha, axis)
    if measure.kind == "tsallis":
        return tsallis_values(p, 1.5 if measure.alpha is None else measure.alpha, axis)
    if measure.kind == "t_entropy":
        return t_entropy_values(p, axis)
    if measure.kind == "variance":
        return variance_values(p, axis)
    if measure.kind == "max_probability":
        return max_probability_values(p, axis)
    if measure.kind == "margin":
        return margin_values(p, axis)
    if measure.kind == "homophily":
        squared = _squared(measure)
        return homophily_values(p, squared, homophily_maximum(squared) if maximum is None else maximum, axis)
    raise ValueError(f"measure {measure.name!r} is not one of a single probability vector")


def measure_maximum(measure: Measure) -> float | None:
    """Return `maximum` for `measure_values`: homophily's divisor, None for every other kind.

    >>> measure_maximum(Measure("homophily", "homophily", distances=((0.0, 1.0), (1.0, 0.0))))
    0.125
    """
    return homophily_maximum(_squared(measure)) if measure.kind == "homophily" else None


def _squared(measure: Measure) -> Floats:
    if measure.distances is None:
        raise ValueError(f"measure {measure.name!r} has no class distances yet")
    return squared_distances(measure.distances)
