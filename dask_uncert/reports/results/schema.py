"""What every key of `results.json` means, as a JSON Schema (2020-12)."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def results_schema() -> dict[str, Any]:
    """The JSON Schema of `results.json`: descriptions, units, ranges; what is undefined is null.

    >>> results_schema()["properties"]["counted"]["description"]
    'Pixels that take part in every number below.'
    """
    text = resources.files(__package__).joinpath("results.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
