"""A scene, evaluated: arrays of any kind in, an Evaluation out."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from dask_uncert.errors import InputError, InputWarning
from dask_uncert.execution import chunking
from dask_uncert.execution.graph import is_in_threads
from dask_uncert.execution.plan import Plan
from dask_uncert.formulas.own_measures import Function, with_references
from dask_uncert.inputs.alignment import shared_geometry
from dask_uncert.inputs.class_order import in_class_order
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.overlap import over_the_reference
from dask_uncert.inputs.scene import make_scene, prediction
from dask_uncert.io.geometry import coordinates_of
from dask_uncert.io.maps import MapWriter
from dask_uncert.io.owned_folder import MAP_STORE, check_owned, store_attributes
from dask_uncert.io.paths import as_path
from dask_uncert.io.validation import validated
from dask_uncert.metrics.remarks import incomplete_shares, shifted_codes
from dask_uncert.spec.inputs import InputKeywords, open_arrays
from dask_uncert.spec.options import EvaluateOptions, PassOptions, SceneOptions
from dask_uncert.spec.request import Request
from dask_uncert.spec.resolve import for_decisions, resolve, with_classes, with_distance_table_read
from dask_uncert.spec.types import FROM_FILE
from dask_uncert.summaries.evaluation import Class, Evaluation

if TYPE_CHECKING:
    from dask.delayed import Delayed

OVERVIEW_PIXELS = 4_000_000
"""Scenes from this number of pixels have no overview."""
GRID_MAPPING = "spatial_ref"
"""The variable that holds the maps' reference system, as CF and rioxarray name it."""


class EvaluateKeywords(EvaluateOptions, total=False):
    """The other keywords of `evaluate`: one more input, and the options."""

    zones: Any
    prediction: Any


