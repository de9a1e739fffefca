"""One key of a job file explained in three lines, from the JSON Schema."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from dask_uncert.errors import InputError, listed, suggestion

MOST_PLACES = 4
WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
}
EXAMPLES = {
    "version": "version: 1",
    "inputs": "inputs: {probabilities: {store: p.tif, dims: [class, y, x]}, reference: labels.tif}",
    "store": "store: scene.zarr",
    "array": "array: probabilities",
    "dims": "dims: [class, y, x]",
    "nodata": "nodata: [255]",
    "scale": "scale: 0.00392156862745098",
    "classes": "classes: {1: water, 2: forest}",
    "ignore": "ignore: 0",
    "measures": "measures: [gini, entropy, {geometric: {distance: fisher-rao, n: 1}}]",
    "maps": "maps: [entropy, predicted, correct]",
    "class_distances": "class_distances: {metric: energy}",
    "soft_confusion": "soft_confusion: {class: water, thresholds: 0.5, sigmas: [0, 0.1], dampings: 1, uncertainty: entropy}",
    "class": "class: water",
    "prediction_sets": "prediction_sets: {coverages: [0.9, 0.95], missed: {water: 0.1}, maps: [0.2]}",
    "missed": "missed: {water: 0.1}",
    "joint_distributions": "joint_distributions: [entropy]",
    "conventions": "conventions: [torchmetrics, scikit-learn]",
    "uncertainty": "uncertainty: entropy",
    "manifest": "manifest: cases.csv",
    "visits": "visits: visit",
    "groups": "groups: [site, scanner]",
    "output": "output: results",
    "cluster": "cluster: cluster/slurm.yaml",
    "confidence": "confidence: {replicates: 1000, level: 0.95}",
    "size": "size: 32",
    "weight": "weight: geometry",
    "zones": "zones: {store: folds.tif, names: {1: train, 2: test}}",
    "geometry": "geometry: {like: case.nii.gz}",
    "like": "like: case.nii.gz",
    "background": "background: background",
    "prediction": "prediction: {store: labels.nii.gz}",
    "names": "names: {1: train, 2: test}",
    "table": "table: distances.csv",
    "metric": "metric: energy",
    "members": "members: [model_1, model_2]",
    "raters": "raters: [reader_1, reader_2]",
}
"""What a key may look like, where its default does not show it."""


class Place(NamedTuple):
    """Where a key stands: its kind of job, its dotted path, its schema and that around it, and whether it must be given."""

    kind: str
    path: str
    schema: Mapping[str, Any]
    around: Mapping[str, Any]
    required: bool


def explain(key: str, schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """Return three lines on a key: what it takes and where, what it means, and an example.

    key: its name, or its dotted path such as `confidence.size`; schemas: JSON Schema by kind of job. Raises InputError.
    """
    places = [place for kind, schema in schemas.items() for place in _places(kind, schema, schema, "")]
    fitting = [place for place in places if place.path == key] or [
        place for place in places if place.path.endswith(f".{key}")
    ]
    if not fitting:
        known = dict.fromkeys(name for place in places for name in (place.path, place.path.rpartition(".")[2]))
        raise InputError(f"schema: no job has the key {key!r}. {suggestion(key, known, 'Keys')}")
    first = fitting[0]
    paths = listed(dict.fromkeys(place.path for place in fitting), MOST_PLACES)
    kinds = ", ".join(dict.fromkeys(place.kind for place in fitting))
    root = schemas[first.kind]
    keys = [*_properties(first.schema, root)]
    default = first.schema.get("default")
    end = (
        "required"
        if first.required
        else f"default {_flow(default)}"
        if default not in (None, [], {}, "")
        else "optional"
    )
    name = key.rpartition(".")[2]
    about = _description(first.schema, root) or _description(first.around, root) or name
    example = EXAMPLES.get(name, _flow({name: default})[1:-1] if default not in (None, [], {}, "") else "")
    parts = [f"Keys: {', '.join(keys)}." if keys else "", f"Example: {example}" if example else ""]
    lines = [
        f"{paths} (kind: {kinds}): {_type(first.schema, root)}; {end}",
        textwrap.shorten(about, 400, placeholder=" ...").removesuffix(".") + ".",
        " ".join(filter(None, parts)) or f"Example: {name}: {_flow(_sample(first.schema, root))}",
    ]
    return "\n".join(lines) + "\n"


def _places(kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[Place]:
    required = _resolved(schema, root).get("required", ())
    for name, inner in _properties(schema, root).items():
        here = f"{path}.{name}" if path else name
        yield Place(kind, here, inner, schema, name in required)
        yield from _places(kind, inner, root, here)


def _properties(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a mapping, or of the mappings in a list or among alternatives."""
    schema = _resolved(schema, root)
    found: dict[str, Any] = dict(schema.get("properties", {}))
    for inner in (
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
        *([schema["items"]] if "items" in schema else []),
    ):
        found = {**_properties(inner, root), **found}
    return found


def _description(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return the description of a schema, else that of a mapping in it; "" without one."""
    if "description" in schema:
        return str(schema["description"])
    schema = _resolved(schema, root)
    inner = (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else []))
    return schema.get("description") or next(filter(None, (_description(each, root) for each in inner)), "")


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    if "$ref" in schema:
        return dict(root["$defs"][schema["$ref"].rpartition("/")[2]])
    return schema


def _type(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """Return what a key takes, in words."""
    schema = _resolved(schema, root)
    if "const" in schema or "enum" in schema:
        return " or ".join(map(str, schema.get("enum", [schema.get("const")])))
    options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if options:
        kinds = (_type(option, root) for option in options if option.get("type") != "null")
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"a list, each {_type(schema['items'], root)}" if "items" in schema else "a list"
    if schema.get("type") == "object":
        return "a mapping"
    return WORDS.get(schema.get("type", ""), "any value")


def _sample(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    schema = _resolved(schema, root)
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    if options:
        return _sample(options[0], root)
    known = {
        "integer": schema.get("minimum", 1),
        "number": 0.5,
        "string": "name",
        "boolean": True,
        "array": [],
        "object": {},
    }
    return schema.get("const", next(iter(schema.get("enum", ())), known.get(schema.get("type", ""))))


def _flow(value: Any) -> str:
    text = str(yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False))
    return text.removesuffix("...\n").strip()
