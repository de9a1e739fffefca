"""Evaluate a regression with its stated uncertainty: arrays of any kind in, a RegressionEvaluation out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from dask_uncert.blocks.regression import RegressionRequest
from dask_uncert.execution import chunking
from dask_uncert.execution.evaluate import evaluate_plan, with_warnings
from dask_uncert.execution.plan import Plan
from dask_uncert.formulas.array_dispatch import is_labelled
from dask_uncert.inputs.arrays import Axis
from dask_uncert.inputs.cube import OUTPUT, OUTPUT2, Cube
from dask_uncert.inputs.regression import align_regression
from dask_uncert.io.validation import validated
from dask_uncert.spec.inputs import Input, open_input
from dask_uncert.spec.options import PassOptions, RegressionOptions
from dask_uncert.summaries.regression import RegressionEvaluation

if TYPE_CHECKING:
    from dask.delayed import Delayed


@overload
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
    compute: Literal[True] = True,
) -> RegressionEvaluation: ...
@overload
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
    compute: Literal[False],
) -> Delayed: ...
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
) -> RegressionEvaluation | Delayed:
    """Evaluate how well a regression knows its own error; the result is the same, bit by bit, for every chunking.

    Parameters
    ----------
    mean, reference : array, path or Input
        What is predicted and what was observed: the grid's dimensions, and up to 8 outputs on `output_axis`. NaN in
        any output leaves a pixel out.
    variance, covariance : array, path or Input
        Exactly one of the two: a variance shaped like the mean, or a covariance over the grid and twice the outputs.
    mask : array, path or Input
        True where pixels count.
    output_axis : int, str or None
        The outputs' axis, a number or the name of a labelled dimension; None for one output without an axis.
    maps : sequence of {"nssr", "predicted_probability"}
        Maps to write.
    maps_store : str or pathlib.Path
        The Zarr group to write `maps` to.
    block : sequence of int
        Sizes of a block along the grid; by default whole chunks of about 64 MiB.
    split_every : int
        Number of Summaries that a merge adds.
    compute : bool
        False returns a dask Delayed of the evaluation.

    Returns
    -------
    RegressionEvaluation or dask.delayed.Delayed
        What `regression_curve`, `regression_area` and `regression_coverage` take.

    Raises
    ------
    InputError
        If an input cannot be evaluated, such as a counted variance that is not positive.

    Warns
    -----
    InputWarning
        If an input can be used, but is odd.

    Notes
    -----
    Arrays may be numpy, dask, xarray or zarr; nothing is written to them. Dimensions of labelled arrays are matched by
    name, others by position. Everything is computed in float64.

    References
    ----------
    [J22] (50)-(54)

    Examples
    --------
    >>> import numpy as np, dask_uncert as du
    >>> evaluation = du.evaluate_regression(np.zeros(4), np.array([0.1, -0.5, 1.0, 2.0]), variance=np.ones(4))
    >>> du.regression_coverage(evaluation)[0.95]
    0.75
    """
    options = validated(RegressionOptions, {"maps": list(maps)})
    cubes: dict[str, Cube] = {}
    grid: tuple[str, ...] | None = None
    inputs = {
        "mean": mean,
        "reference": reference,
        "variance": variance,
        "covariance": covariance,
        "mask": mask,
    }
    for name, source in inputs.items():
        if source is not None:
            cubes |= open_input(name, source, _axes(name, source, output_axis, grid), grid)
            grid = tuple(cubes["mean"].grid)
    plan = prepare_regression(options, cubes, block=block, split_every=split_every)
    evaluation: RegressionEvaluation | Delayed = evaluate_plan(with_warnings(plan), maps_store, compute)
    return evaluation


def prepare_regression(options: RegressionOptions, cubes: Mapping[str, Cube], **pass_options: Any) -> Plan:
    """Return the pass over a regression, checked and cut into blocks; no values are read.

    pass_options: keywords of `PassOptions`. Raises InputError for all that can be checked before values are read.
    """
    checked = validated(PassOptions, pass_options)
    scene = align_regression(cubes)
    request = RegressionRequest(scene.cubes["mean"].sizes.get(OUTPUT, 1), tuple(options.maps))
    grid = chunking.plan_grid(scene.cubes, scene.dims, checked.block)
    return Plan(request, scene, grid, split_every=checked.split_every)


def _axes(name: str, source: Any, axis: Axis | None, grid: tuple[str, ...] | None) -> dict[str, Axis]:
    """Return the axes of an input's outputs; of a labelled covariance, its two dimensions that are not the grid's."""
    if name == "covariance":
        data = source.data if isinstance(source, Input) else source
        dims = [str(d) for d in data.dims] if is_labelled(data) else []
        others = [d for d in dims if d not in (grid or ())]
        if OUTPUT not in others and len(others) == 2:
            return dict(zip((OUTPUT, OUTPUT2), others, strict=True))
        return {OUTPUT: -1, OUTPUT2: -1}
    return {} if name == "mask" or axis is None else {OUTPUT: axis}
