"""What the tasks of a pass do with a block: evaluate it, gather its labelled samples, or say what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.classification import evaluate_block
from dask_uncert.blocks.diagnostics import (
    OutOfRange,
    off_probabilities,
    off_samples,
    off_shares,
    off_uncertainties,
    off_weighted,
    unknown_codes,
)
from dask_uncert.blocks.encoding import reference_indices
from dask_uncert.errors import UnusableBlockError
from dask_uncert.execution.decode_block import Orders
from dask_uncert.formulas.class_distances import Metric, band_distances
from dask_uncert.formulas.labels import UNKNOWN
from dask_uncert.inputs.cube import Scene
from dask_uncert.inputs.names import GAPS, STACKED
from dask_uncert.io.maps import MapWriter
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation


class EvaluateBlock:
    """What a block task does: evaluate, write its maps, leave the Summary."""

    def __init__(self, request: Request, scene: Scene, writer: MapWriter | None, engine: str) -> None:
        self.request, self.writer, self.engine = request, writer, engine
        self.ordered = Orders(scene)
        self.class_axis = scene.class_axis

    def __call__(self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]) -> Evaluation:
        if self.engine == "compiled":
            from dask_uncert.kernels import compiled as kernels
        else:
            from dask_uncert.kernels import reference as kernels  # type: ignore[no-redef]
        ordered = self.ordered(arrays)
        maps, evaluation = evaluate_block(self.request, ordered, self.class_axis, kernels, offset)
        if self.writer is not None and maps:
            self.writer.write(maps, offset)
        return evaluation


class Inspection:
    """What a block task does once a pass was refused."""

    def __init__(self, what: str, request: Request, scene: Scene) -> None:
        self.what, self.request, self.class_axis = what, request, scene.class_axis
        self.ordered = Orders(scene)

    def __call__(self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]) -> Counter[Any] | OutOfRange:
        ordered = self.ordered(arrays)
        if self.what == "codes":
            return unknown_codes(self.request, ordered["reference"], ordered.get(GAPS))
        if self.what == "uncertainty":
            return off_uncertainties(self.request, ordered)
        if self.what == "weight":
            return off_weighted(self.request, ordered)
        if self.what == "reference":
            return off_shares(self.request, ordered)
        if self.what == STACKED:
            return off_samples(self.request, ordered, self.class_axis, offset)
        return off_probabilities(self.request, ordered, self.class_axis, offset)


class Labelled:
    """What a block task does for the class distances: its labelled pixels, cut into groups of bands."""

    def __init__(self, request: Request, scene: Scene, spans: tuple[tuple[int, int], ...]) -> None:
        self.request, self.spans = request, spans
        self.has_nodata = bool(scene.cubes["features"].decoding.missing)
        self.ordered = Orders(scene)

    def __call__(
        self, arrays: dict[str, NDArray[Any]], offset: tuple[int, ...]
    ) -> list[tuple[NDArray[Any], NDArray[np.int64]]]:
        ordered = self.ordered(arrays)
        index = reference_indices(self.request, ordered["reference"])
        if self.request.reference == "codes" and (index == UNKNOWN).any():
            raise UnusableBlockError("codes", "unknown reference codes")
        if GAPS in ordered:
            index[ordered[GAPS].ravel() > 0] = UNKNOWN
        features = ordered["features"].reshape(index.size, -1)
        if self.has_nodata:
            index[np.isnan(features).any(axis=1)] = UNKNOWN
        labelled = features[index >= 0]
        return [(np.ascontiguousarray(labelled[:, a:b]), index[index >= 0]) for a, b in self.spans]


class GroupDistances:
    """Class distances of a group of bands from all blocks' labelled pixels; and the samples of each class."""

    def __init__(self, classes: int, metric: Metric) -> None:
        self.classes, self.metric = classes, metric

    def __call__(self, pieces: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        values = np.concatenate([values for values, _ in pieces])
        index = np.concatenate([index for _, index in pieces])
        numbers = np.bincount(index, minlength=self.classes)
        if (numbers == 0).any():
            return np.empty((0, self.classes, self.classes)), numbers
        bands = [band_distances(v, index, self.classes, self.metric) for v in values.T]
        return np.stack(bands), numbers
