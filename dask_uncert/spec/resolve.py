"""What stored integers are worth: by the factor their file declares, or by the one the job declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import Cube, is_prediction
from dask_uncert.spec.request import Request


def with_packing(request: Request, cubes: Mapping[str, Cube]) -> Request:
    """The Request whose probabilities and samples have the factors that their cubes have.

    Raises InputError where a file and the request both declare one, or samples have several.
    """
    scale = _factor({k: c for k, c in cubes.items() if k == "probabilities"}, request.scale)
    samples = {k: c for k, c in cubes.items() if is_prediction(k) and k != "probabilities"}
    return replace(request, scale=scale, sample_scale=_factor(samples, request.sample_scale))


def _factor(cubes: Mapping[str, Cube], asked: float | None) -> float | None:
    found: set[float | None] = set()
    for cube in cubes.values():
        kept = (
            not cube.logits and cube.decoding.is_packed and cube.decoding.keeps_stored(cube.dtype, cube.role)
        )
        found.add(cube.decoding.scale if kept else None)
        if cube.decoding.is_packed and asked is not None and asked != cube.decoding.scale:
            raise InputError(
                f"{cube.name}: {cube.where} declares the factor {cube.decoding.scale:g} itself; leave out `scale: "
                f"{asked:g}`."
            )
    if len(found) > 1:
        raise InputError("samples: their files declare several factors; store all in the same way.")
    return next(iter(found), None) or asked
