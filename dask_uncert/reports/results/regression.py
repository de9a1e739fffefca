"""A finished evaluation of a regression for people: results, tables, the curve, the page.

Everything is read off the counts; the same evaluation gives the same bytes. Undefined numbers are null in
`results.json` and empty in tables.
"""

from __future__ import annotations

import base64
import csv
import io
import json
import math
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from dask_uncert.reports.figures.layout import png, settled, svg
from dask_uncert.reports.figures.maps import Maps, map_names
from dask_uncert.reports.figures.style import BLUE, DPI, GREY, SETTINGS, SKY, VERMILION
from dask_uncert.reports.names import REASONS
from dask_uncert.reports.page.formatting import count, number, percent
from dask_uncert.reports.results.scene import to_json
from dask_uncert.summaries.regression import (
    RegressionEvaluation,
    regression_area,
    regression_coverage,
    regression_curve,
    regression_distance,
    regression_side,
)

FORMAT = 1
BARS = 20
PRETTY = {"nssr": "Normalised squared residual (NSSR)", "predicted_probability": "Predicted probability"}
TITLE = "Is the uncertainty of a regression calibrated?"


def regression_results(evaluation: RegressionEvaluation) -> dict[str, Any]:
    """Every number of the evaluation, JSON-ready.

    >>> regression_results(RegressionEvaluation.zero(2))["regression"]["area"] is None
    True
    """
    curve = regression_curve(evaluation)
    coverage = regression_coverage(evaluation)
    return {
        "format": FORMAT,
        "counted": int(evaluation.ledger.counted),
        "excluded": evaluation.ledger.reasons(),
        "regression": {
            "outputs": evaluation.outputs,
            "not_finite": int(evaluation.not_finite),
            "area": _null(regression_area(evaluation)),
            "side": regression_side(evaluation),
            "distance": _null(regression_distance(evaluation)),
            "coverage": [{"level": level, "observed": _null(share)} for level, share in coverage.items()],
            "curve": {name: [_null(v) for v in part.tolist()] for name, part in curve._asdict().items()},
        },
    }


def regression_schema() -> dict[str, Any]:
    """The JSON Schema of a regression's `results.json`: descriptions, ranges; what is undefined is null.

    >>> regression_schema()["properties"]["regression"]["type"]
    'object'
    """
    text = resources.files(__package__).joinpath("regression.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def write_regression(
    evaluation: RegressionEvaluation,
    folder: Path,
    maps: Maps | None = None,
    about: Mapping[str, str] | None = None,
) -> list[str]:
    """Write `results.json`, `tables/`, `figures/` and `report.html` into `folder`; returns the paths written.

    maps, about: as for `write_all`; maps of a grid of one dimension are not drawn.
    """
    maps = {name: one for name, one in (maps or {}).items() if one[0].ndim == 2}
    found = regression_results(evaluation)
    drawn = _drawings(evaluation, maps)
    files = {
        "results.json": to_json(found).encode(),
        **{f"tables/{name}": _csv(rows) for name, rows in _tables(evaluation).items()},
        **{f"figures/{name}": content for name, content in drawn.items()},
        "report.html": _page(found, maps, about or {}, drawn).encode(),
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return list(files)


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _tables(evaluation: RegressionEvaluation) -> dict[str, list[list[Any]]]:
    """Rows of every table by file name, a header first; an empty cell is undefined."""
    predicted, observed = regression_curve(evaluation)
    pixels = [0, *np.cumsum(evaluation.histogram).tolist()]
    columns = zip(predicted.tolist(), pixels, map(_null, observed.tolist()), strict=True)
    places = np.searchsorted(predicted, evaluation.levels).tolist()
    shares = [
        [level, pixels[place], _null(share), _null(share - level)]
        for place, (level, share) in zip(places, regression_coverage(evaluation).items(), strict=True)
    ]
    return {
        "curve.csv": [["predicted probability", "n (pixels)", "observed probability"], *map(list, columns)],
        "coverage.csv": [["nominal", "n (pixels)", "observed", "observed minus nominal"], *shares],
    }


def _drawings(evaluation: RegressionEvaluation, maps: Maps) -> dict[str, bytes]:
    """Name and content of every figure's files."""
    figures = {"calibration_curve": calibration_curve(evaluation)}
    for name, title in map_names(maps).items():
        figures[title] = _map(name, *maps[name])
    found = {}
    for name, figure in figures.items():
        found[f"{name}.png"], found[f"{name}.svg"] = png(figure), svg(figure)
    return found


def calibration_curve(evaluation: RegressionEvaluation) -> Figure:
    """Observed against predicted probability, and how the predicted ones are distributed (evenly, if calibrated)."""
    predicted, observed = regression_curve(evaluation)
    area, distance = regression_area(evaluation), regression_distance(evaluation)
    coverage = regression_coverage(evaluation)
    starts = np.searchsorted(predicted, [i / BARS for i in range(BARS)])
    bars = np.add.reduceat(evaluation.histogram, starts)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(4.8, 5.6), dpi=DPI, layout="constrained")
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3.4, 1))
        upper.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), label="calibrated")
        below = np.minimum(observed, predicted)
        upper.fill_between(
            predicted, below, predicted, color=VERMILION, alpha=0.25, lw=0, label="overconfident"
        )
        above = np.maximum(observed, predicted)
        upper.fill_between(predicted, predicted, above, color=SKY, alpha=0.4, lw=0, label="underconfident")
        upper.plot(predicted, observed, color=BLUE, lw=1.8, label="observed")
        upper.plot(
            *zip(*coverage.items(), strict=True), "o", color=BLUE, ms=4, clip_on=False, label="nominal levels"
        )
        written = f"area {_said(area)}\nsquared distance {_said(distance)}"
        upper.text(0.97, 0.04, written, transform=upper.transAxes, ha="right", va="bottom", fontsize=9.5,
                   bbox={"boxstyle": "round", "fc": "white", "ec": "#cccccc"})  # fmt: skip
        upper.set(
            title="Calibration of a regression", ylabel="observed probability", xlim=(0, 1), ylim=(0, 1.015)
        )
        upper.legend(loc="upper left")
        upper.grid(True, lw=0.7)
        lower.bar(np.arange(BARS) / BARS, bars, 1 / BARS, align="edge", color=BLUE, ec="white", lw=0.6)
        lower.axhline(bars.sum() / BARS, color=GREY, lw=1, ls=(0, (4, 3)))
        lower.set(xlabel="predicted probability", ylabel="pixels")
        lower.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        lower.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        return settled(figure)


