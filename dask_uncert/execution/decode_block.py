"""Block arrays brought to the scene's order of dimensions, and stored numbers to values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.logits import sigmoid, softmax
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.names import APART, BLANK, GAPS, STACKED, gap_of
from dask_uncert.summaries.ledger import REASONS

PREDICTIONS = ("probabilities_", "samples_", "mean_", "variance_")


class Ordered(Protocol):
    """A scene of any kind: its cubes, the grid's dimensions, and the transposition of each cube."""

    @property
    def cubes(self) -> Mapping[str, Cube]: ...
    @property
    def dims(self) -> tuple[str, ...]: ...
    def order(self, name: str) -> tuple[int, ...]: ...


class Orders:
    """Brings block arrays to the scene's order of dimensions, and stored numbers to values.

    Where pixels have no value of an input, for a reason that its file or store knows, there are arrays more, GAPS
    and BLANK: see `gaps`. Pickles without the scene's data.
    """

    def __init__(self, scene: Ordered) -> None:
        self.orders = {name: scene.order(name) for name in scene.cubes}
        self.rules = {name: (cube.decoding, cube.role) for name, cube in scene.cubes.items()}
        self.logits = {
            name: order.index(cube.dims.index(CLASS)) if CLASS in cube.dims else None
            for name, order in self.orders.items()
            if (cube := scene.cubes[name]).logits
        }  # by input that holds them, the axis of its classes, once in order
        self.beside = {  # where dimensions lie, once in order, that are not the grid's
            name: tuple(i for i, axis in enumerate(order) if scene.cubes[name].dims[axis] not in scene.dims)
            for name, order in self.orders.items()
        }

    def __call__(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        gaps: dict[int, NDArray[np.bool_]] = {}

        def leave(where: NDArray[np.bool_], name: str, fault: str) -> None:
            reason = _reason(name, fault)
            gaps[reason] = gaps[reason] | where if reason in gaps else where

        for name, stored in arrays.items():
            values, (decoding, role) = np.transpose(stored, self.orders[name]), self.rules[name]
            of = gap_of(name)
            if of is not None:
                leave(values != 0, of.name, of.fault)
                continue
            absent = decoding.absent(values)
            if absent is not None and name != "features":
                leave(np.asarray(absent.any(axis=self.beside[name])), name, "nodata")
            found[name] = decoding.values(values, "values" if name in self.logits else role)
            if name in self.logits:
                axis = self.logits[name]
                found[name] = sigmoid(found[name]) if axis is None else softmax(found[name], axis)
            if absent is not None and name == "features":
                found[name] = np.where(absent, np.nan, found[name])
        blank = [where for reason, where in gaps.items() if REASONS[reason].startswith(PREDICTIONS)]
        if blank:
            found[BLANK] = np.logical_or.reduce(blank)
        if gaps:
            shape = next(iter(gaps.values())).shape
            found[GAPS] = np.zeros(shape, np.uint8)
            for reason in sorted(gaps, reverse=True):  # the first reason that applies is set last
                found[GAPS][gaps[reason]] = reason + 1
        return found


def _reason(name: str, fault: str) -> int:
    known = {"covariance": "variance", **({name: STACKED} if name.startswith(APART) else {})}
    return REASONS.index(f"{known.get(name, name)}_{fault}")
