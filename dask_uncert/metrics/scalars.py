"""Every scalar number of an Evaluation, for counts with or without a leading dimension.

A scalar is a formula of marginals (`summaries.marginals`) and of nothing else. So the same formulas serve one
Evaluation, every case of a cohort, every bootstrap replicate and the jackknife, and give the same bits wherever the
counts are the same. A marginal that was not kept (None) takes its scalars with it.

A scalar has a path, such as ``("classes", "liver", "f1")``: its keys in `results.json`, where a class, a threshold
or a soft setting names its row. Its name is the path joined: ``classes/liver/f1``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from dask_uncert.formulas import calibration as calibration_formulas
from dask_uncert.formulas import confusion as confusion_formulas
from dask_uncert.formulas import distributions, isotonic, scoring_rules, selective
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.metrics.distributions import OUTCOMES
from dask_uncert.metrics.prediction_sets import SetThreshold, thresholds_of_sets
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.marginals import MarginalReader, in_bins, marginal_reader
from dask_uncert.summaries.soft_confusion import SoftConfusion

K = TypeVar("K")
Path = tuple[str, ...]
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
RANKING = {"auroc": selective.error_auroc, "average_precision": selective.error_auprc}
"""Areas of a class against the rest: its items are found by their probability as errors are by uncertainty."""
BRIER_PARTS = ("reliability", "resolution", "uncertainty")
AT_ONCE = 1 << 19  # counts that a formula is given at once: what it makes of them stays near the processor


class SoftSetting(NamedTuple):
    """One setting of a soft confusion: the label of its row, its indices along the settings, and their values."""

    label: str
    confusion: SoftConfusion
    indices: tuple[int, int, int]
    threshold: float
    sigma: float
    damping: float


def scalars(evaluation: Evaluation, read: MarginalReader | None = None) -> Scalars:
    """Return every scalar by its name.

    read: gives the marginals, (..., *marginal) with at most one leading dimension; scalars are then (...). By
    default the evaluation's own. Undefined scalars are NaN.

    >>> import dask_uncert as du
    >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> numbers = scalars(evaluation)
    >>> round(float(numbers["overall/accuracy"]), 4), float(numbers["classes/1/precision"])
    (0.6667, 1.0)
    """
    return {"/".join(path): values for path, values in scalars_by_path(evaluation, read).items()}


def scalars_by_path(evaluation: Evaluation, read: MarginalReader | None = None) -> dict[Path, Floats]:
    """Return every scalar by its path; arguments as for `scalars`."""
    read = marginal_reader(evaluation) if read is None else read
    confusion = read("confusion")
    assert confusion is not None
    steps = partial(_in_steps, confusion.ndim > 2)
    results: dict[Path, Floats] = steps(partial(_agreement, evaluation), confusion)
    for i, distribution in enumerate(evaluation.distributions):
        results |= steps(partial(_moments, distribution), confusion, read(f"sums/{i}"))
        results |= steps(partial(_from_histogram, distribution), read(f"histogram/{i}"))
    if evaluation.calibration is not None:
        results |= _calibration(evaluation, read, steps, confusion)
    for at in thresholds_of_sets(evaluation):
        results |= steps(partial(_set_shares, at), read("items"), read("winning"))
        for i in range(len(evaluation.classes)):
            results |= steps(partial(_class_coverage, evaluation.classes[i].name, at), read(f"true/{i}"))
    for i in range(len(evaluation.weighted)):
        results |= steps(partial(_weighted, evaluation), read(f"weighted/{i}"))
    settings = soft_settings(evaluation)
    for i, soft in enumerate(evaluation.soft_confusion):
        own = [setting for setting in settings if setting.confusion is soft]
        results |= steps(partial(_soft, own), read(f"soft/{i}"))
    return results


def soft_settings(evaluation: Evaluation) -> list[SoftSetting]:
    """Return the settings of all soft confusions, in the order of results.json; no two have the same label."""
    settings: list[SoftSetting] = []
    for soft in evaluation.soft_confusion:
        s = soft.settings
        damped = f" by {s.uncertainty}" if s.uncertainty is not None else ""
        for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
            values = s.thresholds[i], s.sigmas[k], s.dampings[m]
            label = "threshold {} sigma {} damping {}".format(*values)
            label = f"{evaluation.classes[s.class_index].name}/{label}{damped}"
            same = sum(other.label == label or other.label.startswith(f"{label} #") for other in settings)
            settings.append(SoftSetting(f"{label} #{same + 1}" if same else label, soft, (i, k, m), *values))
    return settings


def concatenated(pieces: Sequence[Mapping[K, Floats]]) -> dict[K, Floats]:
    """Return scalars whose leading dimension was cut into pieces as a whole again."""
    return {key: np.concatenate([piece[key] for piece in pieces]) for key in pieces[0]}


def _in_steps(leading: bool, formula: Callable[..., dict[K, Floats]], *marginals: Counts | None) -> dict[K, Floats]:
    """Apply a formula to parts of the leading dimension; return nothing where a marginal was not kept."""
    counts = [marginal for marginal in marginals if marginal is not None]
    if len(counts) < len(marginals):
        return {}
    if not leading:
        return formula(*counts)
    rows = max(len(counts[0]), 1)
    step = max(1, AT_ONCE // max(1, sum(array.size // rows for array in counts)))
    return concatenated([formula(*(array[i : i + step] for array in counts)) for i in range(0, rows, step)])


def _agreement(evaluation: Evaluation, confusion: Counts) -> dict[Path, Floats]:
    support = confusion_formulas.support(confusion)
    results: dict[Path, Floats] = {
        ("overall", "accuracy"): confusion_formulas.accuracy(confusion),
        ("overall", "kappa"): confusion_formulas.kappa(confusion),
        ("overall", "matthews"): confusion_formulas.matthews(confusion),
        ("overall", "quantity_disagreement"): confusion_formulas.quantity_disagreement(confusion).sum(axis=-1) / 2,
        ("overall", "allocation_disagreement"): confusion_formulas.allocation_disagreement(confusion).sum(axis=-1) / 2,
    }
    if evaluation.report_options.ordered:
        for weights in ("linear", "quadratic"):
            results["overall", f"weighted_kappa_{weights}"] = confusion_formulas.weighted_kappa(confusion, weights)
    for name in MACRO:
        values = getattr(confusion_formulas, name)(confusion)
        results["overall", f"macro_{name}"] = confusion_formulas.macro(values, support).value
        if (kept := evaluation.foreground) is not None:
            mean = confusion_formulas.macro(values[..., kept], support[..., kept])
            results["overall", f"foreground_{name}"] = mean.value
    metrics = confusion_formulas.cell_metrics(*confusion_formulas.cells(confusion))
    for i, c in enumerate(evaluation.classes):
        results |= {("classes", c.name, name): values[..., i] for name, values in metrics.items()}
    return results


def _weighted(evaluation: Evaluation, pairs: Counts) -> dict[Path, Floats]:
    """Return the scalars of the confusion matrix whose cells are sums of weights."""
    matrix = decode(pairs)
    results: dict[Path, Floats] = {
        ("weighted", "total"): np.asarray(matrix.sum(axis=(-2, -1))),
        ("weighted", "accuracy"): confusion_formulas.accuracy(matrix),
        ("weighted", "kappa"): confusion_formulas.kappa(matrix),
    }
    metrics = confusion_formulas.cell_metrics(*confusion_formulas.cells(matrix))
    for i, c in enumerate(evaluation.classes):
        path = ("weighted", "classes", c.name)
        results[*path, "reference"] = np.asarray(matrix[..., i, :].sum(axis=-1))
        results[*path, "predicted"] = np.asarray(matrix[..., i].sum(axis=-1))
        results |= {(*path, name): metrics[name][..., i] for name in WEIGHTED}
    return results


def _moments(distribution: Distribution, confusion: Counts, sums: Counts) -> dict[Path, Floats]:
    right = np.trace(confusion, axis1=-2, axis2=-1)
    number = np.stack([confusion.sum(axis=(-2, -1)) - right, right], axis=-1)
    results: dict[Path, Floats] = {}
    for outcome, chosen in OUTCOMES.items():
        n, s = number[..., chosen].sum(axis=-1), (sums[..., chosen, :].sum(axis=-2), distribution.resolution)
        path = ("measures", distribution.measure.name, outcome)
        results[*path, "mean"] = np.asarray(distributions.mean(n, *s) * distribution.unit)
        results[*path, "std"] = np.asarray(distributions.standard_deviation(n, *s) * distribution.unit)
        results[*path, "skewness"] = distributions.skewness(n, *s)
    return results


def _from_histogram(distribution: Distribution, histogram: Counts) -> dict[Path, Floats]:
    """Return the scalars of a measure's histograms over wrong and right decisions, (..., 2, bins)."""
    name, edges = distribution.measure.name, np.asarray(distribution.edges)
    results: dict[Path, Floats] = {}
    for outcome, chosen in OUTCOMES.items():
        values = distributions.quantiles(histogram[..., chosen, :].sum(axis=-2), edges, QUANTILES)
        for i, q in enumerate(QUANTILES):
            results["measures", name, outcome, "quantiles", f"{q:g}"] = values[..., i]
    wrong, right = histogram[..., 0, :], histogram[..., 1, :]
    if distribution.thresholds:
        table = distributions.uncertainty_confusion(right, wrong, edges, distribution.thresholds)
        for i, t in enumerate(distribution.thresholds):
            for metric in ("USen", "USpe", "UPre", "UAcc"):
                values = np.asarray(table[metric], np.float64)
                results["uncertainty_confusion", name, str(t), metric] = values[..., i]
    results |= {("selective", name, key): formula(right, wrong) for key, formula in SELECTIVE.items()}
    for key, formula, points in (
        ("risk_at_coverage", selective.risk_at_coverage, COVERAGES),
        ("coverage_at_risk", selective.coverage_at_risk, RISKS),
    ):
        values = formula(right, wrong, points)
        results |= {("selective", name, key, str(x)): values[..., i] for i, x in enumerate(points)}
    return results


