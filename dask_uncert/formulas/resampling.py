"""Random draws keyed by names: bootstrap weights and swaps of units, and weighted sums and means.

A draw depends only on the seed, the set of the units' names and its own number. Hence the order of the units
permutes columns and changes no number; replicates may be computed separately, in any order; a unit removed
and added again changes nothing; two models over the same names are resampled alike, and cohorts of other
names independently, even if they differ by one unit only. All is integer arithmetic on Philox4x64-10 (Salmon
et al., SC 2011) under a key that is BLAKE2b of seed and names: the same integers on every platform.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Bools, Counts, Floats

EXACT = 2**53  # below it float64 holds every integer, so a product of matrices is exact in any order
HALF_BITS = 26
STEP = 1 << 21  # 64-bit words drawn at a time


def bootstrap_weights(names: Sequence[str], replicates: range, seed: int = 0) -> Counts:
    """Return how often each unit is drawn in n draws with replacement: names (n) to (replicates, n), int64.

    Multinomial: draw j of replicate b takes the unit of rank ``floor(n r / 2**64)`` among the sorted names, r
    the j-th 64-bit word of stream b; every row sums to n. A share of at most ``n / 2**64`` is uneven. Raises
    ValueError for a name that occurs twice, a negative seed, and numbers of replicates with gaps. Efron,
    Annals of Statistics 7, 1979.

    >>> weights = bootstrap_weights(["ann", "bob", "cid"], range(2))
    >>> weights.sum(axis=1).tolist()
    [3, 3]
    >>> bool((bootstrap_weights(["cid", "ann", "bob"], range(1, 2)) == weights[1:, [2, 0, 1]]).all())
    True
    """
    columns, key = _columns(names), _key("bootstrap", names, seed)
    n = len(columns)
    weights = np.empty((len(replicates), n), np.int64)
    rows = max(1, STEP // max(n, 1))
    for start in range(0, len(replicates), rows):
        words = _streams(key, replicates[start : start + rows], n)
        # floor(n r / 2**64) by halves of r: no product passes 64 bits for n below 2**32.
        low = (words & np.uint64(2**32 - 1)) * np.uint64(n) >> np.uint64(32)
        ranks = (((words >> np.uint64(32)) * np.uint64(n) + low) >> np.uint64(32)).astype(np.int64)
        ranks += np.arange(len(ranks))[:, None] * n
        drawn = np.bincount(ranks.ravel(), minlength=ranks.size).reshape(ranks.shape)
        weights[start : start + rows] = drawn[:, columns]
    return weights


def swaps(names: Sequence[str], permutations: range, seed: int = 0) -> Bools:
    """Return which units change sides, each with chance 1/2: names (n) to (permutations, n).

    Bit i, from the lowest, of stream b is of the unit of rank i among the sorted names. Errors as for
    `bootstrap_weights`.

    >>> swaps(["ann", "bob", "cid"], range(2)).shape
    (2, 3)
    """
    columns, key = _columns(names), _key("swaps", names, seed)
    octets = _streams(key, permutations, -(-len(columns) // 64)).astype("<u8").view(np.uint8)
    bits = np.unpackbits(octets, axis=1, count=len(columns), bitorder="little")
    return np.asarray(bits[:, columns], np.bool_)


def all_swaps(names: Sequence[str]) -> Bools:
    """Return every way to swap n units of which the first, by name, stays: names (n) to (2**(n-1), n).

    Swapping all the others as well only turns the sign of a difference, so these are enough; the first row
    swaps none. Raises ValueError for names that occur twice, and for more than 20.

    >>> all_swaps(["bob", "ann", "cid"]).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]]
    """
    columns = _columns(names)
    if not 1 <= len(columns) <= 20:
        raise ValueError(f"all swaps are listed for 1 to 20 units, found {len(columns)}")
    numbers = np.arange(2 ** (len(columns) - 1))[:, None] << 1
    return np.asarray((numbers >> columns) & 1, np.bool_)


def weighted_sums(weights: ArrayLike, counts: Counts) -> Counts:
    """``sum_i w_bi x_i`` in exact integers: weights (B, n) and counts (n, ...) to (B, ...), int64.

    Products of float64 matrices wherever no sum of magnitudes reaches 2**53: each of their terms and partial
    sums is then an integer that float64 holds. Larger counts are split into halves of 26 bits. Raises
    OverflowError where a sum may pass 64 bits.

    >>> weighted_sums([[2, 0], [1, 1]], np.array([[3, 2**60], [5, 1]])).tolist()
    [[6, 2305843009213693952], [8, 1152921504606846977]]
    """
    w, x = np.asarray(weights, np.int64), np.asarray(counts, np.int64)
    flat = x.reshape(len(x), -1)
    largest = max(int(np.abs(w).max(initial=0)), 1)
    widest = int(np.abs(flat).max(initial=0))
    row = int(np.abs(w).sum(axis=1).max(initial=0))
    if row * widest < EXACT or largest * _largest_sum(flat) < EXACT:
        sums = (w.astype(np.float64) @ flat.astype(np.float64)).astype(np.int64)
    elif row * widest >= 2**63:
        raise OverflowError("weighted sums of these counts may pass 64 bits; keep these Summaries apart")
    else:
        high = flat >> HALF_BITS
        sums = (weighted_sums(w, high) << HALF_BITS) + weighted_sums(w, flat - (high << HALF_BITS))
    return sums.reshape(len(w), *x.shape[1:])


def left_out(counts: Counts) -> Counts:
    """The sum of all units but one, for each: (n, ...) to (n, ...).

    >>> left_out(np.array([1, 10, 100])).tolist()
    [110, 101, 11]
    """
    return np.asarray(counts.sum(axis=0) - counts)


def weighted_means(weights: ArrayLike, values: ArrayLike) -> Floats:
    """``sum_i w_bi x_i / sum_i w_bi`` over the units where x is defined: (B, n) and (n, ...) to (B, ...).

    NaN where no unit with a weight is defined; infinite where one of those is (NaN for both infinities).

    >>> weighted_means([[1, 1, 1], [0, 2, 0]], [0.25, np.nan, 0.75]).tolist()
    [0.5, nan]
    """
    w, x = np.asarray(weights, np.float64), np.asarray(values, np.float64)
    flat = x.reshape(len(x), -1)
    finite = np.isfinite(flat)
    mean = ratio(w @ np.where(finite, flat, 0.0), w @ ~np.isnan(flat))
    if not finite.all():
        up, down = (w @ (flat == end) > 0 for end in (np.inf, -np.inf))
        mean[up & ~down], mean[down & ~up], mean[up & down] = np.inf, -np.inf, np.nan
    return mean.reshape(len(w), *x.shape[1:])


def left_out_means(values: ArrayLike) -> Floats:
    """The mean of all defined units but one, for each: (n, ...) to (n, ...); NaN where none is left.

    Leaving out a unit that is undefined changes nothing.

    >>> left_out_means([1.0, np.nan, 3.0]).tolist()
    [3.0, 2.0, 1.0]
    """
    x = np.asarray(values, np.float64)
    defined, finite = ~np.isnan(x), np.isfinite(x)
    known = np.where(finite, x, 0.0)
    mean = ratio(known.sum(axis=0) - known, defined.sum(axis=0) - defined)
    up, down = ((x == end).sum(axis=0) - (x == end) > 0 for end in (np.inf, -np.inf))
    return np.where(up & down, np.nan, np.where(up, np.inf, np.where(down, -np.inf, mean)))


def _largest_sum(flat: Counts) -> int:
    """Return a bound on ``sum_i |x_i|`` of any column as a Python integer; float64 rounded up is enough."""
    total = np.abs(flat).sum(axis=0, dtype=np.float64).max(initial=0.0)
    return int(total * (1 + 2.0**-30)) + 1


def _columns(names: Sequence[str]) -> Counts:
    """Return the rank of each name among all, sorted by code points."""
    order = sorted(range(len(names)), key=names.__getitem__)
    for i, j in pairwise(order):
        if names[i] == names[j]:
            raise ValueError(f"the unit {names[i]!r} occurs twice")
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(names))
    return ranks


def _key(purpose: str, names: Sequence[str], seed: int) -> int:
    if seed < 0:
        raise ValueError(f"a seed is 0 or above, found {seed}")
    digest = hashlib.blake2b(digest_size=16)
    for text in (purpose, str(seed), *sorted(names)):
        octets = text.encode("utf-8", "surrogatepass")
        digest.update(len(octets).to_bytes(8, "little") + octets)
    return int.from_bytes(digest.digest(), "little")


def _streams(key: int, numbers: range, words: int) -> NDArray[np.uint64]:
    """Return the words of neighbouring streams, (numbers, words); each has its own block of the counter."""
    if numbers.step != 1 or numbers.start < 0:
        raise ValueError(f"replicates are numbered 0, 1, 2, ... without gaps, found {numbers}")
    blocks = -(-words // 4)
    generator = np.random.Philox(counter=numbers.start * blocks, key=key)
    drawn = np.asarray(generator.random_raw(len(numbers) * blocks * 4), np.uint64)
    return drawn.reshape(len(numbers), blocks * 4)[:, :words]
