"""A scene, evaluated: arrays of any kind in, an Evaluation out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dask_uncert.errors import InputError
from dask_uncert.execution import chunking
from dask_uncert.execution.class_distances import with_table
from dask_uncert.execution.plan import Plan
from dask_uncert.formulas.class_distances import METRICS, Metric
from dask_uncert.formulas.homophily import check_distances
from dask_uncert.formulas.measures import Measure
from dask_uncert.inputs.alignment import shared_geometry
from dask_uncert.inputs.arrays import cubes_of
from dask_uncert.inputs.cube import CLASS, Cube, declare
from dask_uncert.inputs.scene import Scene, make_scene, prediction
from dask_uncert.io.geometry import coordinates_of
from dask_uncert.io.maps import MapWriter
from dask_uncert.spec.joint_bins import with_joints
from dask_uncert.spec.parse import request_of
from dask_uncert.spec.request import Request
from dask_uncert.spec.tiles import with_tiles

GRID_MAPPING = "spatial_ref"
"""The variable beside maps that says their reference system, as CF wants it and rioxarray names it."""
ENGINES = ("compiled", "reference")


def evaluate(
    probabilities: Any = None,
    reference: Any = None,
    *,
    samples: Any = None,
    mask: Any = None,
    features: Any = None,
    uncertainty: Any = None,
    weight: Any = None,
    classes: Mapping[int, str] | Sequence[str] | None = None,
    ignore: Iterable[int] = (),
    measures: Sequence[str | Mapping[str, Any] | Measure] = ("gini", "entropy", "fisher_rao"),
    class_distances: Mapping[str, Any] | None = None,
    soft_confusion: Sequence[Mapping[str, Any]] = (),
    uncertainty_confusion: Mapping[str, Any] | None = None,
    calibration: Mapping[str, Any] | None = None,
    confidence: Mapping[str, Any] | None = None,
    maps: Sequence[str] = (),
    maps_store: str | Path | None = None,
    axis: int | str | None = -1,
    sample_axis: int | str = 0,
    band_axis: int | str = -1,
    scale: float | None = None,
    tolerance: float | None = None,
    fuzzy: bool = False,
    raters: int | None = None,
    logits: bool = False,
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
    samples: several such predictions (Monte-Carlo dropout, an ensemble), stacked on `sample_axis` (`axis` counts
        without it) or in a list of arrays; measures of samples need them. Without probabilities their mean, of
        the normalised samples in their order in float64, is the prediction. A pixel that lacks one has none.
    reference: (grid) class codes. Or fuzzy: shares in [0, 1], (grid and a dimension `class`) one for each class, or
        with ``fuzzy=True`` (grid) that of the second of two classes, or (grid and classes on `axis`). The class is
        then the one with the largest share, ties to the lowest (of two: the second where its share exceeds .5);
        none where a share is NaN or all are 0; soft confusion takes the shares themselves. raters: shares are
        multiples of one over it, and sweeps exact in them.
    mask: (grid) true counts. uncertainty: (grid) a predicted uncertainty, 0 or above, NaN where there is none.
        weight: (grid) 0 or above, such as each pixel's area, for a second confusion matrix of sums of weights.
        features: (grid and bands on `band_axis`), for `class_distances`.
    classes: {code: name} in the order of the class axis, or names whose codes are 0, 1, ...; by default the
        codes 0, 1, ... themselves. ignore: codes of pixels that do not count.
    measures, soft_confusion, uncertainty_confusion, calibration, class_distances: as in a job file.
    logits: probabilities and samples hold logits, of each class or, binary, of the second of two.
    scale, tolerance: of probabilities and samples alike; by default the tolerance of each storage dtype.
    confidence: ``{"unit": "tile", "size": 32, ...}`` as in a job file, for intervals of every number.
    maps: measures, or `correct`, `predicted`, `confused_classes`; written to the Zarr group `maps_store`, as are
        the maps of a soft confusion that says ``"maps": True``.
    block: grid sizes of a task; by default whole chunks of about 64 MiB. split_every: Summaries a merge adds.
    compute: False gives a dask Delayed of the Evaluation (class distances are worked out at once).

    Returns an `Evaluation`. Raises InputError for input that cannot be evaluated.

    >>> import numpy as np, dask_uncert as du
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> int(du.evaluate(p, np.array([0, 1, 1])).ledger.counted)
    3
    """
    given = {
        "probabilities": probabilities,
        "samples": samples,
        "reference": reference,
        "mask": mask,
        "uncertainty": uncertainty,
        "weight": weight,
        "features": features,
    }
    cubes = cubes_of(given, axis=axis, sample_axis=sample_axis, band_axis=band_axis, fuzzy=fuzzy)
    for name, cube in cubes.items():
        if cube.is_prediction:
            cube = replace(cube, role="probabilities", logits=logits)
            cubes[name] = declare(cube, scale=scale, tolerance=tolerance)
    if classes is None:
        classes = [str(i) for i in range(prediction(cubes).sizes.get(CLASS, 2))]
    request = request_of(
        classes=classes,
        ignore=ignore,
        measures=measures,
        soft_confusion=soft_confusion,
        uncertainty_confusion=uncertainty_confusion,
        calibration=calibration,
        maps=maps,
        confidence=confidence,
        has_uncertainty=uncertainty is not None,
        has_samples=samples is not None,
        fuzzy=fuzzy,
        raters=raters,
    )
    if bool(request.layers) != (maps_store is not None):
        raise InputError(
            "maps and maps_store go together: name the maps and the Zarr group to write them to."
        )
    plan = prepare(
        request, cubes, class_distances=class_distances, block=block, split_every=split_every, engine=engine
    )
    if maps_store is not None:
        plan = with_maps(plan, str(maps_store))
    return plan.compute() if compute else plan.with_distances().delayed()


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
    if "reference" not in cubes:
        raise InputError("nothing to evaluate against: give `reference`.")
    if CLASS in cubes["reference"].dims:
        request = replace(request, reference="shares")
    _check_fuzzy(request)
    if "weight" in cubes:
        request = replace(request, weight_unit=cubes["weight"].unit)
    scene = make_scene(cubes, len(request.classes))
    request, metric = class_distances_of(request, class_distances, "features" in cubes)
    request = with_tiles(_joints(request, scene), scene.shape)
    sources = {name: cube for name, cube in scene.cubes.items() if name != "features"}
    grid = chunking.plan_grid(sources, scene.dims, block)
    return Plan(request, scene, grid, metric, None, split_every, engine)


