"""The tiles of an Evaluation as units to resample, and the intervals that they give its numbers.

A tile keeps what the scalars are read off, but for the fine bins of calibration: those would be most of it, and
only the equal-mass error and the parts of the Brier score need them, which therefore have no interval. Weighted
numbers have none either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Interval
from dask_uncert.formulas.typing import Counts
from dask_uncert.metrics.bootstrap import pooled_intervals
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.marginals import items

GROUPS = 250  # of neighbouring tiles left out together for the acceleration: as good, and a bounded time


@dataclass(frozen=True)
class TileLayout:
    """Where each item lies in the row of a tile: its first cell, an even one, and its shape; the row's width."""

    places: dict[str, tuple[int, tuple[int, ...]]]
    width: int


def tile_layout(like: Evaluation) -> TileLayout:
    """The layout of the tiles of Evaluations of this frame."""
    shapes = {path: (dims, array.shape) for path, dims, array in like.arrays()}
    places, width = {}, 0
    for name, item in items(like).items():
        if name == "winning" or name.startswith(("class/", "weighted/")):
            continue
        dims, shape = shapes[item.path]
        kept = [n for d, n in zip(dims, shape, strict=True) if d in item.keep]
        if item.binned:
            kept[0] = like.calibration.bins
        places[name] = width, tuple(kept)
        width += math.prod(kept) + math.prod(kept) % 2
    return TileLayout(places, width)


class TileUnits:
    """The tiles of an Evaluation; see `units.Units`."""

    def __init__(self, evaluation: Evaluation) -> None:
        assert evaluation.tiles is not None
        self.like, self.tiles = evaluation, evaluation.tiles
        self._layout = tile_layout(evaluation)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the tiles."""
        return self.tiles.names

    def counts(self, item: str, start: int, stop: int) -> Counts | None:
        """One item of these tiles, dense."""
        if item not in self._layout.places:
            return None
        at, shape = self._layout.places[item]
        rows = self.tiles.rows[start:stop, at : at + math.prod(shape)]
        return np.asarray(rows.toarray(), np.int64).reshape(stop - start, *shape)


def tile_intervals(evaluation: Evaluation) -> dict[str, Interval]:
    """Intervals of an Evaluation's scalars, by name, as its job asked; none without tiles."""
    if evaluation.tiles is None or not len(evaluation.tiles.positions):
        return {}
    return pooled_intervals(TileUnits(evaluation), evaluation.tiles.confidence, GROUPS)
