"""From options and the scene they are asked of to the complete Request; most wrong requests end here."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dask_uncert.errors import InputError, one_line
from dask_uncert.formulas.array_dispatch import tolerance
from dask_uncert.formulas.homophily import check_distances
from dask_uncert.formulas.measures import OWN, SAMPLE_KINDS, Measure, parse_measure
from dask_uncert.formulas.own_measures import Function, Functions, check, imported
from dask_uncert.inputs.cube import CLASS, PREDICTION, Cube
from dask_uncert.inputs.scene import Scene, prediction
from dask_uncert.io.paths import named_path
from dask_uncert.io.validation import validated
from dask_uncert.spec.joint_bins import joint_settings
from dask_uncert.spec.options import ClassDistances, ClassificationOptions, SceneOptions, TileConfidence
from dask_uncert.spec.request import ReferenceKind, Request
from dask_uncert.spec.types import FROM_FILE
from dask_uncert.summaries.tiles import MOST, TILE, TileSettings
from dask_uncert.summaries.zones import Zone

AnyOptions = TypeVar("AnyOptions", bound=ClassificationOptions)


def resolve(options: SceneOptions, scene: Scene, own: Mapping[str, Function] | None = None) -> Request:
    """Return the complete request that options make of a scene.

    own: functions of own measures that are not to be imported, by `module:function`. Only the distances of classes that a metric measures in the features are not known yet. Raises InputError where
    options contradict the inputs.
    """
    cubes, options = scene.cubes, with_classes(options, scene.cubes)
    check_inputs(options, {cube.kind for cube in cubes.values()})
    for measure in options.records:
        if measure.kind == OWN:
            _check_own(measure, len(options.table), own or {})
    reference = cubes["reference"]
    kind: ReferenceKind = "shares" if CLASS in reference.dims else "codes"
    if kind == "codes" and reference.role == "shares":
        kind = "share"
    _check_reference(kind, reference, options)
    soft = [(settings, entry) for entry in options.soft_confusion for settings in entry.settings(options.table)]
    request = Request(
        classes=options.table,
        ignore=tuple(options.ignore),
        measures=options.records,
        maxima=(1.0,) * len(options.measures),
        thresholds=options.thresholds(),
        calibration_bins=options.calibration.bins,
        soft=tuple(settings for settings, _ in soft),
        maps=tuple(options.maps),
        class_metric=None if options.class_distances is None else options.class_distances.metric or "table",
        reference=kind,
        soft_maps=options.soft_maps(),
        set_maps=options.set_maps(options.table),
        raters=reference.raters,
        tiles=None if options.confidence is None else tile_settings(options.confidence, scene.shape),
        leave_out_off=any(cube.leave_out for cube in cubes.values()),
        weight_unit=cubes["weight"].unit if "weight" in cubes else None,
        share_tolerance=_share_tolerance(reference, len(options.table)),
        complete=reference.complete,
        decisions_only=PREDICTION in cubes,
        functions=Functions(own) if own else None,
        zones=_zones_of(cubes),
        report_options=options.report_options(options.table),
        joint_distributions=tuple(options.joint_distributions),
    )
    if options.class_distances is not None and options.class_distances.table is not None:
        request = _with_class_distances(request, options.class_distances)
    dtype, scale = np.dtype(np.float64), None
    if "probabilities" in cubes:
        dtype, scale = cubes["probabilities"].dtype, cubes["probabilities"].precision.scale
    share_dtype = None if kind == "codes" else reference.dtype.newbyteorder("=")
    finer = [(settings, entry.finer) for settings, entry in soft if entry.finer is not None]
    as_pair = CLASS in prediction(cubes).dims
    return replace(request, joint=joint_settings(request, finer, dtype, scale, as_pair, share_dtype))


def _zones_of(cubes: Mapping[str, Cube]) -> tuple[Zone, ...] | None:
    """Return the zones that are named, which may be none; None without zones."""
    if "zones" not in cubes:
        return None
    return tuple(Zone(code, name) for code, name in sorted((cubes["zones"].names or {}).items()))


def _check_own(measure: Measure, classes: int, own: Mapping[str, Function]) -> None:
    """Check a user's own measure: its function before anything is computed, one that is imported once a process."""
    reference, upper = measure.function or "", measure.upper or 1.0
    if reference in own:
        check(reference, own[reference], classes, upper)
    else:
        _check_imported(reference, classes, upper)


@lru_cache(maxsize=64)
def _check_imported(reference: str, classes: int, upper: float) -> None:
    check(reference, imported(reference), classes, upper)


def for_decisions(options: SceneOptions, cubes: Mapping[str, Cube]) -> SceneOptions:
    """Return the options of a prediction that is class codes, with only what decisions give; others are unchanged.

    Raises InputError for what was asked for and needs probabilities.
    """
    if not any(cube.kind == PREDICTION for cube in cubes.values()):
        return options
    why = "`prediction` holds class codes, and this needs `probabilities` or `samples`."
    stated = options.model_fields_set
    default = ["uncertainty"] if "uncertainty" in cubes else []
    measures = options.measures if "measures" in stated else default
    for measure in measures:
        if measure != "uncertainty":
            raise InputError(f"measures: {parse_measure(measure).name}: {why} `uncertainty` is an input of its own.")
    for name in ("prediction_sets", "soft_confusion", "calibration", "class_distances", "joint_distributions"):
        if name in stated and getattr(options, name):
            raise InputError(f"{name}: {why}")
    if "confused_classes" in options.maps:
        raise InputError(f"maps: confused_classes: {why}")
    if options.classes is None:
        raise InputError(
            "classes: `prediction` holds class codes, which do not say how many classes there are; give them."
        )
    return options.model_copy(update={"measures": measures})


