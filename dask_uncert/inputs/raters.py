"""Several raters of one case: their mean is a fuzzy reference, read where it is sliced.

Where the raters give class codes, a class's share is the number of raters who chose it over the number of
raters; where they give shares, it is the mean of those. A pixel that one of them leaves open (NaN, or an ignore
code) has no reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, class_indices
from dask_uncert.inputs.alignment import together
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.io.lazy_array import whole_region

RATER = "rater"
WORST = 5  # codes that a message names


class OneOf:
    """One rater of a stored array that holds all of them along an axis; slices like an array without it."""

    def __init__(self, data: Any, axis: int, number: int) -> None:
        self.data, self.axis, self.number = data, axis, number
        self.shape: tuple[int, ...] = tuple(n for i, n in enumerate(data.shape) if i != axis)
        self.ndim, self.dtype = len(self.shape), np.dtype(data.dtype)
        self.held = int(getattr(data, "held", 0))

    def __getitem__(self, region: Any) -> NDArray[Any]:
        slices = list(whole_region(region, self.ndim))
        slices.insert(self.axis, slice(self.number, self.number + 1))
        return np.asarray(np.take(self.data[tuple(slices)], 0, axis=self.axis))

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """Those that stand beside the stored array."""
        found: dict[str, Any] = self.data.coordinates(dims)
        return found


def apart(cube: Cube) -> dict[str, Cube]:
    """The raters along a cube's dimension `rater`, as cubes without it, by name; {} where it has none."""
    if RATER not in cube.dims:
        return {}
    axis = cube.dims.index(RATER)
    number = cube.data.shape[axis]
    if number == 0:
        raise InputError(f"{cube.name}: {cube.where} holds no rater.")
    dims = tuple(d for d in cube.dims if d != RATER)
    chunks = None if cube.chunks is None else tuple(n for i, n in enumerate(cube.chunks) if i != axis)
    found = {}
    for i in range(number):
        data, where = OneOf(cube.data, axis, i), f"{cube.where} ({RATER} {i})"
        found[f"{RATER}_{i}"] = replace(cube, data=data, dims=dims, chunks=chunks, where=where)
    return found


class MeanOfRaters:
    """The mean of raters over the same grid, float64; slices like an array.

    Without shares, two classes give the share of the second over the grid, more give all shares, classes last.
    """

    def __init__(
        self, raters: Sequence[Cube], codes: Sequence[int], ignore: Sequence[int], shares: bool
    ) -> None:
        """codes: of the classes, in their order. shares: the raters give shares, not codes."""
        first, *others = raters
        brought = together({"reference": first, **{f"{RATER}_{i}": o for i, o in enumerate(others)}})
        self.raters = tuple(brought.values())
        self.codes, self.ignore, self.shares = tuple(codes), tuple(ignore), shares
        for one in self.raters:
            if one.dims != first.dims or one.data.shape != first.data.shape:
                raise InputError(
                    f"{one.name}: {one.where} covers {one.sizes}, but {first.name}, {first.where}, covers "
                    f"{first.sizes}. All raters must have the same dimensions, in the same order."
                )
            kind = one.dtype.kind
            if kind not in ("f" if shares else "biuf"):
                wanted = "shares in [0, 1], floats" if shares else "class codes, whole numbers"
                raise InputError(f"{one.name}: {one.where} holds {one.data.dtype}; expected {wanted}.")
        self.many = not shares and len(self.codes) > 2
        self.shape: tuple[int, ...] = (*first.data.shape, *((len(self.codes),) if self.many else ()))
        self.ndim, self.dtype = len(self.shape), np.dtype(np.float64)
        self.held = sum(one.held for one in self.raters)

    def coordinates(self, dims: Sequence[str]) -> dict[str, Any]:
        """Those that stand beside the first rater."""
        found: dict[str, Any] = self.raters[0].data.coordinates(dims)
        return found

    def cube(self) -> Cube:
        """As the reference of an evaluation."""
        first = self.raters[0]
        dims = (*first.dims, CLASS) if self.many else first.dims
        chunks = first.chunks
        if self.many and chunks is not None:
            chunks = (*chunks, len(self.codes))
        where = " and ".join(one.where for one in self.raters)
        return Cube("reference", self, dims, chunks, where, first.geometry)

    def __getitem__(self, region: Any) -> NDArray[np.float64]:
        slices = whole_region(region, self.ndim)
        inner = slices[:-1] if self.many else slices
        stored = [np.asarray(one.data[inner]) for one in self.raters]
        absent = [one.decoding.absent(values) for one, values in zip(self.raters, stored, strict=True)]
        read = [
            one.decoding.values(values, one.role) for one, values in zip(self.raters, stored, strict=True)
        ]
        if self.shares:
            shares = [
                np.where(gone, np.nan, values) if gone is not None else values.astype(np.float64)
                for values, gone in zip(read, absent, strict=True)
            ]
            return np.asarray(np.mean(shares, axis=0))
        votes = [self._indices(*each) for each in zip(self.raters, read, absent, strict=True)]
        open_ = np.any([index < 0 for index in votes], axis=0)  # no code, or one that is ignored
        if not self.many:
            share = np.sum([index == 1 for index in votes], axis=0) / len(votes)
            return np.where(open_, np.nan, share)
        found = np.stack([np.sum([v == i for v in votes], axis=0) for i in range(len(self.codes))], axis=-1)
        return np.asarray(np.where(open_[..., np.newaxis], np.nan, found / len(votes))[..., slices[-1]])

    def _indices(
        self, one: Cube, values: NDArray[Any], absent: NDArray[np.bool_] | None
    ) -> NDArray[np.int64]:
        index = class_indices(values, self.codes, self.ignore).reshape(values.shape)
        if absent is not None:
            index[absent] = NO_CODE
        if (index == UNKNOWN).any():
            codes = np.unique(values[index == UNKNOWN]).tolist()
            said = ", ".join(f"{code:g}" for code in codes[:WORST]) + (", ..." if len(codes) > WORST else "")
            raise InputError(
                f"{one.name}: {one.where} holds codes that are neither in the class table nor ignored: {said}."
            )
        return index
