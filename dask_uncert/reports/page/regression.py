"""The page of a regression: one file that works without a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dask_uncert.io.map_types import Maps
from dask_uncert.reports.figures.maps import map_figure_names
from dask_uncert.reports.names import pretty
from dask_uncert.reports.page.templates import common_context, environment, image_source

TITLE = "Calibration of a regression’s uncertainty"


def regression_page(
    results: Mapping[str, Any], maps: Maps, about: Mapping[str, str], figures: Mapping[str, bytes], unit: str = "pixel"
) -> str:
    """Return the page as text; figures: contents of the figures' files by name; unit: what is counted."""
    names = map_figure_names(maps)
    sources = [(pretty(name), image_source("png", figures[f"{file}.png"])) for name, file in names.items()]
    curve = image_source("svg+xml", figures["calibration_curve.svg"])
    template = environment(unit).get_template("regression.html.jinja")
    context = common_context(results, about, TITLE, unit)
    return template.render(context, regression=results["regression"], curve=curve, maps=sources)
