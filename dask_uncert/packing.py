"""What stored integers are worth: by the factor their file declares, or by the one the job declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dask_uncert.cubes import Cube, is_prediction
from dask_uncert.errors import InputError
from dask_uncert.request import Request


def with_packing(request: Request, cubes: Mapping[str, Cube]) -> Request:
    """The Request whose probabilities and samples have the factors that their files declare.

    Raises InputError where a file and the job both declare one, or samples have several.
    """
    scale = _declared({k: c for k, c in cubes.items() if k == "probabilities"}, request.scale)
    samples = {k: c for k, c in cubes.items() if is_prediction(k) and k != "probabilities"}
    return replace(request, scale=scale, sample_scale=_declared(samples, request.sample_scale))


def _declared(cubes: Mapping[str, Cube], asked: float | None) -> float | None:
    found = {cube.scale for cube in cubes.values()}
    for cube in cubes.values():
        if cube.scale is not None and asked is not None:
            raise InputError(
                f"{cube.name}: {cube.where} declares the factor {cube.scale:g} itself; leave out `scale: {asked:g}`."
            )
    if len(found) > 1:
        raise InputError(f"samples: their files declare several factors, {found}; store all in the same way.")
    return next(iter(found), None) or asked
