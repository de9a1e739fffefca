"""Decode a block's arrays: values instead of stored numbers, in the scene's order of dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import BLANK, GAPS, ZONE_GAPS
from dask_uncert.errors import InputError
from dask_uncert.formulas.logits import sigmoid, softmax
from dask_uncert.formulas.typing import Bools
from dask_uncert.inputs.cube import CLASS, SAMPLE, Cube
from dask_uncert.inputs.scene import Scene
from dask_uncert.summaries.ledger import REASONS

PREDICTIONS = ("probabilities", "samples", "mean", "variance", "prediction")
NEARLY_WHOLE = 1e-6  # what scaling in single precision rounds
LEDGER_NAMES = {"covariance": "variance", "features": "reference"}
"""Names of inputs in the ledger, if they differ. Features are read in a pass of their own, which has no ledger."""


class DecodeBlock:
    """Returns a block's decoded arrays by the kinds of their inputs, with samples in a list.

    If pixels lack the value of an input, there are also the arrays GAPS, ZONE_GAPS and BLANK. Pickles without the scene's data.
    """

    def __init__(self, scene: Scene) -> None:
        self.inputs = {name: _DecodeInput(cube, scene) for name, cube in scene.cubes.items()}

    def __call__(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        decoded: dict[str, Any] = {}
        gaps: dict[tuple[str, str], Bools] = {}
        for name, stored in arrays.items():
            decode = self.inputs[name]
            values, missing = decode(stored)
            if missing is not None:
                reason = (LEDGER_NAMES.get(decode.kind, decode.kind), decode.gap or "nodata")
                gaps[reason] = gaps[reason] | missing if reason in gaps else missing
            if values is not None and decode.kind == "samples":
                decoded.setdefault("samples", []).extend(values if decode.is_stacked else [values])
            elif values is not None:
                decoded[decode.kind] = values
        blank = [missing for (kind, _), missing in gaps.items() if kind in PREDICTIONS]
        if blank:
            decoded[BLANK] = np.logical_or.reduce(blank)
        for (kind, fault), missing in sorted(gaps.items(), key=_position, reverse=True):
            # the first reason that applies is set last
            name = ZONE_GAPS if kind == "zones" else GAPS
            decoded.setdefault(name, np.zeros(missing.shape, np.uint8))[missing] = (
                _position(((kind, fault), missing)) + 1
            )
        return decoded


def _position(gap: tuple[tuple[str, str], Bools]) -> int:
    """Return the position of a gap's reason in the ledger."""
    return REASONS.index("_".join(gap[0]))


class _DecodeInput:
    """Returns an input's values (None for a gap), and a mask of the grid where they are missing (or None)."""

    def __init__(self, cube: Cube, scene: Scene) -> None:
        self.kind, self.gap, self.decoding, self.role = cube.kind, cube.gap, cube.decoding, cube.role
        self.where = cube.where
        self.order, self.logits = scene.order(cube.name), cube.logits
        dims = [cube.dims[axis] for axis in self.order]
        self.reserved_axes = tuple(i for i, dim in enumerate(dims) if dim not in scene.dims)
        self.class_axis = dims.index(CLASS) if CLASS in dims else None
        self.is_stacked = SAMPLE in dims

    def __call__(self, stored: NDArray[Any]) -> tuple[NDArray[Any] | None, Bools | None]:
        stored = np.transpose(stored, self.order)
        if self.gap is not None:
            return None, stored != 0
        absent, values = self.decoding.absent(stored), self.decoding.values(stored, self.role)
        if self.logits:
            values = sigmoid(values) if self.class_axis is None else softmax(values, self.class_axis)
        if self.kind == "mask":
            values = self._truth(values, absent)
        if absent is None:
            return values, None
        if self.kind == "features":
            return np.where(absent, np.nan, values), None
        return values, np.asarray(absent.any(axis=self.reserved_axes))

    def _truth(self, values: NDArray[Any], absent: Bools | None) -> Bools:
        """Return where a mask is true; InputError for numbers that are not whole within rounding."""
        if values.dtype.kind == "f":
            whole = np.rint(values)
            near = np.abs(values - whole) <= NEARLY_WHOLE
            if not (near if absent is None else near | absent).all():
                raise InputError(
                    f"mask: {self.where} holds numbers that are not whole, or NaN: expected 0 where pixels are left out, "
                    f"and 1. Correct its scale and offset, round it, or declare `nodata: .nan`."
                )
            values = whole
        return np.asarray(values != 0)
