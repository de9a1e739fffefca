"""What each spatial tile of a scene counted: the units that intervals of a scene are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.sparse_rows import Row
from dask_uncert.summaries.summary import Summary, UnequalFramesError, counts

OPEN = ""
"""A scene of which blocks may still be missing."""
TILE = 32  # pixels a side, where nothing else is said
MOST = 4096  # tiles a scene: their counts stay small beside the cube, and resampling takes seconds


class TileWish(NamedTuple):
    """Tiles of so many pixels a side, from the grid's origin, and how intervals are made of them.

    size: None takes TILE, doubled until a scene has at most MOST tiles.
    """

    size: int | None
    confidence: Confidence


@dataclass(frozen=True, eq=False)
class Tiles(Summary):
    """Sparse rows, one a tile in which a pixel counts, sorted by scene and position.

    A tile cut by blocks is one: rows of the same scene and place add. `sealed` names a scene, once it is complete,
    by what its tiles counted: so the tiles of different scenes stay units of their own when evaluations are
    added, wherever the scenes lay and however they were cut, and a scene that is added twice is refused. width: cells of a row, see `tile_units.TileLayout`. positions: the scene's number
    among `scenes`, then the tile's place along each dimension. Row i has the entries starts[i] to starts[i + 1]
    of `cells` (rising) and `numbers`.
    """

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
        """The counts, (tiles, width)."""
        shape = (len(self.positions), self.width)
        return sparse.csr_array((self.numbers, self.cells, self.starts), shape=shape)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the tiles, sorted: the number of the scene and the place in it.

        Two models on one scene have tiles of the same names, and are resampled alike.
        """
        return tuple(
            f"{scene:06}/{','.join(f'{i:06}' for i in place)}" for scene, *place in self.positions.tolist()
        )

    def sealed(self, scene: str) -> Self:
        """The tiles of one scene, complete, under its name."""
        return replace(self, scenes=(scene,) if len(self.positions) else ())

    def with_rows(self, scenes: tuple[str, ...], positions: Counts, rows: Sequence[Row]) -> Self:
        """These rows, each with rising cells, in order; those of one place are added, empty ones left out."""
        known = tuple(sorted(set(scenes)))
        placed = positions.copy()
        if len(placed):
            placed[:, 0] = np.array([known.index(scene) for scene in scenes])[positions[:, 0]]
        places, of = np.unique(placed, axis=0, return_inverse=True)
        parts: list[list[Row]] = [[] for _ in places]
        for place, row in zip(of.ravel().tolist(), rows, strict=True):
            parts[place].append(row)
        added = [_added(part) for part in parts]
        number = np.array([row.cells.size for row in added], np.int64)
        places, filled = places[number > 0], [row for row in added if row.cells.size]
        used = np.unique(places[:, 0])
        places[:, 0] = np.searchsorted(used, places[:, 0])
        nothing = np.zeros(0, np.int64)
        return replace(
            self,
            scenes=tuple(known[i] for i in used.tolist()),
            positions=places,
            starts=np.concatenate([[0], np.cumsum(number[number > 0])]).astype(np.int64),
            cells=np.concatenate([row.cells for row in filled] or [nothing]),
            numbers=np.concatenate([row.counts for row in filled] or [nothing]),
        )

    def plus_all(self, others: Sequence[Tiles]) -> Self:
        """The sum of many, at once: what pairs would put in order over and over is so once."""
        return self._joined(others, 1)

    def _combine(self, other: object, operation: np.ufunc) -> Self:
        if not isinstance(other, Tiles):
            return NotImplemented  # type: ignore[no-any-return]
        return self._joined([other], 1 if operation is np.add else -1)

    def _joined(self, others: Sequence[Tiles], sign: int) -> Self:
        scenes, positions, rows = self.scenes, [self.positions], self._each(1)
        for other in others:
            for name in ("size", "confidence", "width"):
                mine, theirs = getattr(self, name), getattr(other, name)
                if mine != theirs:
                    raise UnequalFramesError(f"tiles with unequal {name} do not add: {mine} and {theirs}")
            if self.positions.shape[1] != other.positions.shape[1]:
                raise UnequalFramesError("tiles of scenes with other dimensions do not add")
            if sign > 0 and (set(scenes) & set(other.scenes)) - {OPEN}:
                raise UnequalFramesError("a scene is in both, and its tiles would count twice")
            place = other.positions.copy()
            place[:, 0] += len(scenes)
            scenes, positions = scenes + other.scenes, [*positions, place]
            rows += other._each(sign)
        return self.with_rows(scenes, np.concatenate(positions), rows)

    def _each(self, sign: int) -> list[Row]:
        return rows_of(self.starts, self.cells, self.numbers if sign > 0 else -self.numbers)


def rows_of(starts: Counts, cells: Counts, numbers: Counts) -> list[Row]:
    """Row i has the entries starts[i] to starts[i + 1]."""
    return [Row(cells[a:b], numbers[a:b]) for a, b in pairwise(starts.tolist())]


def _added(rows: Sequence[Row]) -> Row:
    """The sum of rows of one tile: it was cut by blocks, or is taken out again."""
    if len(rows) == 1:
        return rows[0]
    cells, of = np.unique(np.concatenate([row.cells for row in rows]), return_inverse=True)
    counts = np.zeros(cells.size, np.int64)
    np.add.at(counts, of, np.concatenate([row.counts for row in rows]))
    return Row(cells[counts != 0], counts[counts != 0])
