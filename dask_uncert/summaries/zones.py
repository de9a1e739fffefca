"""The counts of each zone of a scene: whole Evaluations of its pixels, which add up to the scene's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.sparse_rows import SparseRow, joined_rows, split_rows
from dask_uncert.summaries.summary import Summary, UnequalFramesError, counts
from dask_uncert.summaries.tiles import Tiles

MOST_ZONES = 1000
"""Zones of a scene: more are no zones, but an input of another kind."""


class Zone(NamedTuple):
    """A zone: its code in the input, and its name."""

    code: int
    name: str


@dataclass(frozen=True, eq=False)
class Zones(Summary):
    """Sparse rows, one for each zone with a pixel of the grid, sorted by code; rows of one code add.

    A row holds every count of the zone's Evaluation but those of its tiles, `width` cells one array after the other.
    named: the zones of the job, none where zones are called by their codes. Row i has the entries starts[i] to
    starts[i + 1] of `cells` (rising) and `numbers`. tiles: the scene's tiles cut by zones; before a tile's position is
    the code of the zone.
    """

    kind = "zones"
    named: tuple[Zone, ...]
    width: int
    codes: Counts = counts("zone")
    starts: Counts = counts("zone_start")
    cells: Counts = counts("zone_entry")
    numbers: Counts = counts("zone_number")
    tiles: Tiles | None = None

    @classmethod
    def of(cls, named: tuple[Zone, ...], width: int, rows: Mapping[int, SparseRow], tiles: Tiles | None = None) -> Self:
        """Return the counts of zones by code."""
        codes = sorted(rows)
        starts, cells, numbers = joined_rows([rows[code] for code in codes])
        return cls(
            named, width, tiles=tiles, codes=np.array(codes, np.int64), starts=starts, cells=cells, numbers=numbers
        )

    @property
    def table(self) -> tuple[Zone, ...]:
        """The zones of the job; without names those that occur, called by their codes."""
        return self.named or tuple(Zone(code, str(code)) for code in self.codes.tolist())

    def row(self, codes: Iterable[int]) -> SparseRow:
        """Return the counts of zones together; empty where no pixel is in them."""
        rows = dict(zip(self.codes.tolist(), split_rows(self.starts, self.cells, self.numbers), strict=True))
        kept = [rows[code] for code in codes if code in rows]
        return _sum(kept, self.width) if kept else SparseRow(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def tiles_of(self, codes: Sequence[int]) -> Tiles | None:
        """Return the tiles of zones together, in the scene's positions; None where there are none.

        Unless all zones are in it, the scene's name tells which, so that parts of one scene add.
        """
        if self.tiles is None:
            return None
        mine = np.flatnonzero(np.isin(self.tiles.positions[:, 1], codes))
        rows = split_rows(self.tiles.starts, self.tiles.cells, self.tiles.numbers)
        positions, scenes = np.delete(self.tiles.positions[mine], 1, axis=1), self.tiles.scenes
        if not set(self.codes.tolist()) <= set(codes):
            scenes = tuple(f"{scene} zones {' '.join(map(str, sorted(codes)))}" for scene in scenes)
        return self.tiles.with_rows(scenes, positions, [rows[i] for i in mine.tolist()])

    def sealed(self, scene: str) -> Self:
        """Return the zones of a complete scene of this name."""
        return self if self.tiles is None else replace(self, tiles=self.tiles.sealed(scene))

    def _combine(self, others: Sequence[Zones], operation: np.ufunc) -> Self:
        """Return the sum of many, where each zone is added once."""
        return self._joined(others, 1 if operation is np.add else -1)

    def _joined(self, others: Sequence[Zones], sign: int) -> Self:
        rows: dict[int, list[SparseRow]] = {}
        every: list[Zones] = [self, *others]
        for zones in every:
            if (zones.named, zones.width) != (self.named, self.width):
                raise UnequalFramesError("zones with other names, or of evaluations with other counts, do not add")
            factor = 1 if zones is self else sign
            for code, row in zip(
                zones.codes.tolist(), split_rows(zones.starts, zones.cells, zones.numbers), strict=True
            ):
                rows.setdefault(code, []).append(SparseRow(row.cells, factor * row.counts))
        check_number(rows)
        total = {code: _sum(parts, self.width) for code, parts in rows.items()}
        return type(self).of(
            self.named,
            self.width,
            {code: row for code, row in total.items() if row.cells.size},
            self._joined_tiles([other.tiles for other in others], sign),
        )

    def _joined_tiles(self, others: Sequence[Tiles | None], sign: int) -> Tiles | None:
        kept = [tiles for tiles in others if tiles is not None]
        if self.tiles is None or len(kept) < len(others):
            if self.tiles is None and not kept:
                return None
            raise UnequalFramesError("zones with and without tiles do not add")
        if sign > 0:
            return self.tiles.plus_all(kept)
        return self.tiles - kept[0]


def check_number(codes: Iterable[int]) -> None:
    """Raise InputError for more zones than can be kept apart."""
    found = set(codes)
    if len(found) > MOST_ZONES:
        raise InputError(
            f"zones: there are more than {MOST_ZONES} codes, from {min(found)} to {max(found)}. Name the array whose codes "
            f"are zones, put codes together, or declare those that are none as `nodata`."
        )


def _sum(rows: Sequence[SparseRow], width: int) -> SparseRow:
    """Return the sum of rows; OverflowError where a count may pass 64 bits."""
    if len(rows) == 1:
        return rows[0]
    if sum(int(np.abs(row.counts).max(initial=0)) for row in rows) >= 2**63:
        raise OverflowError("counts of a zone may exceed 64 bits; keep these Summaries apart")
    total = np.zeros(width, np.int64)
    for row in rows:
        total[row.cells] += row.counts  # each cell occurs once
    return SparseRow.of(total)
