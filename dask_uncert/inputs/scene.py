"""Inputs that fit together: they cover the same grid, in any order of dimensions, and hold what they should."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dask_uncert.errors import InputError, suggestion
from dask_uncert.inputs.alignment import align_axes
from dask_uncert.inputs.cube import (
    AS_THE_DTYPE,
    BAND,
    CLASS,
    PREDICTION,
    RESERVED,
    SAMPLE,
    Cube,
    Precision,
    proposed_dims,
)

RESERVED_DIMS = {
    "probabilities": ((), (CLASS,)),
    "samples": ((SAMPLE,), (CLASS, SAMPLE)),
    "prediction": ((),),
    "reference": ((), (CLASS,)),
    "mask": ((),),
    "uncertainty": ((),),
    "weight": ((),),
    "zones": ((),),
    "features": ((BAND,),),
}
"""Reserved dimensions that an input may have, by its name; samples given one by one have those of probabilities."""

MASK_VALUES = "true and false, or numbers that are whole, or that a scale makes whole (0: left out)"


class Encoding(NamedTuple):
    """How a block's predictions are stored.

    class_axis: the axis of the classes, but for samples' own axis; None for a binary prediction without one.
    """

    class_axis: int | None = None
    probabilities: Precision = AS_THE_DTYPE
    samples: Precision = AS_THE_DTYPE


@dataclass(frozen=True)
class Scene:
    """Inputs that align: every cube covers the grid `dims`, in the order of the prediction's or of a regression's mean.

    class_axis: the axis of the classes among the prediction's dimensions without its samples; None without classes.
    """

    cubes: Mapping[str, Cube]
    dims: tuple[str, ...]
    class_axis: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the grid."""
        sizes = next(iter(self.cubes.values())).sizes
        return tuple(sizes[dim] for dim in self.dims)

    @property
    def remarks(self) -> list[str]:
        """What is odd about the inputs, though they can be used."""
        return [remark for cube in self.cubes.values() for remark in cube.remarks]

    @property
    def encoding(self) -> Encoding:
        """How the predictions are stored."""
        predictions = [cube for cube in self.cubes.values() if cube.is_prediction]
        return Encoding(self.class_axis, **{cube.kind: cube.precision for cube in predictions})

    def order(self, name: str) -> tuple[int, ...]:
        """Return the transposition that brings an input's dimensions to the grid's order, reserved ones last.

        The prediction is left as stored, because kernels take the class axis anywhere; its samples come first, and
        other predictions have their classes on the same axis.
        """
        cube = self.cubes[name]
        dims = [*self.dims]
        if not cube.is_prediction:
            dims += [dim for dim in RESERVED if dim in cube.dims]
        elif self.class_axis is not None:
            dims.insert(self.class_axis, CLASS)
        if cube.is_prediction and SAMPLE in cube.dims:
            dims.insert(0, SAMPLE)
        return tuple(cube.dims.index(dim) for dim in dims)


def prediction(cubes: Mapping[str, Cube]) -> Cube:
    """Return the probabilities, else the samples, whose mean is evaluated, else the predicted codes; InputError without."""
    predictions = [cube for cube in cubes.values() if cube.is_prediction or (cube.kind, cube.gap) == (PREDICTION, None)]
    if not predictions:
        raise InputError("nothing to evaluate: give `probabilities`, `samples` or both; or `prediction`, class codes.")
    if {cube.kind for cube in predictions} > {PREDICTION}:
        raise InputError(
            "prediction: class codes beside probabilities or samples are two predictions. Leave the codes out (the "
            "decision is the most probable class), or evaluate them in a run of their own."
        )
    return min(predictions, key=lambda cube: cube.kind != "probabilities")


