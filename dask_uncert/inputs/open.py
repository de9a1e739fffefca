"""Inputs as a job words them, opened: cubes, and what is known of them to be missing; nothing is read yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import RESERVED, Cube, make_cube
from dask_uncert.io.decoding import Role, declared
from dask_uncert.io.lazy_array import MissingChunkMask
from dask_uncert.io.open import open_stored
from dask_uncert.io.readers.stored_array import StoredArray

MissingChunks = Literal["refuse", "leave_out", "fill"]
TOP = 0.5  # steps that a missing code may be off 1, the largest probability, to be taken for it


@dataclass(frozen=True)
class InputSpec:
    """One input in words: what it is called and holds, where it lies, and what the job says of its numbers.

    where: its place as the job writes it. scale: of integer probabilities without an offset it belongs to the
    request instead. missing_chunks: what becomes of chunks that the store does not hold.
    """

    name: str
    place: str
    where: str
    array: str = ""
    dims: tuple[str, ...] | None = None
    role: Role = "values"
    scale: float | None = None
    offset: float | None = None
    nodata: tuple[float, ...] | None = None
    missing_chunks: MissingChunks = "refuse"
    unit: str = "1"
    logits: bool = False


def open_given(one: InputSpec) -> dict[str, Cube]:
    """The input's Cube under its name; and where chunks are missing that are to be left out, one that says where.

    Raises InputError where it cannot be used, and for missing chunks that are refused.
    """
    stored = open_stored(one.place, one.array, one.name, one.dims)
    where = f"{one.where}:{one.array}" if one.array else one.where
    cube = make_cube(one.name, stored, one.dims, stored.dims, stored.chunks, where)
    own = one.role == "probabilities" and one.offset is None  # its scale is the request's
    said = declared(
        stored.decoding, None if own else one.scale, one.offset, one.nodata, f"{one.name}: {where}"
    )
    cube = replace(
        cube,
        geometry=stored.geometry(cube.dims),
        coordinates={dim: values for dim, (values, _) in stored.coordinates(cube.dims).items()},
        crs=getattr(stored, "crs", None),
        decoding=said,
        role=one.role,
        unit=one.unit,
        logits=one.logits,
    )
    cube = replace(cube, remarks=_remarks(cube, one))
    if one.missing_chunks == "fill":
        if hasattr(stored, "fill"):
            stored.fill()
        return {one.name: cube}
    absent = stored.absent_chunks()
    if not absent:
        return {one.name: cube}
    if one.missing_chunks == "refuse":
        raise InputError(_say_absent(cube, stored, absent))
    axes = [axis for axis, dim in enumerate(cube.dims) if dim not in RESERVED]
    holes = MissingChunkMask(stored.shape, stored.chunks, absent, axes)
    dims = tuple(cube.dims[axis] for axis in axes)
    name = f"absent_{one.name}"
    gap = Cube(
        name, holes, dims, holes.chunks, f"what is missing of {where}", cube.geometry, cube.coordinates
    )
    return {one.name: cube, name: gap}


def _say_absent(cube: Cube, stored: StoredArray, absent: Sequence[tuple[int, ...]]) -> str:
    first = ", ".join(map(str, absent[0]))
    more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
    kind = "are" if len(absent) > 1 else "is"
    return (
        f"{cube.name}: chunk ({first}){more} of {cube.where} {kind} not in the store: lost, or never written because "
        f"all of it is the fill value. Copy the store again from where it is whole; or say `missing_chunks: fill` "
        f"if absence means the fill value there, or `missing_chunks: leave_out` to count those pixels as missing."
    )


def _remarks(cube: Cube, one: InputSpec) -> tuple[str, ...]:
    """What is odd about the input though it can be used."""
    scale = cube.decoding.scale if cube.decoding.is_packed else one.scale
    if one.role != "probabilities" or scale is None:
        return ()
    top = [
        code for code in cube.decoding.missing if abs(code * scale + cube.decoding.offset - 1) <= TOP * scale
    ]
    return tuple(
        f"{cube.name}: in {cube.where} {code:g} means no data, but it is also what a probability of 1 is stored as; "
        f"pixels with a certain prediction are then left out."
        for code in top
    )
