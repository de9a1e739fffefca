"""Chunks that a store does not hold: read as the fill value, left out and counted, or refused.

By default a missing chunk is the fill value, as Zarr defines it, where that leaves its pixels out: an ignored or
no-data code, false in a mask, NaN. Elsewhere it may as well be lost, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dask_uncert.errors import InputError, listed, plural
from dask_uncert.inputs.cube import RESERVED, Cube
from dask_uncert.io.lazy_array import MissingChunkMask

MissingChunks = Literal["refuse", "leave_out", "fill"]


def with_missing_chunks(
    cube: Cube, absent: Sequence[tuple[int, ...]], fill: Any, rule: MissingChunks | None, ignore: Sequence[int]
) -> dict[str, Cube]:
    """Return a Cube under its name, and a mask of its missing chunks where those are to be left out.

    absent: indices of the missing chunks; fill: the fill value as stored, None if it is not known; rule: None for the
    default; ignore: reference codes of pixels that do not count. Raises InputError where missing chunks are refused.
    """
    if not absent:
        return {cube.name: cube}
    assert cube.chunks is not None
    axes = [axis for axis, dim in enumerate(cube.dims) if dim not in RESERVED]
    mask = MissingChunkMask(cube.data.shape, cube.chunks, absent, axes)
    value = "the fill value" if fill is None else f"the fill value {fill:g}"
    why = None if fill is None else _left_out_because(cube, fill, ignore)
    if rule == "refuse" or (rule is None and why is None):
        raise InputError(_refusal(cube, absent, mask, value, rule))
    how = {
        None: f"read as {value}, {why}",
        "fill": f"read as {value}, by `missing_chunks: fill`",
        "leave_out": "left out as missing, by `missing_chunks: leave_out`",
    }[rule]
    remark = f"{cube.name}: {_missing(cube, absent, mask)} in the store, and {how}."
    cube = replace(cube, remarks=(*cube.remarks, remark))
    if rule != "leave_out":
        return {cube.name: cube}
    gap = Cube(
        f"missing_{cube.name}", mask, tuple(cube.grid), mask.chunks, f"missing chunks of {cube.where}", cube.geometry,
        cube.coordinates, kind=cube.kind, gap="missing_chunk", by_position=cube.by_position,
    )  # fmt: skip
    return {cube.name: cube, gap.name: gap}


def _left_out_because(cube: Cube, fill: Any, ignore: Sequence[int]) -> str | None:
    """Return why a pixel with the fill value does not count; None if it may count."""
    stored = np.asarray([fill], cube.data.dtype)
    absent, value = cube.decoding.absent(stored), cube.decoding.values(stored, cube.role)[0]
    if cube.kind == "features":  # they decide about no pixel
        return None
    if absent is not None and absent[0]:
        return "which means no data"
    if np.isnan(value):
        return "which leaves these pixels out"
    if cube.kind == "mask" and value == 0:
        return "which leaves these pixels out"
    if cube.kind == "reference" and cube.role == "labels" and value in ignore:
        return "a code that is ignored"
    return None


def _missing(cube: Cube, absent: Sequence[tuple[int, ...]], mask: MissingChunkMask) -> str:
    lost, pixels = mask.missing, int(np.prod(mask.shape, dtype=np.int64))
    return (
        f"{plural(len(absent), 'chunk')} of {cube.where} ({lost} of {plural(pixels, 'pixel')}) "
        f"{'are' if len(absent) > 1 else 'is'} not"
    )


def _refusal(
    cube: Cube, absent: Sequence[tuple[int, ...]], mask: MissingChunkMask, value: str, rule: MissingChunks | None
) -> str:
    chunks = listed([f"({', '.join(map(str, index))})" for index in absent], 1)
    counts = "" if rule else f" Here {value} would count."
    return (
        f"{cube.name}: chunk {chunks} of {cube.where} {'are' if len(absent) > 1 else 'is'} not in the store, with "
        f"{plural(mask.missing, 'pixel')}: lost, or never written because all of it is the fill value.{counts} Copy the "
        f"store again from a complete one; or give `missing_chunks: fill` if a missing chunk is the fill value there, or "
        f"`missing_chunks: leave_out` to count those pixels as missing."
    )