def make_scene(cubes: Mapping[str, Cube], classes: int) -> Scene:
    """Return the inputs as a Scene of this number of classes; raise InputError where they do not fit together.

    Inputs that know their position are read along the reference's axes.
    """
    cubes = align_axes(cubes)
    values = {name: cube for name, cube in cubes.items() if cube.gap is None}
    for name, cube in values.items():
        reserved = tuple(dim for dim in RESERVED if dim in cube.dims)
        is_one_sample = cube.kind == "samples" != name
        allowed = RESERVED_DIMS["probabilities" if is_one_sample else cube.kind]
        if reserved not in allowed:
            expected = " or ".join(", ".join(dims) or "no reserved dimension" for dims in allowed)
            shape = tuple(cube.sizes.values())
            raise InputError(
                f"{name}: dims {list(cube.dims)} hold {', '.join(reserved) or 'none'} of the reserved "
                f"dimensions {', '.join(RESERVED)}; expected {expected}. {proposed_dims(name, shape, classes, cube.dims)}"
            )
    first = prediction(cubes)
    check_grids(cubes, first)
    predictions = [cube for cube in cubes.values() if cube.is_prediction]
    if classes < 2:
        raise InputError(f"the class table has {classes} class; at least 2 are needed.")
    for cube in predictions:
        _check_classes(cube, classes, first)
    if len({cube.precision for cube in predictions if cube.kind == "samples"}) > 1:
        raise InputError("samples: `scale` and `tolerance` must be the same for all; store all alike.")
    reference = cubes["reference"]
    if reference.sizes.get(CLASS, classes) != classes:
        raise InputError(
            f"reference: {reference.where} has {reference.sizes[CLASS]} classes along its class dimension, but the "
            f"class table has {classes}."
        )
    for name, cube in values.items():
        _check_dtype(name, cube)
    dims = [dim for dim in first.dims if dim != SAMPLE]
    return Scene(cubes, tuple(first.grid), dims.index(CLASS) if CLASS in dims else None)


def check_grids(cubes: Mapping[str, Cube], first: Cube) -> None:
    """Check that all inputs cover the grid of the first, which may not be empty; raises InputError."""
    if not first.grid:
        raise InputError(f"{first.name}: dims {list(first.dims)} leave no dimension for the grid.")
    for name, cube in cubes.items():
        if set(cube.grid) != set(first.grid):
            raise InputError(
                f"{name}: {cube.where} covers {_sizes(cube.grid)}, but `{first.name}` covers "
                f"{_sizes(first.grid)}. All inputs must name the same dimensions; nothing is broadcast."
                f"{_misspelled(cube) or _misspelled(first)}"
            )
        for dim, n in cube.grid.items():
            if n != first.grid[dim]:
                raise InputError(
                    f"{name}: {cube.where} has {dim} = {n}, but `{first.name}` has {dim} = {first.grid[dim]} "
                    f"({first.where}). All inputs must cover the same grid."
                )
    for dim, n in first.grid.items():
        if n == 0:
            raise InputError(f"{first.name}: {first.where} is empty along {dim}.")


def _sizes(grid: Mapping[str, int]) -> str:
    return ", ".join(f"{dim} = {n}" for dim, n in grid.items()) or "nothing"


def _check_classes(cube: Cube, classes: int, first: Cube) -> None:
    if (CLASS in cube.dims) != (CLASS in first.dims):
        raise InputError(
            f"{cube.name}: dims {list(cube.dims)}, but `{first.name}` has {list(first.dims)}; either both have a "
            f"class dimension or neither has."
        )
    if cube.sizes.get(SAMPLE) == 0:
        raise InputError(f"{cube.name}: {cube.where} holds no sample.")
    if CLASS not in cube.dims and classes != 2:
        raise InputError(
            f"{cube.name}: dims {list(cube.dims)} have no class dimension, which means a binary "
            f"prediction (the probability of the second class), but the class table has {classes} classes."
            f"{_misspelled(cube)}"
        )
    if cube.sizes.get(CLASS, classes) != classes:
        raise InputError(
            f"{cube.name}: {cube.where} has {cube.sizes[CLASS]} classes along its class dimension, but the class "
            f"table has {classes}. Name every class of the axis, in its order."
        )


def _misspelled(cube: Cube) -> str:
    """Return the end of a message about a dimension that may be a reserved one, misspelled; "" without one."""
    near = [(dim, suggestion(dim, RESERVED)) for dim in cube.grid if len(dim) > 2]
    return "".join(f" `{dim}` is not reserved. {hint}" for dim, hint in near if hint.startswith("Did"))


def _check_dtype(name: str, cube: Cube) -> None:
    allowed, expected = {
        "reference": ("biuf", "class codes, whole numbers, or shares"),
        PREDICTION: ("biuf", "class codes, whole numbers"),
        "zones": ("biuf", "codes of zones, whole numbers"),
        "mask": ("biuf" if cube.decoding.is_packed else "biu", MASK_VALUES),
    }.get(cube.kind, ("fiu", "numbers"))
    if cube.is_prediction:
        allowed, expected = "fiu", "floats"
        if cube.precision.scale is None:
            allowed, expected = "f", "floats, or integers with a declared `scale` (such as 1/255)"
            if CLASS not in cube.dims:
                expected += "; class codes are the input `prediction`"
    found = cube.data.dtype if cube.kind == "mask" else cube.dtype
    if found.kind not in allowed:
        raise InputError(f"{name}: {cube.where} holds {cube.data.dtype}; expected {expected}.")
