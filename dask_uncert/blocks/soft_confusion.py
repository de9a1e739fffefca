"""The soft confusion of one class against the rest: the weights of a batch of pixels, and their maps."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.types import Pixels, RowGrid, SoftGrid
from dask_uncert.formulas.labels import stored_threshold
from dask_uncert.formulas.soft_confusion import (
    CELLS,
    certainty,
    certainty_of_reference,
    reference_level,
)
from dask_uncert.formulas.typing import Bools, Floats, Indices
from dask_uncert.spec.map_names import soft_picture, soft_weight_map
from dask_uncert.spec.request import Request, SoftMaps
from dask_uncert.summaries.joint_histogram import JointHistogram, JointSettings, row_ends
from dask_uncert.summaries.soft_confusion import COLOURS, SoftConfusion, SoftSettings

CELL_COLOURS = np.array([COLOURS[cell] for cell in CELLS])
TileSums = Callable[[Indices, int], tuple[Indices, Indices]]
"""Maps cells (counted,) and the number of a setting to their cells in the sums of tiles, and these sums."""


class OneVsRest:
    """The counted pixels of a batch, class by class; what depends on the pixels alone is computed once.

    batch: their measures, None where no setting needs one. stored: the probabilities as `kernels.measure` takes them, stored
    in `dtype`. truth: (n,) class indices,
    negative where the pixel does not count. u: the predicted uncertainty. shares: (n, classes) of a fuzzy
    reference, stored in `share_dtype`; without them the reference is 1 where it is the class, else 0.
    """

    def __init__(
        self,
        request: Request,
        dtype: np.dtype[Any],
        kernels: ModuleType,
        batch: Pixels | None,
        truth: Indices,
        stored: NDArray[Any],
        pixels: Indices,
        u: Floats | None,
        shares: Floats | None = None,
        share_dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.request, self.dtype, self.batch, self.u = request, dtype, batch, u
        self.stored, self.kernels, self.size = stored, kernels, truth.size
        counted = truth >= 0
        self.counted: Bools | slice = slice(None) if counted.all() else counted  # a slice copies nothing
        self.truth, self.pixels = truth[self.counted], pixels[self.counted]
        self.shares, self.share_dtype = shares, share_dtype
        self._of_class: dict[int, tuple[Floats, NDArray[Any]]] = {}

    def add_to(self, soft: SoftConfusion, tile_sums: TileSums | None = None) -> None:
        """Add the weights at every setting to the sums of their cells, and to those of the tiles."""
        s = soft.settings
        p, c = self._p_and_c(s.class_index)
        factors = [self._damping(s, d) for d in s.dampings]
        for i, threshold in enumerate(s.thresholds):
            cells = self._cells(s, p, c, threshold)
            for k, sigma in enumerate(s.sigmas):
                weight = self._weight(s, p, c, threshold, sigma)
                for m, factor in enumerate(factors):
                    self.kernels.sum_soft_weights(weight * factor, cells, soft.weights[i, k, m])
                    if tile_sums is not None:
                        setting = (i * len(s.sigmas) + k) * len(s.dampings) + m
                        self.kernels.sum_soft_weights(weight * factor, *tile_sums(cells, setting))

    def add_jointly(self, joint: JointHistogram) -> None:
        """Add the pixels to the joint histogram of p, c and u."""
        s = joint.settings
        p, c = self._p_and_c(s.class_index)
        rows, offsets = np.empty(p.size, np.int64), np.zeros(p.size)
        if s.rows == "interval":
            # p on an edge belongs to the side where it agrees with a reference whose threshold is there.
            level = p if s.reference_threshold is None else s.reference_threshold
            above = c if self.shares is None else c > level
            self.kernels.find_rows(p, above, row_grid(s), rows, offsets)
        elif s.rows == "float16":
            rows[:] = (p + 0.0).astype(np.float16).view(np.uint16)  # -0.0 is the row of 0
        else:
            assert s.scale is not None
            rows[:] = np.rint(p / s.scale)
        u = self._uncertainty(s.uncertainty)
        values = np.zeros(p.size) if u is None else u[self.counted]
        self.kernels.count_joint(rows, offsets, reference_levels(s, c), values, s.upper, joint.moments)

    def maps(self, soft: SoftMaps) -> dict[str, NDArray[Any]]:
        """Return the maps at the first threshold, sigma and damping, (n,) or (n, 3), by their names."""
        s = soft.settings
        (p, c), threshold = self._p_and_c(s.class_index), s.thresholds[0]
        cells = self._cells(s, p, c, threshold)
        weight = self._weight(s, p, c, threshold, s.sigmas[0]) * self._damping(s, s.dampings[0])
        maps: dict[str, NDArray[Any]] = {}
        for number, cell in enumerate(CELLS):
            values = np.full(self.size, np.nan, np.float32)
            values[self.counted] = np.where(cells == number, weight, 0.0)
            maps[soft_weight_map(cell, soft.label)] = values
        picture = np.zeros((self.size, 3), np.uint8)
        picture[self.counted] = np.rint(CELL_COLOURS[cells] * weight[:, np.newaxis])
        return {**maps, soft_picture(soft.label): picture}

    def _p_and_c(self, class_index: int) -> tuple[Floats, NDArray[Any]]:
        """Return p of a class, and the reference: its shares, or whether it is the class."""
        if class_index not in self._of_class:
            p = np.empty(self.pixels.size)
            self.kernels.class_probabilities(self.stored, self.pixels, class_index, p)
            c = np.asarray(self.truth == class_index if self.shares is None else self.shares[self.counted, class_index])
            self._of_class[class_index] = p, c
        return self._of_class[class_index]

    def _level(self, s: SoftSettings, threshold: float) -> float:
        return reference_level(threshold, s.reference_threshold, self.dtype, self.share_dtype)

    def _cells(self, s: SoftSettings, p: Floats, c: NDArray[Any], threshold: float) -> Indices:
        positive = c if self.shares is None else c > self._level(s, threshold)
        return np.asarray(self.kernels.find_cells(p, positive, stored_threshold(threshold, self.dtype)))

    def _weight(self, s: SoftSettings, p: Floats, c: NDArray[Any], threshold: float, sigma: float) -> Floats:
        """Return A(p) A(c)."""
        t, level = stored_threshold(threshold, self.dtype), self._level(s, threshold)
        gaussian = s.distribution == "gaussian" and sigma > 0
        of_p = self.kernels.certainties(p, t, sigma) if gaussian else certainty(p, t, sigma, s.distribution, s.df)
        return np.asarray(of_p * certainty_of_reference(c, level, sigma, s.distribution, s.df, s.reference_certainty))

    def _damping(self, s: SoftSettings, damping: float) -> Any:
        u = self._uncertainty(s.uncertainty) if damping else None
        return 1.0 if u is None else self.kernels.damping_factors(u[self.counted], damping, s.damping_form)

    def _uncertainty(self, name: str | None) -> Floats | None:
        if name is None or name == "uncertainty":
            return None if name is None else self.u
        assert self.batch is not None
        return np.ascontiguousarray(self.batch.values[[measure.name for measure in self.request.measures].index(name)])


@lru_cache(maxsize=64)  # every block asks for the same
def row_grid(settings: JointSettings) -> RowGrid:
    """Return the rows of a joint histogram; without edges where each is one value."""
    if settings.rows != "interval":
        return RowGrid(np.empty(0), np.empty(0, np.int64))
    edges = np.array([*row_ends(settings)[:, 0].tolist(), 1.0])
    cells = np.arange(settings.size + 1) / settings.size
    return RowGrid(edges, np.searchsorted(edges, cells).astype(np.int64))


@lru_cache(maxsize=64)
def soft_grid(s: SoftSettings, dtype: np.dtype[Any]) -> SoftGrid:
    """Return the settings of a class with gaussian thresholds as kernels take them; dtype: of the stored probabilities."""
    thresholds = np.array([stored_threshold(threshold, dtype) for threshold in s.thresholds])
    certain = np.ones((len(s.thresholds), len(s.sigmas), 2))
    for i, k in np.ndindex(certain.shape[:2]):
        level, both = reference_level(s.thresholds[i], s.reference_threshold, dtype, None), np.array([False, True])
        certain[i, k] = certainty_of_reference(both, level, s.sigmas[k], s.distribution, s.df, s.reference_certainty)
    return SoftGrid(s.class_index, thresholds, np.array(s.sigmas), np.array(s.dampings), s.damping_form, certain)


def reference_levels(settings: JointSettings, c: NDArray[Any]) -> Indices:
    """Return the level of each reference value: a right-closed interval, or a single value."""
    if settings.reference_dtype is None:
        return c.astype(np.int64)
    highs = np.array([high for _, high in settings.levels])
    return np.asarray(np.searchsorted(highs, c.astype(np.float64), side="left"), np.int64)