def _calibration(
    evaluation: Evaluation, read: MarginalReader, steps: Callable[..., dict[str, Floats]], confusion: Counts
) -> dict[Path, Floats]:
    bins = evaluation.stated.bins

    def tallies(fine: str, binned: str) -> tuple[Counts | None, Counts | None]:
        tally = read(fine)
        return tally, read(binned) if tally is None else in_bins(tally, evaluation.stated)

    fine, binned = tallies("winning", "winning_in_bins")
    results: dict[Path, Floats] = {
        ("calibration", name): values
        for name, values in (steps(_bin_errors, binned) | steps(partial(_equal_mass, bins), fine)).items()
    }
    for name, values in steps(_isotonic, fine).items():
        results["calibration", "corp", name] = values
    terms = []
    for number in range(len(evaluation.classes)):
        fine, binned = tallies(f"class/{number}", f"class_in_bins/{number}")
        terms.append(steps(_class_error, binned) | steps(_brier_terms, fine) | steps(_ranking, fine))
    by_class = {key: np.stack([term[key] for term in terms], axis=-1) for key in terms[0]}
    if "ece" in by_class:
        for i, c in enumerate(evaluation.classes):
            results["calibration", "classes", c.name, "ece"] = by_class["ece"][..., i]
        results["calibration", "classwise_ece"] = np.asarray(by_class["ece"].mean(axis=-1))
    if "base" in by_class:
        by_class["uncertainty"] = by_class["base"] * (1 - by_class["base"])
        for i, c in enumerate(evaluation.classes):
            for key in BRIER_PARTS:
                results["calibration", "classes", c.name, "brier", key] = by_class[key][..., i]
    for i, c in enumerate(evaluation.classes):
        results |= {("ranking", c.name, key): by_class[key][..., i] for key in RANKING if key in by_class}
    n = confusion.sum(axis=(-2, -1))
    squared, log_loss, infinite = (read(name) for name in ("squared_error", "log_loss", "infinite"))
    if squared is not None:
        parts = {"score": scoring_rules.brier_score(n, squared)}
        if "base" in by_class:
            brier = scoring_rules.BrierTerms(by_class["reliability"], by_class["resolution"], by_class["base"])
            parts = scoring_rules.brier_parts(brier, n, squared)
        results |= {("calibration", "brier", name): values for name, values in parts.items()}
    if log_loss is not None and infinite is not None:
        losses = scoring_rules.negative_log_likelihood(n, log_loss, infinite)
        for name in ("value", "finite"):
            results["calibration", "nll", name] = np.asarray(losses[name], np.float64)
    return results