@overload
def evaluate(
    probabilities: Any = None,
    reference: Any = None,
    *,
    samples: Any = None,
    mask: Any = None,
    features: Any = None,
    uncertainty: Any = None,
    weight: Any = None,
    axis: int | str | None = -1,
    sample_axis: int | str = 0,
    band_axis: int | str = -1,
    maps_store: str | Path | None = None,
    compute: Literal[True] = True,
    **options: Unpack[EvaluateKeywords],
) -> Evaluation: ...
@overload
def evaluate(
    probabilities: Any = None,
    reference: Any = None,
    *,
    samples: Any = None,
    mask: Any = None,
    features: Any = None,
    uncertainty: Any = None,
    weight: Any = None,
    axis: int | str | None = -1,
    sample_axis: int | str = 0,
    band_axis: int | str = -1,
    maps_store: str | Path | None = None,
    compute: Literal[False],
    **options: Unpack[EvaluateKeywords],
) -> Delayed: ...
def evaluate(
    probabilities: Any = None,
    reference: Any = None,
    *,
    samples: Any = None,
    mask: Any = None,
    features: Any = None,
    uncertainty: Any = None,
    weight: Any = None,
    axis: int | str | None = -1,
    sample_axis: int | str = 0,
    band_axis: int | str = -1,
    maps_store: str | Path | None = None,
    compute: bool = True,
    **options: Unpack[EvaluateKeywords],
) -> Evaluation | Delayed:
    """Evaluate predictions with their uncertainty in one pass; the result is the same, bit by bit, for every chunking.

    Parameters
    ----------
    probabilities : array, path or Input
        Class probabilities: the grid's dimensions, and the classes on `axis`. Floats, or integers with a scale:
        ``du.Input(array, scale=1 / 255)``. With ``axis=None`` a binary prediction over the grid alone, the
        probability of the second class.
    prediction : array, path or Input
        Instead of probabilities, predicted class codes over the grid: decisions. What needs probabilities is then absent,
        or refused where it is asked for; `uncertainty` beside them tells right from wrong decisions.
    reference : array, path or Input
        Class codes over the grid. Or a fuzzy reference of shares in [0, 1]: one for each class on a dimension
        `class`, or with ``du.Input(array, fuzzy=True)`` that of the second of two classes, or one for each class on
        `axis`. The class is then the one with the largest share, ties to the lowest (of two: the second where its
        share exceeds .5); none where a share is NaN or all are 0. Soft confusion takes the shares themselves.
    samples : array, path, Input or list of them
        Several predictions (Monte-Carlo dropout, an ensemble), stacked on `sample_axis` or in a list; measures of
        samples need them. Without `probabilities` their mean, of the normalised samples in their order in float64,
        is the prediction. A pixel that lacks one has none.
    mask : array, path or Input
        True where pixels count.
    features : array, path or Input
        The bands on `band_axis`, for `class_distances`.
    uncertainty : array, path or Input
        A predicted uncertainty, 0 or above; NaN where there is none.
    weight : array, path, Input or "geometry"
        What each pixel weighs, 0 or above, for a second confusion matrix of sums of weights; "geometry" is its area
        or volume, from the geometry of an input.
    zones : array, path or Input
        The code of the zone of each pixel: whole numbers over the grid, named by ``du.Input(array, names={...})``. Each
        zone is also evaluated by itself; a pixel without one (no data, NaN) is left out.
    axis : int, str or None
        The classes' axis, counted without that of the samples: a number, or the name of a labelled dimension.
    sample_axis, band_axis : int or str
        The axes of the samples and of the bands.
    maps_store : str or pathlib.Path
        The Zarr group to write `maps` to, and the maps of a soft confusion with ``"maps": True``. Earlier maps there are
        replaced, anything else is refused.
    compute : bool
        False returns a dask Delayed of the Evaluation; class distances are measured at once.
    classes : mapping, sequence of str or "from_file"
        {code: name} in the order of the class axis, or names whose codes are 0, 1, ...; "from_file" takes the table
        that the reference's file or attributes have, without ignored codes. By default the codes 0, 1, ... themselves.
        An axis that is labelled with codes or names of classes is read by its labels.
    ignore : int or iterable of int
        Reference codes of pixels that do not count.
    measures, class_distances, soft_confusion, uncertainty_confusion, calibration, confidence, maps, overlap
        As in a job file; see `dask-uncert schema`.
    ordered, prediction_sets, conventions
        What reports add; as in a job file.
    block : sequence of int
        Sizes of a block along the grid; by default whole chunks of about 64 MiB.
    split_every : int
        Number of Summaries that a merge adds.
    engine : {"compiled", "reference"}
        The kernels.

    Returns
    -------
    Evaluation or dask.delayed.Delayed
        Everything that was counted; metrics are functions of it.

    Raises
    ------
    InputError
        If an input cannot be evaluated, or an option is wrong.

    Warns
    -----
    InputWarning
        If an input can be used, but is odd: a store lacks chunks, or codes seem to be one off.

    Notes
    -----
    Arrays may be numpy, dask, xarray or zarr; nothing is written to them. Where an array is masked it has no value: the
    pixel is left out and counted. Dimensions of labelled arrays are matched by name, others by position. What belongs to one input, such as its scale, no-data codes, dimensions or logits, is
    given by `Input`.

    Examples
    --------
    >>> import numpy as np, dask_uncert as du
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    >>> int(du.evaluate(p, np.array([0, 1, 1])).ledger.counted)
    3
    """
    keywords: dict[str, Any] = dict(options)
    inputs = {
        "probabilities": probabilities,
        "samples": samples,
        "prediction": keywords.pop("prediction", None),
        "reference": reference,
        "mask": mask,
        "uncertainty": uncertainty,
        "features": features,
        "weight": weight,
        "zones": keywords.pop("zones", None),
    }
    for name in InputKeywords.__annotations__:
        if name in keywords:
            raise InputError(f"`{name}` belongs to one input: give `du.Input(array, {name}=...)`.")
    keywords["measures"], own = with_references(keywords.get("measures", ()))
    if "measures" not in options:
        del keywords["measures"]
    pass_options = {name: keywords.pop(name) for name in PassOptions.model_fields if name in keywords}
    scene_options = with_distance_table_read(validated(SceneOptions, keywords))
    ignore, classes = scene_options.ignore, len(scene_options.table)
    cubes = open_arrays(inputs, axis, sample_axis, band_axis, ignore, classes)
    return evaluate_plan(with_warnings(prepare(scene_options, cubes, own, **pass_options)), maps_store, compute)


def with_warnings(plan: Plan) -> Plan:
    """Return the plan; warn the caller of the public function about odd inputs."""
    for remark in plan.scene.remarks:
        warnings.warn(remark, InputWarning, stacklevel=3)
    return plan


def evaluate_plan(plan: Plan, maps_store: str | Path | None, compute: bool) -> Any:
    """Return the evaluation of a plan, or a Delayed of it, that writes its maps to a Zarr group."""
    if bool(plan.request.layers) != (maps_store is not None):
        raise InputError("maps and maps_store go together: name the maps and the Zarr group to write them to.")
    if maps_store is not None:
        check_owned(as_path(maps_store))
        key = uuid.uuid5(uuid.NAMESPACE_OID, " ".join(plan.request.layers)).hex  # equal maps have equal bytes
        attributes = {**store_attributes(plan.request.layers, MAP_STORE), "id": key}
        try:
            plan = with_maps(plan, str(maps_store), attributes)
        except OSError as error:
            raise InputError(f"maps_store: {maps_store} cannot be written: {error}.") from None
    if compute and is_in_threads():
        plan.compile_ahead()
    result = plan.compute() if compute else plan.with_distances().delayed()
    if isinstance(result, Evaluation) and isinstance(plan.request, Request):
        for remark in (*incomplete_shares(result), *shifted_codes(result, plan.request.ignore)):
            warnings.warn(remark, InputWarning, stacklevel=3)
    return result