def _check_fuzzy(request: Request) -> None:
    if request.reference != "codes" and request.ignore:
        raise InputError("ignore: a fuzzy reference holds shares and no codes to ignore; use `mask`, or NaN.")
    if request.reference == "codes" and request.raters is not None:
        raise InputError(
            "reference: raters belongs to a fuzzy reference of shares, and this one holds codes."
        )
    if request.reference == "share" and len(request.classes) != 2:
        raise InputError(
            f"reference: a fuzzy one without a class dimension holds the share of the second of two classes, but "
            f"the class table has {len(request.classes)}. Give it a dimension `class`."
        )


def _joints(request: Request, scene: Scene) -> Request:
    """The Request whose joint histograms fit what is stored."""
    cubes, dtype, scale = scene.cubes, np.dtype(np.float64), None
    if "probabilities" in cubes:
        dtype, scale = cubes["probabilities"].dtype, cubes["probabilities"].precision.scale
    shares = None if request.reference == "codes" else cubes["reference"].dtype.newbyteorder("=")
    return with_joints(request, dtype, scale, CLASS in prediction(cubes).dims, shares)


def class_distances_of(
    request: Request, words: Mapping[str, Any] | None, has_features: bool
) -> tuple[Request, Metric | None]:
    """The Request with its class-distance table if it is given; else the metric to work it out by."""
    wanted = any(one.kind == "homophily" for one in request.measures)
    given = dict(words or {})
    if request.class_metric is not None and not given:
        return request, None  # a cohort's cases share one table
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


def with_maps(
    plan: Plan, store: str, attributes: Mapping[str, Any] | None = None, again: bool = False
) -> Plan:
    """The plan with its maps' Zarr group made, ready to be written block by block; they say where they lie.

    again: the group is there, of an earlier run of the same plan, and is written on.
    """
    about: dict[str, tuple[str, Any, Mapping[str, Any]]] = {}
    layers = plan.request.layers
    geometry = shared_geometry(plan.scene.cubes)
    lies = {} if geometry is None else geometry.attributes()
    if geometry is not None and geometry.crs is not None:
        lies["grid_mapping"] = GRID_MAPPING
    for name, (dtype, fill, extra) in layers.items():
        missing = {} if dtype == "float32" or extra else {"_FillValue": fill}
        about[name] = (dtype, fill, {"long_name": name.replace("_", " "), "units": "1", **missing, **lies})
    writer = MapWriter(store)
    if again:
        return replace(plan, writer=writer)
    extras = {name: layer.extra for name, layer in layers.items()}
    writer.create(about, plan.scene.dims, plan.scene.shape, plan.grid.block, attributes or {}, extras)
    return replace(plan, writer=writer)


def write_coordinates(plan: Plan) -> None:
    """Write the coordinates that stand beside the inputs beside the maps, if there are maps."""
    if plan.writer is None:
        return
    found: dict[str, Any] = {}
    cubes = plan.scene.cubes
    for name in (n for n in ("reference", "mean", "samples_0", "samples", "probabilities") if n in cubes):
        known, attributes = cubes[name].coordinates or {}, cubes[name].coordinate_attributes
        found.update({dim: (known[dim], attributes[dim]) for dim in plan.scene.dims if dim in attributes})
    geometry = shared_geometry(cubes)
    if geometry is not None:
        sizes = dict(zip(plan.scene.dims, plan.scene.shape, strict=True))
        found = {**coordinates_of(geometry, sizes), **found}
        if geometry.crs is not None:
            plan.writer.add_grid_mapping(GRID_MAPPING, {"crs_wkt": geometry.crs, "spatial_ref": geometry.crs})
    plan.writer.add_coordinates(found)
