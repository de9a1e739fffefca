"""The zone of each pixel of a block, and the counts of zones from their Evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import ZONE_GAPS
from dask_uncert.errors import UnusableBlockError
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, class_indices
from dask_uncert.formulas.typing import Bools, Indices
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.sparse_rows import SparseRow, split_rows
from dask_uncert.summaries.tiles import OPEN, Tiles
from dask_uncert.summaries.zones import Zones, check_number


class BlockZones(NamedTuple):
    """Zones of a block: their codes, and the number of the zone of each pixel (n,); len(codes) where there is none."""

    codes: tuple[int, ...]
    of: Indices

    def parts(self, selected: Bools, kernels: ModuleType) -> Iterator[tuple[int, int, Indices]]:
        """Yield the number of each zone with a pixel, how many these are, and those selected, in rising order.

        The last number is that of pixels in no zone.
        """
        order, sizes, ends = kernels.sort_by_zone(self.of, selected, len(self.codes) + 1)
        for number in np.flatnonzero(sizes).tolist():
            yield number, int(sizes[number]), order[ends[number - 1] if number else 0 : ends[number]]


def zones_of(request: Request, arrays: Mapping[str, Any]) -> BlockZones:
    """Return the zones of a block; UnusableBlockError for codes that are no zones, InputError for too many."""
    flat = arrays["zones"].ravel()
    gaps = arrays[ZONE_GAPS].ravel() if ZONE_GAPS in arrays else None
    index, codes = zone_indices(request, flat, gaps)
    if (index == UNKNOWN).any():
        raise UnusableBlockError("zones", "unknown zone codes")
    check_number(codes)
    index[index < 0] = len(codes)
    return BlockZones(codes, index)


def zone_indices(
    request: Request, flat: NDArray[Any], gaps: NDArray[np.uint8] | None
) -> tuple[Indices, tuple[int, ...]]:
    """Return the number of the zone of each pixel (n,), UNKNOWN for a code that is none, NO_CODE where there is none.

    And the codes of the zones: those that are named, or those that occur.
    """
    assert request.zones is not None
    codes = tuple(zone.code for zone in request.zones)
    if not codes:
        inside = flat if gaps is None else flat[gaps == 0]
        if flat.dtype.kind == "f":
            inside = inside[np.isfinite(inside) & (np.abs(inside) < 2.0**62)]
            inside = inside[inside == np.rint(inside)]
        small = inside.dtype.kind == "u" and inside.dtype.itemsize <= 2
        found = np.flatnonzero(np.bincount(inside)) if small else np.unique(inside)
        codes = tuple(int(code) for code in found.tolist())
    index = class_indices(flat, codes or (0,), (), np.int16 if len(codes) < 1 << 15 else np.int64)
    if gaps is not None:
        index[gaps > 0] = NO_CODE
    return index, codes


class ZoneRows:
    """Sparse rows of the zones of a block, and their sum; `dense` has the counts of one zone at a time."""

    def __init__(self, kernels: ModuleType, width: int) -> None:
        self.kernels, self.dense, self.sums = kernels, np.zeros(width, np.int64), np.zeros(width, np.int64)
        self.rows: dict[int, SparseRow] = {}

    def add(self, code: int | None) -> None:
        """Keep the counts of a zone, and set the dense ones to 0; code: None for pixels without one."""
        _, cells, counts = self.kernels.filled_cells(self.dense[np.newaxis])
        self.sums[cells] += counts
        self.dense[cells] = 0
        if code is not None:
            self.rows[code] = SparseRow(cells, counts)

    def result(self, empty: Zones) -> Zones:
        """Return the zones of the block."""
        return Zones.of(empty.named, empty.width, self.rows, empty.tiles)


def with_tiles(total: Evaluation, tiles: Mapping[int, Tiles]) -> Evaluation:
    """Return a block's Evaluation with the tiles of each zone, by its code, and their sum.

    Tiles of zones have the code of the zone before their position.
    """
    assert total.zones is not None
    assert total.zones.tiles is not None
    assert total.tiles is not None
    positions = [total.zones.tiles.positions]
    parts: list[SparseRow] = []
    for code, own in tiles.items():
        positions.append(np.insert(own.positions, 1, code, axis=1))
        parts += split_rows(own.starts, own.cells, own.numbers)
    together = total.zones.tiles.with_rows((OPEN,), np.concatenate(positions), parts)
    whole = total.tiles.plus_all([*tiles.values()])
    return replace(total, zones=replace(total.zones, tiles=together), tiles=whole)
