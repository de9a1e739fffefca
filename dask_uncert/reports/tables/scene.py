"""The numbers of an Evaluation as CSV files: the same numbers as `results.json`, and the full ECDF grids.

UTF-8, one header row that names units, `\\n` line ends, floats with every digit (`repr`), an empty cell where
a number is undefined. The same Evaluation gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dask_uncert.metrics import distributions
from dask_uncert.metrics import selective as selective_metrics
from dask_uncert.metrics.scalars import QUANTILES, scalars_by_path
from dask_uncert.reports.names import file_names, unit
from dask_uncert.reports.results.intervals import Intervals, scene_intervals, without_intervals
from dask_uncert.reports.results.scene import results, undefined_as_null
from dask_uncert.reports.tables.csv import as_csv
from dask_uncert.summaries.evaluation import Evaluation

Row = list[Any]
Table = list[Row]

PIXELS = " (pixels)"
WEIGHTS = " (weighted pixels)"
SPREAD = ("n", "mean", "std")
CELLS = ("TP", "TN", "FP", "FN")
SELECTIVE = ("aurc", "e_aurc", "augrc", "error_auroc", "error_auprc")
SOFT_NOT_METRICS = ("class", "threshold", "sigma", "damping", "uncertainty", "distribution", *CELLS, "bound")


def write_tables(
    evaluation: Evaluation,
    folder: str | Path,
    found: dict[str, Any] | None = None,
    intervals: Intervals | None = None,
) -> list[str]:
    """Write every table into `folder`, made if need be; return the file names in the order written.

    found, intervals: results and the intervals in them, if the caller has them already.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if found is None:
        intervals = scene_intervals(evaluation)
        found = results(evaluation, intervals)
    written = []
    for name, table in tables(evaluation, found, intervals):
        (folder / f"{name}.csv").write_text(as_csv(table), encoding="utf-8", newline="")
        written.append(f"{name}.csv")
    return written


def tables(
    evaluation: Evaluation, found: dict[str, Any], intervals: Intervals | None = None
) -> Iterator[tuple[str, Table]]:
    """Yield the name and the rows, a header first, of every table."""
    found = without_intervals(found)
    yield "overall", _overall(evaluation, found)
    yield "excluded", _excluded(found)
    yield "classes", _classes(found)
    yield "confusion", _confusion(found)
    yield "measures", _measures(evaluation, found)
    names = file_names(evaluation.measures)
    for name in evaluation.measures:
        yield f"ecdf_{names[name]}", _ecdf(evaluation, name)
    if found["weighted"] is not None:
        yield "weighted", _weighted(found["weighted"])
    yield "by_class", _by_class(evaluation, found)
    yield "by_confused_classes", _by_confused_classes(evaluation, found)
    yield "by_second_best", _by_second_best(evaluation, found)
    yield "uncertainty_confusion", _uncertainty_confusion(evaluation, found)
    yield "selective", _selective(found)
    yield "selective_points", _selective_points(found)
    for name in evaluation.measures:
        yield f"risk_coverage_{names[name]}", _risk_coverage(evaluation, name)
    yield "calibration", _calibration(found)
    yield "calibration_by_class", _calibration_by_class(found)
    yield "calibration_windows", _windows(found)
    yield "soft_confusion", _soft_confusion(found)
    yield "soft_confusion_overall", _soft_overall(found)
    yield "class_distances", _class_distances(evaluation, found)
    if intervals is not None:
        yield "intervals", _intervals(evaluation, found, intervals)


