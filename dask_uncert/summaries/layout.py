"""Dimensions and shapes of the arrays of a Summary, and whether frames are equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dask_uncert.summaries.summary import Summary, UnequalFramesError

Layout = Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]]


def layout_of(evaluation: Summary) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    """Return the dimensions and shape of each array of an Evaluation, by path."""
    return {path: (dims, array.shape) for path, dims, array in evaluation.arrays()}


def width_of(layout: Layout, path: str) -> int:
    """Return the number of cells of an array."""
    return int(np.prod(layout[path][1], dtype=np.int64))


def check_equal(frame: Mapping[str, Any], other: Mapping[str, Any], name: str) -> None:
    """Raise UnequalFramesError, naming the part of the frame of the case `name` that differs."""
    for part in frame:
        if frame[part] != other.get(part):
            raise UnequalFramesError(
                f"case {name} was evaluated with other {part}; evaluate all cases with the same job"
            )
