"""What a batch of pixels adds to the Summaries of its block."""

from __future__ import annotations

from functools import lru_cache, partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.soft_confusion import OneVsRest
from dask_uncert.blocks.tiles import TileCounter
from dask_uncert.formulas.labels import as_stored
from dask_uncert.formulas.typing import Floats, Indices
from dask_uncert.kernels.types import CLIPPED, NOTHING_APART, RENORMALISED, Apart, Pixels, finder
from dask_uncert.spec.request import Request
from dask_uncert.summaries.evaluation import Evaluation


class Counter:
    """Adds pixels to the Summaries of one block; what depends on the job alone is prepared once."""

    def __init__(
        self,
        request: Request,
        total: Evaluation,
        dtype: np.dtype[Any],
        kernels: ModuleType,
        share_dtype: np.dtype[Any] | None = None,
        tiles: TileCounter | None = None,
    ) -> None:
        self.request, self.total, self.dtype, self.kernels = request, total, dtype, kernels
        self.share_dtype, self.tiles = share_dtype, tiles
        self.finders = [cached_finder(one.edges, one.upper) for one in total.distributions]
        stated = as_stored(total.calibration.edges, dtype)
        self.stated = cached_finder(tuple(stated.tolist()), 1.0)

    def add(
        self,
        found: Pixels,
        truth: Indices,
        stored: NDArray[Any],
        pixels: Indices,
        u: Floats | None,
        shares: Floats | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Count these pixels; returns the soft maps' values there.

        truth: (n,) class indices, negative where the pixel does not count. shares: (n, classes) of a fuzzy
        reference.
        """
        request, total, kernels = self.request, self.total, self.kernels
        for number, bit in enumerate((CLIPPED, RENORMALISED)):
            total.ledger.repaired[number] += np.count_nonzero((truth >= 0) & (found.state & bit > 0))
        for row, one in zip(found.values, request.measures, strict=True):
            if one.kind == "uncertainty" and u is not None:
                row[:] = u
            elif one.kind == "confused_classes":
                row[:] = found.confused
        tiled = self.tiles.open(truth, pixels) if self.tiles is not None else _nowhere
        kernels.count_decisions(
            truth, found.predicted, found.second, found.confused,
            total.decisions.pairs, total.decisions.by_confused, tiled("confusion"),
        )  # fmt: skip
        rows = zip(found.values, self.finders, total.distributions, strict=True)
        for i, (row, found_in, d) in enumerate(rows):
            count = kernels.count_wide_values if d.wide else kernels.count_values
            count(
                row, d.upper, found_in, truth, found.predicted, found.second, found.confused,
                d.histogram, d.by_pair, d.by_confused, tiled(f"histogram/{i}", f"sums/{i}"),
            )  # fmt: skip
        bins = total.calibration
        kernels.count_confidence(
            found.confidence, truth, found.predicted, self.stated, bins.winning, tiled("winning_in_bins")
        )
        kernels.count_probabilities(
            stored, pixels, truth, self.stated,
            bins.classwise, bins.squared_error, bins.log_loss, bins.infinite.reshape(1),
            tiled(
                "squared_error", "log_loss", "infinite",
                *(f"class_in_bins/{c}" for c in range(len(request.classes))),
            ),
        )  # fmt: skip
        painted = self._softly(found, truth, stored, pixels, u, shares)
        if self.tiles is not None:
            self.tiles.close()
        return painted

    def _softly(
        self,
        found: Pixels,
        truth: Indices,
        stored: NDArray[Any],
        pixels: Indices,
        u: Floats | None,
        shares: Floats | None,
    ) -> dict[str, NDArray[Any]]:
        request, total, kernels = self.request, self.total, self.kernels
        if not (total.soft_confusion or total.joint or request.soft_maps):
            return {}
        rest = OneVsRest(request, self.dtype, found, truth, stored, pixels, u, shares, self.share_dtype)
        for number, soft in enumerate(total.soft_confusion):
            rest.add_to(soft, kernels, None if self.tiles is None else partial(self.tiles.soft, number))
        for joint in total.joint:
            rest.add_jointly(joint, kernels)
        return {name: values for one in request.soft_maps for name, values in rest.maps(one).items()}


def _nowhere(*places: str) -> Apart:
    return NOTHING_APART


cached_finder = lru_cache(maxsize=256)(finder)  # every block asks for the same