def _overall(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    ledger = evaluation.ledger
    rows: Table = [
        ["number", "value", "unit"],
        ["counted", found["counted"], "pixels"],
        ["excluded", int(ledger.excluded.sum()), "pixels"],
        ["total", int(ledger.counted + ledger.excluded.sum()), "pixels"],
    ]
    for name, value in found["overall"].items():
        rows.append([name, value, "classes" if name.endswith(("_n", "_undefined")) else "1"])
    calibration = found["calibration"]
    rows += [[name, calibration[name], "1"] for name in ("ece", "mce", "classwise_ece", "equal_mass_ece")]
    rows += [[f"brier_{name}", value, "1"] for name, value in calibration["brier"].items()]
    nll, infinite, finite = calibration["nll"].values()
    rows += [["nll", nll, "nat"], ["nll_infinite", infinite, "pixels"], ["nll_finite", finite, "nat"]]
    distances = found["class_distances"]
    if distances is not None:
        certificate = distances["certificate"]
        rows.append(["class_distances_maximum", distances["maximum"], "1"])
        rows.append(["class_distances_maximum_upper_bound", certificate["upper_bound"], "1"])
        rows.append(["class_distances_maximum_gap", certificate["gap"], "1"])
    return rows


def _weighted(found: dict[str, Any]) -> Table:
    unit = f" ({found['unit']})"
    head = ["code", "class", f"reference{unit}", f"predicted{unit}", "precision", "recall", "f1", "iou"]
    return [head, *(list(one.values()) for one in found["classes"])]


def _excluded(found: dict[str, Any]) -> Table:
    return [
        ["what", "reason", f"n{PIXELS}"],
        ["counted", "", found["counted"]],
        *(["excluded", reason, n] for reason, n in found["excluded"].items()),
        *(["repaired", reason, n] for reason, n in found["repaired"].items()),
    ]


def _classes(found: dict[str, Any]) -> Table:
    columns = list(found["classes"][0])
    header = [f"{name}{PIXELS}" if name in ("support", "predicted") else name for name in columns]
    return [header, *([one[name] for name in columns] for one in found["classes"])]


def _confusion(found: dict[str, Any]) -> Table:
    names = [one["name"] for one in found["classes"]]
    header = [f"reference (rows), predicted (columns){PIXELS}", *names]
    return [header, *([name, *row] for name, row in zip(names, found["confusion"], strict=True))]


def _measures(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    shares = [f"{q:g}" for q in QUANTILES]
    header = ["measure", "unit of values", "outcome", f"n{PIXELS}", "mean", "std", "skewness"]
    rows: Table = [[*header, *(f"quantile {share}" for share in shares)]]
    for name, one in evaluation.measures.items():
        for outcome in distributions.OUTCOMES:
            of = found["measures"][name][outcome]
            numbers = [of[key] for key in ("n", "mean", "std", "skewness")]
            rows.append([name, unit(one.measure), outcome, *numbers, *(of["quantiles"][q] for q in shares)])
    return rows


def _ecdf(evaluation: Evaluation, name: str) -> Table:
    one = evaluation.measures[name]
    counts = [
        np.cumsum(distributions.histogram(evaluation, name, outcome)) for outcome in distributions.OUTCOMES
    ]
    shares = [distributions.ecdf(evaluation, name, outcome)[1] for outcome in distributions.OUTCOMES]
    header = [
        f"value ({unit(one.measure)})",
        *(f"{outcome} at or below{PIXELS}" for outcome in distributions.OUTCOMES),
    ]
    header += [f"{outcome} at or below (share)" for outcome in distributions.OUTCOMES]
    columns = [np.asarray(one.edges)[1:], *counts, *shares]
    return [header, *(list(row) for row in zip(*(c.tolist() for c in columns), strict=True))]


def _spreads(evaluation: Evaluation, measures: dict[str, Any]) -> Iterator[Row]:
    for name, outcomes in measures.items():
        for outcome, of in outcomes.items():
            kind = unit(evaluation.measures[name].measure)
            yield [name, kind, outcome, *(of[key] for key in SPREAD)]


SPREAD_HEADER = ["measure", "unit of values", "outcome", f"n{PIXELS}", "mean", "std"]


def _by_class(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    rows: Table = [["class of", "code", "name", *SPREAD_HEADER]]
    for side, key in (("reference", "by_class"), ("prediction", "by_predicted_class")):
        for one in found[key]:
            spreads = _spreads(evaluation, one["measures"])
            rows += [[side, one["code"], one["name"], *spread] for spread in spreads]
    return rows


def _by_confused_classes(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    """Without measures the rows still say how many pixels were right and wrong."""
    rows: Table = [["confused classes", *SPREAD_HEADER]]
    for one in found["by_confused_classes"]:
        n, right = one["n"], one["correct"]
        counts = {"correct": right, "wrong": n - right, "all": n}
        spreads: Iterable[Row] = _spreads(evaluation, one["measures"])
        if not one["measures"]:
            spreads = [["", "", outcome, number, None, None] for outcome, number in counts.items()]
        rows += [[one["confused_classes"], *spread] for spread in spreads]
    return rows


def _by_second_best(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    measures = list(evaluation.measures)
    header = ["reference", "predicted", "reference is second best", f"n{PIXELS}"]
    for name in measures:
        kind = unit(evaluation.measures[name].measure)
        header += [f"{name} mean ({kind})", f"{name} std ({kind})"]
    rows: Table = [header]
    for one in found["by_second_best"]:
        near = "yes" if one["reference_second_best"] else "no"
        spreads = [one["measures"][name][key] for name in measures for key in ("mean", "std")]
        rows.append([one["reference"], one["predicted"], near, one["n"], *spreads])
    return rows


def _uncertainty_confusion(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    counts, metrics = ("TC", "FU", "FC", "TU"), ("USen", "USpe", "UPre", "UAcc")
    header = ["measure", "unit of threshold", "threshold", *(f"{name}{PIXELS}" for name in counts), *metrics]
    rows: Table = [header]
    for name, thresholds in found["uncertainty_confusion"].items():
        kind = unit(evaluation.measures[name].measure)
        for at in thresholds:
            rows.append([name, kind, at["threshold"], *(at[key] for key in (*counts, *metrics))])
    return rows


def _selective(found: dict[str, Any]) -> Table:
    header = ["measure"]
    for key in SELECTIVE:
        header += [key, f"{key} lowest", f"{key} highest"]
    rows: Table = [header]
    for name, of in found["selective"].items():
        rows.append([name, *(v for key in SELECTIVE for v in (of[key], *of[f"{key}_bound"]))])
    return rows


def _selective_points(found: dict[str, Any]) -> Table:
    rows: Table = [["measure", "given", "coverage", "risk"]]
    for name, of in found["selective"].items():
        rows += [[name, "coverage", p["coverage"], p["risk"]] for p in of["risk_at_coverage"]]
        rows += [[name, "risk", p["coverage"], p["risk"]] for p in of["coverage_at_risk"]]
    return rows


def _risk_coverage(evaluation: Evaluation, name: str) -> Table:
    edges = evaluation.measures[name].edges[1:]
    coverage, risk = selective_metrics.risk_coverage(evaluation, name)
    rows = [list(row) for row in zip(edges, coverage.tolist(), risk.tolist(), strict=True)]
    return [["kept up to", "coverage", "risk"], *rows]


def _soft_overall(found: dict[str, Any]) -> Table:
    settings = ("threshold", "sigma", "damping", "uncertainty", "distribution")
    rows: Table = [[*settings, "mean", "metric", "value", "n (classes)", "undefined (classes)"]]
    for row in found["soft_confusion_overall"]:
        at = [row[key] for key in settings]
        rows += [[*at, "macro", name, *one.values()] for name, one in row["macro"].items()]
        rows += [[*at, "micro", name, value, "", ""] for name, value in row["micro"].items()]
    return rows


def _calibration(found: dict[str, Any]) -> Table:
    header = ["confidence above", "confidence up to", f"n{PIXELS}", f"correct{PIXELS}"]
    columns = ("low", "high", "n", "correct", "confidence", "accuracy")
    return [
        [*header, "mean confidence", "accuracy"],
        *([one[key] for key in columns] for one in found["calibration"]["bins"]),
    ]


def _calibration_by_class(found: dict[str, Any]) -> Table:
    header = ["class", "probability above", "probability up to", f"n{PIXELS}", f"of the class{PIXELS}"]
    columns = ("low", "high", "n", "correct", "confidence", "accuracy")
    rows = [
        [of["name"], *(one[key] for key in columns)]
        for of in found["calibration"]["classes"]
        for one in of["bins"]
    ]
    return [[*header, "mean probability", "share of the class"], *rows]


def _windows(found: dict[str, Any]) -> Table:
    windows = found["calibration"]["windows"]
    delta = windows["delta"]
    rows = [
        [of["name"], at, n, share]
        for of in windows["classes"]
        for at, n, share in zip(windows["at"], of["n"], of["share"], strict=True)
    ]
    return [["class", f"probability within {delta:g} of", f"n{PIXELS}", "share of the class"], *rows]


def _soft_confusion(found: dict[str, Any]) -> Table:
    settings = ["class", "threshold", "sigma", "damping", "uncertainty", "distribution"]
    some = found["soft_confusion"][0] if found["soft_confusion"] else {}
    metrics = [key for key in some if key not in SOFT_NOT_METRICS]
    header = [*settings, *(f"{cell}{WEIGHTS}" for cell in CELLS), f"bound of each sum{WEIGHTS}", *metrics]
    columns = [*settings, *CELLS, "bound", *metrics]
    return [header, *([row[key] for key in columns] for row in found["soft_confusion"])]


def _class_distances(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    """H as it was used, and the mixture of classes at which q'(H∘H)q is largest."""
    names = [one.name for one in evaluation.classes]
    header = ["class", *names, "share at the maximum"]
    distances = found["class_distances"]
    if distances is None:
        return [header]
    parts = zip(names, distances["H"], distances["at"], strict=True)
    return [header, *([name, *row, share] for name, row, share in parts)]


def _intervals(evaluation: Evaluation, found: dict[str, Any], intervals: Intervals) -> Table:
    """Return a row for every scalar that has an interval, in the order of results.json."""
    level = f"{100 * intervals.confidence.level:g} %"
    rows: Table = [["number", "value", f"low ({level})", f"high ({level})", "undefined replicates"]]
    values = scalars_by_path(evaluation)
    for path in sorted(values, key=lambda path: _position(found, path)):
        name = "/".join(path)
        if name in intervals.by_name:
            rows.append(undefined_as_null([name, values[path], *intervals.by_name[name]]))
    return rows


def _position(found: Any, path: tuple[str, ...]) -> tuple[int, ...]:
    """Return where a scalar stands in results, for sorting; rows of a list keep their order."""
    if not path or not isinstance(found, dict):
        return ()
    return (list(found).index(path[0]), *_position(found[path[0]], path[1:]))
