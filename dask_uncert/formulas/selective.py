"""Selective risk and error detection by an uncertainty, from two histograms.

Inputs are counts of correct and of wrong items, (..., B), over bins of an uncertainty u in rising order: the
first bin is the most certain and is accepted first. Items of one bin are ties: their order is unknown, and
every order equally likely. Curves and areas are means over these orders, in closed form, unless the card
says otherwise; ``bounds`` gives the best and the worst order. Where each bin holds one distinct value of u,
the numbers are those of the items themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.distributions import rank_of_share
from dask_uncert.formulas.typing import Counts, Floats


class RiskCoverage(NamedTuple):
    """``coverage``, the share accepted, and ``risk``, the share of wrong ones among the accepted."""

    coverage: Floats
    risk: Floats


def risk_coverage(correct: ArrayLike, wrong: ArrayLike) -> RiskCoverage:
    """Coverage and selective risk when all bins up to b are accepted, (..., B) to two of (..., B).

    ``(c + w up to b) / N`` and ``w / (c + w) up to b``; range [0, 1]. Risk is NaN where nothing is accepted,
    coverage without items. Geifman and El-Yaniv, NeurIPS 2017.

    >>> [part.tolist() for part in risk_coverage([0, 3, 0], [0, 0, 1])]
    [[0.0, 0.75, 1.0], [nan, 0.0, 0.25]]
    """
    c, w = _counts(correct, wrong)
    accepted, errors = np.cumsum(c + w, axis=-1), np.cumsum(w, axis=-1)
    return RiskCoverage(ratio(accepted, accepted[..., -1:]), ratio(errors, accepted))


def aurc(correct: ArrayLike, wrong: ArrayLike) -> Floats:
    """Area under the risk-coverage curve: ``1/N sum_{k=1..N} risk of the k most certain``, (..., B) to (...).

    Range [0, 1], best 0, at random the error rate; NaN without items. A bin with c correct and w wrong after
    n items with e errors adds ``w + (e - n w / (c + w)) (H(n + c + w) - H(n))``, H the harmonic numbers: the
    mean over all orders of the bin. Geifman and El-Yaniv, NeurIPS 2017; ICLR 2019.

    >>> round(float(aurc([1, 1], [0, 1])), 12)  # mean of (0, 0, 1/3) and (0, 1/2, 1/3)
    0.194444444444
    """
    c, w = _counts(correct, wrong)
    items = c + w
    before, errors = _before(items), _before(w)
    share = np.where(items > 0, ratio(w, items), 0.0)
    area = w + (errors - before * share) * _harmonic(before, items)
    return ratio(area.sum(axis=-1), items.sum(axis=-1))


def excess_aurc(correct: ArrayLike, wrong: ArrayLike) -> Floats:
    """AURC less that of the best order, all correct items before all wrong ones: (..., B) to (...).

    Range [0, 1], best 0; NaN without items. The best AURC is exact, not ``r + (1 - r) ln(1 - r)``.
    Geifman, Uziel and El-Yaniv, ICLR 2019.

    >>> float(excess_aurc([2, 0], [0, 1]))
    0.0
    """
    c, w = (counts.sum(axis=-1) for counts in _counts(correct, wrong))
    none = np.zeros_like(c)
    best = aurc(np.stack([c, none], axis=-1), np.stack([none, w], axis=-1))
    return np.asarray(np.maximum(aurc(correct, wrong) - best, 0.0))  # -1e-17 is rounding


def augrc(correct: ArrayLike, wrong: ArrayLike) -> Floats:
    """Area under the generalised risk-coverage curve, (..., B) to (...).

    Generalised risk is the share of all items that is accepted and wrong; the curve starts at (0, 0) and is
    straight between items: ``sum_b n_b (w before b + w_b / 2) / N**2``, which ties leave unchanged. Equal to
    ``(1 - error_auroc) a (1 - a) + (1 - a)**2 / 2`` for accuracy a. Range [0, 1/2], best
    ``(1 - a)**2 / 2``; NaN without items. Traub et al., NeurIPS 2024.

    >>> float(augrc([1, 0], [0, 1]))
    0.125
    """
    c, w = _counts(correct, wrong)
    items = (c + w).astype(np.float64)  # products would pass int64
    total = items.sum(axis=-1)
    return ratio((items * (_before(w) + w / 2)).sum(axis=-1), total**2)


def error_auroc(correct: ArrayLike, wrong: ArrayLike) -> Floats:
    """Chance that a wrong item is more uncertain than a correct one, ties half: (..., B) to (...).

    ``sum_b w_b (c before b + c_b / 2) / (C W)``, the area under the ROC curve of u as a detector of errors.
    Range [0, 1], best 1, at random 1/2; NaN without correct or without wrong items. Hendrycks and Gimpel,
    ICLR 2017.

    >>> float(error_auroc([2, 1], [0, 1]))
    0.8333333333333334
    """
    c, w = _counts(correct, wrong)
    pairs = (w * (_before(c) + c / 2)).sum(axis=-1)
    return ratio(pairs, c.sum(axis=-1) * w.sum(axis=-1).astype(np.float64))


def error_auprc(correct: ArrayLike, wrong: ArrayLike) -> Floats:
    """Average precision of u as a detector of errors, (..., B) to (...).

    ``sum_b w_b / W precision_b``, with precision_b the share of wrong items in bin b and above. The step
    rule: a bin is flagged as a whole, so ties are not averaged over orders and no line is drawn between
    points. Range [0, 1], best 1, at random the error rate; NaN without wrong items. Hendrycks and Gimpel,
    ICLR 2017.

    >>> round(float(error_auprc([0, 1, 0], [1, 0, 1])), 12)
    0.833333333333
    """
    c, w = _counts(correct, wrong)
    flagged, errors = _from(c + w), _from(w)
    precision = np.where(w > 0, ratio(errors, flagged), 0.0)
    return ratio((w * precision).sum(axis=-1), w.sum(axis=-1))


def risk_at_coverage(correct: ArrayLike, wrong: ArrayLike, coverage: ArrayLike) -> Floats:
    """Selective risk of the fewest items that reach a coverage, (..., B) and (Q,) or a number to (..., Q).

    Accepts the ``k = ceil(coverage N)`` most certain; a bin accepted in part brings its own share of wrong
    items, the mean over its orders. Range [0, 1], best 0; NaN at coverage 0 and without items. Raises
    ValueError for a coverage outside [0, 1]. Geifman and El-Yaniv, NeurIPS 2017.

    >>> risk_at_coverage([2, 1], [0, 1], [0.5, 0.75, 1.0]).tolist()
    [0.0, 0.16666666666666666, 0.25]
    """
    c, w = _counts(correct, wrong)
    shares = np.asarray(coverage, np.float64)
    if not np.all((shares >= 0) & (shares <= 1)):
        raise ValueError(f"coverage lies in [0, 1], found {shares.tolist()}")
    items = c + w
    upto, before, errors = np.cumsum(items, axis=-1), _before(items), _before(w)
    result = np.empty((*c.shape[:-1], shares.size))
    for index, share in enumerate(shares.ravel()):
        k = np.ceil(rank_of_share(share, upto[..., -1]))[..., None]
        bin_ = np.argmax(upto >= k, axis=-1)[..., None]
        n, e, w_b, n_b = (np.take_along_axis(a, bin_, axis=-1) for a in (before, errors, w, items))
        accepted_errors = e + (k - n) * np.where(n_b > 0, ratio(w_b, n_b), 0.0)
        result[..., index] = ratio(accepted_errors, k)[..., 0]
    return result.reshape((*c.shape[:-1], *shares.shape))


def coverage_at_risk(correct: ArrayLike, wrong: ArrayLike, risk: ArrayLike) -> Floats:
    """Largest coverage with selective risk at most a target, (..., B) and (Q,) or a number to (..., Q).

    Bins are accepted whole, as a threshold on u would: the coverage is reached by setting the threshold
    to an edge. Range [0, 1], best 1; 0 where no bin may be accepted, NaN without items. Geifman and
    El-Yaniv, NeurIPS 2017.

    >>> coverage_at_risk([2, 1, 1], [0, 1, 0], [0.0, 0.2, 0.25]).tolist()
    [0.4, 1.0, 1.0]
    """
    covered, risks = risk_coverage(correct, wrong)
    targets = np.asarray(risk, np.float64)
    result = np.empty((*covered.shape[:-1], targets.size))
    for index, target in enumerate(targets.ravel()):
        result[..., index] = np.where(risks <= target, covered, 0.0).max(axis=-1)
    result[np.isnan(covered[..., -1])] = np.nan
    return result.reshape((*covered.shape[:-1], *targets.shape))


def bounds(
    formula: Callable[[ArrayLike, ArrayLike], Floats], correct: ArrayLike, wrong: ArrayLike
) -> tuple[Floats, Floats]:
    """Return the lowest and highest value of ``formula`` for the items themselves, whatever their u.

    ``formula`` is aurc, excess_aurc, augrc, error_auroc or error_auprc; (..., B) to two of (...). A bin that
    mixes different values of u hides their order; the extremes are all correct before all wrong items and
    the reverse, bin by bin, and both can occur. They coincide when no bin holds correct and wrong items.

    >>> [float(bound) for bound in bounds(error_auroc, [1, 1], [0, 1])]
    [0.5, 1.0]
    """
    c, w = _counts(correct, wrong)
    none = np.zeros_like(c)

    def interleave(first: Counts, second: Counts) -> Counts:
        return np.stack([first, second], axis=-1).reshape(*first.shape[:-1], -1)

    best = formula(interleave(c, none), interleave(none, w))
    if formula is error_auprc:
        # With distinct values each wrong item has its own step, lower than the step of all of them.
        return _lowest_auprc(c, w), best
    worst = formula(interleave(none, c), interleave(w, none))
    return np.minimum(best, worst), np.maximum(best, worst)


def _lowest_auprc(c: Counts, w: Counts) -> Floats:
    above, errors = _from(c + w) - (c + w), _from(w) - w
    # sum over i = 1..w of (errors + i) / (above + c + i)
    steps = w + (errors - above - c) * _harmonic(above + c, w)
    return ratio(steps.sum(axis=-1), w.sum(axis=-1))


def _harmonic(start: Counts, count: Counts) -> Floats:
    """Return ``H(start + count) - H(start)``, to rounding relative to itself also for large starts.

    Where start >= 32 by the expansion ln x + 1/(2x) - 1/(12x^2) + 1/(120x^4) - 1/(252x^6) + 1/(240x^8) of
    H - gamma, whose first omitted term is below 1e-17, with the logarithms subtracted before rounding.
    """
    a = np.maximum(start, 32).astype(np.float64)
    b = a + count

    def tail(x: Floats) -> Floats:
        square = x**-2
        return -square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))

    difference = np.asarray(np.log1p(count / a) - count / (2 * a * b) + (tail(b) - tail(a)))
    few = start < 32
    first = start[few] + 1.0
    difference[few] = digamma(first + count[few]) - digamma(first)
    return difference


def _before(counts: Counts) -> Counts:
    return np.asarray(np.cumsum(counts, axis=-1) - counts)


def _from(counts: Counts) -> Counts:
    return np.flip(np.cumsum(np.flip(counts, axis=-1), axis=-1), axis=-1)


def _counts(correct: ArrayLike, wrong: ArrayLike) -> tuple[Counts, Counts]:
    c, w = np.asarray(correct, np.int64), np.asarray(wrong, np.int64)
    if c.shape != w.shape or c.ndim == 0 or c.shape[-1] == 0:
        raise ValueError(f"correct and wrong are counts over the same bins, found shapes {c.shape}, {w.shape}")
    return c, w
