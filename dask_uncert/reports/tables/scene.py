"""The numbers of an Evaluation as CSV files: the same numbers as `results.json`, and the full ECDF grids.

Headers name units; a cell is empty where a number is undefined. The same Evaluation gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.metrics import distributions, selective
from dask_uncert.metrics.distributions import OUTCOMES
from dask_uncert.metrics.scalars import QUANTILES, SELECTIVE, scalars_by_path
from dask_uncert.reports.names import file_names, unit
from dask_uncert.reports.results.intervals import Intervals, without_intervals
from dask_uncert.reports.results.scene import undefined_as_null
from dask_uncert.summaries.evaluation import Evaluation

Table = list[list[Any]]

N = "n (pixels)"
BY_MEASURE = ("measure", "unit of values", "outcome", N, "mean", "std")


def scene_tables(
    evaluation: Evaluation, results: dict[str, Any], intervals: Intervals | None = None
) -> Iterator[tuple[str, Table]]:
    """Yield the name and the rows, a header first, of every table; intervals: those in the results."""
    found = without_intervals(results)
    calibration, files = found["calibration"], file_names(evaluation.measures)
    yield "overall", _overall(found)
    yield "excluded", _excluded(found)
    yield "classes", _table(found["classes"], _columns(found["classes"][0], pixels=("support", "predicted")))
    yield "confusion", _confusion(found)
    yield "measures", _measures(evaluation, found)
    for name, file in files.items():
        yield f"ecdf_{file}", _ecdf(evaluation, name)
    if found["weighted"] is not None:
        yield "weighted", _weighted(found["weighted"])
    yield "by_class", _by_class(evaluation, found)
    yield "by_confused_classes", _by_confused_classes(evaluation, found)
    yield "by_second_best", _by_second_best(evaluation, found)
    yield "uncertainty_confusion", _uncertainty_confusion(evaluation, found)
    yield "selective", _selective(found)
    yield "selective_points", _selective_points(found)
    for name, file in files.items():
        yield f"risk_coverage_{file}", _risk_coverage(evaluation, name)
    yield "calibration", _bins(calibration["bins"], "confidence", "correct (pixels)", "accuracy")
    yield "calibration_by_class", _calibration_by_class(calibration["classes"])
    yield "calibration_windows", _windows(calibration["windows"])
    yield "soft_confusion", _soft_confusion(found["soft_confusion"])
    yield "soft_confusion_overall", _soft_overall(found)
    yield "class_distances", _class_distances(found)
    if intervals is not None:
        yield "intervals", _intervals(evaluation, found, intervals)


def _table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Return rows as a table; columns: heading to key."""
    return [[*columns], *([row[key] for key in columns.values()] for row in rows)]


def _columns(keys: Iterable[str], pixels: Iterable[str] = (), weighted: Iterable[str] = ()) -> dict[str, str]:
    """Return columns named like their keys, some with a unit."""
    units = {**dict.fromkeys(pixels, " (pixels)"), **dict.fromkeys(weighted, " (weighted pixels)")}
    return {f"{key}{units.get(key, '')}": key for key in keys}


def _overall(found: dict[str, Any]) -> Table:
    excluded, calibration = sum(found["excluded"].values()), found["calibration"]
    rows: Table = [
        ["number", "value", "unit"],
        ["counted", found["counted"], "pixels"],
        ["excluded", excluded, "pixels"],
        ["total", found["counted"] + excluded, "pixels"],
    ]
    for name, value in found["overall"].items():
        rows.append([name, value, "classes" if name.endswith(("_n", "_undefined")) else "1"])
    rows += [[name, calibration[name], "1"] for name in ("ece", "mce", "classwise_ece", "equal_mass_ece")]
    rows += [[f"brier_{name}", value, "1"] for name, value in calibration["brier"].items()]
    nll, infinite, finite = calibration["nll"].values()
    rows += [["nll", nll, "nat"], ["nll_infinite", infinite, "pixels"], ["nll_finite", finite, "nat"]]
    distances = found["class_distances"]
    if distances is not None:
        numbers = {"": distances["maximum"], **distances["certificate"]}
        for key in ("", "upper_bound", "gap"):
            rows.append(["_".join(filter(None, ("class_distances_maximum", key))), numbers[key], "1"])
    return rows


