"""Several raters of one case: their mean is a fuzzy reference, made where it is sliced.

Where the raters give class codes, a class's share is the number of raters who chose it over the number of
raters; where they give shares, it is the mean of those. A pixel without a value from one of them (NaN, an ignore
code or a missing chunk) has no reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from dask_uncert.errors import InputError, listed
from dask_uncert.formulas.labels import NO_CODE, UNKNOWN, class_indices
from dask_uncert.formulas.typing import Floats, Indices
from dask_uncert.inputs.alignment import align_axes
from dask_uncert.inputs.cube import CLASS, Cube, grid_geometry
from dask_uncert.io.decoding import AS_STORED
from dask_uncert.io.lazy_array import ArrayView, OneIndex

RATER = "rater"
SHOWN = 5  # codes that a message names


def raters_of(cube: Cube) -> dict[str, Cube]:
    """Return the raters along a cube's dimension `rater` by their names, without that dimension; {} without it."""
    if RATER not in cube.dims:
        return {}
    axis = cube.dims.index(RATER)
    number = cube.data.shape[axis]
    if number == 0:
        raise InputError(f"{cube.name}: {cube.where} holds no rater.")
    dims = tuple(dim for dim in cube.dims if dim != RATER)
    geometry = grid_geometry(cube.geometry, {dim: n for dim, n in cube.grid.items() if dim != RATER})
    chunks = None if cube.chunks is None else tuple(n for i, n in enumerate(cube.chunks) if i != axis)
    return {
        f"{RATER}_{i}": replace(
            cube, data=OneIndex(cube.data, axis, i), dims=dims, chunks=chunks, where=f"{cube.where} ({RATER} {i})",
            geometry=geometry, stored=None,
        )
        for i in range(number)
    }  # fmt: skip


def mean_of_raters(
    raters: Sequence[Cube],
    codes: Sequence[int],
    ignore: Sequence[int],
    shares: bool,
    masks: Mapping[int, Cube] = MappingProxyType({}),
) -> Cube:
    """Return the mean of raters over the same grid, as the reference of an evaluation.

    codes: of the classes, in their order. shares: the raters give shares, not codes. Without shares, two classes give the
    share of the second over the grid, more give all shares, classes last. masks: of missing chunks, by the rater's index.
    """
    data = MeanOfRaters(raters, codes, ignore, shares, masks)
    first = data.raters[0]
    dims, chunks = first.dims, first.chunks
    if data.ndim > len(dims):
        dims, chunks = (*dims, CLASS), None if chunks is None else (*chunks, len(codes))
    remarks = tuple(dict.fromkeys(remark for rater in raters for remark in rater.remarks))
    where, held = " and ".join(rater.where for rater in data.raters), sum(rater.held for rater in data.raters)
    return replace(
        first, name="reference", kind="reference", data=data, dims=dims, chunks=chunks, where=where, stored=None, held=held,
        decoding=AS_STORED, role="shares", remarks=remarks,
    )  # fmt: skip


class MeanOfRaters(ArrayView):
    """The mean of raters, float64; see `mean_of_raters`."""

    def __init__(
        self,
        raters: Sequence[Cube],
        codes: Sequence[int],
        ignore: Sequence[int],
        shares: bool,
        masks: Mapping[int, Cube],
    ) -> None:
        inputs = {f"{RATER}_{i}" if i else "reference": cube for i, cube in enumerate(raters)}
        aligned = [*align_axes(inputs | {f"mask_{i}": mask for i, mask in masks.items()}).values()]
        self.raters = tuple(aligned[: len(raters)])
        first = self.raters[0]
        self.masks = dict(zip(masks, aligned[len(raters) :], strict=True))
        self.codes, self.ignore, self.shares = tuple(codes), tuple(ignore), shares
        for rater in self.raters:
            if rater.sizes != first.sizes or rater.dims != first.dims:
                raise InputError(
                    f"{rater.name}: {rater.where} covers {rater.sizes}, but {first.name}, {first.where}, covers "
                    f"{first.sizes}. All raters must have the same dimensions, in the same order."
                )
            if rater.dtype.kind not in ("f" if shares else "biuf"):
                expected = "shares in [0, 1], floats" if shares else "class codes, whole numbers"
                dtype = rater.data.dtype
                raise InputError(f"{rater.name}: {rater.where} holds {dtype}; expected {expected}.")
        self.has_classes = not shares and len(self.codes) > 2
        super().__init__((*first.data.shape, *((len(self.codes),) if self.has_classes else ())), np.float64)

    def read(self, region: tuple[Any, ...]) -> Floats:
        inner = region[:-1] if self.has_classes else region
        if self.shares:
            return np.asarray(np.mean([_share(rater, inner) for rater in self.raters], axis=0))
        votes = [self._indices(i, inner) for i in range(len(self.raters))]
        undecided = np.any([index < 0 for index in votes], axis=0)  # no code, or one that is ignored
        if not self.has_classes:
            share = np.sum([index == 1 for index in votes], axis=0) / len(votes)
            return np.where(undecided, np.nan, share)
        counts = np.stack([np.sum([v == i for v in votes], axis=0) for i in range(len(self.codes))], axis=-1)
        means = np.where(undecided[..., np.newaxis], np.nan, counts / len(votes))
        return np.asarray(means[..., region[-1]])

    def _indices(self, number: int, region: tuple[Any, ...]) -> Indices:
        rater = self.raters[number]
        stored = np.asarray(rater.data[region])
        values, absent = rater.decoding.values(stored, rater.role), rater.decoding.absent(stored)
        index = class_indices(values, self.codes, self.ignore).reshape(values.shape)
        if number in self.masks:
            index[self.masks[number].data[region] != 0] = NO_CODE
        if absent is not None:
            index[absent] = NO_CODE
        if (index == UNKNOWN).any():
            codes = [f"{code:g}" for code in np.unique(values[index == UNKNOWN]).tolist()]
            raise InputError(
                f"{rater.name}: {rater.where} holds codes that are neither in the class table nor ignored: "
                f"{listed(codes, SHOWN)}."
            )
        return index


def _share(rater: Cube, region: tuple[Any, ...]) -> Floats:
    stored = np.asarray(rater.data[region])
    values, absent = rater.decoding.values(stored, rater.role), rater.decoding.absent(stored)
    shares = values.astype(np.float64)
    return shares if absent is None else np.where(absent, np.nan, shares)
