"""Maps of prediction sets: the classes whose stated probability is at least a threshold."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas.labels import as_stored
from dask_uncert.formulas.typing import Indices
from dask_uncert.spec.map_names import in_set_map, set_size_map
from dask_uncert.spec.request import Request


def set_maps(
    request: Request,
    stored: NDArray[Any],
    pixels: Indices,
    states: NDArray[np.uint8],
    dtype: np.dtype[Any],
    scale: float | None,
    kernels: ModuleType,
) -> dict[str, NDArray[Any]]:
    """Return the values (n,) of each map of sets at these pixels, by its name.

    stored: the probabilities as `kernels.measure` takes them, stored in `dtype`. states: (n,) of `Pixels`.
    """
    if not request.set_maps:
        return {}
    usable = (states & 3) == 0
    layers, p = request.layers, np.empty(pixels.size)
    levels = [float(as_stored(threshold, dtype, scale)) for threshold, _ in request.set_maps]
    maps = {}
    for threshold, _ in request.set_maps:
        name = set_size_map(threshold)
        maps[name] = np.where(usable, 0, layers[name].fill).astype(layers[name].dtype)
    for c in range(len(request.classes)):
        kernels.class_probabilities(stored, pixels, c, p)
        for (threshold, labels), level in zip(request.set_maps, levels, strict=True):
            inside = (p >= level) & usable
            maps[set_size_map(threshold)] += inside.astype(np.uint16)
            if labels:
                name = in_set_map(threshold, labels[c])
                maps[name] = np.where(usable, inside, layers[name].fill).astype(layers[name].dtype)
    return maps
