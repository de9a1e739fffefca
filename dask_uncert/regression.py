"""A regression and its stated uncertainty, evaluated: arrays of any kind in, a RegressionEvaluation out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dask_uncert import graphs
from dask_uncert.cubes import OUTPUT, OUTPUT2, Cube, make_cube
from dask_uncert.errors import InputError
from dask_uncert.evaluate import with_maps
from dask_uncert.formulas.pointwise import is_labelled
from dask_uncert.regression_plan import prepare_regression
from dask_uncert.stores.zarr import describe


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
    first = _cube("mean", mean, output_axis, None)
    grid = tuple(first.grid)
    cubes = {"mean": first}
    given = {"reference": reference, "variance": variance, "covariance": covariance, "mask": mask}
    for name, data in given.items():
        if data is not None:
            cubes[name] = _cube(name, data, None if name == "mask" else output_axis, grid)
    plan = prepare_regression(cubes, maps, block=block, split_every=split_every)
    if maps_store is not None:
        plan = with_maps(plan, str(maps_store))
    return plan.compute() if compute else plan.lazy()


def _cube(name: str, data: Any, place: int | str | None, grid: tuple[str, ...] | None) -> Cube:
    """An array as a Cube; `place` is where its outputs lie, `grid` the names of its other dimensions."""
    stored = describe(data)
    names: list[str] = []
    chunks: tuple[int, ...] | None = None
    if is_labelled(data):
        names = [str(d) for d in data.dims]
        data = data.data
    elif stored is not None:
        names, chunks = list(stored[0] or ()), stored[1]
    elif not graphs.is_dask(data):
        data = np.asarray(data)
    if graphs.is_dask(data):
        chunks = data.chunksize
    ndim = len(data.shape)
    if name == "covariance":
        # The two dimensions that are no dimension of the grid, else the last two.
        others = [d for d in names if d not in (grid or ())]
        if names and OUTPUT not in names and len(others) == 2:
            names = [(OUTPUT, OUTPUT2)[others.index(d)] if d in others else d for d in names]
        elif not names:
            names = [*_positions(grid, ndim - 2), OUTPUT, OUTPUT2]
    elif not names:
        names = _positions(grid, ndim - (place is not None))
        if place is not None:
            names.insert(_number(name, place, ndim), OUTPUT)
    elif place is not None and OUTPUT not in names:
        names[names.index(place) if place in names else _number(name, place, ndim)] = OUTPUT
    return make_cube(name, data, names, None, chunks, f"the array given as {name}")


def _positions(grid: tuple[str, ...] | None, number: int) -> list[str]:
    return list(grid) if grid is not None and len(grid) == number else [f"dim_{i}" for i in range(number)]


def _number(name: str, place: int | str, ndim: int) -> int:
    if isinstance(place, str):
        raise InputError(f"{name}: there is no dimension {place!r}; give the number of the output axis.")
    if not -ndim <= place < ndim:
        raise InputError(f"{name}: output_axis {place} is out of range for {ndim} dimensions.")
    return place % ndim
