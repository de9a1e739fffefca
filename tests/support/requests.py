"""Requests to test blocks with, of scenes that hold nothing."""

from __future__ import annotations

import numpy as np

from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.scene import make_scene
from dask_uncert.spec.options import SceneOptions
from dask_uncert.spec.request import Request
from dask_uncert.spec.resolve import resolve


def request_of(*inputs: str, shape=(2, 3), **options) -> Request:
    """Return the request of float32 probabilities and codes over a grid, and of inputs beside them by name."""
    chosen = SceneOptions(**options)
    classes = {"class": len(chosen.classes)}
    axes = {"probabilities": classes, "samples": {"sample": 2, **classes}}
    cubes = {}
    for name in ("probabilities", "reference", *inputs):
        sizes = {**{f"dim_{i}": n for i, n in enumerate(shape)}, **axes.get(name, {})}
        dtype = "uint8" if name == "reference" else "float32"
        cubes[name] = Cube(name, np.broadcast_to(np.zeros((), dtype), tuple(sizes.values())), tuple(sizes))
    return resolve(chosen, make_scene(cubes, len(chosen.classes)))
