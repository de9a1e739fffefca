"""The soft confusion of [S22] for one class against the rest, at named settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.summary import Summary, counts


@dataclass(frozen=True)
class SoftSettings:
    """Settings of one class: every combination of thresholds, sigmas and dampings.

    `uncertainty` names the measure that damps, or None for undamped weights.
    """

    class_index: int
    thresholds: tuple[float, ...]
    sigmas: tuple[float, ...] = (0.0,)
    dampings: tuple[float, ...] = (0.0,)
    uncertainty: str | None = None
    distribution: str = "gaussian"
    df: float | None = None  # of student-t
    damping_form: str = "exponential"
    reference_threshold: float | None = None
    reference_certainty: str = "paper"


@dataclass(frozen=True, eq=False)
class SoftConfusion(Summary):
    """Summed weights of TP, TN, FP, FN in fixed point, for every setting."""

    kind = "soft_confusion"
    settings: SoftSettings
    weights: Counts = counts("threshold", "sigma", "damping", "cell", "limb")

    @classmethod
    def zero(cls, settings: SoftSettings) -> Self:
        shape = (len(settings.thresholds), len(settings.sigmas), len(settings.dampings), len(CELLS), 2)
        return cls(settings, weights=np.zeros(shape, np.int64))


COLOURS = {"TP": (0, 255, 0), "TN": (0, 0, 255), "FP": (255, 0, 0), "FN": (160, 32, 240)}
"""Colours of the merged picture [S22]: green, blue, red, purple."""
