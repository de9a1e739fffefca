"""The values of a user's own measures for a batch of pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.blocks.kernels.types import MISSING, OFF, Pixels
from dask_uncert.formulas.measures import OWN
from dask_uncert.formulas.own_measures import Functions, imported, own_values
from dask_uncert.formulas.typing import Indices
from dask_uncert.spec.request import Request


def add_own(request: Request, stored: NDArray[Any], pixels: Indices, measured: Pixels) -> None:
    """Write the values of the request's own measures; those of pixels that are not usable stay NaN.

    stored, pixels: as `kernels.measure` takes them, which returned `measured`.
    """
    own = [number for number, measure in enumerate(request.measures) if measure.kind == OWN]
    if not own:
        return
    usable = (measured.state & (MISSING | OFF)) == 0
    outer, inner = np.divmod(pixels[usable], stored.shape[2])
    p = np.clip(stored[outer, :, inner].astype(np.float64), 0.0, 1.0)
    p /= p.sum(axis=1, keepdims=True)
    for number in own:
        measure = request.measures[number]
        reference, upper = measure.function or "", measure.upper or 1.0
        given = request.functions or Functions()
        function = given[reference] if reference in given else imported(reference)
        measured.values[number, usable] = own_values(reference, function, p, upper)
