"""One input of an evaluation: an array whose dimensions are declared or read, never guessed.

Some dimension names are reserved: `class`, `sample` and `band`, and for regressions `output` and `output2`. Every other
dimension is one of the grid's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError, listed, without_secrets
from dask_uncert.formulas.array_dispatch import is_dask
from dask_uncert.io.decoding import AS_STORED, Decoding, Role, declared
from dask_uncert.io.geometry import Geometry
from dask_uncert.io.lazy_array import OneIndex
from dask_uncert.io.readers.stored_array import Label, StoredArray

CLASS, SAMPLE, BAND = "class", "sample", "band"
OUTPUT, OUTPUT2 = "output", "output2"
PREDICTION = "prediction"
"""The input that holds predicted class codes: decisions without probabilities."""
RESERVED = (CLASS, SAMPLE, BAND, OUTPUT, OUTPUT2)
Names = Sequence[str] | None
"""Names of dimensions, where they are known."""
Gap = Literal["outside", "missing_chunk", "nodata"]
"""Why an input has no value at a pixel, as far as its store or its extent says."""


class Precision(NamedTuple):
    """How finely probabilities are stored.

    scale: factor of numbers that are passed on as stored, so that their rounding is known; None where they need none.
    tolerance: how far values and sums may be off; None for the storage dtype's own.
    """

    scale: float | None = None
    tolerance: float | None = None


AS_THE_DTYPE = Precision()


@dataclass(frozen=True)
class Cube:
    """One input; `data` has shape, dtype and slicing.

    where: its origin, for messages, without secrets. kind: which input of the evaluation it is, by default its name;
    each of several samples has its own name and the kind `samples`. gap: for a mask that is not 0 where the input of
    this kind has no value, the reason. geometry: position of its pixels, where known; coordinates: of its dimensions, in
    the reference system `crs`; coordinate_attributes: of those to be written with maps. stored: the opened file or store, where there
    is one; held: bytes that stay in each process's memory while it is read. decoding, role: meaning of its stored
    numbers. precision: of its probabilities. remarks: what is unusual about it. logits: it holds logits. leave_out:
    pixels that are no probabilities within the tolerance are left out, not refused. raters: number of raters whose votes
    make the shares of a fuzzy reference. complete: its shares must sum to 1. by_position: it is read index by index like the others, without a position.
    like: the file whose position it has.
    class_labels: what the class axis says of its own order, code or name by index. class_table: name by code, where the
    array says so. names: of zones, by code, where they are declared.
    """

    name: str
    data: Any
    dims: tuple[str, ...]
    chunks: tuple[int, ...] | None = None
    where: str = "the array given"
    geometry: Geometry | None = None
    coordinates: Mapping[str, NDArray[Any]] | None = None
    crs: str | None = None
    kind: str = ""
    gap: Gap | None = None
    coordinate_attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stored: StoredArray | None = None
    held: int = 0
    decoding: Decoding = AS_STORED
    role: Role = "values"
    precision: Precision = AS_THE_DTYPE
    remarks: tuple[str, ...] = ()
    unit: str = "1"
    logits: bool = False
    leave_out: bool = False
    raters: int | None = None
    complete: bool = False
    by_position: bool = False
    like: StoredArray | None = None
    class_labels: tuple[Label, ...] | None = None
    class_table: Mapping[int, str] | None = None
    names: Mapping[int, str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.kind or self.name)
        object.__setattr__(self, "where", without_secrets(self.where))

    @property
    def sizes(self) -> dict[str, int]:
        """Dimension names and their sizes."""
        return dict(zip(self.dims, self.data.shape, strict=True))

    @property
    def grid(self) -> dict[str, int]:
        """Dimensions that are not reserved, and their sizes."""
        return {dim: n for dim, n in self.sizes.items() if dim not in RESERVED}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its values: as stored, or float64 where stored numbers have to be decoded."""
        decoded = self.logits or self.decoding.is_packed
        return np.dtype(np.float64 if decoded else self.data.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array as stored."""
        return int(np.dtype(self.data.dtype).itemsize * np.prod(self.data.shape, dtype=np.float64))

    @property
    def is_prediction(self) -> bool:
        """Whether it holds probabilities: `probabilities` or samples of them."""
        return self.gap is None and self.kind in ("probabilities", "samples")


def make_cube(
    name: str,
    data: Any,
    declared_dims: Names,
    stored_dims: Names,
    chunks: Sequence[int] | None,
    where: str,
    classes: int = 0,
) -> Cube:
    """Return a Cube of an array with the dimensions declared for it or, where none are, those its store names.

    Axes of a single index need not be declared: they keep their names, until `without` drops them. classes: their number,
    0 if unknown, to propose dimensions.
    Raises InputError where there are none, where they do not fit the array or contradict the store, and where sizes are
    not known.
    """
    if any(n != n for n in data.shape):
        raise InputError(
            f"{name}: {where} is a dask array whose chunks have unknown sizes, as after a selection by a mask. Call its "
            f"`compute_chunk_sizes()` first."
        )
    shape = tuple(int(n) for n in data.shape)
    if declared_dims is None and stored_dims is None:
        raise InputError(
            f"{name}: {where} has shape {shape} and does not name its dimensions. {proposed_dims(name, shape, classes)}"
        )
    dims = tuple(declared_dims if declared_dims is not None else stored_dims or ())
    if len(dims) < len(shape):
        dims = _with_single(dims, stored_dims, shape)
    if len(dims) != len(shape):
        raise InputError(
            f"{name}: dims {list(dims)} name {len(dims)} dimensions, but {where} has {len(shape)}: shape {shape}."
        )
    if len(set(dims)) != len(dims):
        raise InputError(f"{name}: dims {list(dims)} name a dimension twice.")
    if stored_dims is not None and sorted(dims) == sorted(stored_dims) and dims != tuple(stored_dims):
        raise InputError(
            f"{name}: dims {list(dims)} contradict {where}, which says {list(stored_dims)}. Leave `dims` out to use those."
        )
    return Cube(name, data, dims, None if chunks is None else tuple(chunks), where)


def proposed_dims(name: str, shape: Sequence[int], classes: int, names: Names = None) -> str:
    """Return the sentence that proposes what to write for dimensions that are not as they must be, and why.

    name: of the input; classes: their number, 0 if unknown; names: of the dimensions in the file, where it has some.

    >>> proposed_dims("probabilities", (16, 145, 145), 16)
    'If it fits, write `dims: [class, y, x]`: axis 0 has 16, as many as classes.'
    """
    extra = CLASS if name.startswith(("probabilities", "samples")) else BAND if name == "features" else None
    axes = [axis for axis, n in enumerate(shape) if classes and n == classes]
    grid = len(shape) - (extra is not None)
    dims = list(names) if names is not None else ["z", "y", "x"][-grid:] if 0 < grid <= 3 else []
    if extra == CLASS and len(axes) == 1 and (names is not None or dims):
        dims[axes[0] : axes[0] + (names is not None)] = [CLASS]
        return f"If it fits, write `dims: [{', '.join(dims)}]`: axis {axes[0]} has {classes}, as many as classes."
    if extra == CLASS and len(axes) > 1:
        return f"Name them under `dims`: the axes {listed(axes, 5)} have {classes}, as many as classes; one is `class`."
    dims = dims if names is not None or not dims else [*dims, *([extra] if extra else [])]
    return f"Declare them, for example `dims: [{', '.join(dims or ['y', 'x'])}]`."


def _with_single(dims: tuple[str, ...], stored_dims: Names, shape: Sequence[int]) -> tuple[str, ...]:
    """Return the dimensions with those of a single index that they leave out; unchanged where others are left out."""
    own = tuple(stored_dims) if stored_dims is not None else tuple(f"axis_{i}" for i in range(len(shape)))
    single = [axis for axis, n in enumerate(shape) if n == 1 and own[axis] not in dims]
    spare = single[: len(shape) - len(dims)]
    if len(dims) + len(spare) < len(shape):
        return dims
    given = iter(dims)
    return tuple(own[axis] if axis in spare else next(given) for axis in range(len(shape)))


def without(cube: Cube, *dims: str) -> Cube:
    """Return a Cube without some dimensions of a single index."""
    for dim in dims:
        axis, geometry = cube.dims.index(dim), cube.geometry
        if isinstance(cube.data, np.ndarray) or is_dask(cube.data):
            data = cube.data[(slice(None),) * axis + (0,)]
        else:
            data = OneIndex(cube.data, axis, 0)
        if geometry is not None and dim in geometry.dims:
            rest = [other for other in geometry.dims if other != dim]
            geometry = geometry.along(rest) if rest else None
        cube = replace(
            cube,
            data=data,
            dims=(*cube.dims[:axis], *cube.dims[axis + 1 :]),
            chunks=None if cube.chunks is None else (*cube.chunks[:axis], *cube.chunks[axis + 1 :]),
            geometry=geometry,
            coordinates={other: values for other, values in (cube.coordinates or {}).items() if other != dim} or None,
            coordinate_attributes={other: a for other, a in cube.coordinate_attributes.items() if other != dim},
        )
    return cube


def grid_geometry(geometry: Geometry | None, grid: Mapping[str, int]) -> Geometry | None:
    """Return the positions along the dimensions of the grid alone, where a format takes others for axes of space.

    None where such a dimension comes before one of the grid: then the affine is not that of the grid's axes.
    """
    if geometry is None or set(geometry.dims) <= set(grid):
        return geometry
    first = [dim in grid for dim in geometry.dims].index(False)
    return geometry.along(geometry.dims[:first]) if first == len(grid) else None


def declare(
    cube: Cube,
    scale: float | None = None,
    offset: float | None = None,
    nodata: Sequence[float] | None = None,
    tolerance: float | None = None,
) -> Cube:
    """Return a Cube with what the caller declares of its numbers, completing what its file declares.

    Integer probabilities that the file only scales, and any that the caller scales, stay as stored: the scale becomes
    their precision, so that they are rounded as they were stored. Raises InputError for numbers that make no sense,
    and where caller and file contradict each other.
    """
    for name, value in (("scale", scale), ("tolerance", tolerance)):
        if value is not None and cube.role == "probabilities" and not value > 0:
            raise InputError(f"{cube.name}: {name} must be a number above 0, found {value!r}.")
    decoding = declared(cube.decoding, scale, offset, nodata, f"{cube.name}: {cube.where}")
    factor = None
    if cube.role == "probabilities" and not cube.logits and decoding.offset == 0 and decoding.scale > 0:
        by_file = cube.decoding.is_packed and cube.data.dtype.kind in "iu"
        by_caller = not cube.decoding.is_packed and scale is not None
        if by_file or by_caller:
            factor, decoding = decoding.scale, replace(decoding, scale=1.0)
            if factor > 1:
                raise InputError(
                    f"{cube.name}: {cube.where}: the scale of probabilities must be above 0 and at most 1, found {factor:g}."
                )
    return replace(cube, decoding=decoding, precision=Precision(factor, tolerance))
