"""The order of the classes: an axis that names its classes is read in the order of the class table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dask_uncert.errors import InputError, listed
from dask_uncert.formulas.array_dispatch import is_dask
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.io.lazy_array import Reordered
from dask_uncert.io.readers.stored_array import Label
from dask_uncert.summaries.case import composed

SHOWN = 8  # labels that a message names


Table = Sequence[tuple[int, str]]
"""Code and name of each class, in the order of the class axis."""


def in_class_order(cubes: Mapping[str, Cube], table: Table) -> dict[str, Cube]:
    """Return the inputs with their class axes in the order of the class table, as far as the axes say their own.

    Raises InputError for an axis that contradicts the table.
    """
    return {name: in_order(cube, table) for name, cube in cubes.items()}


def in_order(cube: Cube, table: Table) -> Cube:
    """Return one input with its class axis in the order of the class table; see `in_class_order`."""
    labels = cube.class_labels
    if labels is None or {cube.sizes.get(CLASS), len(labels)} != {len(table)}:
        return cube  # the check of the classes says which numbers differ
    order = _order(labels, table)
    if isinstance(order, str):
        classes = listed([f"{code} ({name})" for code, name in table], SHOWN)
        raise InputError(
            f"{cube.name}: the class axis of {cube.where} is labelled {listed([*map(str, labels)], SHOWN)}, but "
            f"`classes` has {classes}: {order}. List `classes` in the order of the axis, with its codes or names; or "
            f"store the array without these labels."
        )
    if order is None:
        return cube
    axis = cube.dims.index(CLASS)
    data = cube.data[(slice(None),) * axis + (order,)] if is_dask(cube.data) else Reordered(cube.data, axis, order)
    return replace(
        cube, data=data, where=f"{cube.where} (classes in the order of the table)",
        class_labels=tuple(labels[index] for index in order),
    )  # fmt: skip


def _order(labels: Sequence[Label], table: Table) -> list[int] | str | None:
    """Return the axis's index of each class of the table; None where that is its own, else what is wrong.

    Labels that the table does not know say nothing, nor do those that only count from 0 or 1.
    """
    places = [_place(label, table) for label in labels]
    if all(place in (None, index) for index, place in enumerate(places)):
        return None
    numbers = [_number(label) for label in labels]
    counts = any(numbers == [*range(start, start + len(labels))] for start in (0, 1))
    if None not in places and len({*places}) == len(places):
        if counts:
            return "the labels may be codes in another order, or may only count"
        return [places.index(place) for place in range(len(places))]
    return None if counts else "some are classes of the table in other places, and some are not"


def _place(label: Label, table: Table) -> int | None:
    """Return the index of a class in the table, by its name (if the label is text) or its code; None if unknown."""
    codes, plain = [code for code, _ in table], [_plain(name) for _, name in table]
    if isinstance(label, str) and plain.count(_plain(label)) == 1:
        return plain.index(_plain(label))
    number = _number(label)
    return codes.index(number) if number in codes else None


def _number(label: Label) -> int | None:
    try:
        number = float(label)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _plain(name: str) -> str:
    return composed(name).strip().casefold()
