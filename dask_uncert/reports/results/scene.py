"""`results.json`: every number of an Evaluation, as plain data. Undefined numbers are null."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from dask_uncert.formulas import calibration, confusion
from dask_uncert.formulas.missing_data_bounds import accuracy_bounds, f1_bounds
from dask_uncert.formulas.simplex_maximum import simplex_maximum
from dask_uncert.metrics import calibration as calibration_metrics
from dask_uncert.metrics import classification
from dask_uncert.metrics.scalars import MACRO, QUANTILES, WEIGHTED, scalars
from dask_uncert.reports.results.breakdowns import by_class, by_confused, by_second_best
from dask_uncert.reports.results.by_setting import selected, soft, soft_overall
from dask_uncert.reports.results.intervals import add_tile_intervals
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.ledger import REASONS, REPAIRS

ECDF_STEPS = 100  # the full grid stands in tables/ and summary.zarr
WINDOWS = tuple(i / 20 for i in range(1, 20))
WINDOW_DELTA = 0.05
FORMAT = 1


def results(evaluation: Evaluation) -> dict[str, Any]:
    """Every number of the evaluation, JSON-ready; the same Evaluation gives the same numbers."""
    ledger = evaluation.ledger
    found = {
        "format": FORMAT,
        "counted": int(ledger.counted),
        "excluded": ledger.reasons(),
        "excluded_by_class": excluded_by_class(evaluation),
        "repaired": dict(zip(REPAIRS, ledger.repaired.tolist(), strict=True)),
        "overall": _overall(evaluation),
        "classes": _classes(evaluation),
        "confusion": classification.confusion_matrix(evaluation).tolist(),
        "weighted": _weighted(evaluation),
        "measures": {name: _measure(evaluation, name) for name in evaluation.measures},
        "by_class": by_class(evaluation, reference=True),
        "by_predicted_class": by_class(evaluation, reference=False),
        "by_confused_classes": by_confused(evaluation),
        "by_second_best": by_second_best(evaluation),
        "uncertainty_confusion": _uncertainty_confusion(evaluation),
        "calibration": _calibration(evaluation),
        "selective": {name: selected(evaluation, name) for name in evaluation.measures},
        "soft_confusion": [row for one in evaluation.soft_confusion for row in soft(evaluation, one)],
        "soft_confusion_overall": soft_overall(evaluation),
        "class_distances": _class_distances(evaluation),
    }
    _add_bounds(found, evaluation)
    if evaluation.tiles is not None:
        add_tile_intervals(found, evaluation)
    plain: dict[str, Any] = undefined_as_null(found)
    return plain


def excluded_by_class(evaluation: Evaluation) -> dict[str, dict[str, int]]:
    """Excluded pixels by reason and by the reference's class; those whose class is not known under ""."""
    names = [*(one.name for one in evaluation.classes), ""]
    rows = zip(REASONS, evaluation.ledger.excluded.tolist(), strict=True)
    return {
        reason: {name: n for name, n in zip(names, row, strict=True) if n} for reason, row in rows if any(row)
    }


def _add_bounds(found: dict[str, Any], evaluation: Evaluation) -> None:
    """Where pixels were lost, what accuracy and F1 could be had they counted."""
    lost = evaluation.ledger.lost()
    if not lost.any():
        return
    matrix = classification.confusion_matrix(evaluation)
    found["overall"]["accuracy_bounds"] = accuracy_bounds(matrix, lost).tolist()
    for one, ends in zip(found["classes"], f1_bounds(matrix, lost).T.tolist(), strict=True):
        one["f1_bounds"] = ends