def _weighted(weighted: dict[str, Any]) -> Table:
    names = {"name": "class", **{key: f"{key} ({weighted['unit']})" for key in ("reference", "predicted")}}
    return _table(weighted["classes"], {names.get(key, key): key for key in weighted["classes"][0]})


def _excluded(found: dict[str, Any]) -> Table:
    rows: Table = [["status", "reason", N], ["counted", "", found["counted"]]]
    return rows + [[key, reason, n] for key in ("excluded", "repaired") for reason, n in found[key].items()]


def _confusion(found: dict[str, Any]) -> Table:
    names = [row["name"] for row in found["classes"]]
    header = ["reference (rows), predicted (columns) (pixels)", *names]
    return [header, *([name, *row] for name, row in zip(names, found["confusion"], strict=True))]


def _by_outcome(evaluation: Evaluation, measures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the numbers of every measure and outcome, with what they are of."""
    for name, outcomes in measures.items():
        kind = unit(evaluation.measures[name].measure)
        for outcome in OUTCOMES:
            head = {"measure": name, "unit of values": kind, "outcome": outcome, N: outcomes[outcome]["n"]}
            yield head | outcomes[outcome]


def _measures(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    quantiles = {f"quantile {q:g}": f"{q:g}" for q in QUANTILES}
    rows = [row | row["quantiles"] for row in _by_outcome(evaluation, found["measures"])]
    return _table(rows, _columns((*BY_MEASURE, "skewness")) | quantiles)


def _ecdf(evaluation: Evaluation, name: str) -> Table:
    measure, counts, shares = evaluation.measures[name], {}, {}
    for outcome in OUTCOMES:
        histogram = distributions.histogram(evaluation, name, outcome)
        counts[f"{outcome} at or below (pixels)"] = np.cumsum(histogram).tolist()
        shares[f"{outcome} at or below (share)"] = distributions.ecdf(evaluation, name, outcome)[1].tolist()
    columns = {f"value ({unit(measure.measure)})": measure.edges[1:], **counts, **shares}
    return [[*columns], *map(list, zip(*columns.values(), strict=True))]


def _by_class(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    rows = [
        {"class of": side, **of, **row}
        for side, key in (("reference", "by_class"), ("prediction", "by_predicted_class"))
        for of in found[key]
        for row in _by_outcome(evaluation, of["measures"])
    ]
    return _table(rows, _columns(("class of", "code", "name", *BY_MEASURE)))


def _by_confused_classes(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    """Return how many pixels were right and wrong even where there is no measure."""
    rows = []
    for of in found["by_confused_classes"]:
        n, right = of["n"], of["correct"]
        empty = dict.fromkeys(BY_MEASURE, "") | {"confused classes": of["confused_classes"]}
        counts = {"correct": right, "wrong": n - right, "all": n}
        bare = [{"outcome": outcome, N: number} for outcome, number in counts.items()]
        rows += [empty | row for row in [*_by_outcome(evaluation, of["measures"])] or bare]
    return _table(rows, _columns(("confused classes", *BY_MEASURE)))


def _by_second_best(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    header = ["reference", "predicted", "reference is second best", N]
    for name, measure in evaluation.measures.items():
        header += [f"{name} {key} ({unit(measure.measure)})" for key in ("mean", "std")]
    rows: Table = [header]
    for of in found["by_second_best"]:
        near = "yes" if of["reference_second_best"] else "no"
        numbers = [of["measures"][name][key] for name in evaluation.measures for key in ("mean", "std")]
        rows.append([of["reference"], of["predicted"], near, of["n"], *numbers])
    return rows


def _uncertainty_confusion(evaluation: Evaluation, found: dict[str, Any]) -> Table:
    counts = ("TC", "FU", "FC", "TU")
    rows = [
        {"measure": name, "unit of threshold": unit(evaluation.measures[name].measure), **row}
        for name, thresholds in found["uncertainty_confusion"].items()
        for row in thresholds
    ]
    keys = ("measure", "unit of threshold", "threshold", *counts, "USen", "USpe", "UPre", "UAcc")
    return _table(rows, _columns(keys, pixels=counts))


def _selective(found: dict[str, Any]) -> Table:
    header = ["measure", *(f"{key}{end}" for key in SELECTIVE for end in ("", " lowest", " highest"))]
    rows = [
        [name, *(value for key in SELECTIVE for value in (of[key], *of[f"{key}_bound"]))]
        for name, of in found["selective"].items()
    ]
    return [header, *rows]


def _selective_points(found: dict[str, Any]) -> Table:
    rows = [
        {"measure": name, "given": given, **point}
        for name, of in found["selective"].items()
        for given, key in (("coverage", "risk_at_coverage"), ("risk", "coverage_at_risk"))
        for point in of[key]
    ]
    return _table(rows, _columns(("measure", "given", "coverage", "risk")))


def _risk_coverage(evaluation: Evaluation, name: str) -> Table:
    curve = [part.tolist() for part in selective.risk_coverage(evaluation, name)]
    rows = zip(evaluation.measures[name].edges[1:], *curve, strict=True)
    return [["kept up to", "coverage", "risk"], *map(list, rows)]


def _bins(bins: Iterable[Mapping[str, Any]], of: str, hits: str, share: str) -> Table:
    ends = {f"{of} above": "low", f"{of} up to": "high"}
    return _table(bins, ends | {N: "n", hits: "correct", f"mean {of}": "confidence", share: "accuracy"})


def _calibration_by_class(classes: list[dict[str, Any]]) -> Table:
    rows = [bin_ | {"class": of["name"]} for of in classes for bin_ in of["bins"]]
    header, *cells = _bins(rows, "probability", "of the class (pixels)", "share of the class")
    return [["class", *header], *([row["class"], *line] for row, line in zip(rows, cells, strict=True))]


def _windows(windows: dict[str, Any]) -> Table:
    rows = [
        [of["name"], *point]
        for of in windows["classes"]
        for point in zip(windows["at"], of["n"], of["share"], strict=True)
    ]
    return [["class", f"probability within {windows['delta']:g} of", N, "share of the class"], *rows]


def _soft_confusion(rows: list[dict[str, Any]]) -> Table:
    settings = ("class", "threshold", "sigma", "damping", "uncertainty", "distribution")
    metrics = [key for row in rows[:1] for key in row if key not in (*settings, *CELLS, "bound")]
    sums = _columns(CELLS, weighted=CELLS) | {"bound of each sum (weighted pixels)": "bound"}
    return _table(rows, _columns(settings) | sums | _columns(metrics))


def _soft_overall(found: dict[str, Any]) -> Table:
    settings = ("threshold", "sigma", "damping", "uncertainty", "distribution")
    rows: Table = [[*settings, "mean", "metric", "value", "n (classes)", "undefined (classes)"]]
    for row in found["soft_confusion_overall"]:
        head = [row[key] for key in settings]
        rows += [[*head, "macro", name, *mean.values()] for name, mean in row["macro"].items()]
        rows += [[*head, "micro", name, value, "", ""] for name, value in row["micro"].items()]
    return rows


def _class_distances(found: dict[str, Any]) -> Table:
    """Return H as it was used, and the mixture of classes at which q'(H∘H)q is largest."""
    names, distances = [row["name"] for row in found["classes"]], found["class_distances"]
    rows = () if distances is None else zip(names, distances["H"], distances["at"], strict=True)
    return [["class", *names, "share at the maximum"], *([name, *row, share] for name, row, share in rows)]


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
