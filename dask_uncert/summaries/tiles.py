"""What each spatial tile of a scene counted: the units that intervals of a scene are drawn from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse

from dask_uncert.formulas.intervals import Confidence
from dask_uncert.summaries.summary import Counts, Summary, UnequalFramesError, counts

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

    def sealed(self) -> Self:
        """The tiles of one scene, complete: the scene gets a name, made of all its counts."""
        digest = hashlib.blake2b(digest_size=16)
        for _, _, array in self.arrays():
            digest.update(np.asarray(array, "<i8").tobytes())
        return replace(self, scenes=(digest.hexdigest(),) if len(self.positions) else ())

    def with_rows(
        self, scenes: tuple[str, ...], positions: Counts, starts: Counts, cells: Counts, numbers: Counts
    ) -> Self:
        """These rows, in order, without empty ones and zeros; those of one place are added.

        Rows that are in order already hold rising cells and no zeros.
        """
        known = tuple(sorted(set(scenes)))
        placed = positions.copy()
        if len(placed):
            placed[:, 0] = np.array([known.index(scene) for scene in scenes])[positions[:, 0]]
        if not _rising(placed):
            row = np.repeat(np.arange(len(placed)), np.diff(starts))
            placed, place = np.unique(placed, axis=0, return_inverse=True)
            shape = (len(placed), self.width)
            rows = sparse.csr_array((numbers, (place.ravel()[row], cells)), shape=shape)
            rows.sum_duplicates()
            rows.eliminate_zeros()
            starts, cells, numbers = (
                part.astype(np.int64) for part in (rows.indptr, rows.indices, rows.data)
            )
        filled = np.diff(starts) > 0
        placed = placed[filled]
        used = np.unique(placed[:, 0])
        placed[:, 0] = np.searchsorted(used, placed[:, 0])
        return replace(
            self,
            scenes=tuple(known[i] for i in used.tolist()),
            positions=placed,
            starts=np.concatenate([starts[:1], starts[1:][filled]]),
            cells=cells,
            numbers=numbers,
        )

    def _combine(self, other: object, operation: np.ufunc) -> Self:
        if not isinstance(other, Tiles):
            return NotImplemented  # type: ignore[no-any-return]
        for name in ("size", "confidence", "width"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise UnequalFramesError(f"tiles with unequal {name} do not add: {mine} and {theirs}")
        if self.positions.shape[1] != other.positions.shape[1]:
            raise UnequalFramesError("tiles of scenes with other dimensions do not add")
        twice = (set(self.scenes) & set(other.scenes)) - {OPEN}
        if twice and operation is np.add:
            raise UnequalFramesError("a scene is in both, and its tiles would count twice")
        theirs = other.positions.copy()
        theirs[:, 0] += len(self.scenes)
        sign = 1 if operation is np.add else -1
        return self.with_rows(
            self.scenes + other.scenes,
            np.concatenate([self.positions, theirs]),
            np.concatenate([self.starts, self.starts[-1] + other.starts[1:]]),
            np.concatenate([self.cells, other.cells]),
            np.concatenate([self.numbers, sign * other.numbers]),
        )


def _rising(positions: Counts) -> bool:
    """Whether every row is after the one before it, the first column weighing most."""
    step = np.diff(positions, axis=0)
    first = np.take_along_axis(step, (step != 0).argmax(axis=1)[:, np.newaxis], axis=1)
    return bool((first > 0).all())
