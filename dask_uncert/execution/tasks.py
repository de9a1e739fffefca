"""The tasks of a pass: evaluate a block, or find what is wrong with it; and the memory that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks import diagnostics, regression
from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.regression import RegressionRequest, evaluate_regression_block
from dask_uncert.blocks.tiles import HELD
from dask_uncert.execution.chunking import Grid
from dask_uncert.execution.decode_block import DecodeBlock
from dask_uncert.formulas.measures import SAMPLE_KINDS
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.scene import Scene
from dask_uncert.io.maps import MapWriter
from dask_uncert.spec.request import Request
from dask_uncert.summaries.registry import AnyEvaluation

FLOATS = 8  # bytes of a float64
USUAL_ZONES = 16  # of a block, where zones are not named: how many there are is known only when they are read
AnyRequest = Request | RegressionRequest


class EvaluateBlock:
    """Evaluates a block, writes its part of the maps and returns its Summary."""

    def __init__(self, request: AnyRequest, scene: Scene, writer: MapWriter | None, engine: str) -> None:
        self.request, self.writer, self.engine = request, writer, engine
        self.decode, self.encoding = DecodeBlock(scene), scene.encoding

    def __call__(self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]) -> AnyEvaluation:
        decoded, maps = self.decode(arrays), dict[str, NDArray[Any]]()
        summary: AnyEvaluation
        if isinstance(self.request, RegressionRequest):
            maps, summary = evaluate_regression_block(self.request, decoded, len(offset))
        else:
            if self.engine == "compiled":
                from dask_uncert.blocks.kernels import compiled as kernels
            else:
                from dask_uncert.blocks.kernels import reference as kernels  # type: ignore[no-redef]
            maps, summary = evaluate_block(self.request, decoded, self.encoding, kernels, offset)
        if self.writer is not None and maps:
            self.writer.write(maps, offset)
        return summary


class InspectBlock:
    """Finds what is wrong with a block after `problem` has stopped a pass: "codes", or the name of an input."""

    def __init__(self, problem: str, request: AnyRequest, scene: Scene) -> None:
        self.problem, self.request = problem, request
        self.decode, self.encoding = DecodeBlock(scene), scene.encoding

    def __call__(
        self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]
    ) -> diagnostics.Finding | regression.UnusableUncertainties:
        decoded = self.decode(arrays)
        if isinstance(self.request, RegressionRequest):
            return regression.unusable_uncertainties(self.request, decoded, offset)
        return diagnostics.inspect_block(self.problem, self.request, decoded, self.encoding, offset)


def problem_message(problem: str, findings: Any, request: AnyRequest, scene: Scene) -> str:
    """Return one paragraph about what `InspectBlock` found in all blocks."""
    if isinstance(request, RegressionRequest):
        where = scene.cubes[problem].where
        return regression.unusable_uncertainties_message(findings, problem, scene.dims, where)
    return diagnostics.problem_message(problem, findings, request, scene)


def working_memory(request: AnyRequest, cubes: Mapping[str, Cube], grid: Grid) -> int:
    """Return the most bytes that `EvaluateBlock` needs besides a block's inputs: decoded values, a batch, the maps."""
    pixels = int(np.prod(grid.block, dtype=np.int64))
    share = pixels / np.prod(grid.shape, dtype=np.float64)
    packed = [cube for cube in cubes.values() if cube.dtype != cube.data.dtype]
    total = int(sum(FLOATS * np.prod(cube.data.shape, dtype=np.float64) for cube in packed) * share)
    for cube in cubes.values():
        values = np.prod(cube.data.shape, dtype=np.float64) * share
        total += int(2 * values) if cube.decoding.missing else 0
        total += int(2 * FLOATS * values) if cube.logits and CLASS not in cube.dims else 0
    for layer in request.layers.values():
        total += pixels * int(np.dtype(layer.dtype).itemsize * np.prod([*layer.extra.values()], initial=1))
    if isinstance(request, RegressionRequest):
        batch = 3 * request.outputs**2 + 8 * request.outputs + 8
        return total + min(regression.STEP, pixels) * FLOATS * batch
    vectors = pixels * len(request.classes)
    predictions = [cube for cube in cubes.values() if cube.is_prediction]
    if any(cube.dtype not in (np.float32, np.float64) for cube in predictions):
        total += vectors * FLOATS  # of samples, one at a time
    if any(cube.name != "probabilities" for cube in predictions):
        total += vectors * (FLOATS + 4) + pixels * (len(SAMPLE_KINDS) + 2) * FLOATS
    if request.reference != "codes":
        total += 2 * vectors * FLOATS
    total += pixels * 4 * FLOATS + 2 * sum(settings.nbytes for settings in request.joint)
    if request.zones is not None:  # each pixel's zone, the counts of one zone, and those of all as sparse rows
        width = sum(array.size for _, _, array in replace(request, zones=None, tiles=None).zero().arrays())
        number = len(request.zones) or USUAL_ZONES
        total += pixels * 3 * FLOATS + 2 * FLOATS * width * (number + 1)
    if request.tiles is not None:
        total += HELD + pixels * FLOATS * (2 * len(request.measures) + 8)
    return total