def to_json(found: dict[str, Any]) -> str:
    """Results as the text of `results.json`."""
    return json.dumps(found, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def undefined_as_null(value: Any) -> Any:
    """Plain data of any depth: arrays as lists, numbers that are not finite as null."""
    if isinstance(value, dict):
        return {k: undefined_as_null(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [undefined_as_null(v) for v in value]
    if isinstance(value, np.ndarray):
        return undefined_as_null(value.tolist())
    if isinstance(value, np.generic):
        return undefined_as_null(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _overall(evaluation: Evaluation) -> dict[str, Any]:
    matrix = classification.confusion_matrix(evaluation)
    support = confusion.support(matrix)
    found: dict[str, Any] = {
        "accuracy": confusion.accuracy(matrix),
        "kappa": confusion.kappa(matrix),
        "matthews": confusion.matthews(matrix),
    }
    for name in MACRO:
        value, n, undefined = confusion.macro(getattr(confusion, name)(matrix), support)
        found[f"macro_{name}"] = value
        found[f"macro_{name}_n"] = n
        found[f"macro_{name}_undefined"] = undefined
    return found


def _weighted(evaluation: Evaluation) -> dict[str, Any] | None:
    """The numbers of the confusion matrix of sums of weights; None without weights."""
    if not evaluation.weighted:
        return None
    (one,) = evaluation.weighted
    numbers = scalars(evaluation)
    found: dict[str, Any] = {"unit": one.unit}
    found |= {name: numbers[f"weighted/{name}"] for name in ("total", "accuracy", "kappa")}
    found["classes"] = [
        {
            "code": c.code,
            "name": c.name,
            **{
                key: numbers[f"weighted/classes/{c.name}/{key}"]
                for key in ("reference", "predicted", *WEIGHTED)
            },
        }
        for c in evaluation.classes
    ]
    return {**found, "confusion": one.confusion}


def _classes(evaluation: Evaluation) -> list[dict[str, Any]]:
    matrix = classification.confusion_matrix(evaluation)
    cells = confusion.cells(matrix)
    metrics = confusion.cell_metrics(*cells)
    return [
        {
            "code": one.code,
            "name": one.name,
            "support": matrix[i].sum(),
            "predicted": matrix[:, i].sum(),
            **{name: metrics[name][i] for name in metrics},
        }
        for i, one in enumerate(evaluation.classes)
    ]


def _measure(evaluation: Evaluation, name: str) -> dict[str, Any]:
    one = evaluation.measures[name]
    found: dict[str, Any] = {"definition": _definition(one)}
    for outcome in classification.OUTCOMES:
        values = classification.quantiles(evaluation, name, QUANTILES, outcome)
        found[outcome] = {
            **classification.moments(evaluation, name, outcome),
            "quantiles": {f"{q:g}": v for q, v in zip(QUANTILES, values.tolist(), strict=True)},
        }
    at = [one.reach * i / ECDF_STEPS for i in range(1, ECDF_STEPS + 1)]
    edges = np.asarray(one.edges)[1:]
    places = np.searchsorted(edges, np.asarray(at) * (1 - 1e-12))
    found["ecdf"] = {"at": edges[places]}
    for outcome in classification.OUTCOMES:
        found["ecdf"][outcome] = classification.ecdf(evaluation, name, outcome)[1][places]
    return found


def _definition(one: Distribution) -> dict[str, Any]:
    measure = one.measure
    words = {"kind": measure.kind, "distance": measure.distance, "n": measure.n, "alpha": measure.alpha}
    return {**{k: v for k, v in words.items() if v is not None}, "upper": one.upper}


def _uncertainty_confusion(evaluation: Evaluation) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name, one in evaluation.measures.items():
        if one.thresholds:
            columns = classification.uncertainty_confusion(evaluation, name)
            found[name] = [
                {"threshold": t, **{k: v[i] for k, v in columns.items()}}
                for i, t in enumerate(one.thresholds)
            ]
    return found


def _calibration(evaluation: Evaluation) -> dict[str, Any]:
    one = evaluation.calibration
    ends = [(m / one.bins, (m + 1) / one.bins) for m in range(one.bins)]
    by_class = one.binned(one.fine_by_class)
    return {
        "ece": calibration_metrics.expected_calibration_error(evaluation),
        "mce": calibration_metrics.maximum_calibration_error(evaluation),
        "classwise_ece": calibration_metrics.classwise_calibration_error(evaluation),
        "equal_mass_ece": calibration_metrics.equal_mass_calibration_error(evaluation),
        "brier": calibration_metrics.brier(evaluation),
        "nll": calibration_metrics.negative_log_likelihood(evaluation),
        "bins": _reliability(ends, one.binned(one.fine)),
        "classes": [
            {
                "name": of.name,
                "ece": calibration.expected_calibration_error(n[i], hits[i], sums[i]),
                "bins": _reliability(ends, Bins(n[i], hits[i], sums[i])),
            }
            for n, hits, sums in (by_class,)
            for i, of in enumerate(evaluation.classes)
        ],
        "windows": _windows(evaluation),
    }


def _reliability(ends: list[tuple[float, float]], bins: Bins) -> list[dict[str, Any]]:
    stated, observed = calibration.reliability(*bins)
    return [
        {"low": low, "high": high, "n": n, "correct": right, "confidence": c, "accuracy": a}
        for (low, high), n, right, c, a in zip(
            ends, bins.number, bins.positives, stated, observed, strict=True
        )
    ]


def _windows(evaluation: Evaluation) -> dict[str, Any]:
    """For each class the curve over windows p - delta to p + delta ([J22] VII)."""
    curves = [
        calibration_metrics.windows_curve(evaluation, i, WINDOWS, WINDOW_DELTA)
        for i in range(len(evaluation.classes))
    ]
    return {
        "delta": WINDOW_DELTA,
        "at": list(WINDOWS),
        "classes": [
            {"name": one.name, "n": n, "share": share}
            for one, (n, share) in zip(evaluation.classes, curves, strict=True)
        ],
    }


def _class_distances(evaluation: Evaluation) -> dict[str, Any] | None:
    for one in evaluation.measures.values():
        if one.measure.distances is not None:
            table = np.asarray(one.measure.distances)
            # HU ignores H's scale: the maximum is that of H∘H for H scaled to a largest entry of 1.
            value, argument, certificate = simplex_maximum(np.square(table / table.max()))
            return {
                "metric": evaluation.class_metric,
                "H": table,
                "maximum": value,
                "at": argument,
                "certificate": {
                    "kind": certificate.kind,
                    "upper_bound": certificate.upper_bound,
                    "gap": certificate.gap,
                    "reached": certificate.reached,
                },
            }
    return None
