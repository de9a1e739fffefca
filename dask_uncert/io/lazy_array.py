"""Arrays that are computed when they are sliced."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class ArrayView:
    """An array that is computed when it is sliced; a subclass says in `read` how."""

    def __init__(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        self.shape: tuple[int, ...] = tuple(shape)
        self.ndim, self.dtype = len(self.shape), np.dtype(dtype)

    def __getitem__(self, region: Any) -> NDArray[Any]:
        return np.asarray(self.read(whole_region(region, self.ndim)))

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        """Return a region, given by one slice with a positive step for each dimension."""
        raise NotImplementedError


class MissingChunkMask(ArrayView):
    """A uint8 array over some axes of a chunked one: 1 wherever a chunk is missing."""

    def __init__(
        self,
        shape: Sequence[int],
        chunks: Sequence[int],
        absent: Collection[tuple[int, ...]],
        axes: Sequence[int],
    ) -> None:
        """absent: indices of the missing chunks. axes: of the chunked array that the mask has, in their order."""
        super().__init__([shape[axis] for axis in axes], np.uint8)
        self.chunks = tuple(chunks[axis] for axis in axes)
        self._absent = np.zeros([-(-n // c) for n, c in zip(self.shape, self.chunks, strict=True)], np.uint8)
        indices = np.array([*absent], np.intp).reshape(len(absent), len(shape))  # there may be millions
        if len(absent):
            self._absent[tuple(indices[:, [*axes]].T)] = 1

    @property
    def missing(self) -> int:
        """Number of elements that are 1."""
        number = self._absent.astype(np.int64)
        for n, c in zip(self.shape[::-1], self.chunks[::-1], strict=True):
            number = number @ np.minimum(c, n - np.arange(0, n, c))
        return int(number)

    def read(self, region: tuple[Any, ...]) -> NDArray[np.uint8]:
        cut = zip(self.shape, self.chunks, region, strict=True)
        return np.asarray(self._absent[np.ix_(*(np.arange(n)[part] // c for n, c, part in cut))])


class Reversed(ArrayView):
    """An array with some axes read from their ends; only what is read is reversed, when it is read."""

    def __init__(self, data: Any, axes: Sequence[int]) -> None:
        super().__init__(data.shape, data.dtype)
        self.data, self.axes = data, tuple(axes)

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        parts, order = list(region), [slice(None)] * self.ndim
        for axis in self.axes:
            n = self.shape[axis]
            chosen = range(*parts[axis].indices(n))
            parts[axis] = slice(n - 1 - chosen[-1], n - chosen[0], chosen.step) if chosen else slice(0, 0)
            order[axis] = slice(None, None, -1)
        return np.ascontiguousarray(self.data[tuple(parts)][tuple(order)])


class OneIndex(ArrayView):
    """An array at one index along an axis, without that axis."""

    def __init__(self, data: Any, axis: int, index: int) -> None:
        super().__init__([n for i, n in enumerate(data.shape) if i != axis], data.dtype)
        self.data, self.axis, self.index = data, axis, index

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        whole = (*region[: self.axis], slice(self.index, self.index + 1), *region[self.axis :])
        return np.asarray(np.take(self.data[whole], 0, axis=self.axis))


class Reordered(ArrayView):
    """An array with the indices along one axis in another order, or some of them."""

    def __init__(self, data: Any, axis: int, order: Sequence[int]) -> None:
        """order: for each index along the axis, that of the array."""
        super().__init__((*data.shape[:axis], len(order), *data.shape[axis + 1 :]), data.dtype)
        self.data, self.axis, self.order = data, axis, np.asarray(order)

    def read(self, region: tuple[Any, ...]) -> NDArray[Any]:
        chosen = self.order[region[self.axis]]
        first, end = (chosen.min(), chosen.max() + 1) if chosen.size else (0, 0)
        read = self.data[(*region[: self.axis], slice(int(first), int(end)), *region[self.axis + 1 :])]
        return np.asarray(np.take(np.asarray(read), chosen - first, axis=self.axis))


def whole_region(region: Any, ndim: int) -> tuple[Any, ...]:
    """Return a region, as typed in brackets, with one part for each dimension.

    >>> whole_region((..., slice(2)), 3)
    (slice(None, None, None), slice(None, None, None), slice(None, 2, None))
    """
    parts = region if isinstance(region, tuple) else (region,)
    if Ellipsis not in parts:
        parts = (*parts, Ellipsis)
    gap = parts.index(Ellipsis)
    return (*parts[:gap], *[slice(None)] * (ndim - len(parts) + 1), *parts[gap + 1 :])
