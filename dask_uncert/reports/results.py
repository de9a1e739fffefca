"""`results.json`: every number of an Evaluation, as plain data. Undefined numbers are null."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np

from dask_uncert.formulas import agreement, distributions, selective
from dask_uncert.formulas.simplex import simplex_maximum
from dask_uncert.summaries import readings
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.ledger import REASONS, REPAIRS
from dask_uncert.summaries.soft_confusion import SoftConfusion

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
ECDF_STEPS = 100  # the full grid stands in tables/ and summary.zarr
FORMAT = 1


def results(evaluation: Evaluation) -> dict[str, Any]:
    """Every number of the evaluation, JSON-ready; the same Evaluation gives the same numbers."""
    ledger = evaluation.ledger
    found = {
        "format": FORMAT,
        "counted": int(ledger.counted),
        "excluded": dict(zip(REASONS, ledger.excluded.tolist(), strict=True)),
        "repaired": dict(zip(REPAIRS, ledger.repaired.tolist(), strict=True)),
        "overall": _overall(evaluation),
        "classes": _classes(evaluation),
        "confusion": readings.confusion_matrix(evaluation).tolist(),
        "measures": {name: _measure(evaluation, name) for name in evaluation.measures},
        "by_class": _by_class(evaluation, reference=True),
        "by_predicted_class": _by_class(evaluation, reference=False),
        "by_confused_classes": _by_confused(evaluation),
        "by_second_best": _by_second_best(evaluation),
        "uncertainty_confusion": _uncertainty_confusion(evaluation),
        "calibration": _calibration(evaluation),
        "selective": {name: _selective(evaluation, name) for name in evaluation.measures},
        "soft_confusion": [row for one in evaluation.soft_confusion for row in _soft(evaluation, one)],
        "class_distances": _class_distances(evaluation),
    }
    plain: dict[str, Any] = _undefined_as_null(found)
    return plain


def to_json(found: dict[str, Any]) -> str:
    """Results as the text of `results.json`."""
    return json.dumps(found, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _undefined_as_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _undefined_as_null(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_undefined_as_null(v) for v in value]
    if isinstance(value, np.ndarray):
        return _undefined_as_null(value.tolist())
    if isinstance(value, np.generic):
        return _undefined_as_null(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _overall(evaluation: Evaluation) -> dict[str, Any]:
    matrix = readings.confusion_matrix(evaluation)
    support = agreement.support(matrix)
    found: dict[str, Any] = {
        "accuracy": agreement.accuracy(matrix),
        "kappa": agreement.kappa(matrix),
        "matthews": agreement.matthews(matrix),
    }
    for name in ("precision", "recall", "f1", "iou"):
        value, n, undefined = agreement.macro(getattr(agreement, name)(matrix), support)
        found[f"macro_{name}"] = value
        found[f"macro_{name}_n"] = n
        found[f"macro_{name}_undefined"] = undefined
    return found


def _classes(evaluation: Evaluation) -> list[dict[str, Any]]:
    matrix = readings.confusion_matrix(evaluation)
    cells = agreement.cells(matrix)
    metrics = agreement.cell_metrics(*cells)
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
    for outcome in readings.OUTCOMES:
        values = readings.quantiles(evaluation, name, QUANTILES, outcome)
        found[outcome] = {
            **readings.moments(evaluation, name, outcome),
            "quantiles": {f"{q:g}": v for q, v in zip(QUANTILES, values.tolist(), strict=True)},
        }
    at = [one.upper * i / ECDF_STEPS for i in range(1, ECDF_STEPS + 1)]
    edges = np.asarray(one.edges)[1:]
    places = np.searchsorted(edges, np.asarray(at) * (1 - 1e-12))
    found["ecdf"] = {"at": edges[places]}
    for outcome in readings.OUTCOMES:
        found["ecdf"][outcome] = readings.ecdf(evaluation, name, outcome)[1][places]
    return found


def _definition(one: Distribution) -> dict[str, Any]:
    measure = one.measure
    words = {"kind": measure.kind, "distance": measure.distance, "n": measure.n, "alpha": measure.alpha}
    return {**{k: v for k, v in words.items() if v is not None}, "upper": one.upper}


def _spread(one: Distribution, n: Any, sums: Any) -> dict[str, Any]:
    return {
        "n": n,
        "mean": distributions.mean(n, sums) * one.upper,
        "std": distributions.standard_deviation(n, sums) * one.upper,
    }


def _by_class(evaluation: Evaluation, reference: bool) -> list[dict[str, Any]]:
    """Mean and standard deviation of every measure by reference (or predicted) class and outcome."""
    pairs = evaluation.decisions.pairs
    rows = []
    for i, one in enumerate(evaluation.classes):
        right = np.zeros(pairs.shape[:2], bool)
        chosen = right.copy()
        right[i, i] = True
        chosen[(i, slice(None)) if reference else (slice(None), i)] = True
        row: dict[str, Any] = {"code": one.code, "name": one.name, "measures": {}}
        for name, d in evaluation.measures.items():
            groups = {"correct": chosen & right, "wrong": chosen & ~right, "all": chosen}
            row["measures"][name] = {
                outcome: _spread(d, pairs[where].sum(), d.by_pair[where].sum(axis=(0, 1)))
                for outcome, where in groups.items()
            }
        rows.append(row)
    return rows


def _by_confused(evaluation: Evaluation) -> list[dict[str, Any]]:
    rows = []
    for number, n in enumerate(evaluation.decisions.by_confused):
        if n.sum() == 0:
            continue
        row: dict[str, Any] = {"confused_classes": number, "n": n.sum(), "correct": n[1], "measures": {}}
        for name, d in evaluation.measures.items():
            row["measures"][name] = {
                outcome: _spread(d, n[list(chosen)].sum(), d.by_confused[number, chosen].sum(axis=0))
                for outcome, chosen in readings.OUTCOMES.items()
            }
        rows.append(row)
    return rows


def _by_second_best(evaluation: Evaluation) -> list[dict[str, Any]]:
    """By reference class, predicted class and whether the reference was second best ([C23] figure 15)."""
    pairs = evaluation.decisions.pairs
    rows = []
    for i, k, near in zip(*np.nonzero(pairs), strict=True):
        rows.append(
            {
                "reference": evaluation.classes[i].name,
                "predicted": evaluation.classes[k].name,
                "reference_second_best": bool(near),
                "n": pairs[i, k, near],
                "measures": {
                    name: _spread(d, pairs[i, k, near], d.by_pair[i, k, near])
                    for name, d in evaluation.measures.items()
                },
            }
        )
    return rows


def _uncertainty_confusion(evaluation: Evaluation) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name, one in evaluation.measures.items():
        if one.thresholds:
            columns = readings.uncertainty_confusion(evaluation, name)
            found[name] = [
                {"threshold": t, **{k: v[i] for k, v in columns.items()}}
                for i, t in enumerate(one.thresholds)
            ]
    return found


def _calibration(evaluation: Evaluation) -> dict[str, Any]:
    bins = evaluation.calibration
    confidence, accuracy = readings.reliability(evaluation)
    return {
        "ece": readings.expected_calibration_error(evaluation),
        "mce": readings.maximum_calibration_error(evaluation),
        "bins": [
            {"low": low, "high": high, "n": n, "correct": right, "confidence": c, "accuracy": a}
            for (low, high), n, right, c, a in zip(
                itertools.pairwise(bins.edges), bins.number, bins.right, confidence, accuracy, strict=True
            )
        ],
    }


def _selective(evaluation: Evaluation, name: str) -> dict[str, Any]:
    right, wrong = (readings.histogram(evaluation, name, outcome) for outcome in ("correct", "wrong"))
    found: dict[str, Any] = {}
    for key, formula in (
        ("aurc", selective.aurc),
        ("e_aurc", selective.excess_aurc),
        ("augrc", selective.augrc),
        ("error_auroc", selective.error_auroc),
        ("error_auprc", selective.error_auprc),
    ):
        found[key] = formula(right, wrong)
        found[f"{key}_bound"] = [bound[()] for bound in selective.bounds(formula, right, wrong)]
    return found


def _soft(evaluation: Evaluation, one: SoftConfusion) -> list[dict[str, Any]]:
    s = one.settings
    cells, metrics = readings.soft_cells(one), readings.soft_metrics(one)
    rows = []
    for i, k, m in np.ndindex(len(s.thresholds), len(s.sigmas), len(s.dampings)):
        rows.append(
            {
                "class": evaluation.classes[s.class_index].name,
                "threshold": s.thresholds[i],
                "sigma": s.sigmas[k],
                "damping": s.dampings[m],
                "uncertainty": s.uncertainty,
                "distribution": s.distribution,
                **{name: values[i, k, m] for name, values in cells.items()},
                **{name: values[i, k, m] for name, values in metrics.items()},
                # Each weight was rounded to 2**-44: that is all the sums can be off by.
                "bound": int(evaluation.ledger.counted) * 2.0**-45,
            }
        )
    return rows


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
