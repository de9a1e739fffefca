"""Entropies and other summaries of one probability vector, scaled to [0, 1], as compared in [C23]."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dask_uncert.formulas.array_dispatch import as_array, is_labelled, named, over_classes
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.typing import Counts, Floats

POLE = 1e-6
"""Orders alpha this close to 1 are taken as 1 (Shannon)."""


@shared_sections
def renyi_entropy(probabilities: Any, alpha: float = 2.0, axis: int | str = -1, normalised: bool = True) -> Any:
    """Return the Rényi entropy of each probability vector.

    1 at the uniform vector, exactly 0 where one class has probability 1; does not grow with alpha.

    {Parameters: probabilities}
    alpha : float, default 2
        Order, above 0. Within 1e-6 of 1: Shannon entropy; infinite: ``-ln max p``, the min-entropy.
    {axis}
    normalised : bool, default True
        Whether to divide by ln C; otherwise the unit is nats.

    Returns
    -------
    array
        The shape of the input without `axis`; float32 for float32 and float16, otherwise float64. Range
        [0, 1], or [0, ln C] in nats; 0 is best (certain). NaN where p has a NaN.

    Raises
    ------
    ValueError
        For alpha <= 0 or p beyond the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    ``ln(sum p**alpha) / (1 - alpha)``.

    {References: entropies of [C23]}

    Examples
    --------
    >>> renyi_entropy([0.51, 0.49, 0, 0]).round(6).item()
    0.499712
    >>> renyi_entropy([0.5, 0.25, 0.25], alpha=np.inf, normalised=False).round(10).item()
    0.6931471806
    """
    _check_order(alpha)
    entropy = over_classes(partial(renyi_values, alpha=alpha, normalised=normalised), probabilities, axis)
    return named(entropy, "renyi_entropy", "1" if normalised else "nat", alpha=alpha)


@shared_sections
def tsallis_entropy(probabilities: Any, alpha: float = 1.5, axis: int | str = -1) -> Any:
    """Return the Tsallis entropy of each probability vector.

    1 at the uniform vector, exactly 0 where one class has probability 1.

    {Parameters: probabilities}
    alpha : float, default 1.5
        Order, above 0 and finite.
    {axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For alpha <= 0 or infinite, or p beyond the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    ``(1 - sum p**alpha) / (1 - C**(1 - alpha))``; alpha within 1e-6 of 1 is the limit there, the normalised
    Shannon entropy.

    {References: entropies of [C23]}

    Examples
    --------
    >>> tsallis_entropy([0.51, 0.49, 0, 0]).round(6).item()
    0.585574
    """
    _check_order(alpha)
    if math.isinf(alpha):
        raise ValueError("alpha of the Tsallis entropy must be finite")
    return named(
        over_classes(partial(tsallis_values, alpha=alpha), probabilities, axis), "tsallis_entropy", alpha=alpha
    )


@shared_sections
def t_entropy(probabilities: Any, axis: int | str = -1) -> Any:
    """Return the t-entropy of each probability vector.

    1 at the uniform vector, exactly 0 where one class has probability 1.

    {Parameters: probabilities, axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For p beyond the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    ``(sum p arctan(1 / p) - pi/4) / (arctan C - pi/4)``, where p = 0 adds 0.

    {References: entropies of [C23]}

    Examples
    --------
    >>> t_entropy([0.51, 0.49, 0, 0]).round(6).item()
    0.595135
    """
    return named(over_classes(t_entropy_values, probabilities, axis), "t_entropy")


@shared_sections
def binary_variance(probabilities: Any, axis: int | str = -1) -> Any:
    """Return the variance of "most probable class or not" for each probability vector, scaled to [0, 1].

    Depends on the largest probability m alone; exactly 0 at m = 1, 1 at m = 1/2.

    {Parameters: probabilities, axis}

    {Returns: uncertainty}

    Raises
    ------
    ValueError
        For p beyond the tolerance of `normalise`, which gives NaN in lazy arrays.

    Notes
    -----
    ``4 m (1 - m)``. At the uniform vector it is ``4 (C - 1) / C**2`` (.75 for four classes), so for C > 2 it
    does not peak at the centre.

    {References: entropies of [C23]}

    Examples
    --------
    >>> binary_variance([0.51, 0.19, 0.15, 0.15]).round(6).item()
    0.9996
    """
    return named(over_classes(variance_values, probabilities, axis), "binary_variance")


@shared_sections
def confused_classes(probabilities: Any, axis: int | str = -1) -> Any:
    """Return the number of classes that are more probable than chance in each probability vector.

    0 only at the uniform vector, at most C - 1.

    {Parameters: probabilities, axis}

    Returns
    -------
    array
        int64, the shape of the input without `axis`. 1 is best (one candidate). Where p has a NaN the count
        is 0, which no other vector but the uniform has.

    Raises
    ------
    ValueError
        For p beyond the tolerance of `normalise`, which gives 0 in lazy arrays.

    Notes
    -----
    The number of ``p > 1 / C``. A p above 1/C by no more than 4 epsilon of its storage dtype, relative,
    counts as equal to it: the rounding of storage and of the division by the sum may add so much.

    References
    ----------
    [C23] IV.

    Examples
    --------
    >>> confused_classes([[0.35, 0.25, 0.25, 0.15], [0.51, 0.49, 0, 0]]).tolist()
    [1, 2]
    """
    held = probabilities if is_labelled(probabilities) else as_array(probabilities)
    count = partial(confused_values, margin=storage_margin(held.dtype))
    return named(over_classes(count, held, axis, dtype=np.dtype(np.int64)), "confused_classes")


def storage_margin(dtype: Any) -> float:
    """Return 4 epsilon of a floating storage dtype (of float64 for integers): the rounding of p = 1/C."""
    kind = np.dtype(dtype)
    return float(4 * np.finfo(kind if kind.kind == "f" else np.float64).eps)


def bounded(values: NDArray[Any], p: Floats, axis: int, top: float = 1.0) -> Floats:
    """Return values in [0, top], exactly 0.0 (not -0.0) where a class has probability 1; NaN stays."""
    within = np.clip(values, 0.0, top) + 0.0
    vertex = (p.max(axis=axis) == 1.0) & ((p > 0).sum(axis=axis) == 1)
    return np.asarray(np.where(vertex, 0.0, within))


class Split(NamedTuple):
    """Probability vectors in parts, so that what is left near a vertex keeps its digits.

    others: p with 0 for the largest (the first, of equal ones). largest, rest: along `axis` of length 1; the rest is
    the sum of the others, where ``1 - largest`` would be rounding.
    """

    others: Floats
    largest: Floats
    rest: Floats

    @classmethod
    def of(cls, p: Floats, axis: int) -> Split:
        """Return the parts of normalised vectors."""
        place = np.expand_dims(p.argmax(axis=axis), axis)
        others = p.copy()
        np.put_along_axis(others, place, 0.0, axis=axis)
        return cls(others, np.take_along_axis(p, place, axis=axis), others.sum(axis=axis, keepdims=True))

    @property
    def log(self) -> Floats:
        """Logarithm of the largest."""
        with np.errstate(divide="ignore"):
            return np.where(self.rest < 0.5, np.log1p(-self.rest), np.log(self.largest))

    def total(self, of_others: Floats, of_largest: Floats, axis: int) -> Floats:
        """Return the sum over the classes of what was computed for the others and for the largest."""
        return np.asarray(of_others.sum(axis=axis) + of_largest.squeeze(axis))


def shannon_nats(p: Floats, axis: int = -1) -> Floats:
    """Return ``-sum p ln p`` of normalised vectors, 0 ln 0 = 0, in nats; exactly 0.0 at a vertex."""
    parts = Split.of(p, axis)
    entropy = parts.total(special.entr(parts.others), -parts.largest * parts.log, axis)
    return bounded(entropy, p, axis, top=math.log(p.shape[axis]))


def gini_sum(p: Floats, axis: int) -> Floats:
    """Return ``1 - sum p**2`` of normalised vectors, as ``sum p (1 - p)``."""
    parts = Split.of(p, axis)
    return parts.total(parts.others * (1 - parts.others), parts.largest * parts.rest, axis)


def renyi_nats(p: Floats, alpha: float, axis: int = -1) -> Floats:
    """Return the Rényi entropy of normalised vectors in nats, in [0, ln C]."""
    top = math.log(p.shape[axis])
    if abs(alpha - 1) <= POLE:
        return shannon_nats(p, axis)
    parts = Split.of(p, axis)
    log = parts.log.squeeze(axis)
    if math.isinf(alpha):
        entropy = -log
    elif abs(alpha - 1) < 0.5:
        # near the pole sum p**alpha is 1 + little, and dividing by 1 - alpha would blow up its rounding
        entropy = np.log1p(_power_excess(p, alpha, axis)) / (1 - alpha)
    else:
        # relative to the largest, so that high orders do not underflow
        scaled = np.power(parts.others / parts.largest, alpha).sum(axis=axis)
        entropy = (alpha * log + np.log1p(scaled)) / (1 - alpha)
    return bounded(entropy, p, axis, top=top)


def renyi_values(p: Floats, alpha: float = 2.0, axis: int = -1, normalised: bool = True) -> Floats:
    """Return `renyi_entropy` of normalised float64 vectors, without checks."""
    nats = renyi_nats(p, alpha, axis)
    return np.asarray(np.minimum(nats / math.log(p.shape[axis]), 1.0)) if normalised else nats


def tsallis_values(p: Floats, alpha: float = 1.5, axis: int = -1) -> Floats:
    """Return `tsallis_entropy` of normalised float64 vectors, without checks."""
    classes = p.shape[axis]
    if abs(alpha - 1) <= POLE:
        return renyi_values(p, 1.0, axis)
    scale = np.expm1((1 - alpha) * math.log(classes))
    return bounded(_power_excess(p, alpha, axis) / scale, p, axis)


def t_entropy_values(p: Floats, axis: int = -1) -> Floats:
    """Return `t_entropy` of normalised float64 vectors, without checks."""
    # arctan(1/p) - pi/4 = arctan((1 - p) / (1 + p)) needs no case for p = 0, and nothing cancels
    others, largest, rest = parts = Split.of(p, axis)
    terms = others * np.arctan((1 - others) / (1 + others)), largest * np.arctan(rest / (1 + largest))
    entropy = parts.total(*terms, axis)
    return bounded(entropy / (math.atan(p.shape[axis]) - np.pi / 4), p, axis)


def variance_values(p: Floats, axis: int = -1) -> Floats:
    """Return `binary_variance` of normalised float64 vectors, without checks."""
    parts = Split.of(p, axis)
    return bounded((4 * parts.largest * parts.rest).squeeze(axis), p, axis)


def confused_values(p: Floats, axis: int = -1, margin: float = storage_margin(np.float64)) -> Counts:
    """Return `confused_classes` of normalised float64 vectors; margin: `storage_margin` as stored."""
    return np.asarray((p * p.shape[axis] > 1.0 + margin).sum(axis=axis, dtype=np.int64))


def _power_excess(p: Floats, alpha: float, axis: int) -> Floats:
    """Return ``sum p**alpha - 1`` for vectors of sum 1, without the cancellation near alpha = 1 and near a vertex."""
    others, largest, _ = parts = Split.of(p, axis)
    of_largest = largest * np.expm1((alpha - 1) * parts.log)
    if abs(alpha - 1) < 0.5:
        logs = np.log(np.where(others > 0, others, 1.0))
        return parts.total(others * np.expm1((alpha - 1) * logs), of_largest, axis)
    return parts.total(np.power(others, alpha) - others, of_largest, axis)


def _check_order(alpha: float) -> None:
    if not alpha > 0:
        raise ValueError(f"alpha must be above 0, found {alpha!r}")
