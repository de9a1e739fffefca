"""Scalars as they are nested in `results.json`, with their confidence intervals beside them."""

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
    """Confidence intervals of scalars, by name; what was resampled, and how."""

    by_name: Mapping[str, Interval]
    units: Mapping[str, Any]
    confidence: Confidence

    def described(self) -> dict[str, Any]:
        """Return the part `confidence` of results; scalars with undefined replicates are named."""
        how, undefined = self.confidence, {name: int(one.undefined) for name, one in self.by_name.items()}
        return {
            **self.units,
            "replicates": how.replicates,
            "level": how.level,
            "seed": how.seed,
            "method": how.method,
            "undefined_replicates": {name: n for name, n in undefined.items() if n},
        }


def scene_intervals(evaluation: Evaluation) -> Intervals | None:
    """Return the intervals that a scene's tiles give; None without tiles."""
    tiles = evaluation.tiles
    if tiles is None:
        return None
    units = {"unit": "tile", "size": tiles.size, "units": len(tiles.positions), "scenes": len(tiles.scenes)}
    return Intervals(tile_intervals(evaluation), units, tiles.confidence)


def nested(values: Mapping[Path, Floats], intervals: Intervals | None) -> dict[str, Any]:
    """Return scalars as mappings within mappings, by the parts of their paths.

    A scalar with an interval has a sibling ``<key>_interval``; these come after all scalars of their mapping.
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


def without_intervals(found: Any) -> Any:
    """Return results without their intervals."""
    if isinstance(found, dict):
        return {k: without_intervals(v) for k, v in found.items() if not k.endswith(INTERVAL)}
    if isinstance(found, list):
        return [without_intervals(v) for v in found]
    return found
