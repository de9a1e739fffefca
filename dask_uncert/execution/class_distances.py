"""Distances between classes, measured on the features of all labelled pixels before the pass that needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.encoding import GAPS, reference_indices
from dask_uncert.errors import InputError, UnusableBlockError, listed
from dask_uncert.execution.chunking import Grid, plan_grid, reading_memory
from dask_uncert.execution.decode_block import DecodeBlock
from dask_uncert.execution.graph import shuffle_blocks
from dask_uncert.formulas.class_distances import Metric, band_distances, combine_bands
from dask_uncert.formulas.labels import UNKNOWN
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.inputs.cube import BAND, Cube
from dask_uncert.inputs.scene import Scene
from dask_uncert.spec.request import Request

BAND_GROUPS = 8  # at most: one task measures the distances of one group
PIECES = 512  # about: a piece of a block for a group of bands is a task


@dataclass(frozen=True)
class DistancePlan:
    """The pass over the features, cut into blocks but not run."""

    request: Request
    scene: Scene
    metric: Metric
    target_bytes: int

    @property
    def cubes(self) -> dict[str, Cube]:
        """Inputs that are read."""
        return {name: cube for name, cube in self.scene.cubes.items() if cube.kind in ("features", "reference")}

    @cached_property
    def grid(self) -> Grid:
        """Blocks in which the features are read."""
        return plan_grid(self.cubes, self.scene.dims, target_bytes=self.target_bytes)

    @property
    def bands(self) -> int:
        """Number of bands of the features."""
        return self.scene.cubes["features"].sizes[BAND]

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Ranges of bands, each measured by one task; fewer if there are many blocks, as each has a piece for each task."""
        tasks = min(self.bands, max(2, min(BAND_GROUPS, PIECES // self.grid.blocks)))
        return [(int(part[0]), int(part[-1]) + 1) for part in np.array_split(np.arange(self.bands), tasks)]

    def tasks(self) -> int:
        """Return the number of tasks."""
        return self.grid.blocks + len(self.spans) * (self.grid.blocks + 1)

    def block_memory(self) -> int:
        """Return the most bytes that reading a block takes, without Python's own memory.

        The tasks that measure are not included: how many pixels are labelled is not known yet.
        """
        gathered = self.scene.cubes["features"].nbytes * np.prod(self.grid.block, dtype=np.float64)
        return reading_memory(self.cubes, self.grid) + int(gathered / np.prod(self.scene.shape))

    def compute(self) -> Request:
        """Return the Request with the measured distances.

        Raises InputError if a class has no labelled pixel, for features that are not finite there or do not differ, and UnusableBlockError for unknown reference codes.
        """
        per_band = shuffle_blocks(
            GatherLabelled(self.request, self.scene, self.spans),
            self.cubes,
            self.grid,
            len(self.spans),
            MeasureBands(len(self.request.classes), self.metric),
            "class-distances",
        )
        missing = [c.name for c, n in zip(self.request.classes, per_band[0].numbers, strict=True) if n == 0]
        if missing:
            raise InputError(
                f"class_distances: no labelled pixel of {', '.join(missing)} in the scene, so their distance to "
                f"other classes is unknown. Give `class_distances: {{table: ...}}` instead."
            )
        features = self.scene.cubes["features"].where
        broken = np.concatenate([measured.broken for measured in per_band])
        if broken.any():
            bands = listed((f"{number} in band {band}" for band, number in enumerate(broken) if number), 5)
            raise InputError(
                f"features: {features} holds numbers that are not finite at labelled pixels: {bands} (the first is 0). Leave "
                f"those bands out, or declare `nodata` to leave out those pixels."
            )
        table = combine_bands(np.concatenate([measured.distances for measured in per_band]), self.metric)
        if not table.any():
            raise InputError(
                f"features: {features} holds the same numbers for every class, so that all class distances are 0. Name "
                f"features that tell classes apart, or give `class_distances: {{table: ...}}`."
            )
        return self.request.with_distances(table)


class GatherLabelled:
    """Returns the features and classes of a block's labelled pixels, cut into groups of bands."""

    def __init__(self, request: Request, scene: Scene, spans: Sequence[tuple[int, int]]) -> None:
        self.request, self.spans, self.decode = request, spans, DecodeBlock(scene)
        self.has_nodata = bool(scene.cubes["features"].decoding.missing)

    def __call__(self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]) -> list[tuple[NDArray[Any], Counts]]:
        decoded = self.decode(arrays)
        index = reference_indices(self.request, decoded["reference"])
        if self.request.reference == "codes" and (index == UNKNOWN).any():
            raise UnusableBlockError("codes", "unknown reference codes")
        if GAPS in decoded:
            index[decoded[GAPS].ravel() > 0] = UNKNOWN
        features = decoded["features"].reshape(index.size, -1)
        if self.has_nodata:
            index[np.isnan(features).any(axis=1)] = UNKNOWN
        labelled = features[index >= 0]
        return [(np.ascontiguousarray(labelled[:, a:b]), index[index >= 0]) for a, b in self.spans]


class MeasuredBands(NamedTuple):
    """What a group of bands gives.

    distances: of the classes, (bands, C, C). numbers: labelled pixels of each class. broken: labelled pixels whose
    value is not finite, of each band.
    """

    distances: Floats
    numbers: Counts
    broken: Counts


class MeasureBands:
    """Measures the class distances of a group of bands from all blocks' labelled pixels."""

    def __init__(self, classes: int, metric: Metric) -> None:
        self.classes, self.metric = classes, metric

    def __call__(self, pieces: Sequence[Any]) -> MeasuredBands:
        features = np.concatenate([features for features, _ in pieces])
        index = np.concatenate([index for _, index in pieces])
        numbers = np.bincount(index, minlength=self.classes)
        broken = np.count_nonzero(~np.isfinite(features), axis=0)
        if (numbers == 0).any() or broken.any():
            return MeasuredBands(np.empty((0, self.classes, self.classes)), numbers, broken)
        bands = [band_distances(values, index, self.classes, self.metric) for values in features.T]
        return MeasuredBands(np.stack(bands), numbers, broken)
