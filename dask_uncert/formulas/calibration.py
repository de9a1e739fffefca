"""Whether stated probabilities come true, from counts per bin.

Inputs of classification are, per bin of the stated probability, shape (..., M): ``n`` items, ``hits`` that
came true, and ``sums`` of the stated probabilities in fixed point, (..., M, 2). Bins are right-closed, the
first also holds its left edge; empty bins count 0 and show as NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtr

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.typing import Counts, Floats


class Reliability(NamedTuple):
    """A reliability diagram: mean stated ``confidence`` and observed ``accuracy`` of each bin."""

    confidence: Floats
    accuracy: Floats


def reliability(n: ArrayLike, hits: ArrayLike, sums: Counts) -> Reliability:
    """Mean stated probability and share that came true, (..., M) and sums (..., M, 2) to two of (..., M).

    ``sum p / n`` and ``hits / n``; range [0, 1], calibrated where equal, NaN in empty bins. [A22] (11), (12)

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> [part.tolist() for part in reliability([0, 2], [0, 1], encode([0.0, 1.5]))]
    [[nan, 0.75], [nan, 0.5]]
    """
    return Reliability(ratio(decode(sums), n), ratio(hits, n))


def expected_calibration_error(n: ArrayLike, hits: ArrayLike, sums: Counts) -> Floats:
    """ECE: ``sum_m n_m / N |accuracy_m - confidence_m|``, (..., M) and sums (..., M, 2) to (...).

    Range [0, 1], best 0; NaN without items. [A22] (13), [J22] (49)

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> float(expected_calibration_error([40_000_000], [30_000_000], encode([0.5]) * 76_000_000))
    0.2
    """
    gaps = np.abs(np.asarray(hits) - decode(sums))
    return ratio(gaps.sum(axis=-1), np.asarray(n).sum(axis=-1))


def maximum_calibration_error(n: ArrayLike, hits: ArrayLike, sums: Counts) -> Floats:
    """MCE: largest ``|accuracy_m - confidence_m|`` of the bins with items, (..., M) to (...).

    Range [0, 1], best 0; NaN without items. Guo et al., ICML 2017.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> float(maximum_calibration_error([3, 0, 1], [3, 0, 0], encode([2.5, 0.0, 0.75])))
    0.75
    """
    confidence, observed = reliability(n, hits, sums)
    # -1 means "no items": nanmax of NaN alone warns.
    largest = np.where(np.isnan(observed), -1.0, np.abs(observed - confidence)).max(axis=-1)
    return np.where(largest < 0, np.nan, largest)


def classwise_calibration_error(n: ArrayLike, positives: ArrayLike, sums: Counts) -> Floats:
    """Classwise ECE: mean over classes of the ECE of "is it class c?", (..., C, M) to (...).

    ``n`` counts every item once a class, in the bin of that class's probability; ``positives`` those of
    that class. Range [0, 1], best 0; NaN without items. Kull et al., NeurIPS 2019.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> n, positives = [[0, 2], [2, 0]], [[0, 1], [1, 0]]
    >>> float(classwise_calibration_error(n, positives, encode([[0.0, 1.5], [0.5, 0.0]])))
    0.25
    """
    return np.asarray(expected_calibration_error(n, positives, sums).mean(axis=-1))


def equal_mass_groups(n: ArrayLike, groups: int) -> Counts:
    """Return the group of about equal mass that each fine bin joins, (..., B) to (..., B) in 0..M-1.

    A fine bin is never cut; it joins the group that holds the middle of its mass,
    ``floor(M (items before it + n_b / 2) / N)``, in integers. Hence neighbours stay neighbours, groups are
    equal where every item has its own bin and M divides N, and a bin heavier than N / M leaves others empty.

    >>> equal_mass_groups([1, 1, 1, 1, 4], 2).tolist()
    [0, 0, 0, 0, 1]
    """
    if groups < 1:
        raise ValueError(f"the number of groups is at least 1, found {groups}")
    counts = np.asarray(n, np.int64)
    upto = np.cumsum(counts, axis=-1)
    total = np.maximum(upto[..., -1:], 1)
    middle = (2 * upto - counts) * groups // (2 * total)
    return np.asarray(np.minimum(middle, groups - 1))  # an empty bin behind all mass joins the last


def equal_mass_bins(n: ArrayLike, hits: ArrayLike, sums: Counts, groups: int) -> tuple[Counts, Counts, Counts]:
    """Return fine bins (..., B) merged into ``groups`` bins of about equal mass, by ``equal_mass_groups``.

    Returns n and hits (..., M) and sums (..., M, 2), for ``reliability`` and the calibration errors.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> equal_mass_bins([1, 1, 2], [0, 1, 2], encode([0.25, 0.5, 1.5]), 2)[1].tolist()
    [1, 2]
    """
    group = equal_mass_groups(n, groups)

    def merge(counts: ArrayLike) -> Counts:
        return np.stack([np.where(group == g, counts, 0).sum(axis=-1) for g in range(groups)], axis=-1)

    return merge(n), merge(hits), np.stack([merge(sums[..., 0]), merge(sums[..., 1])], axis=-1)


def equal_mass_calibration_error(n: ArrayLike, hits: ArrayLike, sums: Counts, groups: int) -> Floats:
    """ECE over ``groups`` bins of about equal mass, merged from fine bins: (..., B) to (...).

    The rule of merging is that of ``equal_mass_groups``. Range [0, 1], best 0; NaN without items.
    Nguyen and O'Connor, EMNLP 2015.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> float(equal_mass_calibration_error([1, 1, 2], [0, 1, 2], encode([0.25, 0.5, 1.5]), 2))
    0.1875
    """
    return expected_calibration_error(*equal_mass_bins(n, hits, sums, groups))


def equal_mass_bound(n: ArrayLike, hits: ArrayLike, edges: ArrayLike, groups: int) -> Floats:
    """How far ``equal_mass_calibration_error`` may be off that of groups cut between items: (..., B) to (...).

    There, the item of rank r of N, by rising probability, is in group ``floor(r groups / N)``. An item that its fine bin
    puts elsewhere changes two groups, by ``|hit - p| / N`` each at most; p lies in its bin. edges: (B + 1,). NaN without
    items.

    >>> float(equal_mass_bound([1, 1, 2], [0, 1, 2], [0, 0.25, 0.5, 1], 2)), float(equal_mass_bound([1, 3], [0, 3], [0, 0.5, 1], 2))
    (0.0, 0.5)
    """
    counts, true, ends = np.asarray(n, np.int64), np.asarray(hits, np.int64), np.asarray(edges, np.float64)
    upto, place = np.cumsum(counts, axis=-1), equal_mass_groups(counts, groups)
    total = upto[..., -1:]
    first, after = -(-place * total // groups), -(-(place + 1) * total // groups)  # ranks of the group
    stay = np.clip(np.minimum(upto, after) - np.maximum(upto - counts, first), 0, None)
    miss, hit = ends[1:], 1.0 - ends[:-1]  # the most that |hit - p| can be
    most = np.minimum((counts - stay) * np.maximum(miss, hit), (counts - true) * miss + true * hit)
    return ratio(2.0 * most.sum(axis=-1), total[..., 0])


class SquaredCalibrationError(NamedTuple):
    """The squared error of binned probabilities, as it is and debiased, and the items ``left_out``."""

    plug_in: Floats
    debiased: Floats
    left_out: Counts


def squared_calibration_error(n: ArrayLike, hits: ArrayLike, sums: Counts) -> SquaredCalibrationError:
    """Squared l2 calibration error, also without its bias towards large values: (..., M) to three of (...).

    ``sum_m n_m / N (accuracy_m - confidence_m)**2``, and the same less ``accuracy_m (1 - accuracy_m) / (n_m - 1)`` in
    each bin. Bins with fewer than two items are left out, N counts the others. Range [0, 1] and at most 1, best 0; a
    debiased value may be below 0; NaN without items. Kumar, Liang and Ma, NeurIPS 2019.

    >>> from dask_uncert.formulas.fixed_point import encode
    >>> [round(part.item(), 6) for part in squared_calibration_error([4, 1], [2, 1], encode([1.0, 0.75]))]
    [0.0625, -0.020833, 1]
    """
    items = np.asarray(n, np.int64)
    enough = items >= 2
    used = np.where(enough, items, 0)
    confidence, observed = (np.where(enough, part, 0.0) for part in reliability(n, hits, sums))
    squares = used * (observed - confidence) ** 2
    bias = used * ratio(observed * (1 - observed), np.where(enough, items - 1, 1))
    total = used.sum(axis=-1)
    left_out = np.asarray((items - used).sum(axis=-1))
    return SquaredCalibrationError(
        ratio(squares.sum(axis=-1), total), ratio((squares - bias).sum(axis=-1), total), left_out
    )


def windows_curve(
    n: ArrayLike, positives: ArrayLike, edges: ArrayLike, points: ArrayLike, delta: float
) -> tuple[Counts, Floats]:
    """Items stated near p, and the share of positives, for each p of ``points``: (..., B) to two (..., P).

    ``positives / n`` over the window ``[p - delta, p + delta]``. A fine bin counts whole where its middle
    lies in the window, so each end of a window is off by at most half a bin. Calibrated where the share is
    p; NaN in empty windows. [J22] section VII

    >>> windows_curve([2, 2, 4], [0, 1, 4], [0.0, 0.25, 0.5, 1.0], [0.25, 0.75], 0.125)[1].tolist()
    [0.25, 1.0]
    """
    bounds, centres = np.asarray(edges, np.float64), np.asarray(points, np.float64)
    middles = (bounds[:-1] + bounds[1:]) / 2
    slack = 1e-9 * delta  # decimal ends that are meant to fall on a middle do
    start = np.searchsorted(middles, centres - delta - slack, side="left")
    stop = np.searchsorted(middles, centres + delta + slack, side="right")

    def inside(counts: ArrayLike) -> Counts:
        counts = np.asarray(counts, np.int64)
        before = np.concatenate([np.zeros_like(counts[..., :1]), np.cumsum(counts, axis=-1)], axis=-1)
        return np.asarray(before[..., stop] - before[..., start])

    items = inside(n)
    return items, ratio(inside(positives), items)


def predicted_probability(nssr: ArrayLike, dimensions: int) -> Floats:
    """Chi-square CDF of NSSR with D degrees of freedom, (...) to (...); uniform if calibrated. [J22] (51)

    >>> round(float(predicted_probability(1.0, 1)), 6)
    0.682689
    """
    return np.asarray(chdtr(float(dimensions), np.asarray(nssr, np.float64)))


def regression_curve(histogram: ArrayLike) -> Floats:
    """Observed probability at every grid edge from counts of predicted ones, (..., B) to (..., B + 1).

    The empirical CDF, exact at the edges; 0 at the lowest. Below the edges themselves: overconfident, above
    them: underconfident. NaN without items. [J22] (52)

    >>> regression_curve([1, 1, 2]).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """
    cumulative = np.cumsum(np.asarray(histogram, np.int64), axis=-1)
    total = cumulative[..., -1:]
    return ratio(np.concatenate([np.zeros_like(total), cumulative], axis=-1), total)


def calibration_distance(predicted: ArrayLike, observed: ArrayLike) -> Floats:
    """Squared distance to the diagonal: ``integral (p_observed - p)**2 dp``, (..., B + 1) to (...).

    Range [0, 1/3], best 0. [J22] (54). Exact for the curve of straight pieces through the points.

    >>> round(float(calibration_distance([0.0, 1.0], [1.0, 1.0])), 12)
    0.333333333333
    """
    grid = np.asarray(predicted, np.float64)
    gap = np.asarray(observed, np.float64) - grid
    left, right = gap[..., :-1], gap[..., 1:]
    return np.asarray((np.diff(grid) * (left**2 + left * right + right**2)).sum(axis=-1) / 3)
