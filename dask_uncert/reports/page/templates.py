"""The environment of the templates, and the context of every page."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache, partial
from importlib import resources
from typing import Any

import jinja2

from dask_uncert.reports.names import REASONS, in_unit, pretty
from dask_uncert.reports.page.formatting import bar, breakable, count, number, percent, shade, signed
from dask_uncert.reports.tables.comparison import p_text

FILTERS = (bar, breakable, count, number, p_text, percent, pretty, shade, signed)


@lru_cache(maxsize=2)
def environment(unit: str) -> jinja2.Environment:
    """Return the environment of all templates; everything is escaped, and an unknown name is an error.

    unit: what is counted, "pixel" or "voxel": the templates say pixel, and nothing but their own text is changed.
    """
    templates = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(partial(file_text, unit=unit)),
    )
    templates.filters |= {filter_.__name__: filter_ for filter_ in FILTERS}
    return templates


def load_templates(unit: str = "pixel") -> None:
    """Compile all templates ahead, which takes as long as filling them."""
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".jinja"):
            environment(unit).get_template(file.name)


def common_context(
    results: Mapping[str, Any], about: Mapping[str, str], title: str, unit: str = "pixel"
) -> dict[str, Any]:
    """Return the context of every page: heading, results, exclusion reasons, and provenance."""
    return {
        "title": about.get("title", title),
        "about": {label: text for label, text in about.items() if label != "title"},
        "results": results,
        "total": results["counted"] + sum(results["excluded"].values()),
        "reasons": {reason: in_unit(text, unit) for reason, text in REASONS.items()},
    }


def file_text(name: str, unit: str = "pixel") -> str:
    """Return the text of a file of this folder, with the unit in the place of the word pixel."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return in_unit(text, unit)


def image_source(kind: str, content: bytes) -> str:
    """Return an image as a data URL; kind: `png` or `svg+xml`."""
    return f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")
