"""One class against the rest, softly: what a batch of pixels adds to its soft confusion, and what it paints."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.labels import as_stored
from dask_uncert.formulas.soft_confusion import certainty, damping_factor
from dask_uncert.formulas.typing import Floats, Indices
from dask_uncert.kernels.types import Finder, Pixels, finder
from dask_uncert.spec.request import Request, SoftMaps
from dask_uncert.summaries.joint_histogram import JointHistogram, JointSettings, row_ends
from dask_uncert.summaries.soft_confusion import CELLS, COLOURS, SoftConfusion, SoftSettings

PAINT = np.array([COLOURS[cell] for cell in CELLS])
Apart = Callable[[Indices, int], tuple[Indices, Indices]]
"""Of cells (counted,) and a setting's number: where weights go that are kept apart, and their sums."""


class OneVsRest:
    """Counted pixels, asked class by class; what depends on the pixels alone is taken once.

    stored: the probabilities as `kernels.measure` takes them, stored in `dtype`. truth: (n,) class indices,
    negative where the pixel does not count. u: the predicted uncertainty. shares: (n, classes) of a fuzzy
    reference, stored in `share_dtype`; without them the reference is 1 where it is the class, else 0.
    """

    def __init__(
        self,
        request: Request,
        dtype: np.dtype[Any],
        found: Pixels,
        truth: Indices,
        stored: NDArray[Any],
        pixels: Indices,
        u: Floats | None,
        shares: Floats | None = None,
        share_dtype: np.dtype[Any] | None = None,
    ) -> None:
        self.request, self.dtype, self.found, self.u = request, dtype, found, u
        self.stored, self.truth = stored, truth
        self.counted = truth >= 0
        self.outer, self.inner = np.divmod(pixels, stored.shape[2])
        self.shares, self.share_dtype = shares, share_dtype
        self.of_class: dict[int, tuple[Floats, NDArray[Any]]] = {}

    def add_to(self, soft: SoftConfusion, kernels: ModuleType, apart: Apart | None = None) -> None:
        """Add the weights at every setting to the sums of their cells, and to those of tiles kept apart."""
        s = soft.settings
        p, c = self._p_and_c(s.class_index)
        factors = [self._damping(s, d) for d in s.dampings]
        for i, threshold in enumerate(s.thresholds):
            cells = self._cells(s, p, c, threshold)
            for k, sigma in enumerate(s.sigmas):
                weight = self._weight(s, p, c, threshold, sigma)
                for m, factor in enumerate(factors):
                    kernels.sum_soft_weights(weight * factor, cells, soft.weights[i, k, m])
                    if apart is not None:
                        setting = (i * len(s.sigmas) + k) * len(s.dampings) + m
                        kernels.sum_soft_weights(weight * factor, *apart(cells, setting))

    def add_jointly(self, joint: JointHistogram, kernels: ModuleType) -> None:
        """Add the pixels to the joint histogram of p, c and u."""
        s = joint.settings
        p, c = self._p_and_c(s.class_index)
        rows, offsets = np.empty(p.size, np.int64), np.zeros(p.size)
        if s.rows == "interval":
            # p on an edge belongs to the side where it agrees with a reference whose threshold is there.
            level = p if s.reference_threshold is None else s.reference_threshold
            kernels.find_rows(p, c > level, interval_finder(s), rows, offsets)
        elif s.rows == "float16":
            rows[:] = p.astype(np.float16).view(np.uint16)
        else:
            assert s.scale is not None
            rows[:] = np.rint(p / s.scale)
        u = self._uncertainty(s.uncertainty)
        kernels.count_joint(
            rows, offsets, levels_of(s, c), np.zeros(p.size) if u is None else u[self.counted],
            np.array(s.pieces, np.float64), joint.moments,
        )  # fmt: skip

    def paint(self, maps: SoftMaps) -> dict[str, NDArray[Any]]:
        """The maps at the first threshold, sigma and damping, (n,) or (n, 3), by their names."""
        s = maps.settings
        (p, c), threshold = self._p_and_c(s.class_index), s.thresholds[0]
        cells = self._cells(s, p, c, threshold)
        weight = self._weight(s, p, c, threshold, s.sigmas[0]) * self._damping(s, s.dampings[0])
        size = self.counted.size
        found: dict[str, NDArray[Any]] = {}
        for number, cell in enumerate(CELLS):
            values = np.full(size, np.nan, np.float32)
            values[self.counted] = np.where(cells == number, weight, 0.0)
            found[f"soft_{cell}_{maps.label}"] = values
        picture = np.zeros((size, 3), np.uint8)
        picture[self.counted] = np.rint(PAINT[cells] * weight[:, np.newaxis])
        return {**found, f"soft_{maps.label}": picture}

    def _p_and_c(self, number: int) -> tuple[Floats, NDArray[Any]]:
        """p of a class, and the reference: its shares, or whether it is the class."""
        if number not in self.of_class:
            p = self.stored[self.outer[self.counted], number, self.inner[self.counted]]
            if self.shares is None:
                c = np.asarray(self.truth[self.counted] == number)
            else:
                c = np.asarray(self.shares[self.counted, number])
            self.of_class[number] = np.clip(p.astype(np.float64), 0.0, 1.0), c
        return self.of_class[number]

    def _threshold(self, threshold: float) -> float:
        return float(as_stored([threshold], self.dtype)[0])

    def _level(self, s: SoftSettings, threshold: float) -> float:
        """The reference's own threshold; in the reference's dtype where it is fuzzy."""
        if self.share_dtype is None:
            return self._threshold(threshold) if s.reference_threshold is None else s.reference_threshold
        level = threshold if s.reference_threshold is None else s.reference_threshold
        return float(as_stored([level], self.share_dtype)[0])

    def _cells(self, s: SoftSettings, p: Floats, c: NDArray[Any], threshold: float) -> Indices:
        # c > t is a positive; p on the threshold agrees with the reference either way ([S22]).
        t = self._threshold(threshold)
        positive = c if self.shares is None else c > self._level(s, threshold)
        return np.where(
            positive,
            np.where(p >= t, CELLS.index("TP"), CELLS.index("FN")),
            np.where(p <= t, CELLS.index("TN"), CELLS.index("FP")),
        )

    def _weight(self, s: SoftSettings, p: Floats, c: NDArray[Any], threshold: float, sigma: float) -> Floats:
        """A(p) A(c)."""
        weight = certainty(p, self._threshold(threshold), sigma, s.distribution, s.df)
        if s.reference_certainty == "paper":
            level = self._level(s, threshold)
            if self.shares is None:  # two values only
                sides = certainty(np.array([0.0, 1.0]), level, sigma, s.distribution, s.df)
                weight = weight * sides[c.astype(np.int64)]
            else:
                weight = weight * certainty(c, level, sigma, s.distribution, s.df)
        return np.asarray(weight)

    def _damping(self, s: SoftSettings, damping: float) -> Any:
        u = self._uncertainty(s.uncertainty)
        return 1.0 if u is None else damping_factor(u[self.counted], damping, s.damping_form)

    def _uncertainty(self, name: str | None) -> Floats | None:
        if name is None or name == "uncertainty":
            return None if name is None else self.u
        return np.asarray(self.found.values[[one.name for one in self.request.measures].index(name)])


@lru_cache(maxsize=64)  # every block asks for the same
def interval_finder(settings: JointSettings) -> Finder:
    """Of the rows of a joint histogram that are intervals."""
    ends = row_ends(settings)
    return finder((*ends[:, 0].tolist(), 1.0), 1.0)


def levels_of(settings: JointSettings, c: NDArray[Any]) -> Indices:
    """The level of each reference value: intervals are right-closed, single values stand for themselves."""
    if settings.reference_dtype is None:
        return c.astype(np.int64)
    highs = np.array([high for _, high in settings.levels])
    return np.asarray(np.searchsorted(highs, c.astype(np.float64), side="left"), np.int64)
