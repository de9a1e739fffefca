"""Scalars nested as in `results.json`, with their confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.scalars import Path
from dask_uncert.metrics.tile_bootstrap import tile_intervals
from dask_uncert.summaries.evaluation import Evaluation

INTERVAL = "_interval"


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals of scalars by name, the resampled units, and the options."""

    by_name: Mapping[str, Interval]
    units: Mapping[str, Any]
    confidence: Confidence

    def described(self) -> dict[str, Any]:
        """Return the section `confidence` of results, with the scalars that have undefined replicates."""
        options = {key: getattr(self.confidence, key) for key in ("replicates", "level", "seed", "method")}
        undefined = {name: int(ends.undefined) for name, ends in self.by_name.items() if ends.undefined}
        return {**self.units, **options, "undefined_replicates": undefined}


def scene_intervals(evaluation: Evaluation) -> Intervals | None:
    """Return the intervals from the tiles of a scene; None without tiles."""
    tiles = evaluation.tiles
    if tiles is None:
        return None
    units = {"unit": "tile", "size": tiles.size, "units": len(tiles.positions), "scenes": len(tiles.scenes)}
    return Intervals(tile_intervals(evaluation), units, tiles.confidence)


def nested(values: Mapping[Path, Floats], intervals: Intervals | None) -> dict[str, Any]:
    """Return scalars as nested mappings, by the parts of their paths.

    The interval of a scalar is its sibling ``<key>_interval``, after all scalars of that mapping.
    """
    by_name = {} if intervals is None else intervals.by_name
    tree: dict[str, Any] = {}

    def mapping(path: Path) -> dict[str, Any]:
        return reduce(lambda node, part: node.setdefault(part, {}), path[:-1], tree)

    for path, value in values.items():
        mapping(path)[path[-1]] = value
    for path in values:
        interval = by_name.get("/".join(path))
        if interval is not None:
            mapping(path)[f"{path[-1]}{INTERVAL}"] = [interval.low, interval.high]
    return tree


def without_intervals(value: Any) -> Any:
    """Return results without intervals."""
    if isinstance(value, dict):
        return {k: without_intervals(v) for k, v in value.items() if not k.endswith(INTERVAL)}
    return [without_intervals(v) for v in value] if isinstance(value, list) else value