def with_classes(options: SceneOptions, cubes: Mapping[str, Cube]) -> SceneOptions:
    """Return the options with a name for each class: by default its code, 0, 1, ... along the class axis."""
    if options.classes is None:
        names = [str(code) for code in range(prediction(cubes).sizes.get(CLASS, 2))]
        return _with(options, names)
    if options.classes != FROM_FILE:
        return options
    return _with(options, table_in(cubes, options.ignore))


def _with(options: SceneOptions, classes: Any) -> SceneOptions:
    """Return the options with other classes, and nothing else stated that was not."""
    stated = {name: getattr(options, name) for name in options.model_fields_set}
    return validated(type(options), {**stated, "classes": classes})


def table_in(cubes: Mapping[str, Cube], ignore: Sequence[int]) -> dict[int, str]:
    """Return the class table that the reference has, without ignored codes; InputError without one."""
    for cube in cubes.values():
        if cube.kind == "reference" and cube.class_table:
            return {code: name for code, name in cube.class_table.items() if code not in ignore}
    where = next((cube.where for cube in cubes.values() if cube.kind == "reference"), "the reference")
    raise InputError(
        f"classes: {where} has no class table: neither an attribute `classes` ({{code: name}} or a list) nor CF's "
        f"flag_values and flag_meanings. Write the table into the job."
    )


def check_inputs(options: ClassificationOptions, inputs: Collection[str]) -> None:
    """Check that the inputs that the options need are there, by kind; raises InputError."""
    soft = any(entry.uncertainty == "uncertainty" for entry in options.soft_confusion)
    for measure in options.records:
        if measure.kind in SAMPLE_KINDS and "samples" not in inputs:
            raise InputError(f"measures: `{measure.name}` needs the input `samples`; one prediction has none.")
        soft |= measure.kind == "uncertainty"
    if soft and "uncertainty" not in inputs:
        raise InputError("measures: `uncertainty` needs an input of that name.")
    distances = options.class_distances
    if distances is not None and distances.metric is not None and "features" not in inputs:
        raise InputError(f"class_distances: the metric {distances.metric!r} needs the input `features`.")


def _share_tolerance(reference: Cube, classes: int) -> float:
    """Return how far shares and their sums may be off: as declared, else by what the storage rounds."""
    if reference.precision.tolerance is not None:
        return reference.precision.tolerance
    step = abs(reference.decoding.scale) if reference.data.dtype.kind in "iu" else 0.0
    return max(tolerance(reference.dtype.newbyteorder("=")), 0.5 * step * classes * (1 + 1e-6))


def _check_reference(kind: ReferenceKind, reference: Cube, options: SceneOptions) -> None:
    if kind != "codes" and options.ignore:
        raise InputError("ignore: a fuzzy reference holds shares and no codes to ignore; use `mask`, or NaN.")
    if kind == "codes" and reference.raters is not None:
        raise InputError("reference: raters belongs to a fuzzy reference of shares, and this one holds codes.")
    for name, given in (("tolerance", reference.precision.tolerance is not None), ("complete", reference.complete)):
        if kind == "codes" and given:
            raise InputError(f"reference: {name} belongs to a fuzzy reference of shares, and this one holds codes.")
    if kind == "share" and len(options.table) != 2:
        raise InputError(
            f"reference: a fuzzy one without a class dimension holds the share of the second of two classes, but "
            f"the class table has {len(options.table)}. Give it a dimension `class`."
        )


def with_distance_table_read(options: AnyOptions, folder: Path | None = None) -> AnyOptions:
    """Return the options with the table of class distances read from its file, relative to a folder."""
    table = None if options.class_distances is None else options.class_distances.table
    if not isinstance(table, str):
        return options
    path = named_path(table, folder or "")
    try:
        rows = np.loadtxt(path, delimiter=",", ndmin=2).tolist()
    except OSError:
        raise InputError(f"class_distances: there is no table at {path}.") from None
    except ValueError as error:
        raise InputError(f"class_distances: {path} is not a table of numbers: {one_line(error)}.") from None
    return options.model_copy(update={"class_distances": ClassDistances(table=rows)})


def _with_class_distances(request: Request, distances: ClassDistances) -> Request:
    try:
        table = check_distances(np.asarray(distances.table, np.float64))
    except ValueError as error:
        raise InputError(f"class_distances: {error}") from None
    if len(table) != len(request.classes):
        raise InputError(
            f"class_distances: the table is for {len(table)} classes, but there are {len(request.classes)}."
        )
    return request.with_distances(table)


def tile_settings(confidence: TileConfidence, shape: Sequence[int]) -> TileSettings:
    """Return tiles whose size suits a grid; InputError where the size asked for makes too many."""

    def tiles(size: int) -> int:
        return math.prod(-(-n // size) for n in shape)

    size = TILE
    while tiles(size) > MOST:
        size *= 2
    if confidence.size is not None and tiles(confidence.size) > MOST:
        raise InputError(
            f"confidence: tiles of {confidence.size} pixels a side are {tiles(confidence.size)} on a grid of "
            f"{' x '.join(map(str, shape))}, at most {MOST} are kept apart. Give `size: {size}` or more, or leave it out."
        )
    return TileSettings(confidence.size or size, confidence.confidence)
