"""Uncertainty by the largest one or two probabilities of each vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from dask_uncert.formulas.array_dispatch import named, over_classes
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.entropies import Split, bounded
from dask_uncert.formulas.typing import Floats


@shared_sections
def max_probability(probabilities: Any, axis: int | str = -1) -> Any:
    """Return what the most probable class leaves to the others in each probability vector, ``1 - max p``.

    Exactly 0 where one class has probability 1; 1 - 1/C, the largest value, at the uniform vector.

    {Parameters: probabilities, axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For p beyond the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    The sum of the other classes, so that small values keep their digits. Also called least confidence.

    References
    ----------
    Hendrycks and Gimpel, ICLR 2017 (the maximum softmax probability).

    Examples
    --------
    >>> max_probability([0.5, 0.25, 0.25]).item()
    0.5
    """
    return named(over_classes(max_probability_values, probabilities, axis), "max_probability")


@shared_sections
def margin(probabilities: Any, axis: int | str = -1) -> Any:
    """Return how close the two most probable classes are in each probability vector, ``1 - (p1 - p2)``.

    Exactly 0 where one class has probability 1; 1 where the two largest are equal, whatever the others are.

    {Parameters: probabilities, axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For p beyond the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    The sum of all classes but the first, plus the second largest, so that small values keep their digits.

    References
    ----------
    Scheffer, Decomain and Wrobel, IDA 2001 (margin sampling).

    Examples
    --------
    >>> margin([0.5, 0.25, 0.25]).item()
    0.75
    """
    return named(over_classes(margin_values, probabilities, axis), "margin")


def max_probability_values(p: Floats, axis: int = -1) -> Floats:
    """Return `max_probability` of normalised float64 vectors, without checks."""
    return bounded(Split.of(p, axis).rest.squeeze(axis), p, axis)


def margin_values(p: Floats, axis: int = -1) -> Floats:
    """Return `margin` of normalised float64 vectors, without checks."""
    parts = Split.of(p, axis)
    return bounded(np.asarray(parts.rest.squeeze(axis) + parts.others.max(axis=axis)), p, axis)
