"""The JSON Schemas (2020-12) of `results.json`, with the meaning of every key."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of `results.json`, with descriptions, units and ranges.

    >>> results_schema()["properties"]["counted"]["description"]
    'Pixels that every number below includes.'
    """
    return _schema("results.schema.json")


def regression_schema() -> dict[str, Any]:
    """Return the JSON Schema of a regression's `results.json`."""
    return _schema("regression.schema.json")


def _schema(name: str) -> dict[str, Any]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
