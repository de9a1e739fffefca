"""Tables of an Evaluation: the numbers of `results.json`, and the full ECDFs and risk-coverage curves.

Headings include units; cells of undefined numbers are empty. The same Evaluation gives the same bytes.
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
from dask_uncert.reports.results.intervals import INTERVAL, Intervals, without_intervals
from dask_uncert.reports.results.scene import undefined_as_null
from dask_uncert.reports.tables.joint_distributions import joint_distributions_table
from dask_uncert.reports.tables.prediction_sets import prediction_sets_table
from dask_uncert.summaries.evaluation import Evaluation

Table = list[list[Any]]

N = "n (pixels)"
BY_MEASURE = ("measure", "unit of values", "outcome", N, "mean", "std")


def scene_tables(
    evaluation: Evaluation, results: dict[str, Any], intervals: Intervals | None = None
) -> Iterator[tuple[str, Table]]:
    """Yield the name and the rows, a header first, of every table; intervals: those in the results."""
    yield "overall", _overall(results)
    sets = results["prediction_sets"]
    classes, results = [_beside(row) for row in results["classes"]], without_intervals(results)
    files = file_names(evaluation.measures)
    yield "excluded", _excluded(results)
    yield "classes", _table(classes, _columns(classes[0], pixels=("support", "predicted")))
    yield "confusion", _confusion(results)
    yield "measures", _measures(evaluation, results)
    for name, file in files.items():
        yield f"ecdf_{file}", _ecdf(evaluation, name)
    if results["weighted"] is not None:
        yield "weighted", _weighted(results["weighted"])
    yield "by_class", _by_class(evaluation, results)
    calibration = results.get("calibration")
    if calibration is not None:
        yield "by_confused_classes", _by_confused_classes(evaluation, results)
        yield "by_second_best", _by_second_best(evaluation, results)
    if "joint_distributions" in results:
        yield "joint_distributions", joint_distributions_table(results["joint_distributions"])
    yield "uncertainty_confusion", _uncertainty_confusion(evaluation, results)
    yield "selective", _selective(results)
    yield "selective_points", _selective_points(results)
    for name, file in files.items():
        yield f"risk_coverage_{file}", _risk_coverage(evaluation, name)
    if calibration is not None:
        yield "calibration", _bins(calibration["bins"], "confidence", "correct (pixels)", "accuracy")
        yield "calibration_by_class", _calibration_by_class(calibration["classes"])
        yield "calibration_windows", _windows(calibration["windows"])
        yield "brier_by_class", _brier_by_class(calibration["classes"])
        yield "ranking", _ranking(results)
    if results["prediction_sets"]:
        yield "prediction_sets", prediction_sets_table(sets)
    if results["risk_control"]:
        yield "risk_control", _table(results["risk_control"], _columns(results["risk_control"][0]))
    if results["conventions"]:
        yield "conventions", _table(results["conventions"], _columns(results["conventions"][0]))
    yield "soft_confusion", _soft_confusion(results["soft_confusion"])
    yield "soft_confusion_overall", _soft_overall(results)
    yield "class_distances", _class_distances(results)
    if intervals is not None:
        yield "intervals", _intervals(evaluation, results, intervals)


def _table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Return rows as a table; columns: key by heading."""
    return [[*columns], *([row[key] for key in columns.values()] for row in rows)]


def _columns(keys: Iterable[str], pixels: Iterable[str] = (), weighted: Iterable[str] = ()) -> dict[str, str]:
    """Return keys by heading, which is the key and perhaps a unit."""
    units = {**dict.fromkeys(pixels, " (pixels)"), **dict.fromkeys(weighted, " (weighted pixels)")}
    return {f"{key}{units.get(key, '')}": key for key in keys}


