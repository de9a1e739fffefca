"""The tiles of a scene as units to resample, and the intervals that they give its scalars.

A tile keeps the marginals that scalars need, except the fine bins of every class's calibration, which would be most of
the data: rankings and the parts of the Brier score need them and so have no interval. Weighted scalars have none either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Interval
from dask_uncert.formulas.typing import Counts
from dask_uncert.metrics.bootstrap import pooled_intervals
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.marginals import marginals

GROUPS = 250  # of neighbouring tiles left out together for the acceleration: as good, and a bounded time


@dataclass(frozen=True)
class TileLayout:
    """Layout of a tile's row of counts: each marginal's first cell (an even one) and shape; the row's width."""

    marginals: dict[str, tuple[int, tuple[int, ...]]]
    width: int


def tile_layout(evaluation: Evaluation) -> TileLayout:
    """Return the layout of the tiles of Evaluations of this frame."""
    arrays = {path: (dims, array.shape) for path, dims, array in evaluation.arrays()}
    layout, width = {}, 0
    for name, marginal in marginals(evaluation).items():
        if name == "winning_in_bins" or name.startswith(("class/", "weighted/")):
            continue
        kept = [n for d, n in zip(*arrays[marginal.path], strict=True) if d in marginal.keep]
        if marginal.binned:
            kept[0] = evaluation.stated.bins
        layout[name] = width, tuple(kept)
        width += math.prod(kept) + math.prod(kept) % 2
    return TileLayout(layout, width)


class TileUnits:
    """Tiles of an Evaluation; see `resampling_units.Units`."""

    def __init__(self, evaluation: Evaluation) -> None:
        assert evaluation.tiles is not None
        self.total, self.tiles, self.names = evaluation, evaluation.tiles, evaluation.tiles.names
        self._layout = tile_layout(evaluation)

    def counts(self, marginal: str, start: int, stop: int) -> Counts | None:
        """Return one marginal of these tiles, dense."""
        if marginal not in self._layout.marginals:
            return None
        first, shape = self._layout.marginals[marginal]
        rows = self.tiles.rows[start:stop, first : first + math.prod(shape)]
        return np.asarray(rows.toarray(), np.int64).reshape(stop - start, *shape)


def tile_intervals(evaluation: Evaluation) -> dict[str, Interval]:
    """Return the intervals of an Evaluation's scalars, by name, as its job asked; none without tiles."""
    if evaluation.tiles is None or not len(evaluation.tiles.positions):
        return {}
    return pooled_intervals(TileUnits(evaluation), evaluation.tiles.confidence, GROUPS)
