"""The spatial tiles of one block: pixels in the order of their tiles, counted row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import ModuleType

import numpy as np

from dask_uncert.blocks.kernels.types import TileRows
from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Bools, Indices
from dask_uncert.metrics.tile_bootstrap import tile_layout
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.sparse_rows import split_rows
from dask_uncert.summaries.tiles import OPEN, Tiles

SCRATCH = 6  # cells behind a row for numbers that a kernel adds, but that are counted already
DENSE = 1 << 21  # counts of tiles in memory at a time
HELD = 8 * DENSE  # bytes of these


class TileCounter:
    """Counts the tiles of one block, a batch of pixels at a time.

    total: the block's Evaluation, with empty tiles of its frame. shape, offset: of the block in the grid.
    """

    def __init__(self, total: Evaluation, kernels: ModuleType, shape: Sequence[int], offset: Sequence[int]) -> None:
        assert total.tiles is not None
        self.kernels, self.tiles, size = kernels, total.tiles, total.tiles.size
        layout = tile_layout(total)
        self.width, self.starts = layout.width, {name: start for name, (start, _) in layout.marginals.items()}
        self.sets = total.report_options.sets
        self.stride = self.width + SCRATCH * self.sets
        self.fine = self.bins = np.empty(0, np.int64)
        if total.calibration is not None:
            fine = len(total.calibration.edges) - 1
            self.fine = np.arange(fine)
            self.bins = self.fine // (fine // total.calibration.bins)
        self.first = [o // size for o in offset]
        self.sides = [(o + n - 1) // size - o // size + 1 for o, n in zip(offset, shape, strict=True)]
        self.tile_of, self.order = _cut(tuple(shape), tuple(o % size for o in offset), size)
        self.most = max(1, DENSE // self.width)
        self.first_tile, self.counts = 0, np.zeros((0, self.stride), np.int64)
        self.row, self.counted = np.empty(0, np.int64), np.empty(0, bool)
        self.parts: list[tuple[Indices, Indices, Indices]] = []

    def batches(self, selected: Indices, step: int) -> Iterator[Indices]:
        """Yield these pixels by tile: whole tiles of about `step` pixels in all, or a part of one."""
        taken = np.zeros(self.tile_of.size, bool)
        taken[selected] = True
        pixels = self.order[taken[self.order]]
        tile = self.tile_of[pixels]
        start = 0
        while start < pixels.size:
            end = tile[start] + self.most
            if start + step < pixels.size:
                end = min(end, tile[start + step])
            whole = int(np.searchsorted(tile, end))
            stop = whole if whole > start else start + step
            yield pixels[start:stop]
            start = stop

    def open(self, truth: Indices, pixels: Indices) -> Callable[..., TileRows]:
        """Start a batch, whose truth is negative where a pixel does not count.

        Returns a function from marginals of the layout to the rows that a kernel adds them to.
        """
        tile = self.tile_of[pixels]
        self.first_tile, self.counted = int(tile[0]), truth >= 0
        self.row = tile - self.first_tile
        self.counts = np.zeros((int(self.row[-1]) + 1, self.stride), np.int64)
        return self._rows

    def _rows(self, *marginals: str, fine: bool = False) -> TileRows:
        starts = np.array([self.starts[name] for name in marginals], np.int64)
        return TileRows(self.row, self.counts, starts, self.fine if fine else self.bins)

    def set_rows(self, classes: int) -> TileRows:
        """Return rows for items of all classes together by fine bin; the scores before them are counted already."""
        scores = [self.width, self.width + 2, self.width + 4]
        starts = np.array([*scores, *[self.starts["items"]] * classes], np.int64)
        return TileRows(self.row, self.counts, starts, self.fine)

    def add_true(self, class_index: int, selected: Bools, fine: Indices) -> None:
        """Count the fine bins of a class's probability over selected pixels of the batch, which are of the class."""
        np.add.at(self.counts, (self.row[selected], self.starts[f"true/{class_index}"] + fine), 1)

    def soft_sums(self, number: int, cells: Indices, setting: int) -> tuple[Indices, Indices]:
        """Return the cells of a soft confusion's weights in the sums of tiles, and these, (cells, 2 limbs).

        cells: (counted,), of the four. setting: its number among those of the soft confusion, in C order.
        """
        start = self.starts[f"soft/{number}"] + setting * 2 * len(CELLS)
        row_start = self.row[self.counted] * (self.stride // 2)
        return row_start + cells, self.counts.reshape(-1)[start:].reshape(-1, 2)

    def close(self) -> None:
        """End the batch: keep its tiles, the number of entries of each, and these."""
        self.counts[:, self.width :] = 0
        number, cells, counts = self.kernels.filled_cells(self.counts)
        rows = np.stack([np.arange(self.first_tile, self.first_tile + len(number)), number])
        self.parts.append((rows[:, number > 0], cells, counts))

    def result(self) -> Tiles:
        """Return the tiles of the block."""
        if not self.parts:
            return self.tiles
        (tile, number), cells, counts = (np.concatenate(p, axis=-1) for p in zip(*self.parts, strict=True))
        places = np.stack(np.unravel_index(tile, self.sides), axis=1) + self.first
        positions = np.concatenate([np.zeros((len(places), 1), np.int64), places], axis=1)
        starts = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
        return self.tiles.with_rows((OPEN,), positions, split_rows(starts, cells, counts))


@lru_cache(maxsize=4)  # most blocks of a scene are cut alike
def _cut(shape: tuple[int, ...], offset: tuple[int, ...], size: int) -> tuple[Indices, Indices]:
    """Return the tile of each pixel of a block, numbered in C order, and the pixels sorted by it."""
    number = np.zeros((), np.int64)
    for o, n in zip(offset, shape, strict=True):
        number = number[..., np.newaxis] * ((o + n - 1) // size + 1) + np.arange(o, o + n) // size
    tile = np.asarray(number.ravel(), np.int64)
    short = tile.astype(np.uint16) if math.prod(shape) and tile[-1] < 1 << 16 else tile  # sorts faster
    return tile, np.argsort(short, kind="stable")
