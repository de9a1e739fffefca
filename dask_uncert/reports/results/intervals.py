"""Where the scalars of an Evaluation stand in `results.json`, and their intervals beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.metrics.classification import OUTCOMES
from dask_uncert.metrics.scalars import SELECTIVE, setting_labels
from dask_uncert.metrics.tile_bootstrap import tile_intervals
from dask_uncert.summaries.evaluation import Evaluation

INTERVAL = "_interval"


class Place(NamedTuple):
    """A scalar's name, the object of `results.json` that it is in, and the key it has there."""

    name: str
    within: dict[str, Any]
    key: str


def places(found: dict[str, Any], labels: list[str]) -> Iterator[Place]:
    """The place of every scalar in results; labels: of the soft confusions, see `setting_labels`."""

    def each(at: str, within: dict[str, Any], but: tuple[str, ...] = ()) -> Iterator[Place]:
        for key in [key for key in within if not key.endswith((INTERVAL, "_n", "_undefined"))]:
            if key not in but:
                yield Place(f"{at}/{key}", within, key)

    yield from each("overall", found["overall"])
    for one in found["classes"]:
        yield from each(f"classes/{one['name']}", one, ("code", "name", "support", "predicted"))
    for name, of in found["measures"].items():
        for outcome in OUTCOMES:
            at = f"measures/{name}/{outcome}"
            yield from each(at, of[outcome], ("n", "quantiles"))
            yield from each(f"{at}/quantiles", of[outcome]["quantiles"])
    for name, rows in found["uncertainty_confusion"].items():
        for row in rows:
            at = f"uncertainty_confusion/{name}/{row['threshold']}"
            yield from each(at, row, ("threshold", "TC", "FU", "FC", "TU"))
    calibration = found["calibration"]
    yield from each("calibration", calibration, ("brier", "nll", "bins", "classes", "windows"))
    yield from each("calibration/brier", calibration["brier"])
    yield from each("calibration/nll", calibration["nll"], ("infinite",))
    for one in calibration["classes"]:
        yield Place(f"calibration/classes/{one['name']}/ece", one, "ece")
    for name, of in found["selective"].items():
        for key in SELECTIVE:
            yield Place(f"selective/{name}/{key}", of, key)
        for row in of["risk_at_coverage"]:
            yield Place(f"selective/{name}/risk_at_coverage/{row['coverage']}", row, "risk")
        for row in of["coverage_at_risk"]:
            yield Place(f"selective/{name}/coverage_at_risk/{row['risk']}", row, "coverage")
    settings = ("class", "threshold", "sigma", "damping", "uncertainty", "distribution")
    for label, row in zip(labels, found["soft_confusion"], strict=True):
        yield from each(f"soft_confusion/{label}", row, (*settings, "TP", "TN", "FP", "FN", "bound"))


def add_intervals(
    found: dict[str, Any], evaluation: Evaluation, intervals: Mapping[str, Interval]
) -> dict[str, int]:
    """Give every number in results that has an interval a sibling ``<name>_interval``.

    Returns how many replicates were undefined, by name of a number, of those that had any.
    """
    undefined = {}
    for place in list(places(found, setting_labels(evaluation))):
        one = intervals.get(place.name)
        if one is not None:
            place.within[f"{place.key}{INTERVAL}"] = [float(one.low), float(one.high)]
            if one.undefined:
                undefined[place.name] = int(one.undefined)
    return undefined


def said(how: Confidence, undefined: Mapping[str, int]) -> dict[str, Any]:
    """How intervals were made, as `confidence` of results says it."""
    return {
        "replicates": how.replicates,
        "level": how.level,
        "seed": how.seed,
        "method": how.method,
        "undefined_replicates": dict(undefined),
    }


def add_tile_intervals(found: dict[str, Any], evaluation: Evaluation) -> None:
    """Add the intervals of a scene's tiles; say how they were made."""
    tiles = evaluation.tiles
    assert tiles is not None
    undefined = add_intervals(found, evaluation, tile_intervals(evaluation))
    units = {"size": tiles.size, "units": len(tiles.positions), "scenes": len(tiles.scenes)}
    found["confidence"] = {"unit": "tile", **units, **said(tiles.confidence, undefined)}


def without_intervals(found: Any) -> Any:
    """Results as they are without intervals."""
    if isinstance(found, dict):
        return {k: without_intervals(v) for k, v in found.items() if not k.endswith(INTERVAL)}
    if isinstance(found, list):
        return [without_intervals(v) for v in found]
    return found


def interval_rows(found: dict[str, Any], labels: list[str]) -> list[list[Any]]:
    """A row for every number that has an interval: what it is, its value, the interval, undefined replicates."""
    how = found["confidence"]
    level = f"{100 * how['level']:g} %"
    rows: list[list[Any]] = [["number", "value", f"low ({level})", f"high ({level})", "undefined replicates"]]
    for place in places(found, labels):
        ends = place.within.get(f"{place.key}{INTERVAL}")
        if ends is not None:
            count = how["undefined_replicates"].get(place.name, 0)
            rows.append([place.name, place.within[place.key], *ends, count])
    return rows
