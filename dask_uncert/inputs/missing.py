"""Where inputs have nothing: their names for that, and chunks that are not in a store as an array over the grid."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

GAPS = "gaps"
"""Beside a block's values: over the grid, uint8, 0 or one more than a reason's place in the ledger's `REASONS`."""
BLANK = "blank"
"""The same where the prediction is among what is missing: true there, and maps are undefined."""
VIRTUAL = {"absent_": "missing_chunk", "outside_": "outside"}
"""How inputs begin that say, not 0, where another one is not there; and why not."""


class Gap(NamedTuple):
    """What an input says of another, not 0 where that has nothing: the other's name, and the fault in the ledger."""

    name: str
    fault: str


def gap_of(name: str) -> Gap | None:
    """What the input of this name says of another; None where it is one itself."""
    for prefix, fault in VIRTUAL.items():
        if name.startswith(prefix):
            return Gap(name.removeprefix(prefix), fault)
    return None


class Holes:
    """A uint8 array over some axes of a chunked one: 1 where a chunk that is not there has a part; slices like one."""

    def __init__(
        self,
        shape: Sequence[int],
        chunks: Sequence[int],
        absent: Collection[tuple[int, ...]],
        axes: Sequence[int],
    ) -> None:
        """axes: those of the chunked array that are the grid's, in their order. absent: numbers of chunks."""
        self.shape = tuple(shape[axis] for axis in axes)
        self.ndim, self.dtype = len(self.shape), np.dtype(np.uint8)
        self.chunks = tuple(chunks[axis] for axis in axes)
        self._holes = np.zeros([-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True)], np.uint8)
        for number in absent:
            self._holes[tuple(number[axis] for axis in axes)] = 1

    def __getitem__(self, region: Any) -> NDArray[np.uint8]:
        """region: slices, an Ellipsis for those left out."""
        given = whole_region(region, self.ndim)
        numbers = [np.arange(n)[part] // c for n, c, part in zip(self.shape, self.chunks, given, strict=True)]
        return np.asarray(self._holes[np.ix_(*numbers)])

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """None stand beside it."""
        return {}


def whole_region(region: Any, ndim: int) -> tuple[Any, ...]:
    """A region of slices, one for each dimension."""
    given = region if isinstance(region, tuple) else (region,)
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given = (*given[:at], *[slice(None)] * (ndim - len(given) + 1), *given[at + 1 :])
    return (*given, *[slice(None)] * (ndim - len(given)))
