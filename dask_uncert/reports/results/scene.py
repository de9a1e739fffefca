"""`results.json`: every number of an Evaluation, as plain data. Undefined numbers are null."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from dask_uncert.formulas import calibration as calibration_formulas
from dask_uncert.formulas import confusion, rankings
from dask_uncert.formulas.homophily import squared_distances
from dask_uncert.formulas.missing_data_bounds import accuracy_bounds, f1_bounds
from dask_uncert.formulas.simplex_maximum import simplex_maximum
from dask_uncert.metrics import calibration as calibration_metrics
from dask_uncert.metrics import distributions
from dask_uncert.metrics.advice import advice
from dask_uncert.metrics.conventions import conventions
from dask_uncert.metrics.rankings import best_thresholds
from dask_uncert.metrics.remarks import reference_remarks
from dask_uncert.metrics.resampling_units import Units
from dask_uncert.metrics.scalars import MACRO, scalars_by_path
from dask_uncert.metrics.tile_bootstrap import TileUnits
from dask_uncert.reports.results import by_setting
from dask_uncert.reports.results.breakdowns import by_class, by_confused, by_second_best, joint_distributions
from dask_uncert.reports.results.intervals import Intervals, nested, scene_intervals
from dask_uncert.reports.results.prediction_sets import prediction_sets, risk_control
from dask_uncert.reports.results.zones import zone_results
from dask_uncert.summaries.calibration import Bins
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.ledger import REASONS, REPAIRS

ECDF_STEPS = 100  # the full grid is in tables/ and summary.zarr
WINDOWS = tuple(i / 20 for i in range(1, 20))
WINDOW_DELTA = 0.05
BEST = ("f1", "youden")
FORMAT = 1


def scene_results(
    evaluation: Evaluation, intervals: Intervals | None = None, units: Units | None = None
) -> dict[str, Any]:
    """Return every number of an evaluation, ready for JSON.

    intervals: by default those of the scene's tiles. units: patients of a cohort, by default the scene's tiles.
    """
    if units is None and evaluation.tiles is not None:
        units = TileUnits(evaluation)
    intervals = scene_intervals(evaluation) if intervals is None else intervals
    scalars = nested(scalars_by_path(evaluation), intervals)
    ledger, measures = evaluation.ledger, list(evaluation.measures)
    stated = evaluation.calibration is not None
    results = {
        "format": FORMAT,
        "counted": int(ledger.counted),
        "excluded": ledger.reasons(),
        "excluded_by_class": excluded_by_class(evaluation),
        "remarks": reference_remarks(evaluation),
        "advice": [sentence._asdict() for sentence in advice(evaluation)],
        "repaired": dict(zip(REPAIRS, ledger.repaired.tolist(), strict=True)),
        "overall": _overall(evaluation, scalars["overall"]),
        "classes": _classes(evaluation, scalars["classes"]),
        "confusion": evaluation.decisions.confusion,
        "weighted": _weighted(evaluation, scalars["weighted"]) if evaluation.weighted else None,
        "measures": {name: _measure(evaluation, name, scalars["measures"][name]) for name in measures},
        "by_class": by_class(evaluation, reference=True),
        "by_predicted_class": by_class(evaluation, reference=False),
        **(
            {"by_confused_classes": by_confused(evaluation), "by_second_best": by_second_best(evaluation)}
            if stated
            else {}
        ),
        "uncertainty_confusion": {
            name: by_setting.uncertainty_confusion(evaluation, name, rows)
            for name, rows in scalars.get("uncertainty_confusion", {}).items()
        },
        **({"calibration": _calibration(evaluation, scalars["calibration"])} if stated else {}),
        "selective": {
            name: by_setting.selective_prediction(evaluation, name, scalars["selective"][name]) for name in measures
        },
        **({"ranking": _ranking(evaluation, scalars["ranking"])} if stated else {}),
        "prediction_sets": prediction_sets(evaluation, scalars.get("prediction_sets", {}), units),
        "risk_control": risk_control(evaluation, units),
        "conventions": [row._asdict() for row in conventions(evaluation, evaluation.report_options.conventions)],
        **({"joint_distributions": joints} if (joints := joint_distributions(evaluation)) else {}),
        "soft_confusion": by_setting.soft_confusion(evaluation, scalars.get("soft_confusion", {})),
        "soft_confusion_overall": by_setting.soft_confusion_overall(evaluation),
        "class_distances": _class_distances(evaluation),
    }
    if intervals is not None:
        results["confidence"] = intervals.described()
    if evaluation.zones is not None and evaluation.zones.table:
        results["zones"] = zone_results(evaluation)
    return undefined_as_null(results)


def excluded_by_class(evaluation: Evaluation) -> dict[str, dict[str, int]]:
    """Return the number of excluded pixels by reason and reference class, "" where the class is unknown."""
    names = [*evaluation.class_names, ""]
    rows = zip(REASONS, evaluation.ledger.excluded.tolist(), strict=True)
    return {reason: {name: n for name, n in zip(names, row, strict=True) if n} for reason, row in rows if any(row)}


def to_json(data: Any) -> str:
    """Return plain data as JSON text, as in `results.json`."""
    return json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def undefined_as_null(mapping: dict[str, Any]) -> dict[str, Any]:
    """Return nested mappings and lists as plain data: arrays as lists, numbers that are not finite as None."""
    return {key: _plain(value) for key, value in mapping.items()}


def _plain(value: Any) -> Any:
    if type(value) is float:  # as most are
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return undefined_as_null(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _overall(evaluation: Evaluation, scalars: dict[str, Any]) -> dict[str, Any]:
    matrix, lost = evaluation.decisions.confusion, evaluation.ledger.lost()
    support, numbers = confusion.support(matrix), {}
    for key, value in scalars.items():
        numbers[key] = value
        over, _, metric = key.partition("_")
        if over in ("macro", "foreground") and metric in MACRO:
            kept = slice(None) if over == "macro" else evaluation.foreground
            mean = confusion.macro(getattr(confusion, metric)(matrix)[kept], support[kept])
            numbers |= {f"{key}_n": mean.n, f"{key}_undefined": mean.undefined}
    return {**numbers, "accuracy_bounds": accuracy_bounds(matrix, lost)} if lost.any() else numbers


def _classes(evaluation: Evaluation, scalars: dict[str, Any]) -> list[dict[str, Any]]:
    matrix, lost = evaluation.decisions.confusion, evaluation.ledger.lost()
    rows = []
    for i, c in enumerate(evaluation.classes):
        counts = {"support": matrix[i].sum(), "predicted": matrix[:, i].sum()}
        bounds = {"f1_bounds": f1_bounds(matrix, lost)[:, i]} if lost.any() else {}
        rows.append({"code": c.code, "name": c.name, **counts, **scalars[c.name], **bounds})
    return rows


def _weighted(evaluation: Evaluation, scalars: dict[str, Any]) -> dict[str, Any]:
    (weighted,) = evaluation.weighted
    classes = [{"code": c.code, "name": c.name, **scalars["classes"][c.name]} for c in evaluation.classes]
    return {"unit": weighted.unit, **scalars, "classes": classes, "confusion": weighted.confusion}


def _measure(evaluation: Evaluation, name: str, scalars: dict[str, Any]) -> dict[str, Any]:
    distribution, n = evaluation.measures[name], evaluation.decisions.by_confused
    steps = np.array([distribution.reach * i / ECDF_STEPS for i in range(1, ECDF_STEPS + 1)])
    edges = np.asarray(distribution.edges)[1:]
    bins = np.searchsorted(edges, steps * (1 - 1e-12))
    numbers: dict[str, Any] = {}
    shares: dict[str, Any] = {}
    for outcome, chosen in distributions.OUTCOMES.items():
        numbers[outcome] = {"n": n[:, chosen].sum(), **scalars[outcome]}
        shares[outcome] = distributions.ecdf(evaluation, name, outcome)[1][bins]
    return {"definition": _definition(distribution), **numbers, "ecdf": {"at": edges[bins], **shares}}


def _ranking(evaluation: Evaluation, scalars: dict[str, Any]) -> dict[str, Any]:
    number, positives, _ = evaluation.stated.fine_by_class
    areas = {
        "auroc": rankings.auroc(number, positives),
        "average_precision": rankings.average_precision(number, positives),
    }
    thresholds = {key: best_thresholds(evaluation, key) for key in BEST}
    rows = {}
    for i, c in enumerate(evaluation.classes):
        bounds = {f"{key}_bound": [area.low[i], area.high[i]] for key, area in areas.items()}
        best = {key: found[i]._asdict() for key, found in thresholds.items()}
        rows[c.name] = {**scalars[c.name], **bounds, "best": best}
    return rows


def _definition(distribution: Distribution) -> dict[str, Any]:
    options = {key: getattr(distribution.measure, key) for key in ("kind", "distance", "n", "alpha", "function")}
    options["upper"] = distribution.upper
    return {key: value for key, value in options.items() if value is not None}


def _calibration(evaluation: Evaluation, scalars: dict[str, Any]) -> dict[str, Any]:
    calibration = evaluation.stated
    by_class = zip(*calibration.binned(calibration.fine_by_class), strict=True)
    classes, nll = scalars.pop("classes"), scalars["nll"]
    return {
        **{key: scalars[key] for key in ("ece", "mce", "classwise_ece")},
        **scalars,
        "equal_mass_ece_bound": calibration_metrics.equal_mass_bound(evaluation),
        "nll": {"value": nll["value"], "infinite": calibration.infinite, **nll},
        "bins": _reliability(calibration.binned(calibration.fine)),
        "classes": [
            {"name": c.name, **classes[c.name], "corp": _corp(evaluation, c.name), "bins": _reliability(Bins(*tally))}
            for c, tally in zip(evaluation.classes, by_class, strict=True)
        ],
        "windows": _windows(evaluation),
    }


def _corp(evaluation: Evaluation, class_name: str) -> dict[str, Any]:
    """Return CORP's parts of a class's Brier score, with what bins hide of its pixels."""
    parts = calibration_metrics.corp(evaluation, class_name)
    numbers: dict[str, Any] = {}
    for key, part in zip(("brier", "mcb", "dsc"), parts[:3], strict=True):
        numbers |= {key: part.value, f"{key}_bound": [part.low, part.high]}
    return {**numbers, "unc": parts.uncertainty}


def _reliability(bins: Bins) -> list[dict[str, Any]]:
    keys = ("low", "high", "n", "correct", "confidence", "accuracy")
    ends = np.arange(len(bins.number) + 1) / len(bins.number)
    columns = (ends[:-1], ends[1:], bins.number, bins.positives, *calibration_formulas.reliability(*bins))
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def _windows(evaluation: Evaluation) -> dict[str, Any]:
    """Return the calibration curve of each class over windows from p - delta to p + delta. [J22] VII"""
    classes = []
    for i, c in enumerate(evaluation.classes):
        n, share = calibration_metrics.windows_curve(evaluation, i, WINDOWS, WINDOW_DELTA)
        classes.append({"name": c.name, "n": n, "share": share})
    return {"delta": WINDOW_DELTA, "at": WINDOWS, "classes": classes}


def _class_distances(evaluation: Evaluation) -> dict[str, Any] | None:
    for distribution in evaluation.measures.values():
        if distribution.measure.distances is not None:
            table = np.asarray(distribution.measure.distances)
            squared = squared_distances(table)  # of which the pass has found the maximum
            value, argument, certificate = simplex_maximum(squared)
            # HU does not depend on the scale of H: the maximum is for H with a largest entry of 1.
            numbers = {"metric": evaluation.class_metric, "H": table, "maximum": value / squared.max(), "at": argument}
            bound = {"kind": certificate.kind, "upper_bound": certificate.upper_bound / squared.max()}
            return {**numbers, "certificate": {**bound, "gap": certificate.gap, "reached": certificate.reached}}
    return None
