"""Zones of a scene in `results.json`: the main numbers of each, with intervals from the tiles in it, and without it."""

from __future__ import annotations

from typing import Any

from dask_uncert.metrics.bootstrap import pooled_intervals
from dask_uncert.metrics.resampling_units import RestrictedUnits, cases, jackknife, unit_scalars
from dask_uncert.metrics.scalars import scalars_by_path
from dask_uncert.metrics.tile_bootstrap import GROUPS, TileUnits
from dask_uncert.metrics.zones import zones
from dask_uncert.reports.results.headline import headline
from dask_uncert.reports.results.intervals import Intervals, nested
from dask_uncert.summaries.evaluation import Evaluation

MOST_WITH_INTERVALS = 30
"""Up to so many zones have intervals: each is resampled by itself."""
OF_CLASSES = ("precision", "recall", "f1", "iou")


def zone_results(evaluation: Evaluation) -> dict[str, Any]:
    """Return the section `zones` of results, by the name of each zone; the scene must have zones."""
    assert evaluation.zones is not None
    table, stack = evaluation.zones.table, zones(evaluation)
    paths = {"/".join(path): path for path in scalars_by_path(evaluation)}
    kept, main = shown(evaluation), [metric.name for metric in headline(evaluation)]
    units = RestrictedUnits(cases(stack), kept)
    values, without = unit_scalars(units), jackknife(units) if len(table) > 1 else {}
    results: dict[str, Any] = {}
    for zone in table:
        own, i = evaluation.zone(zone.name), stack.names.index(zone.name)
        intervals = _intervals(own) if len(table) <= MOST_WITH_INTERVALS else None
        numbers = nested({paths[name]: values[name][i] for name in kept}, intervals)
        matrix = own.decisions.confusion
        for k, c in enumerate(evaluation.classes):
            counts = {"support": matrix[k].sum(), "predicted": matrix[:, k].sum()}
            numbers["classes"][c.name] = {**counts, **numbers["classes"][c.name]}
        results[zone.name] = {
            "code": zone.code,
            "counted": int(own.ledger.counted),
            "excluded": own.ledger.reasons(),
            **numbers,
            "without": nested({paths[name]: without[name][i] for name in main if name in without}, None),
        }
        if intervals is not None:
            results[zone.name]["tiles"] = intervals.units["units"]
    return results


def shown(evaluation: Evaluation) -> list[str]:
    """Return the names of the scalars that are given for each zone."""
    main = {metric.name for metric in headline(evaluation)}
    paths = scalars_by_path(evaluation)
    by_class = {"/".join(path) for path in paths if path[0] == "classes" and path[-1] in OF_CLASSES}
    return [name for name in map("/".join, paths) if name in main | by_class or name.startswith("overall/")]


def _intervals(zone: Evaluation) -> Intervals | None:
    """Return the intervals of a zone's main numbers, from its tiles; None without tiles."""
    if zone.tiles is None or not len(zone.tiles.positions):
        return None
    names, units = [metric.name for metric in headline(zone)], {"unit": "tile", "units": len(zone.tiles.positions)}
    wanted = [name for name in names if not name.startswith("selective/")]  # these would take ten times as long
    found = pooled_intervals(RestrictedUnits(TileUnits(zone), wanted), zone.tiles.confidence, GROUPS)
    return Intervals({key: found[key] for key in wanted if key in found}, units, zone.tiles.confidence)
