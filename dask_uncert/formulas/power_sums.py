"""Sums of a value and its powers as integers: exact, so that small differences of large values keep their digits.

A value x is rounded once, to ``X = rint(x * 2**bits)``. X, X**2 and X**3 are whole numbers, kept as limbs of 22 bits
that are summed apart, as in `fixed_point`. Central moments are differences of such sums, taken in whole numbers and
turned into float64 at the very end: their only error is that of X, half a step of ``2**-bits``, however large the
mean.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dask_uncert.formulas import fixed_point
from dask_uncert.formulas.fixed_point import FRACTION_BITS, LIMB_BITS, LIMB_MASK
from dask_uncert.formulas.typing import Counts, Floats


class Resolution(NamedTuple):
    """Limbs of a value (its k-th power has k times as many), and how many of its bits are after the point."""

    limbs: int
    bits: int

    def width(self, powers: int) -> int:
        """Return how many numbers hold the sums of the first powers; they follow each other, the highest limb first."""
        return self.limbs * powers * (powers + 1) // 2


BOUNDED = Resolution(2, 44)
"""For values in [0, 1]; each is rounded by at most 2**-45 (2.8e-14)."""
WIDE = Resolution(4, 66)
"""For values in [0, 2**20]; each is rounded by at most 2**-67 (6.8e-21)."""


def encode(values: ArrayLike, powers: int, resolution: Resolution = BOUNDED) -> Counts:
    """Return values (...) as the limbs of their first powers, (..., width); a sum over values is a plain sum of these.

    >>> encode([0.5], 2).tolist()
    [[2097152, 0, 1048576, 0, 0, 0]]
    """
    scaled = np.ldexp(np.asarray(values, np.float64), resolution.bits - FRACTION_BITS)
    first = fixed_point.encode(scaled, resolution.limbs)
    parts = [first]
    while len(parts) < powers:
        parts.append(_product(parts[-1], first))
    return np.concatenate(parts, axis=-1)


def total(sums: Counts, resolution: Resolution) -> Floats:
    """Return the sum of the values themselves, (..., width) to (...)."""
    first = _carried(sums[..., : resolution.limbs], 2)
    return np.ldexp(_number(first), -resolution.bits)


def second_moment(n: ArrayLike, sums: Counts, resolution: Resolution) -> Floats:
    """Return ``n sum X**2 - (sum X)**2`` of n (...) values and sums (..., width of 2 powers or more)."""
    (first, second), number = _powers(sums, 2, resolution), _limbs(n)
    return _number(_sum((1, number, second), (-1, first, first)))


def third_moment(n: ArrayLike, sums: Counts, resolution: Resolution) -> Floats:
    """Return ``n**3`` times the third central moment of X, of n (...) values and sums (..., width of 3 powers)."""
    (first, second, third), number = _powers(sums, 3, resolution), _limbs(n)
    once, squared = _product(number, first), _product(first, first)
    return _number(_sum((1, _product(number, number), third), (-3, once, second), (2, squared, first)))


def _powers(sums: Counts, powers: int, resolution: Resolution) -> list[Counts]:
    """Return the sums of each power as limbs below 2**22, two more of them than one value has."""
    ends = [resolution.width(power) for power in range(powers + 1)]
    return [_carried(sums[..., a:b], 2) for a, b in pairwise(ends)]


def _limbs(n: ArrayLike) -> Counts:
    """Return counts (...) as limbs (..., 3)."""
    return _carried(np.asarray(n, np.int64)[..., np.newaxis], 2)


def _carried(limbs: Counts, more: int = 0) -> Counts:
    """Return the same number in limbs of [0, 2**22), with zeros put before it; the highest one has the sign."""
    result = np.concatenate([np.zeros((*limbs.shape[:-1], more), np.int64), limbs], axis=-1)
    for i in range(result.shape[-1] - 1, 0, -1):
        result[..., i - 1] += result[..., i] >> LIMB_BITS
        result[..., i] &= LIMB_MASK
    return result


def _product(a: Counts, b: Counts) -> Counts:
    """Return the product of two numbers whose limbs are in [0, 2**22], in such limbs."""
    m, n = a.shape[-1], b.shape[-1]
    result = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), m + n), np.int64)
    for i in range(m):
        result[..., i + 1 : i + 1 + n] += a[..., i : i + 1] * b
    return _carried(result)


def _sum(*terms: tuple[int, Counts, Counts]) -> Counts:
    """Return the sum of factor * a * b."""
    products = [(factor, _product(a, b)) for factor, a, b in terms]
    width = max(product.shape[-1] for _, product in products) + 1
    shape = np.broadcast_shapes(*(product.shape[:-1] for _, product in products))
    result = np.zeros((*shape, width), np.int64)
    for factor, product in products:
        result[..., width - product.shape[-1] :] += factor * product
    return _carried(result)


def _number(limbs: Counts) -> Floats:
    """Return carried limbs as float64, within a few roundings of the number itself."""
    size = _carried(np.where(limbs[..., :1] < 0, -limbs, limbs))  # of one sign, so that nothing cancels
    weights = 2.0 ** (LIMB_BITS * np.arange(limbs.shape[-1] - 1, -1, -1))
    return np.asarray(np.where(limbs[..., 0] < 0, -1.0, 1.0) * (size * weights).sum(axis=-1))
