"""A scene, evaluated: arrays of any kind in, an Evaluation out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dask_uncert import graphs
from dask_uncert.cubes import BAND, CLASS, Cube, align, make_cube
from dask_uncert.errors import InputError
from dask_uncert.formulas.homophily import check_distances
from dask_uncert.formulas.measures import Measure
from dask_uncert.formulas.pointwise import is_labelled
from dask_uncert.formulas.separation import METRICS, Metric
from dask_uncert.plan import Plan, with_table
from dask_uncert.regression_plan import RegressionPlan
from dask_uncert.request import MAPS, Request
from dask_uncert.stores.zarr import MapWriter, describe, read_counts, write_counts
from dask_uncert.summaries.evaluation import Evaluation, from_plain
from dask_uncert.summaries.regression import RegressionEvaluation, regression_from_plain
from dask_uncert.summaries.summary import Summary
from dask_uncert.words import request_of

ENGINES = ("compiled", "reference")
READERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Evaluation | RegressionEvaluation]] = {
    "Evaluation": from_plain,
    "RegressionEvaluation": regression_from_plain,
}
"""By kind of Summary: how it is made of its frame and arrays."""
AnyPlan = TypeVar("AnyPlan", Plan, RegressionPlan)


def evaluate(
    probabilities: Any,
    reference: Any,
    *,
    mask: Any = None,
    features: Any = None,
    uncertainty: Any = None,
    classes: Mapping[int, str] | Sequence[str] | None = None,
    ignore: Iterable[int] = (),
    measures: Sequence[str | Mapping[str, Any] | Measure] = ("gini", "entropy", "fisher_rao"),
    class_distances: Mapping[str, Any] | None = None,
    soft_confusion: Sequence[Mapping[str, Any]] = (),
    uncertainty_confusion: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
    maps: Sequence[str] = (),
    maps_store: str | Path | None = None,
    axis: int | str | None = -1,
    band_axis: int | str = -1,
    scale: float | None = None,
    tolerance: float | None = None,
    block: Sequence[int] | None = None,
    split_every: int | None = None,
    engine: str = "compiled",
    compute: bool = True,
) -> Any:
    """Evaluate predictions with their uncertainty in one pass; the result has the same bits for every chunking.

    Arrays may be numpy, dask, xarray or zarr; nothing is written to them. With labelled arrays dimensions are
    matched by name, otherwise by position.

    probabilities: grid dimensions and the classes on `axis`; floats, or integers with a declared `scale`.
        ``axis=None``: a binary prediction over the grid alone, the probability of the second class.
    reference: (grid) class codes. mask: (grid) true counts. uncertainty: (grid) a predicted uncertainty in
        [0, 1], NaN where there is none. features: (grid and bands on `band_axis`), for `class_distances`.
    classes: {code: name} in the order of the class axis, or names whose codes are 0, 1, ...; by default the
        codes 0, 1, ... themselves. ignore: codes of pixels that do not count.
    measures, soft_confusion, uncertainty_confusion, calibration, class_distances: as in a job file.
    maps: measures, or `correct`, `predicted`, `confused_classes`; written to the Zarr group `maps_store`.
    block: grid sizes of a task; by default whole chunks of about 64 MiB. split_every: Summaries a merge adds.
    compute: False gives a dask Delayed of the Evaluation (class distances are worked out at once).

    Returns an `Evaluation`. Raises InputError for input that cannot be evaluated.

    >>> import numpy as np, dask_uncert as du
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> int(du.evaluate(p, np.array([0, 1, 1])).ledger.counted)
    3
    """
    first = _cube("probabilities", probabilities, axis, CLASS, None)
    grid = tuple(first.grid)
    given: dict[str, tuple[Any, int | str | None, str | None]] = {
        "reference": (reference, None, None),
        "mask": (mask, None, None),
        "uncertainty": (uncertainty, None, None),
        "features": (features, band_axis, BAND),
    }
    cubes = {"probabilities": first}
    for name, (data, place, reserved) in given.items():
        if data is not None:
            cubes[name] = _cube(name, data, place, reserved, grid)
    if classes is None:
        classes = [str(i) for i in range(first.sizes.get(CLASS, 2))]
    request = request_of(
        classes=classes,
        ignore=ignore,
        measures=measures,
        soft_confusion=soft_confusion,
        uncertainty_confusion=uncertainty_confusion,
        calibration=calibration,
        maps=maps,
        has_uncertainty=uncertainty is not None,
        scale=scale,
        tolerance=tolerance,
    )
    if bool(maps) != (maps_store is not None):
        raise InputError(
            "maps and maps_store go together: name the maps and the Zarr group to write them to."
        )
    plan = prepare(
        request, cubes, class_distances=class_distances, block=block, split_every=split_every, engine=engine
    )
    if maps_store is not None:
        plan = with_maps(plan, str(maps_store))
    return plan.compute() if compute else plan.known().lazy()


def _cube(
    name: str, data: Any, place: int | str | None, reserved: str | None, grid: tuple[str, ...] | None
) -> Cube:
    """An array as a Cube; `place` is where its reserved dimension lies, `grid` the names of the others."""
    if isinstance(data, Cube):
        return data
    stored = describe(data)
    if is_labelled(data):
        names, chunks = [str(d) for d in data.dims], None
        data = data.data
    elif stored is not None:
        names, chunks = list(stored[0] or ()), stored[1]
    else:
        names, chunks = [], None
        if not graphs.is_dask(data):
            data = np.asarray(data)
    if graphs.is_dask(data):
        chunks = data.chunksize
    ndim = len(data.shape)
    if not names:
        others = ndim - (place is not None)
        positions = grid if grid is not None and len(grid) == others else [f"dim_{i}" for i in range(others)]
        names = list(positions)
        if place is not None:
            names.insert(_number(name, place, ndim), reserved or "")
    elif place is not None and reserved is not None and reserved not in names:
        at = names.index(place) if place in names else _number(name, place, ndim)
        names[at] = reserved
    return make_cube(name, data, names, None, chunks, f"the array given as {name}")


def _number(name: str, place: int | str, ndim: int) -> int:
    if isinstance(place, str):
        raise InputError(f"{name}: there is no dimension {place!r}; give the axis's number.")
    if not -ndim <= place < ndim:
        raise InputError(f"{name}: axis {place} is out of range for {ndim} dimensions.")
    return place % ndim


def prepare(
    request: Request,
    cubes: Mapping[str, Cube],
    *,
    class_distances: Mapping[str, Any] | None = None,
    block: Sequence[int] | None = None,
    split_every: int | None = None,
    engine: str = "compiled",
) -> Plan:
    """Everything that can be checked without reading a pixel, checked; the pass, cut into blocks."""
    if engine not in ENGINES:
        raise InputError(f"engine must be one of {', '.join(ENGINES)}, found {engine!r}.")
    scene = align(cubes, len(request.classes), request.scale)
    request, metric = _distances(request, class_distances, "features" in cubes)
    sources = {name: cube for name, cube in scene.cubes.items() if name != "features"}
    try:
        grid = graphs.plan_grid(sources, scene.dims, tuple(block) if block is not None else None)
    except ValueError as error:
        raise InputError(f"{error}.") from None
    return Plan(request, scene, grid, metric, None, split_every, engine)


def _distances(
    request: Request, words: Mapping[str, Any] | None, has_features: bool
) -> tuple[Request, Metric | None]:
    """The Request with its class-distance table if it is given; else the metric to work it out by."""
    wanted = any(one.kind == "homophily" for one in request.measures)
    given = dict(words or {})
    if not wanted:
        if given:
            raise InputError("class_distances: no measure uses them; add `homophily` to measures.")
        return request, None
    table, metric = given.pop("table", None), given.pop("metric", None)
    if given:
        raise InputError(
            f"class_distances: unknown word {', '.join(map(repr, given))}; known: metric, table."
        )
    if (table is None) == (metric is None):
        raise InputError(
            "class_distances: the measure `homophily` needs either `metric` (with the input `features`) or `table`."
        )
    if table is not None:
        try:
            checked = check_distances(np.asarray(table, np.float64))
        except ValueError as error:
            raise InputError(f"class_distances: {error}") from None
        if len(checked) != len(request.classes):
            raise InputError(
                f"class_distances: the table is for {len(checked)} classes, but there are {len(request.classes)}."
            )
        return with_table(request, checked, None), None
    if metric not in METRICS:
        raise InputError(f"class_distances: unknown metric {metric!r}; known: {', '.join(METRICS)}.")
    if not has_features:
        raise InputError(f"class_distances: the metric {metric!r} needs the input `features`.")
    return request, metric


def with_maps(plan: AnyPlan, store: str, attributes: Mapping[str, Any] | None = None) -> AnyPlan:
    """The plan with its maps' Zarr group made, ready to be written block by block."""
    about: dict[str, tuple[str, Any, Mapping[str, Any]]] = {}
    for name in plan.request.maps:
        dtype, fill = MAPS.get(name, ("float32", float("nan")))
        missing = {} if dtype == "float32" else {"_FillValue": fill}
        about[name] = (dtype, fill, {"long_name": name.replace("_", " "), "units": "1", **missing})
    writer = MapWriter(store)
    writer.create(about, plan.scene.dims, plan.scene.shape, plan.grid.block, attributes or {})
    return replace(plan, writer=writer)


def save(evaluation: Summary, path: str | Path) -> None:
    """Write an Evaluation of any kind to a Zarr group; equal ones give equal bytes. An existing group is replaced."""
    write_counts(str(path), evaluation.frame(), evaluation.arrays())


def load(path: str | Path) -> Evaluation | RegressionEvaluation:
    """The Evaluation that `save` or a job wrote, of its own kind: its Zarr group, or the output folder with it.

    Raises InputError where there is none.
    """
    folder = Path(path)
    store = folder / "summary.zarr" if (folder / "summary.zarr").exists() else folder
    frame, arrays = read_counts(str(store))
    try:
        return READERS[frame["kind"]](frame, arrays)
    except (KeyError, TypeError) as error:
        raise InputError(f"{store} is damaged or of another version: {error}.") from error