def _bin_errors(tally: Counts) -> Scalars:
    return {
        "ece": calibration_formulas.expected_calibration_error(*Bins.of(tally)),
        "mce": calibration_formulas.maximum_calibration_error(*Bins.of(tally)),
        "debiased_l2": calibration_formulas.squared_calibration_error(*Bins.of(tally)).debiased,
    }


def _equal_mass(bins: int, tally: Counts) -> Scalars:
    return {"equal_mass_ece": calibration_formulas.equal_mass_calibration_error(*Bins.of(tally), bins)}


def _isotonic(tally: Counts) -> Scalars:
    return isotonic.corp_values(*Bins.of(tally))


def _ranking(tally: Counts) -> Scalars:
    return {key: formula(tally[..., 0] - tally[..., 1], tally[..., 1]) for key, formula in RANKING.items()}


def _set_shares(at: SetThreshold, items: Counts, winning: Counts) -> dict[Path, Floats]:
    path, pixels = ("prediction_sets", str(at.wanted)), items[..., 1].sum(axis=-1)
    return {
        (*path, "coverage"): confusion_formulas.ratio(items[..., at.edge :, 1].sum(axis=-1), pixels),
        (*path, "mean_size"): confusion_formulas.ratio(items[..., at.edge :, 0].sum(axis=-1), pixels),
        (*path, "empty"): confusion_formulas.ratio(winning[..., : at.edge, 0].sum(axis=-1), pixels),
    }


def _class_coverage(name: str, at: SetThreshold, true: Counts) -> dict[Path, Floats]:
    path = ("prediction_sets", str(at.wanted), "classes", name, "coverage")
    return {path: confusion_formulas.ratio(true[..., at.edge :].sum(axis=-1), true.sum(axis=-1))}


def _class_error(tally: Counts) -> Scalars:
    return {"ece": calibration_formulas.expected_calibration_error(*Bins.of(tally))}


def _brier_terms(tally: Counts) -> Scalars:
    return scoring_rules.brier_terms(*Bins.of(tally))._asdict()


def _soft(settings: Sequence[SoftSetting], weights: Counts) -> dict[Path, Floats]:
    metrics = confusion_formulas.cell_metrics(*np.moveaxis(decode(weights), -1, 0))
    return {
        ("soft_confusion", setting.label, name): values[(..., *setting.indices)]
        for setting in settings
        for name, values in metrics.items()
    }
