"""What every key of `results.json` means, as a JSON Schema (2020-12)."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of `results.json`: descriptions, units and ranges; undefined numbers are null.

    >>> results_schema()["properties"]["counted"]["description"]
    'Pixels that take part in every number below.'
    """
    return _schema("results.schema.json")


def regression_schema() -> dict[str, Any]:
    """Return the JSON Schema of a regression's `results.json`."""
    return _schema("regression.schema.json")


def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(
        resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    )
    return schema
