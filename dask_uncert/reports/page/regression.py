"""The page of a regression: one file that needs no network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dask_uncert.reports.figures.maps import Maps, map_figure_names
from dask_uncert.reports.names import pretty
from dask_uncert.reports.page.templates import common_context, environment, image_source

TITLE = "Calibration of a regression’s uncertainty"


def regression_page(
    results: Mapping[str, Any], maps: Maps, about: Mapping[str, str], figures: Mapping[str, bytes]
) -> str:
    """Return the page as text; figures: the content of every figure's file."""
    names = map_figure_names(maps)
    return (
        environment()
        .get_template("regression.html.jinja")
        .render(
            common_context(results, about, TITLE),
            regression=results["regression"],
            curve=image_source("svg+xml", figures["calibration_curve.svg"]),
            maps=[
                (pretty(name), image_source("png", figures[f"{file}.png"])) for name, file in names.items()
            ],
        )
    )