def _said(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def _map(name: str, values: NDArray[Any], dims: tuple[str, ...]) -> Figure:
    """A map in viridis, light grey where undefined; NSSR up to the 99th percentile of what is shown."""
    numbers = np.asarray(values, np.float64)
    finite = numbers[np.isfinite(numbers)]
    bounded = name == "predicted_probability"
    most = 1.0 if bounded or not finite.size else float(np.percentile(finite, 99)) or 1.0
    rows, columns = numbers.shape
    scale = 3.9 / max(rows, columns, 1)
    with rc_context(SETTINGS):
        size = (max(columns * scale, 1.6) + 1.7, max(rows * scale, 1.6) + 0.9)
        figure = Figure(figsize=size, dpi=DPI, layout="compressed")
        axes = figure.subplots()
        axes.set_facecolor("#e8e8e8")
        image = axes.imshow(numbers, cmap="viridis", vmin=0, vmax=most, interpolation="nearest")
        figure.colorbar(image, ax=axes, shrink=0.85, extend="neither" if bounded else "max")
        axes.set(title=PRETTY[name], xlabel=f"{dims[-1]} (pixels)", ylabel=f"{dims[-2]} (pixels)")
        axes.spines[:].set_visible(False)
        return settled(figure)


def _page(found: dict[str, Any], maps: Maps, about: Mapping[str, str], drawn: Mapping[str, bytes]) -> str:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"count": count, "number": number, "percent": percent}
    template = (
        resources.files("dask_uncert.reports.page")
        .joinpath("regression.html.jinja")
        .read_text(encoding="utf-8")
    )
    pictures = {name: _source("png", drawn[f"{title}.png"]) for name, title in map_names(maps).items()}
    return environment.from_string(template).render(
        title=about.get("title", TITLE),
        about={label: text for label, text in about.items() if label != "title"},
        found=found,
        of=found["regression"],
        total=found["counted"] + sum(found["excluded"].values()),
        reasons=REASONS,
        curve=_source("svg+xml", drawn["calibration_curve.svg"]),
        maps=[(PRETTY[name], source) for name, source in pictures.items()],
    )


def _source(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")
