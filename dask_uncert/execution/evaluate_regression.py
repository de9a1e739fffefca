"""A regression and its stated uncertainty, evaluated: arrays of any kind in, a RegressionEvaluation out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dask_uncert.blocks.regression import REGRESSION_MAPS, RegressionRequest
from dask_uncert.errors import InputError
from dask_uncert.execution import chunking
from dask_uncert.execution.evaluate import with_maps
from dask_uncert.execution.plan import Plan
from dask_uncert.formulas.array_dispatch import is_labelled
from dask_uncert.inputs.arrays import cube_of
from dask_uncert.inputs.cube import OUTPUT, OUTPUT2, Cube
from dask_uncert.inputs.regression import align_regression


def evaluate_regression(
    mean: Any,
    reference: Any,
    *,
    variance: Any = None,
    covariance: Any = None,
    mask: Any = None,
    output_axis: int | str | None = None,
    maps: Sequence[str] = (),
    maps_store: str | Path | None = None,
    block: Sequence[int] | None = None,
    split_every: int | None = None,
    compute: bool = True,
) -> Any:
    """Evaluate how well a regression knows its own error; the result has the same bits for every chunking.

    Arrays may be numpy, dask, xarray or zarr; nothing is written to them. With labelled arrays dimensions are
    matched by name, otherwise by position. Everything is computed in float64.

    mean, reference: (grid), or with up to 8 outputs on `output_axis`. NaN in any output leaves a pixel out.
    variance: shaped like the mean. covariance: (grid, outputs, outputs). Exactly one of the two.
    mask: (grid) true counts. output_axis: a number, a labelled dimension's name, or None for one output.
    maps: of `nssr`, `predicted_probability`; written to the Zarr group `maps_store`.
    block: grid sizes of a task; by default whole chunks of about 64 MiB. split_every: Summaries a merge adds.
    compute: False gives a dask Delayed of the evaluation.

    Returns a `RegressionEvaluation`. Raises InputError for input that cannot be evaluated, such as a counted
    variance that is not positive. [J22] (50)-(54)

    >>> import numpy as np, dask_uncert as du
    >>> found = du.evaluate_regression(np.zeros(4), np.array([0.1, -0.5, 1.0, 2.0]), variance=np.ones(4))
    >>> du.regression_coverage(found)[0.95]
    0.75
    """
    if bool(maps) != (maps_store is not None):
        raise InputError(
            "maps and maps_store go together: name the maps and the Zarr group to write them to."
        )
    cubes: dict[str, Cube] = {}
    grid: tuple[str, ...] | None = None
    given = {
        "mean": mean,
        "reference": reference,
        "variance": variance,
        "covariance": covariance,
        "mask": mask,
    }
    for name, data in given.items():
        if data is not None:
            cubes[name] = cube_of(name, data, _places(name, data, output_axis, grid), grid)
            grid = tuple(cubes["mean"].grid)
    plan = prepare_regression(cubes, maps, block=block, split_every=split_every)
    if maps_store is not None:
        plan = with_maps(plan, str(maps_store))
    return plan.compute() if compute else plan.delayed()


def prepare_regression(
    cubes: Mapping[str, Cube],
    maps: Sequence[str] = (),
    *,
    block: Sequence[int] | None = None,
    split_every: int | None = None,
) -> Plan:
    """Return the pass, checked as far as that needs no pixel and cut into blocks; InputError."""
    unknown = [name for name in maps if name not in REGRESSION_MAPS]
    if unknown or len(set(maps)) != len(maps):
        problem = f"unknown map {unknown[0]!r}" if unknown else "a map is named twice"
        raise InputError(f"maps: {problem}; known: {', '.join(REGRESSION_MAPS)}.")
    scene = align_regression(cubes)
    request = RegressionRequest(scene.cubes["mean"].sizes.get(OUTPUT, 1), tuple(maps))
    grid = chunking.plan_grid(scene.cubes, scene.dims, block)
    return Plan(request, scene, grid, split_every=split_every)


def _places(
    name: str, data: Any, axis: int | str | None, grid: tuple[str, ...] | None
) -> dict[str, int | str]:
    """Where an input's outputs lie: a labelled covariance's are its two dimensions that are not the grid's."""
    if name == "covariance":
        dims = [str(d) for d in data.dims] if is_labelled(data) else []
        others = [d for d in dims if d not in (grid or ())]
        if OUTPUT not in others and len(others) == 2:
            return dict(zip((OUTPUT, OUTPUT2), others, strict=True))
        return {OUTPUT: -1, OUTPUT2: -1}
    return {} if name == "mask" or axis is None else {OUTPUT: axis}
