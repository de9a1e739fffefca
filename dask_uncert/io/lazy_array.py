"""A stored array in another guise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Wrapped:
    """Wraps an array that is sliced; what a guise does not say itself, such as address and fingerprint, is the array's."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getattr__(self, name: str) -> Any:
        """What else the array says of itself."""
        if name.startswith("_") or name == "data":
            raise AttributeError(name)
        return getattr(self.data, name)

    def __repr__(self) -> str:
        return repr(self.data)


class MissingChunkMask:
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
