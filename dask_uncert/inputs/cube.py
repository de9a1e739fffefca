"""What a cube is, and when inputs align.

An input is an array whose dimensions are declared or read, never guessed. Some names are reserved: `class`,
`sample` and `band`, and for regressions `output` and `output2`; every other dimension is one of the grid's. All inputs of an evaluation cover the same
grid, in any order of dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
from dask_uncert.inputs.alignment import together
from dask_uncert.inputs.names import APART, STACKED, gap_of
from dask_uncert.io.decoding import AS_STORED, Decoding, Role
from dask_uncert.io.geometry import Geometry

CLASS, SAMPLE, BAND = "class", "sample", "band"
OUTPUT, OUTPUT2 = "output", "output2"
RESERVED = (CLASS, SAMPLE, BAND, OUTPUT, OUTPUT2)


@dataclass(frozen=True)
class Cube:
    """One input: `data` has shape, dtype and slicing; `where` tells people where it came from.

    geometry: where its voxels lie, if that is known; coordinates: of its dimensions, where they stand beside it, in the
    reference system `crs`.
    decoding: what its stored numbers mean, by what it holds, its role. remarks: what is odd about it. unit: of its values.
    logits: a prediction that holds logits.
    """

    name: str
    data: Any
    dims: tuple[str, ...]
    chunks: tuple[int, ...] | None = None
    where: str = "the array given"
    geometry: Geometry | None = None
    coordinates: Mapping[str, NDArray[Any]] | None = None
    crs: str | None = None
    decoding: Decoding = AS_STORED
    role: Role = "values"
    remarks: tuple[str, ...] = ()
    unit: str = "1"
    logits: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """Dimension names and their sizes."""
        return dict(zip(self.dims, self.data.shape, strict=True))

    @property
    def grid(self) -> dict[str, int]:
        """The dimensions that are not reserved."""
        return {d: n for d, n in self.sizes.items() if d not in RESERVED}

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of its values: that of what is stored, or float64 where that packs them."""
        stored = np.dtype(self.data.dtype)
        return (
            stored
            if not self.logits and self.decoding.keeps_stored(stored, self.role)
            else np.dtype(np.float64)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the whole array once decoded."""
        return int(np.dtype(self.data.dtype).itemsize * np.prod(self.data.shape, dtype=np.float64))

    @property
    def held(self) -> int:
        """Bytes that stay in each process's memory while it is read: of what can only be read whole."""
        return int(getattr(self.data, "held", 0))


def make_cube(
    name: str,
    data: Any,
    declared: Sequence[str] | None,
    found: Sequence[str] | None,
    chunks: Sequence[int] | None,
    where: str,
) -> Cube:
    """A Cube from an array and the dimensions declared for it or, where none are, those its store names.

    Raises InputError where there are none, where they do not fit the array or contradict the store.
    """
    shape = tuple(int(n) for n in data.shape)
    if declared is None and found is None:
        raise InputError(
            f"{name}: {where} has shape {shape} and does not name its dimensions. Declare them, for example "
            f"`dims: [{', '.join(['y', 'x', 'class'][: len(shape)])}]`."
        )
    dims = tuple(declared if declared is not None else found or ())
    if len(dims) != len(shape):
        raise InputError(
            f"{name}: dims {list(dims)} name {len(dims)} dimensions, but {where} has {len(shape)}: shape {shape}."
        )
    if len(set(dims)) != len(dims):
        raise InputError(f"{name}: dims {list(dims)} name a dimension twice.")
    if declared is not None and found is not None and sorted(dims) == sorted(found) and dims != tuple(found):
        raise InputError(
            f"{name}: dims {list(dims)} contradict {where}, which says {list(found)}. Leave `dims` out to use those."
        )
    return Cube(name, data, dims, tuple(chunks) if chunks is not None else None, where)


@dataclass(frozen=True)
class Scene:
    """Inputs that align: every cube covers the grid `dims`, in the order of the prediction's or of a regression's mean.

    class_axis: of the classes among the prediction's dimensions, its samples not counted; None without classes.
    """

    cubes: Mapping[str, Cube]
    dims: tuple[str, ...]
    class_axis: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the grid."""
        sizes = next(iter(self.cubes.values())).sizes
        return tuple(sizes[d] for d in self.dims)

    def order(self, name: str) -> tuple[int, ...]:
        """The transposition that brings an input's dimensions to the grid's order (reserved ones last).

        The prediction is left as it is stored, for kernels take the class axis anywhere; its samples come
        first, and other predictions have their classes in the same place.
        """
        dims = self.cubes[name].dims
        wanted = [*self.dims, *sorted(d for d in dims if d not in self.dims)]
        if is_prediction(name):
            wanted = [*self.dims]
            if self.class_axis is not None:
                wanted.insert(self.class_axis, CLASS)
            if SAMPLE in dims:
                wanted.insert(0, SAMPLE)
        return tuple(dims.index(d) for d in wanted)


EXPECTED = {
    "probabilities": ((), (CLASS,)),
    STACKED: ((SAMPLE,), (CLASS, SAMPLE)),
    APART: ((), (CLASS,)),
    "reference": ((), (CLASS,)),
    "mask": ((),),
    "uncertainty": ((),),
    "weight": ((),),
    "features": ((BAND,),),
}
"""Which reserved dimensions an input may have; APART stands for every `samples_0`, `samples_1`, ..."""


def is_prediction(name: str) -> bool:
    """Whether the input of this name holds probabilities: `probabilities` or samples of them."""
    return name in ("probabilities", STACKED) or name.startswith(APART)


def prediction(cubes: Mapping[str, Cube]) -> Cube:
    """What is evaluated: the probabilities, or else the samples, whose mean it is; InputError without either."""
    for name in ("probabilities", STACKED, f"{APART}0"):
        if name in cubes:
            return cubes[name]
    raise InputError("nothing to evaluate: give `probabilities`, `samples` or both.")


def align(
    cubes: Mapping[str, Cube], classes: int, scale: float | None = None, sample_scale: float | None = None
) -> Scene:
    """Check that the inputs can be evaluated together; raises InputError saying what does not fit where.

    Inputs that know where they lie are brought to the reference's axes.
    """
    cubes = together(cubes)
    for name, cube in cubes.items():
        reserved = tuple(d for d in RESERVED if d in cube.dims)
        if gap_of(name) is not None:
            continue
        expected = EXPECTED[APART if name.startswith(APART) else name]
        if reserved not in expected:
            wanted = " or ".join(", ".join(one) or "no reserved dimension" for one in expected)
            raise InputError(
                f"{name}: dims {list(cube.dims)} hold {', '.join(reserved) or 'none'} of the reserved "
                f"dimensions {', '.join(RESERVED)}; expected {wanted}."
            )
    first = prediction(cubes)
    check_grids(cubes, first)
    for name, cube in cubes.items():
        if is_prediction(name):
            _check_classes(cube, classes, first)
            _check_probabilities(cube, scale if name == "probabilities" else sample_scale)
    _check_reference(cubes["reference"], classes)
    _check_dtypes(cubes)
    dims = [d for d in first.dims if d != SAMPLE]
    return Scene(dict(cubes), tuple(first.grid), dims.index(CLASS) if CLASS in dims else None)


def check_grids(cubes: Mapping[str, Cube], first: Cube) -> None:
    """Check that all inputs cover the grid of the first, which may not be empty; raises InputError."""
    if not first.grid:
        raise InputError(f"{first.name}: dims {list(first.dims)} leave no dimension for the grid.")
    for name, cube in cubes.items():
        if set(cube.grid) != set(first.grid):
            raise InputError(
                f"{name}: {cube.where} covers {_sizes(cube.grid)}, but `{first.name}` covers "
                f"{_sizes(first.grid)}. All inputs must name the same dimensions; nothing is broadcast."
            )
        for d, n in cube.grid.items():
            if n != first.grid[d]:
                raise InputError(
                    f"{name}: {cube.where} has {d} = {n}, but `{first.name}` has {d} = {first.grid[d]} ({first.where}). "
                    f"All inputs must cover the same grid."
                )
    for d, n in first.grid.items():
        if n == 0:
            raise InputError(f"{first.name}: {first.where} is empty along {d}.")


def _sizes(grid: Mapping[str, int]) -> str:
    return ", ".join(f"{d} = {n}" for d, n in grid.items()) or "nothing"


def _check_classes(cube: Cube, classes: int, first: Cube) -> None:
    found = cube.sizes.get(CLASS)
    if (CLASS in cube.dims) != (CLASS in first.dims):
        raise InputError(
            f"{cube.name}: dims {list(cube.dims)}, but `{first.name}` has {list(first.dims)}; either both have a "
            f"class dimension or neither has."
        )
    if cube.sizes.get(SAMPLE) == 0:
        raise InputError(f"{cube.name}: {cube.where} holds no sample.")
    if found is None and classes != 2:
        raise InputError(
            f"{cube.name}: dims {list(cube.dims)} have no class dimension, which means a binary "
            f"prediction (the probability of the second class), but the class table has {classes} classes."
        )
    if found is not None and found != classes:
        raise InputError(
            f"{cube.name}: {cube.where} has {found} classes along its class dimension, but the class "
            f"table has {classes}. Name every class of the axis, in its order."
        )
    if classes < 2:
        raise InputError(f"the class table has {classes} class; at least 2 are needed.")


def _check_reference(reference: Cube, classes: int) -> None:
    found = reference.sizes.get(CLASS, classes)
    if found != classes:
        raise InputError(
            f"reference: {reference.where} has {found} classes along its class dimension, but the class table "
            f"has {classes}."
        )


def _check_probabilities(cube: Cube, scale: float | None) -> None:
    kind, wanted = cube.dtype.kind, "floats"
    if kind in "iu" and scale is None:
        wanted += ", or integers with a declared `scale` (such as 1/255)"
    elif kind in "fiu":
        return
    raise InputError(f"{cube.name}: {cube.where} holds {cube.data.dtype}; expected {wanted}.")


def _check_dtypes(cubes: Mapping[str, Cube]) -> None:
    kinds = {name: cube.dtype.kind for name, cube in cubes.items()}

    def refuse(name: str, wanted: str) -> None:
        raise InputError(f"{name}: {cubes[name].where} holds {cubes[name].data.dtype}; expected {wanted}.")

    if kinds["reference"] not in "biuf":
        refuse("reference", "class codes, whole numbers, or shares")
    if kinds.get("mask", "b") not in "biu":
        refuse("mask", "true and false, or whole numbers (0: left out)")
    for name in ("features", "uncertainty", "weight"):
        if kinds.get(name, "f") not in "fiu":
            refuse(name, "numbers")
