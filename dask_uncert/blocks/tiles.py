"""What the spatial tiles of one block keep apart: pixels in the order of their tiles, counted row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import ModuleType

import numpy as np

from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Indices
from dask_uncert.kernels.types import Apart
from dask_uncert.metrics.tile_bootstrap import tile_layout
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.tiles import OPEN, Tiles, rows_of

DENSE = 1 << 21  # counts of tiles held at a time
HELD = 8 * DENSE  # bytes of these


class TileCounter:
    """Counts the tiles of one block, a batch of pixels at a time.

    total: the block's Evaluation, with empty tiles of its frame. shape, offset: of the block in the grid.
    """

    def __init__(
        self, total: Evaluation, kernels: ModuleType, shape: Sequence[int], offset: Sequence[int]
    ) -> None:
        assert total.tiles is not None
        self.kernels, self.tiles, size = kernels, total.tiles, total.tiles.size
        layout = tile_layout(total)
        self.width, self.places = layout.width, {name: at for name, (at, _) in layout.marginals.items()}
        fine = len(total.calibration.edges) - 1
        self.bins = np.arange(fine) // (fine // total.calibration.bins)
        self.first = [o // size for o in offset]
        self.sides = [(o + n - 1) // size - o // size + 1 for o, n in zip(offset, shape, strict=True)]
        self.of_pixel, self.order = _cut(tuple(shape), tuple(o % size for o in offset), size)
        self.most = max(1, DENSE // self.width)
        self.start, self.counts = 0, np.zeros((0, self.width), np.int64)
        self.owner, self.taken = np.empty(0, np.int64), np.empty(0, bool)
        self.found: list[tuple[Indices, Indices, Indices]] = []

    def batches(self, wanted: Indices, step: int) -> Iterator[Indices]:
        """These pixels in the order of their tiles; whole tiles, about `step` pixels of not too many, or one."""
        chosen = np.zeros(self.of_pixel.size, bool)
        chosen[wanted] = True
        pixels = self.order[chosen[self.order]]
        tile = self.of_pixel[pixels]
        start = 0
        while start < pixels.size:
            end = tile[start] + self.most
            if start + step < pixels.size:
                end = min(end, tile[start + step])
            whole = int(np.searchsorted(tile, end))
            stop = whole if whole > start else start + step
            yield pixels[start:stop]
            start = stop

    def open(self, truth: Indices, pixels: Indices) -> Callable[..., Apart]:
        """Rows for a batch, whose truth is negative where a pixel does not count.

        Gives, for marginals of the layout, what a kernel that counts them adds to.
        """
        of = self.of_pixel[pixels]
        self.start, self.taken = int(of[0]), truth >= 0
        self.owner = of - self.start
        self.counts = np.zeros((int(self.owner[-1]) + 1, self.width), np.int64)
        return self._apart

    def _apart(self, *items: str) -> Apart:
        places = np.array([self.places[item] for item in items], np.int64)
        return Apart(self.owner, self.counts, places, self.bins)

    def soft(self, number: int, cells: Indices, setting: int) -> tuple[Indices, Indices]:
        """Where a soft confusion's weights of the counted pixels go: their cells, and sums (cells, 2 limbs).

        cells: (counted,), of the four. setting: its place among the soft confusion's own, in C order.
        """
        start = self.places[f"soft/{number}"] + setting * 2 * len(CELLS)
        of = self.owner[self.taken] * (self.width // 2)
        return of + cells, self.counts.reshape(-1)[start:].reshape(-1, 2)

    def close(self) -> None:
        """Keep what the batch counted: tiles, entries of each, and these."""
        number, cells, held = self.kernels.filled_cells(self.counts)
        rows = np.stack([np.arange(self.start, self.start + len(number)), number])
        self.found.append((rows[:, number > 0], cells, held))

    def result(self) -> Tiles:
        """The tiles of the block."""
        if not self.found:
            return self.tiles
        found, cells, held = (np.concatenate(parts, axis=-1) for parts in zip(*self.found, strict=True))
        places = np.stack(np.unravel_index(found[0], self.sides), axis=1) + self.first
        positions = np.concatenate([np.zeros((len(places), 1), np.int64), places], axis=1)
        starts = np.concatenate([[0], np.cumsum(found[1])]).astype(np.int64)
        return self.tiles.with_rows((OPEN,), positions, rows_of(starts, cells, held))


@lru_cache(maxsize=4)  # most blocks of a scene are cut alike
def _cut(shape: tuple[int, ...], offset: tuple[int, ...], size: int) -> tuple[Indices, Indices]:
    """The tile of each pixel of a block, counted from its first tile in C order; and the pixels, sorted by it."""
    number = np.zeros((), np.int64)
    for o, n in zip(offset, shape, strict=True):
        number = number[..., np.newaxis] * ((o + n - 1) // size + 1) + np.arange(o, o + n) // size
    tile = np.asarray(number.ravel(), np.int64)
    short = tile.astype(np.uint16) if math.prod(shape) and tile[-1] < 1 << 16 else tile  # sorts faster
    return tile, np.argsort(short, kind="stable")