def prepare(
    options: SceneOptions, cubes: Mapping[str, Cube], own: Mapping[str, Function] | None = None, **pass_options: Any
) -> Plan:
    """Return the pass over a scene, checked and cut into blocks; no values are read.

    own: functions of own measures, see `resolve`. pass_options: keywords of `PassOptions`. Raises InputError for all that can be checked before values are read.
    """
    checked = validated(PassOptions, pass_options)
    if "reference" not in cubes:
        raise InputError("nothing to evaluate against: give `reference`.")
    if options.overlap:
        cubes = over_the_reference(dict(cubes))
    options = for_decisions(options, cubes)
    if options.classes == FROM_FILE:
        options = with_classes(options, cubes)
    table = options.table or [Class(code, str(code)) for code in range(prediction(cubes).sizes.get(CLASS, 2))]
    scene = make_scene(in_class_order(cubes, table), len(table))
    request = resolve(options, scene, own)
    sources = {name: cube for name, cube in scene.cubes.items() if cube.kind != "features"}
    grid = chunking.plan_grid(sources, scene.dims, checked.block)
    metric = None if options.class_distances is None else options.class_distances.metric
    return Plan(request, scene, grid, metric, None, checked.split_every, checked.engine)


def with_maps(plan: Plan, store: str, attributes: Mapping[str, Any] | None = None, again: bool = False) -> Plan:
    """Return the plan with a Zarr group for its maps, with their geometry, to be written block by block.

    again: an earlier run of the same plan has made the group, and this one continues it.
    """
    writer = MapWriter(store)
    if again:
        return replace(plan, writer=writer)
    maps: dict[str, tuple[str, Any, Mapping[str, Any]]] = {}
    layers = plan.request.layers
    geometry = shared_geometry(plan.scene.cubes)
    position = {} if geometry is None else geometry.attributes()
    if geometry is not None and geometry.crs is not None:
        position["grid_mapping"] = GRID_MAPPING
    for name, (dtype, fill, extra) in layers.items():
        missing = {} if dtype == "float32" or extra else {"_FillValue": fill}
        upper = {measure.name: measure.upper for measure in getattr(plan.request, "measures", ())}.get(name)
        reach = {} if upper is None else {"valid_min": 0.0, "valid_max": upper}
        about = {"long_name": name.replace("_", " "), "units": "1", **reach, **missing, **position}
        maps[name] = (dtype, fill, about)
    extras = {name: layer.extra for name, layer in layers.items()}
    writer.create(maps, plan.scene.dims, plan.scene.shape, plan.grid.block, attributes or {}, extras)
    return replace(plan, writer=writer)


def with_overview(plan: Plan) -> Plan:
    """Return the plan of a small scene with maps of the decision, of right and wrong, and of the first measure.

    They show counted pixels only, so the pass looks at no other pixel than without them. A plan that has maps, or whose
    grid has one dimension, stays as it is.
    """
    request, shape = plan.request, plan.scene.shape
    if not isinstance(request, Request) or request.layers or len(shape) < 2 or prod(shape) >= OVERVIEW_PIXELS:
        return plan
    names = ("predicted", "correct", *(measure.name for measure in request.measures[:1]))
    return replace(plan, request=replace(request, maps=names, maps_of_counted=True))


def write_coordinates(plan: Plan) -> None:
    """Write the coordinates of the inputs to the group of the maps, if there are maps."""
    if plan.writer is None:
        return
    coordinates: dict[str, Any] = {}
    cubes = plan.scene.cubes
    for name in (n for n in ("reference", "mean", "samples_0", "samples", "probabilities", "prediction") if n in cubes):
        known, attributes = cubes[name].coordinates or {}, cubes[name].coordinate_attributes
        coordinates.update({dim: (known[dim], attributes[dim]) for dim in plan.scene.dims if dim in attributes})
    geometry = shared_geometry(cubes)
    if geometry is not None:
        sizes = dict(zip(plan.scene.dims, plan.scene.shape, strict=True))
        coordinates = {**coordinates_of(geometry, sizes), **coordinates}
        if geometry.crs is not None:
            plan.writer.add_grid_mapping(GRID_MAPPING, {"crs_wkt": geometry.crs, "spatial_ref": geometry.crs})
    plan.writer.add_coordinates(coordinates)
