"""The counts of each spatial tile of a scene: the units that intervals of a scene are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.sparse_rows import SparseRow, joined_rows, split_rows
from dask_uncert.summaries.summary import Summary, UnequalFramesError, counts

OPEN = ""
"""Name of a scene of which blocks may still be missing."""
TILE = 32  # pixels a side by default
MOST = 4096  # tiles a scene: their counts stay small next to the cube, and resampling takes seconds


class TileSettings(NamedTuple):
    """Pixels a side of the tiles, which start at the grid's origin, and how intervals are made of them."""

    size: int
    confidence: Confidence


@dataclass(frozen=True, eq=False)
class Tiles(Summary):
    """Sparse rows, one for each tile in which a pixel counts, sorted by scene and position.

    A tile cut by blocks is one tile: rows of the same scene and position add. `sealed` names a scene, once it
    is complete, by the hash of its counts: so the tiles of different scenes stay different units when
    evaluations are added, however the scenes were cut, and a scene that is added twice is refused. width:
    cells of a row, see `tile_bootstrap.TileLayout`. positions: the scene's number among `scenes`, then the
    tile's position along each dimension. SparseRow i has the entries starts[i] to starts[i + 1] of `cells`
    (rising) and `numbers`.
    """

    kind = "tiles"
    size: int
    confidence: Confidence
    width: int
    scenes: tuple[str, ...]
    positions: Counts = counts("tile", "axis")
    starts: Counts = counts("start")
    cells: Counts = counts("entry")
    numbers: Counts = counts("entry")

    @classmethod
    def zero(cls, size: int, confidence: Confidence, width: int, dimensions: int) -> Self:
        return cls(
            size,
            confidence,
            width,
            (),
            positions=np.zeros((0, 1 + dimensions), np.int64),
            starts=np.zeros(1, np.int64),
            cells=np.zeros(0, np.int64),
            numbers=np.zeros(0, np.int64),
        )

    @property
    def rows(self) -> sparse.csr_array:
        """Counts, (tiles, width)."""
        shape = (len(self.positions), self.width)
        return sparse.csr_array((self.numbers, self.cells, self.starts), shape=shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tiles, sorted: the number of the scene and the position in it.

        Two models on one scene have tiles of the same names, and are resampled alike.
        """
        return tuple(
            f"{scene:06}/{','.join(f'{i:06}' for i in position)}" for scene, *position in self.positions.tolist()
        )

    def sealed(self, scene: str) -> Self:
        """Return the tiles of one complete scene under its name."""
        return replace(self, scenes=(scene,) if len(self.positions) else ())

    def with_rows(self, scenes: tuple[str, ...], positions: Counts, rows: Sequence[SparseRow]) -> Self:
        """Return tiles of these rows (cells rising); rows of one position are added, empty ones left out."""
        known = tuple(sorted(set(scenes)))
        placed = positions.copy()
        if len(placed):
            placed[:, 0] = np.array([known.index(scene) for scene in scenes])[positions[:, 0]]
        places, place_of = np.unique(placed, axis=0, return_inverse=True)
        parts: list[list[SparseRow]] = [[] for _ in places]
        for place, row in zip(place_of.ravel().tolist(), rows, strict=True):
            parts[place].append(row)
        added = [_added(part) for part in parts]
        filled = np.array([row.cells.size > 0 for row in added], bool)
        places = places[filled]
        used = np.unique(places[:, 0])
        places[:, 0] = np.searchsorted(used, places[:, 0])
        starts, cells, numbers = joined_rows([row for row in added if row.cells.size])
        scenes = tuple(known[i] for i in used.tolist())
        return replace(self, scenes=scenes, positions=places, starts=starts, cells=cells, numbers=numbers)

    def _combine(self, others: Sequence[Tiles], operation: np.ufunc) -> Self:
        """Return the sum of many, sorted once and not pair by pair."""
        return self._joined(others, 1 if operation is np.add else -1)

    def _joined(self, others: Sequence[Tiles], sign: int) -> Self:
        scenes, positions, rows = self.scenes, [self.positions], self._rows(1)
        for other in others:
            for name in ("size", "confidence", "width"):
                mine, theirs = getattr(self, name), getattr(other, name)
                if mine != theirs:
                    raise UnequalFramesError(f"tiles with unequal {name} do not add: {mine} and {theirs}")
            if self.positions.shape[1] != other.positions.shape[1]:
                raise UnequalFramesError("tiles of scenes with other dimensions do not add")
            if sign > 0 and (set(scenes) & set(other.scenes)) - {OPEN}:
                raise UnequalFramesError("a scene is in both, and its tiles would count twice")
            moved = other.positions.copy()
            moved[:, 0] += len(scenes)
            scenes, positions = scenes + other.scenes, [*positions, moved]
            rows += other._rows(sign)
        return self.with_rows(scenes, np.concatenate(positions), rows)

    def _rows(self, sign: int) -> list[SparseRow]:
        return split_rows(self.starts, self.cells, self.numbers if sign > 0 else -self.numbers)


def _added(rows: Sequence[SparseRow]) -> SparseRow:
    """Return the sum of rows of one tile, which was cut by blocks or is taken out again."""
    if len(rows) == 1:
        return rows[0]
    cells, cell_of = np.unique(np.concatenate([row.cells for row in rows]), return_inverse=True)
    counts = np.zeros(cells.size, np.int64)
    np.add.at(counts, cell_of, np.concatenate([row.counts for row in rows]))
    return SparseRow(cells[counts != 0], counts[counts != 0])
