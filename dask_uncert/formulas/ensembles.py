"""Uncertainty from several predictions of one thing: Monte-Carlo dropout, ensembles, or both."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dask_uncert.formulas.array_dispatch import (
    as_array,
    axis_number,
    is_labelled,
    is_lazy,
    named,
    normalise,
    result_dtype,
)
from dask_uncert.formulas.entropies import shannon_nats
from dask_uncert.formulas.typing import Floats


def sample_uncertainty(
    samples: Any, sample_axis: int | str = 0, axis: int | str = -1, normalised: bool = False
) -> dict[str, Any]:
    """Return the uncertainty measures of several predictions of one thing, such as an ensemble's.

    Predictive entropy = expected entropy + mutual information, each >= 0; nothing depends on the order of
    samples.

    Parameters
    ----------
    samples : array_like
        Probability vectors with a sample axis (S >= 1) and a class axis (C >= 2); numpy, dask or xarray.
    sample_axis : int or str, default 0
        Sample axis: a number, or the name of a dimension.
    axis : int or str, default -1
        Class axis.
    normalised : bool, default False
        Whether entropies and information are divided by ln C; otherwise their unit is nats.

    Returns
    -------
    dict of str to array
        ``mean`` and ``variance`` lose the sample axis, the others both. float32 for float32 and float16,
        otherwise float64. Range [0, ln C], or [0, 1]; 0 is best. NaN where any sample has a NaN.

    Raises
    ------
    ValueError
        For axes that are the same, or vectors beyond the tolerance of `normalise` (NaN there for lazy
        arrays).

    Notes
    -----
    Over S samples p of C classes, m their mean: ``mean`` m; ``predictive_entropy`` ``-sum m ln m``;
    ``expected_entropy`` the mean of ``-sum p ln p`` (aleatoric); ``mutual_information`` the mean of ``sum p
    ln(p/m)``, which is their difference (epistemic), never below 0; ``variance`` per class, population;
    ``variation_ratio`` 1 - share of the samples whose most probable class (ties: the lowest) is the
    commonest.

    References
    ----------
    [A22] (4)-(6), whose printed entropies lack the minus.

    Examples
    --------
    >>> measures = sample_uncertainty([[0.9, 0.1], [0.1, 0.9]])
    >>> [round(float(measures[name]), 6) for name in ("expected_entropy", "mutual_information")]
    [0.325083, 0.368064]
    >>> measures["variation_ratio"].item(), measures["variance"].round(2).tolist()
    (0.5, [0.16, 0.16])
    """
    held = samples if is_labelled(samples) else as_array(samples)
    across, along = axis_number(held, sample_axis), axis_number(held, axis)
    if across == along:
        raise ValueError(f"the sample axis and the class axis are the same, number {along}")
    kind, classes = result_dtype(held.dtype), held.shape[along]
    p = normalise(held, along)
    data = p.data if is_labelled(p) else p
    measures: dict[str, Any] = {}
    for name, function in SAMPLE_VALUES.items():
        scale = math.log(classes) if normalised and name in _IN_NATS else 1.0
        removed = (across,) if name in ("mean", "variance") else (across, along)
        work = partial(_work, function=function, across=across, along=along, scale=scale, kind=kind)
        values = _reduce(work, data, removed, kind)
        if is_labelled(held):
            first = {held.dims[number]: 0 for number in removed}
            values = held.isel(first, drop=True).copy(data=values)
        measures[name] = named(values, name, "nat" if name in _IN_NATS and not normalised else "1")
    return measures


def sample_mean(p: Floats, sample_axis: int, axis: int) -> Floats:
    """Return the mean vector of normalised float64 samples."""
    return np.asarray(p.mean(axis=sample_axis))


def predictive_entropy_values(p: Floats, sample_axis: int, axis: int) -> Floats:
    """Return the entropy of the mean vector, in nats."""
    return shannon_nats(p.mean(axis=sample_axis), _left(axis, sample_axis))


def expected_entropy_values(p: Floats, sample_axis: int, axis: int) -> Floats:
    """Return the mean of the samples' entropies, in nats."""
    entropy = shannon_nats(p, axis).mean(axis=_left(sample_axis, axis))
    return np.asarray(np.minimum(entropy, math.log(p.shape[axis])))


def mutual_information_values(p: Floats, sample_axis: int, axis: int) -> Floats:
    """Return the mean divergence of the samples from their mean, in nats; small ones keep their digits."""
    mean = np.broadcast_to(p.mean(axis=sample_axis, keepdims=True), p.shape)
    # a mean of samples that underflows to 0 has nothing to add
    terms = np.where(mean == 0, 0.0, special.kl_div(p, np.where(mean == 0, 1.0, mean)))
    information = terms.sum(axis=axis).mean(axis=_left(sample_axis, axis))
    return np.asarray(np.clip(information, 0.0, math.log(p.shape[axis])) + 0.0)


def sample_variance(p: Floats, sample_axis: int, axis: int) -> Floats:
    """Return the population variance over the samples, per class."""
    return np.asarray(p.var(axis=sample_axis))


def variation_ratio_values(p: Floats, sample_axis: int, axis: int) -> Floats:
    """Return 1 - share of samples that vote for the commonest class; NaN where a sample has a NaN."""
    votes = np.expand_dims(np.argmax(p, axis=axis), axis)
    shape = [1] * p.ndim
    shape[axis] = p.shape[axis]
    counts = (votes == np.arange(p.shape[axis]).reshape(shape)).sum(axis=sample_axis)
    samples = p.shape[sample_axis]
    ratio = (samples - counts.max(axis=_left(axis, sample_axis))) / samples
    return np.asarray(np.where(np.isnan(p).any(axis=(sample_axis, axis)), np.nan, ratio))


SAMPLE_VALUES: dict[str, Callable[[Floats, int, int], Floats]] = {
    "mean": sample_mean,
    "predictive_entropy": predictive_entropy_values,
    "expected_entropy": expected_entropy_values,
    "mutual_information": mutual_information_values,
    "variance": sample_variance,
    "variation_ratio": variation_ratio_values,
}
"""Functions of `sample_uncertainty` on float64 arrays: ``f(p, sample_axis, axis)``, axes counted from 0."""

_IN_NATS = ("predictive_entropy", "expected_entropy", "mutual_information")


def _left(axis: int, removed: int) -> int:
    """Return the number of `axis` once `removed` is removed; both counted from 0."""
    return axis - (removed < axis)


def _work(
    p: Floats,
    function: Callable[[Floats, int, int], Floats],
    across: int,
    along: int,
    scale: float,
    kind: np.dtype[Any],
) -> NDArray[Any]:
    values = function(p, across, along)
    return np.asarray(values if scale == 1.0 else np.minimum(values / scale, 1.0), dtype=kind)


def _reduce(work: Callable[..., Any], p: Any, removed: tuple[int, ...], kind: np.dtype[Any]) -> Any:
    if not is_lazy(p):
        return work(np.asarray(p))[()]
    meta = np.empty((0,) * (p.ndim - len(removed)), dtype=kind)
    whole = dict.fromkeys((work.keywords["across"], work.keywords["along"]), -1)  # type: ignore[attr-defined]
    return p.rechunk(whole).map_blocks(work, dtype=kind, meta=meta, drop_axis=list(removed))
