"""The options of one input, checked; arrays, files and stores with such options, opened as Cubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from dask_uncert.errors import InputError, listed
from dask_uncert.inputs.arrays import Axis, cube_of, is_store, missing_in_store, split_mask
from dask_uncert.inputs.cube import BAND, CLASS, PREDICTION, SAMPLE, Cube
from dask_uncert.inputs.missing_chunks import MissingChunks, with_missing_chunks
from dask_uncert.inputs.open import InputSpec, open_cubes, with_options
from dask_uncert.inputs.pixel_area import pixel_sizes
from dask_uncert.inputs.scene import prediction
from dask_uncert.io.decoding import Role
from dask_uncert.io.paths import named_path
from dask_uncert.io.validation import validated
from dask_uncert.spec.input_options import (
    MODELS,
    InputOptions,
    PredictionOptions,
    ReferenceOptions,
)


class InputKeywords(TypedDict, total=False):
    """The keywords of `Input`, which are those of any input."""

    array: str
    dims: str | Sequence[str]
    scale: float
    offset: float
    nodata: float | Sequence[float]
    missing_chunks: MissingChunks
    logits: bool
    out_of_tolerance: Literal["refuse", "leave_out"]
    tolerance: float
    fuzzy: bool
    complete: bool
    raters: int
    unit: str
    by_position: bool
    geometry: Mapping[str, str]
    names: Mapping[int, str]


class Input:
    """An input of `evaluate` or `evaluate_regression` with what is to be known of it.

    Parameters
    ----------
    data : array, str or pathlib.Path
        An array (numpy, dask, xarray or zarr), or the path or URL of a store or file, opened as in a job.
    array : str
        Name of the array in a store of several.
    dims : sequence of str, or str
        Names of the dimensions, in the array's order, also as "class,y,x"; `class`, `sample` and `band` are reserved.
    scale, offset : float
        Values are the stored numbers times `scale` plus `offset`. Integer probabilities need a `scale`, such as 1/255.
    nodata : float or sequence of float
        Stored numbers that mean that there is no value.
    missing_chunks : {"refuse", "leave_out", "fill"}
        What to do about chunks that a store does not hold. By default they are the fill value where that leaves pixels
        out (an ignored or no-data code, false in a mask, NaN), and are refused elsewhere.
    logits : bool
        Probabilities or samples are logits: of each class (softmax) or, binary, of the second class (sigmoid).
    tolerance : float
        How far probabilities and their sums may be off, also the shares of a fuzzy reference; by default what the storage
        dtype rounds.
    out_of_tolerance : {"refuse", "leave_out"}
        Whether pixels further off are an error, or are left out and counted.
    fuzzy : bool
        The reference holds shares in [0, 1] instead of codes.
    complete : bool
        The shares of a fuzzy reference must sum to 1. By default what is missing is unlabelled, and said.
    raters : int
        Number of raters of a fuzzy reference: shares are multiples of one over it.
    unit : str
        Unit of the weights, for reports.
    by_position : bool
        Read index by index like the other inputs; an affine or coordinates of its own are not used.
    geometry : mapping
        ``{"like": path}``: the position of the pixels is that of another file, whose names of dimensions `dims` uses.
    names : mapping of int to str
        Code and name of every zone; by default all codes are zones, called by their codes.

    Notes
    -----
    The keywords are the keys of an input in a job file. They are checked when the input is used.

    Examples
    --------
    >>> import numpy as np, dask_uncert as du
    >>> stored = np.array([[255, 0], [51, 204]], "uint8")
    >>> evaluation = du.evaluate(du.Input(stored, scale=1 / 255), np.array([0, 1]))
    >>> du.accuracy(evaluation)
    1.0
    """

    def __init__(self, data: Any, **options: Unpack[InputKeywords]) -> None:
        self.data, self.options = data, options


def input_spec(
    name: str,
    kind: str,
    options: InputOptions,
    path: str = "",
    shown: str = "",
    ignore: Sequence[int] = (),
    classes: int = 0,
) -> InputSpec:
    """Return what is known of an input before it is opened.

    kind: which input of the evaluation it is; path: of its store; shown: the path as the user wrote it; ignore:
    reference codes of pixels that do not count; classes: their number, 0 if unknown.
    """
    nodata = options.nodata
    codes = None if nodata is None else tuple(nodata if isinstance(nodata, list) else [nodata])
    raters = getattr(options, "raters", None)
    return InputSpec(
        name,
        path,
        shown,
        options.array,
        None if options.dims is None else tuple(options.dims),
        role_of(kind, options),
        options.scale,
        options.offset,
        codes,
        options.missing_chunks,
        kind=kind,
        raters=raters if isinstance(raters, int) else None,
        ignore=tuple(ignore),
        classes=classes,
        by_position=options.by_position,
        like=None if options.geometry is None else options.geometry.like,
        leave_out=getattr(options, "out_of_tolerance", "refuse") == "leave_out",
        **{
            key: getattr(options, key)
            for key in ("unit", "logits", "tolerance", "complete", "names")
            if hasattr(options, key)
        },
    )


def role_of(kind: str, options: InputOptions) -> Role:
    """Return what an input holds."""
    if isinstance(options, PredictionOptions):
        return "probabilities"
    if isinstance(options, ReferenceOptions):
        return "shares" if options.fuzzy or CLASS in (options.dims or ()) else "labels"
    return "labels" if kind in ("mask", "zones", PREDICTION) else "values"


def open_input(
    name: str,
    source: Any,
    axes: Mapping[str, Axis],
    grid: Sequence[str] | None,
    model: type[InputOptions] = InputOptions,
    kind: str = "",
    ignore: Sequence[int] = (),
    classes: int = 0,
) -> dict[str, Cube]:
    """Return an array, a path, an Input or its keys in a job as a Cube under its name, with a mask of pixels it lacks.

    axes: where reserved dimensions lie in an array that does not name them; grid: names of its other dimensions. kind:
    which input of the evaluation it is, by default its name. ignore: reference codes of pixels that do not count;
    classes: their number, 0 if unknown.
    """
    if isinstance(source, Cube):
        return {name: source}
    if isinstance(source, dict):
        if not isinstance(source.get("store"), str | Path):
            raise InputError(f"{name}: a mapping needs `store`, a path or URL, as in a job; found {listed(source, 5)}.")
        source = Input(source["store"], **{key: value for key, value in source.items() if key != "store"})
    entry = source if isinstance(source, Input) else Input(source)
    options = validated(model, entry.options, f"{name}: ")
    if isinstance(entry.data, str | Path):
        shown = str(entry.data)
        return open_cubes(input_spec(name, kind or name, options, named_path(shown), shown, ignore, classes))
    if options.array or (options.missing_chunks is not None and not is_store(entry.data)):
        raise InputError(f"{name}: `array` and `missing_chunks` belong to the path of a store; this is an array.")
    spec = input_spec(name, kind or name, options)
    cube = with_options(cube_of(name, entry.data, axes, grid, spec.dims), spec)
    if not is_store(entry.data):
        return split_mask(cube)
    if options.missing_chunks == "fill":
        return {name: cube}
    absent = missing_in_store(cube, entry.data)
    return with_missing_chunks(cube, absent, entry.data.fill_value, spec.missing_chunks, ignore)


def open_arrays(
    inputs: Mapping[str, Any],
    axis: Axis | None,
    sample_axis: Axis,
    band_axis: Axis,
    ignore: Sequence[int] = (),
    classes: int = 0,
) -> dict[str, Cube]:
    """Return the inputs of a classification that are there (not None) as Cubes; samples in a list one by one.

    The prediction comes first: it names the grid's dimensions. axis: where the classes lie, counted without the
    samples' axis. ignore: reference codes of pixels that do not count; classes: their number, 0 if unknown.
    """
    along: dict[str, Axis] = {} if axis is None else {CLASS: axis}
    axes = {
        "probabilities": along,
        "samples": {**along, SAMPLE: sample_axis},
        "features": {BAND: band_axis},
    }
    cubes: dict[str, Cube] = {}
    for name, source in inputs.items():
        grid = tuple(prediction(cubes).grid) if cubes else None
        if name == "reference" and isinstance(source, Input) and source.options.get("fuzzy"):
            has_classes = grid is not None and len(np.shape(source.data)) == len(grid) + 1
            axes[name] = along if has_classes else {}
        if name == "samples" and isinstance(source, list | tuple):
            if not source:
                raise InputError("samples: the list is empty.")
            for number, member in enumerate(source):
                cubes |= open_input(
                    f"samples_{number}", member, along, grid, PredictionOptions, "samples", classes=classes
                )
                grid = tuple(prediction(cubes).grid)
        elif isinstance(source, str) and (name, source) == ("weight", "geometry"):
            cubes["weight"] = pixel_sizes(cubes)
        elif source is not None:
            model = MODELS.get(name, InputOptions)
            cubes |= open_input(name, source, axes.get(name, {}), grid, model, ignore=ignore, classes=classes)
    return cubes