def _beside(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of results without lists: the ends of intervals and bounds are columns beside their number."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key.endswith("_bounds"):
            flat |= zip((f"{key.removesuffix('_bounds')} {end}" for end in ("lowest", "highest")), value, strict=True)
        elif not key.endswith(INTERVAL):
            flat[key] = value
            flat |= zip((f"{key} low", f"{key} high"), row.get(f"{key}{INTERVAL}", ()), strict=False)
    return flat


def _overall(results: dict[str, Any]) -> Table:
    excluded = sum(results["excluded"].values())
    numbers: list[tuple[str, Any, str]] = [
        ("counted", results["counted"], "pixels"),
        ("excluded", excluded, "pixels"),
        ("total", results["counted"] + excluded, "pixels"),
    ]
    for name, value in _beside(results["overall"]).items():
        numbers.append((name, value, "classes" if name.endswith(("_n", "_undefined")) else "1"))
    if "calibration" in results:
        numbers += _of_calibration(results["calibration"])
    distances = results["class_distances"]
    if distances is not None:
        of_maximum = {"": distances["maximum"], **distances["certificate"]}
        for key in ("", "upper_bound", "gap"):
            numbers.append(("_".join(filter(None, ("class_distances_maximum", key))), of_maximum[key], "1"))
    ends = {name: value for name, value, _ in numbers if name.endswith((" low", " high"))}
    if not ends:
        return [["number", "value", "unit"], *map(list, numbers)]
    rows = [
        [name, value, ends.get(f"{name} low"), ends.get(f"{name} high"), unit]
        for name, value, unit in numbers
        if name not in ends
    ]
    return [["number", "value", "low", "high", "unit"], *rows]


def _of_calibration(calibration: dict[str, Any]) -> list[tuple[str, Any, str]]:
    errors = ("ece", "mce", "classwise_ece", "equal_mass_ece", "debiased_l2")
    parts = {name: calibration[name] for name in _with_ends(calibration, *errors)}
    numbers = [(name, value, "1") for name, value in _beside(parts).items()]
    numbers.append(("equal_mass_ece_bound", calibration["equal_mass_ece_bound"], "1"))
    numbers += [(f"corp_{name}", value, "1") for name, value in _beside(calibration["corp"]).items()]
    numbers += [(f"brier_{name}", value, "1") for name, value in _beside(calibration["brier"]).items()]
    nll = {"nll": "value", "nll_infinite": "infinite", "nll_finite": "finite"}
    losses = {name: calibration["nll"][key] for name, key in nll.items()}
    losses |= {
        f"{name}{INTERVAL}": calibration["nll"][f"{key}{INTERVAL}"]
        for name, key in nll.items()
        if f"{key}{INTERVAL}" in calibration["nll"]
    }
    return numbers + [(name, v, "pixels" if name == "nll_infinite" else "nat") for name, v in _beside(losses).items()]


def _with_ends(row: Mapping[str, Any], *keys: str) -> list[str]:
    """Return keys, and those of their intervals, that a row has."""
    return [key for name in keys for key in (name, f"{name}{INTERVAL}") if key in row]


def _weighted(weighted: dict[str, Any]) -> Table:
    names = {"name": "class", **{key: f"{key} ({weighted['unit']})" for key in ("reference", "predicted")}}
    return _table(weighted["classes"], {names.get(key, key): key for key in weighted["classes"][0]})


def _excluded(results: dict[str, Any]) -> Table:
    rows: Table = [["status", "reason", N], ["counted", "", results["counted"]]]
    return rows + [[key, reason, n] for key in ("excluded", "repaired") for reason, n in results[key].items()]


def _confusion(results: dict[str, Any]) -> Table:
    names = [row["name"] for row in results["classes"]]
    header = ["reference (rows), predicted (columns) (pixels)", *names]
    return [header, *([name, *row] for name, row in zip(names, results["confusion"], strict=True))]


def _by_outcome(evaluation: Evaluation, measures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row per measure and outcome."""
    for name, outcomes in measures.items():
        head = {"measure": name, "unit of values": unit(evaluation.measures[name].measure)}
        for outcome in OUTCOMES:
            yield {**head, "outcome": outcome, N: outcomes[outcome]["n"], **outcomes[outcome]}


def _measures(evaluation: Evaluation, results: dict[str, Any]) -> Table:
    quantiles = {f"quantile {q:g}": f"{q:g}" for q in QUANTILES}
    rows = [row | row["quantiles"] for row in _by_outcome(evaluation, results["measures"])]
    return _table(rows, _columns((*BY_MEASURE, "skewness")) | quantiles)


def _ecdf(evaluation: Evaluation, name: str) -> Table:
    measure, counts, shares = evaluation.measures[name], {}, {}
    for outcome in OUTCOMES:
        histogram = distributions.histogram(evaluation, name, outcome)
        counts[f"{outcome} at or below (pixels)"] = np.cumsum(histogram).tolist()
        shares[f"{outcome} at or below (share)"] = distributions.ecdf(evaluation, name, outcome)[1].tolist()
    columns = {f"value ({unit(measure.measure)})": measure.edges[1:], **counts, **shares}
    return [[*columns], *map(list, zip(*columns.values(), strict=True))]


def _by_class(evaluation: Evaluation, results: dict[str, Any]) -> Table:
    rows = [
        {"grouped by": axis, **group, **row}
        for axis, key in (("reference", "by_class"), ("prediction", "by_predicted_class"))
        for group in results[key]
        for row in _by_outcome(evaluation, group["measures"])
    ]
    return _table(rows, _columns(("grouped by", "code", "name", *BY_MEASURE)))


def _by_confused_classes(evaluation: Evaluation, results: dict[str, Any]) -> Table:
    """Return moments of every measure; without measures only the numbers of pixels."""
    rows = []
    for group in results["by_confused_classes"]:
        n, correct = group["n"], group["correct"]
        empty = dict.fromkeys(BY_MEASURE, "") | {"confused classes": group["confused_classes"]}
        counts = {"correct": correct, "wrong": n - correct, "all": n}
        pixels = [{"outcome": outcome, N: number} for outcome, number in counts.items()]
        rows += [empty | row for row in [*_by_outcome(evaluation, group["measures"])] or pixels]
    return _table(rows, _columns(("confused classes", *BY_MEASURE)))


def _by_second_best(evaluation: Evaluation, results: dict[str, Any]) -> Table:
    header = ["reference", "predicted", "reference is second best", N]
    for name, measure in evaluation.measures.items():
        header += [f"{name} {key} ({unit(measure.measure)})" for key in ("mean", "std")]
    rows: Table = [header]
    for pair in results["by_second_best"]:
        second_best = "yes" if pair["reference_second_best"] else "no"
        numbers = [pair["measures"][name][key] for name in evaluation.measures for key in ("mean", "std")]
        rows.append([pair["reference"], pair["predicted"], second_best, pair["n"], *numbers])
    return rows


def _uncertainty_confusion(evaluation: Evaluation, results: dict[str, Any]) -> Table:
    counts = ("TC", "FU", "FC", "TU")
    rows = [
        {"measure": name, "unit of threshold": unit(evaluation.measures[name].measure), **row}
        for name, thresholds in results["uncertainty_confusion"].items()
        for row in thresholds
    ]
    keys = ("measure", "unit of threshold", "threshold", *counts, "USen", "USpe", "UPre", "UAcc")
    return _table(rows, _columns(keys, pixels=counts))


def _selective(results: dict[str, Any]) -> Table:
    header = ["measure", *(f"{key}{end}" for key in SELECTIVE for end in ("", " lowest", " highest"))]
    rows = [
        [name, *(value for key in SELECTIVE for value in (numbers[key], *numbers[f"{key}_bound"]))]
        for name, numbers in results["selective"].items()
    ]
    return [header, *rows]


def _selective_points(results: dict[str, Any]) -> Table:
    rows = [
        {"measure": name, "fixed": x, **point}
        for name, numbers in results["selective"].items()
        for x, key in (("coverage", "risk_at_coverage"), ("risk", "coverage_at_risk"))
        for point in numbers[key]
    ]
    return _table(rows, _columns(("measure", "fixed", "coverage", "risk")))


def _risk_coverage(evaluation: Evaluation, name: str) -> Table:
    curve = [part.tolist() for part in selective.risk_coverage(evaluation, name)]
    rows = zip(evaluation.measures[name].edges[1:], *curve, strict=True)
    return [["kept up to", "coverage", "risk"], *map(list, rows)]


def _ranking(results: dict[str, Any]) -> Table:
    areas = [f"{key}{end}" for key in ("auroc", "average_precision") for end in ("", " lowest", " highest")]
    rows: Table = [["class", *areas, "threshold of largest f1", "f1", "threshold of largest youden", "youden"]]
    for name, row in results["ranking"].items():
        values = [x for key in ("auroc", "average_precision") for x in (row[key], *row[f"{key}_bound"])]
        rows.append([name, *values, *(x for key in ("f1", "youden") for x in row["best"][key].values())])
    return rows


def _bins(bins: Iterable[Mapping[str, Any]], value: str, hits: str, share: str) -> Table:
    ends = {f"{value} above": "low", f"{value} up to": "high"}
    return _table(bins, ends | {N: "n", hits: "correct", f"mean {value}": "confidence", share: "accuracy"})


def _calibration_by_class(classes: list[dict[str, Any]]) -> Table:
    rows: Table = []
    for c in classes:
        header, *lines = _bins(c["bins"], "probability", "in the class (pixels)", "share of the class")
        rows += [[c["name"], *line] for line in lines]
    return [["class", *header], *rows]


def _brier_by_class(classes: list[dict[str, Any]]) -> Table:
    """Return the parts of the Brier score by class: over fine bins, and by isotonic recalibration (CORP)."""
    rows = []
    for c in classes:
        corp: dict[str, Any] = {}
        for key, value in c["corp"].items():
            name, bound, _ = key.partition("_bound")
            corp |= (
                dict(zip((f"corp_{name} lowest", f"corp_{name} highest"), value, strict=True))
                if bound
                else {f"corp_{key}": value}
            )
        rows.append({"class": c["name"], **c["brier"], **corp})
    return _table(rows, _columns(rows[0]))


def _windows(windows: dict[str, Any]) -> Table:
    rows = [
        [c["name"], *point] for c in windows["classes"] for point in zip(windows["at"], c["n"], c["share"], strict=True)
    ]
    return [["class", f"probability within {windows['delta']:g} of", N, "share of the class"], *rows]


def _soft_confusion(rows: list[dict[str, Any]]) -> Table:
    settings = ("class", "threshold", "sigma", "damping", "uncertainty", "distribution")
    metrics = [key for row in rows[:1] for key in row if key not in (*settings, *CELLS, "bound")]
    sums = _columns(CELLS, weighted=CELLS) | {"bound of each sum (weighted pixels)": "bound"}
    return _table(rows, _columns(settings) | sums | _columns(metrics))


def _soft_overall(results: dict[str, Any]) -> Table:
    settings = ("threshold", "sigma", "damping", "uncertainty", "distribution")
    rows: Table = [[*settings, "mean", "metric", "value", "n (classes)", "undefined (classes)"]]
    for row in results["soft_confusion_overall"]:
        head = [row[key] for key in settings]
        rows += [[*head, "macro", name, *mean.values()] for name, mean in row["macro"].items()]
        rows += [[*head, "micro", name, value, "", ""] for name, value in row["micro"].items()]
    return rows


def _class_distances(results: dict[str, Any]) -> Table:
    """Return H, and the shares of classes at which q'(H∘H)q is largest."""
    names, distances = [row["name"] for row in results["classes"]], results["class_distances"]
    rows = () if distances is None else zip(names, distances["H"], distances["at"], strict=True)
    return [["class", *names, "share at the maximum"], *([name, *row, share] for name, row, share in rows)]


def _intervals(evaluation: Evaluation, results: dict[str, Any], intervals: Intervals) -> Table:
    """Return a row per scalar with an interval, in the order of results.json."""
    level = f"{100 * intervals.confidence.level:g} %"
    rows: Table = [["number", "value", f"low ({level})", f"high ({level})", "undefined replicates"]]
    values = scalars_by_path(evaluation)
    for path in sorted(values, key=lambda path: _position(results, path)):
        name = "/".join(path)
        if name in intervals.by_name:
            numbers = {"number": name, "value": values[path], **intervals.by_name[name]._asdict()}
            rows.append([*undefined_as_null(numbers).values()])
    return rows


def _position(results: Any, path: tuple[str, ...]) -> tuple[int, ...]:
    """Return the position of a scalar in results as a sort key; rows of a list keep their order."""
    if not path or not isinstance(results, dict):
        return ()
    return (list(results).index(path[0]), *_position(results[path[0]], path[1:]))
