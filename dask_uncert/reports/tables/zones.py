"""Tables of the zones of a scene: main numbers, and those of each class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dask_uncert.metrics.scalars import Path, scalars_by_path
from dask_uncert.reports.results.headline import headline
from dask_uncert.reports.results.intervals import INTERVAL
from dask_uncert.reports.results.zones import OF_CLASSES
from dask_uncert.summaries.evaluation import Evaluation

Rows = list[list[Any]]


def zone_tables(evaluation: Evaluation, results: dict[str, Any]) -> Iterator[tuple[str, Rows]]:
    """Yield the name and the rows, a header first, of each table of zones; none without zones."""
    if "zones" not in results:
        return
    paths = {"/".join(path): path for path in scalars_by_path(evaluation)}
    main = [metric.name for metric in headline(evaluation)]
    others = [name for name in paths if name.startswith("overall/") and name not in main]
    with_ends = any("tiles" in zone for zone in results["zones"].values())
    header = ["zone", "code", "counted (pixels)", "excluded (pixels)"]
    for name in main:
        header += [name, *([f"{name} low", f"{name} high"] if with_ends else []), f"{name} without the zone"]
    rows: Rows = [[*header, *others]]
    by_class: Rows = [["zone", "class", "reference (pixels)", "predicted (pixels)", *OF_CLASSES]]
    for zone, section in results["zones"].items():
        row: list[Any] = [zone, section["code"], section["counted"], sum(section["excluded"].values())]
        for name in main:
            row.append(at_path(section, paths[name]))
            *before, last = paths[name]
            row += (at_path(section, (*before, f"{last}{INTERVAL}")) or [None, None]) if with_ends else []
            row.append(at_path(section["without"], paths[name]))
        rows.append([*row, *(at_path(section, paths[name]) for name in others)])
        for name, c in section["classes"].items():
            by_class.append([zone, name, c["support"], c["predicted"], *(c[key] for key in OF_CLASSES)])
    yield "zones", rows
    yield "zones_by_class", by_class


def at_path(section: Mapping[str, Any], path: Path) -> Any:
    """Return what is at a path of nested results; None where nothing is."""
    node: Any = section
    for part in path:
        if node is None:
            return None
        node = node.get(part)
    return node
