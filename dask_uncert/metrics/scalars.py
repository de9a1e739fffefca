"""Every scalar number of an Evaluation, for counts with or without a leading dimension.

A number is read off counts and off nothing else; so the same formulas serve one Evaluation, every case of a
cohort, every bootstrap replicate and all cases but one, and give the same bits wherever the counts are the same.
What the numbers need are `items`; one that was not kept (`None`) takes its numbers with it.

Names follow `results.json`: ``classes/liver/f1``, ``measures/gini/wrong/quantiles/0.95``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dask_uncert.formulas import calibration, distributions, scoring_rules, selective
from dask_uncert.formulas import confusion as confusion_formulas
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.metrics.classification import OUTCOMES
from dask_uncert.summaries.calibration import Bins, Calibration
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.marginals import MarginalReader, in_bins, marginal_reader
from dask_uncert.summaries.soft_confusion import SoftConfusion

Scalars = dict[str, Floats]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
RISKS = (0.01, 0.02, 0.05, 0.1, 0.2)
WEIGHTED = ("precision", "recall", "f1", "iou")
MACRO = ("precision", "recall", "f1", "iou")
SELECTIVE = {
    "aurc": selective.aurc,
    "e_aurc": selective.excess_aurc,
    "augrc": selective.augrc,
    "error_auroc": selective.error_auroc,
    "error_auprc": selective.error_auprc,
}
AT_ONCE = 1 << 19  # counts that a formula is given at once: what it makes of them stays near the processor


def scalars(like: Evaluation, read: MarginalReader | None = None) -> Scalars:
    """Every scalar number, by name: (...) each, where `read(marginal)` is (..., *marginal); `like` has the frame.

    read: by default of `like` itself.

    At most one leading dimension. Undefined numbers are NaN.

    >>> import dask_uncert as du
    >>> found = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> numbers = scalars(found)
    >>> round(float(numbers["overall/accuracy"]), 4), float(numbers["classes/1/precision"])
    (0.6667, 1.0)
    """
    read = marginal_reader(like) if read is None else read
    confusion = read("confusion")
    assert confusion is not None
    run = partial(_in_steps, confusion.ndim > 2)
    found = run(partial(_agreement, like), confusion)
    for i, one in enumerate(like.distributions):
        sums, histogram = read(f"sums/{i}"), read(f"histogram/{i}")
        if sums is not None:
            found |= run(partial(_moments, one), confusion, sums)
        if histogram is not None:
            found |= run(partial(_histogram, one), histogram)
    found |= _calibration(like, read, run, confusion)
    for i in range(len(like.weighted)):
        pairs = read(f"weighted/{i}")
        if pairs is not None:
            found |= run(partial(_weighted, like), pairs)
    labels = setting_labels(like)
    for i, soft in enumerate(like.soft_confusion):
        weights = read(f"soft/{i}")
        if weights is not None:
            found |= run(partial(_soft, soft, labels), weights)
        labels = labels[soft.weights[..., 0, 0].size :]
    return found


def setting_labels(like: Evaluation) -> list[str]:
    """What the rows of `soft_confusion` in `results.json` are called, in their order; each its own."""
    found: list[str] = []
    for one in like.soft_confusion:
        s = one.settings
        damped = f" by {s.uncertainty}" if s.uncertainty is not None else ""
        for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
            at = f"threshold {s.thresholds[i]} sigma {s.sigmas[k]} damping {s.dampings[m]}{damped}"
            label = f"{like.classes[s.class_index].name}/{at}"
            same = sum(one == label or one.startswith(f"{label} #") for one in found)
            found.append(f"{label} #{same + 1}" if same else label)
    return found


def _in_steps(leading: bool, function: Callable[..., Scalars], *counts: Counts) -> Scalars:
    if not leading:
        return function(*counts)
    rows = len(counts[0])
    step = max(1, AT_ONCE // max(1, sum(one.size // max(rows, 1) for one in counts)))
    pieces = [function(*(one[i : i + step] for one in counts)) for i in range(0, max(rows, 1), step)]
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _agreement(like: Evaluation, confusion: Counts) -> Scalars:
    support = confusion_formulas.support(confusion)
    found = {
        "overall/accuracy": confusion_formulas.accuracy(confusion),
        "overall/kappa": confusion_formulas.kappa(confusion),
        "overall/matthews": confusion_formulas.matthews(confusion),
    }
    for name in MACRO:
        found[f"overall/macro_{name}"] = confusion_formulas.macro(
            getattr(confusion_formulas, name)(confusion), support
        ).value
    metrics = confusion_formulas.cell_metrics(*confusion_formulas.cells(confusion))
    for i, one in enumerate(like.classes):
        found |= {f"classes/{one.name}/{name}": values[..., i] for name, values in metrics.items()}
    return found


def _weighted(like: Evaluation, pairs: Counts) -> Scalars:
    """The numbers of the confusion matrix whose cells are sums of weights."""
    matrix = decode(pairs)
    found = {
        "weighted/accuracy": confusion_formulas.accuracy(matrix),
        "weighted/kappa": confusion_formulas.kappa(matrix),
        "weighted/total": np.asarray(matrix.sum(axis=(-2, -1))),
    }
    metrics = confusion_formulas.cell_metrics(*confusion_formulas.cells(matrix))
    for i, one in enumerate(like.classes):
        found[f"weighted/classes/{one.name}/reference"] = np.asarray(matrix[..., i, :].sum(axis=-1))
        found[f"weighted/classes/{one.name}/predicted"] = np.asarray(matrix[..., i].sum(axis=-1))
        for name in WEIGHTED:
            found[f"weighted/classes/{one.name}/{name}"] = metrics[name][..., i]
    return found


def _moments(one: Distribution, confusion: Counts, sums: Counts) -> Scalars:
    right = np.trace(confusion, axis1=-2, axis2=-1)
    number = np.stack([confusion.sum(axis=(-2, -1)) - right, right], axis=-1)
    found: Scalars = {}
    for outcome, chosen in OUTCOMES.items():
        n, s = number[..., chosen].sum(axis=-1), sums[..., chosen, :, :].sum(axis=-3)
        at = f"measures/{one.measure.name}/{outcome}"
        found[f"{at}/mean"] = np.asarray(distributions.mean(n, s) * one.unit)
        found[f"{at}/std"] = np.asarray(distributions.standard_deviation(n, s) * one.unit)
        found[f"{at}/skewness"] = distributions.skewness(n, s)
    return found


def _histogram(one: Distribution, histogram: Counts) -> Scalars:
    """What two histograms of a measure, over wrong and right decisions (..., 2, bins), tell."""
    name, edges = one.measure.name, np.asarray(one.edges)
    found: Scalars = {}
    for outcome, chosen in OUTCOMES.items():
        values = distributions.quantiles(histogram[..., chosen, :].sum(axis=-2), edges, QUANTILES)
        for i, q in enumerate(QUANTILES):
            found[f"measures/{name}/{outcome}/quantiles/{q:g}"] = values[..., i]
    wrong, right = histogram[..., 0, :], histogram[..., 1, :]
    if one.thresholds:
        table = distributions.uncertainty_confusion(right, wrong, edges, one.thresholds)
        for i, t in enumerate(one.thresholds):
            for metric in ("USen", "USpe", "UPre", "UAcc"):
                found[f"uncertainty_confusion/{name}/{t}/{metric}"] = np.asarray(table[metric], np.float64)[
                    ..., i
                ]
    found |= {f"selective/{name}/{key}": formula(right, wrong) for key, formula in SELECTIVE.items()}
    risks = selective.risk_at_coverage(right, wrong, COVERAGES)
    covered = selective.coverage_at_risk(right, wrong, RISKS)
    for i, at in enumerate(COVERAGES):
        found[f"selective/{name}/risk_at_coverage/{at}"] = risks[..., i]
    for i, at in enumerate(RISKS):
        found[f"selective/{name}/coverage_at_risk/{at}"] = covered[..., i]
    return found


def _calibration(
    like: Evaluation, read: MarginalReader, run: Callable[..., Scalars], confusion: Counts
) -> Scalars:
    one = like.calibration
    found: Scalars = {}
    fine = read("winning")
    binned = read("winning_in_bins") if fine is None else in_bins(fine, one)
    if binned is not None:
        found |= run(_binned, binned)
    if fine is not None:
        found |= run(partial(_equal_mass, one.bins), fine)
    classes = [_of_class(read, c, one, run) for c in range(len(like.classes))]
    of = {key: np.stack([c[key] for c in classes], axis=-1) for key in classes[0]}
    if "ece" in of:
        for i, c in enumerate(like.classes):
            found[f"calibration/classes/{c.name}/ece"] = of["ece"][..., i]
        found["calibration/classwise_ece"] = np.asarray(of["ece"].mean(axis=-1))
    n, squared, log_loss, infinite = (
        confusion.sum(axis=(-2, -1)),
        *(read(name) for name in ("squared_error", "log_loss", "infinite")),
    )
    if squared is not None:
        parts = {"score": scoring_rules.brier_score(n, squared)}
        if "base" in of:
            parts = scoring_rules.brier_parts(
                scoring_rules.BrierTerms(of["reliability"], of["resolution"], of["base"]), n, squared
            )
        found |= {f"calibration/brier/{name}": value for name, value in parts.items()}
    if log_loss is not None and infinite is not None:
        losses = scoring_rules.negative_log_likelihood(n, log_loss, infinite)
        for name in ("value", "finite"):
            found[f"calibration/nll/{name}"] = np.asarray(losses[name], np.float64)
    return found


def _of_class(read: MarginalReader, c: int, like: Calibration, run: Callable[..., Scalars]) -> Scalars:
    fine = read(f"class/{c}")
    binned = read(f"class_in_bins/{c}") if fine is None else in_bins(fine, like)
    found: Scalars = {}
    if binned is not None:
        found |= run(lambda t: {"ece": calibration.expected_calibration_error(*_bins(t))}, binned)
    if fine is not None:
        found |= run(lambda t: scoring_rules.brier_terms(*_bins(t))._asdict(), fine)
    return found


def _bins(tally: Counts) -> Bins:
    return Bins(tally[..., 0], tally[..., 1], tally[..., 2:])


def _binned(tally: Counts) -> Scalars:
    return {
        "calibration/ece": calibration.expected_calibration_error(*_bins(tally)),
        "calibration/mce": calibration.maximum_calibration_error(*_bins(tally)),
    }


def _equal_mass(bins: int, tally: Counts) -> Scalars:
    return {"calibration/equal_mass_ece": calibration.equal_mass_calibration_error(*_bins(tally), bins)}


def _soft(one: SoftConfusion, labels: list[str], weights: Counts) -> Scalars:
    cells = decode(weights)
    metrics = confusion_formulas.cell_metrics(*(cells[..., i] for i in range(cells.shape[-1])))
    found: Scalars = {}
    at = np.ndindex(one.weights.shape[:3])
    for label, where in zip(labels, at, strict=False):
        found |= {f"soft_confusion/{label}/{name}": v[(..., *where)] for name, v in metrics.items()}
    return found
