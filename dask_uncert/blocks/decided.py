"""Predictions that are decisions: a class code for each pixel, without probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.types import MISSING, USABLE, Pixels
from dask_uncert.formulas.labels import class_indices
from dask_uncert.formulas.typing import Indices
from dask_uncert.spec.request import Request


def decision_indices(request: Request, codes: NDArray[Any], dtype: type[np.integer[Any]] = np.int64) -> Indices:
    """Return the class index of each predicted code, flat (n,); negative where it is the code of no class.

    dtype: of the result.
    """
    return class_indices(codes, request.codes, (), dtype)


def decided(index: Indices, measures: int) -> Pixels:
    """Return pixels (n,) with these decisions, as `kernels.measure` does; values are undefined.

    There is no runner-up: `second` is the decision itself, which no wrong decision counts, and one class is in question.
    """
    predicted = np.maximum(index, 0).astype(np.int16)
    one, state = np.ones(index.size, np.int16), np.where(index < 0, MISSING, USABLE).astype(np.uint8)
    return Pixels(np.full((measures, index.size), np.nan), predicted, predicted, one, np.ones(index.size), state)
