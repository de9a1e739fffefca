"""Stored inputs opened as cubes, with masks of their missing chunks; nothing is read yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dask_uncert.errors import InputError, listed, without_secrets
from dask_uncert.inputs.cube import BAND, CLASS, Cube, declare, grid_geometry, make_cube, without
from dask_uncert.inputs.geometry_like import with_geometry_like
from dask_uncert.inputs.missing_chunks import MissingChunks, with_missing_chunks
from dask_uncert.io.decoding import Role
from dask_uncert.io.lazy_array import Reordered
from dask_uncert.io.open import open_stored

TOP = 0.5  # steps of the scale: a missing code this close to a probability of 1 means the same stored number


@dataclass(frozen=True)
class InputSpec:
    """Options of one input, from a job or a caller.

    kind: which input of the evaluation it is, by default its name. store: a path or URL; where: the same as the user
    wrote it. missing_chunks: how to treat chunks that the store does not hold; ignore: codes of a reference that do not
    count; for both see `with_missing_chunks`. classes: number of classes, 0 if unknown, for a message. table: the class
    table, without ignored codes, that the file must have; None if it need not have one. Others: see `Cube` and `declare`.
    """

    name: str
    store: str
    where: str
    array: str = ""
    dims: tuple[str, ...] | None = None
    role: Role = "values"
    scale: float | None = None
    offset: float | None = None
    nodata: tuple[float, ...] | None = None
    missing_chunks: MissingChunks | None = None
    unit: str = "1"
    logits: bool = False
    kind: str = ""
    tolerance: float | None = None
    leave_out: bool = False
    raters: int | None = None
    complete: bool = False
    by_position: bool = False
    ignore: tuple[int, ...] = ()
    classes: int = 0
    table: tuple[tuple[int, str], ...] | None = None
    names: dict[int, str] | None = None
    like: str | None = None


def open_cubes(spec: InputSpec) -> dict[str, Cube]:
    """Return the input's Cube by its name, and a mask of its missing chunks where those are to be left out.

    Raises InputError for an input that cannot be used, and for missing chunks that are refused.
    """
    stored = open_stored(spec.store, spec.array, spec.name, spec.dims)
    where = without_secrets(spec.where) + (f":{spec.array}" if spec.array else "")
    cube = make_cube(spec.name, stored, spec.dims, stored.dims, stored.chunks, where, spec.classes)
    coordinates = stored.coordinates(cube.dims)
    cube = replace(
        cube,
        geometry=grid_geometry(stored.geometry(cube.dims), cube.grid),
        coordinates={dim: values for dim, (values, _) in coordinates.items()},
        coordinate_attributes={dim: attributes for dim, (_, attributes) in coordinates.items()},
        crs=stored.crs,
        stored=stored,
        held=stored.held,
        decoding=stored.decoding,
        class_table=stored.class_table(),
        class_labels=stored.labels(cube.dims, cube.dims.index(CLASS)) if CLASS in cube.dims else None,
    )
    cube = with_options(_without_bad_bands(cube), spec)
    own = {code: name for code, name in (cube.class_table or {}).items() if code not in spec.ignore}
    if spec.table is not None and own != dict(spec.table):
        raise InputError(
            f"{spec.name}: the class table of {where} is {own or 'not there'}, but that of the first case is "
            f"{dict(spec.table)}. Write one table for all into the job, under `classes`."
        )
    spare = [dim for dim in cube.dims if spec.dims is not None and dim not in spec.dims]
    if spec.missing_chunks == "fill" and not stored.can_list_chunks:
        stored.fill()
        return {spec.name: without(cube, *spare)}
    absent = stored.absent_chunks()
    if spec.missing_chunks == "fill":
        stored.fill()
    cubes = with_missing_chunks(cube, absent, stored.fill_value, spec.missing_chunks, spec.ignore)
    return {name: without(one, *(dim for dim in spare if dim in one.dims)) for name, one in cubes.items()}


def _without_bad_bands(cube: Cube) -> Cube:
    """Return the cube without the bands that its file marks as bad; InputError where these are not its bands."""
    bad = cube.stored.bad_bands if cube.stored is not None else ()
    if not bad:
        return cube
    axis = len(cube.dims) - 1
    good = [band for band in range(cube.data.shape[axis]) if band not in bad]
    if cube.dims[axis] != BAND or not good:
        marked = listed(bad, 5)
        raise InputError(
            f"{cube.name}: {cube.where} marks {'band' if len(bad) == 1 else 'bands'} {marked} (the first is 0) as bad, in "
            f"`bbl`. Bad bands are left out of `features` with the dimension `band`, if others are good. Correct `bbl`, or "
            f"write a file without them."
        )
    chunks = None if cube.chunks is None else (*cube.chunks[:axis], len(good))
    return replace(cube, data=Reordered(cube.data, axis, good), chunks=chunks)


def with_options(cube: Cube, spec: InputSpec) -> Cube:
    """Return the cube with the options of a job or a caller; InputError where they contradict its file."""
    names = ("role", "unit", "logits", "leave_out", "raters", "complete", "by_position", "names")
    if spec.by_position:
        cube = replace(cube, geometry=None, coordinates=None, coordinate_attributes={}, crs=None)
    if spec.like is not None:
        cube = with_geometry_like(cube, spec.like)
    cube = replace(cube, kind=spec.kind or spec.name, **{name: getattr(spec, name) for name in names})
    cube = declare(cube, spec.scale, spec.offset, spec.nodata, spec.tolerance)
    return replace(cube, remarks=_remarks(cube))


def _remarks(cube: Cube) -> tuple[str, ...]:
    """Return warnings about an input that is unusual but can be used."""
    decoding = cube.decoding
    scale = cube.precision.scale or (decoding.scale if decoding.is_packed else None)
    if cube.role != "probabilities" or scale is None:
        return ()
    return tuple(
        f"{cube.name}: in {cube.where} {code:g} means no data, but a probability of 1 is stored as the same number; "
        f"pixels with a certain prediction are then left out."
        for code in decoding.missing
        if abs(code * scale + decoding.offset - 1) <= TOP * scale
    )
