"""The pictures of an Evaluation, drawn from its counts alone; the only door to matplotlib.

Right and wrong are told apart by colour and by line style, in the colours of Okabe and Ito, which people with
the common colour-vision deficiencies can tell apart; numbers on maps use viridis. pyplot is not touched, and
matplotlib's settings are put back after each figure. With the same libraries the same Evaluation gives the same
bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from dask_uncert.reports import curves
from dask_uncert.reports.curves import unit_axes, value_label
from dask_uncert.reports.names import axis_name, file_names, pretty
from dask_uncert.reports.style import (
    BLUE,
    COLORS,
    DPI,
    GREEN,
    GREY,
    ORANGE,
    SETTINGS,
    SKY,
    VERMILION,
    YELLOW,
)
from dask_uncert.summaries import calibration_readings, readings
from dask_uncert.summaries.evaluation import Evaluation

Maps = Mapping[str, tuple[NDArray[Any], tuple[str, ...]]]
"""By name: values (two dimensions, NaN where undefined) and the names of the dimensions."""

MOST_COUNTED_CLASSES = 24  # of a confusion matrix whose cells still hold legible counts
MOST_NAMED_CLASSES = 60


def write_figures(
    evaluation: Evaluation,
    folder: str | Path,
    maps: Maps | None = None,
    drawn: dict[str, bytes] | None = None,
) -> list[str]:
    """Write every figure as PNG (150 dpi) and SVG into `folder`, made if need be; returns the file names.

    drawn: `drawings(evaluation, maps)`, if the caller has them already.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = drawings(evaluation, maps or {}) if drawn is None else drawn
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return list(files)


def drawings(evaluation: Evaluation, maps: Maps) -> dict[str, bytes]:
    """Name and content of every file of `write_figures`."""
    found = {}
    for name, figure in figures(evaluation, maps):
        found[f"{name}.png"] = png(figure)
        found[f"{name}.svg"] = svg(figure)
    return found


def figures(evaluation: Evaluation, maps: Maps) -> Iterator[tuple[str, Figure]]:
    """Name and drawing of every figure; those of measures are left out where there are none."""
    if evaluation.measures:
        yield "ecdf", panels(evaluation, curves.ecdf)
        yield "uncertainty_confusion", panels(evaluation, curves.uncertainty_confusion)
        yield "risk_coverage", risk_coverage(evaluation)
    yield "reliability", reliability(evaluation)
    yield "confusion", confusion(evaluation)
    yield "classes", classes(evaluation)
    for name, title in map_names(maps).items():
        values, dims = maps[name]
        yield title, picture(evaluation, name, values, dims)


def map_names(maps: Maps) -> dict[str, str]:
    """What the figure of each map is called."""
    return {name: f"map_{safe}" for name, safe in file_names(maps).items()}


def svg(figure: Figure) -> bytes:
    """The figure as SVG without a date, its text as outlines: it looks the same on every machine."""
    target = io.BytesIO()
    with rc_context(SETTINGS):
        FigureCanvasSVG(figure).print_svg(target, metadata={"Date": None, "Creator": None})
    figure.dpi = DPI  # print_svg leaves 72
    return target.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    target = io.BytesIO()
    with rc_context(SETTINGS):
        FigureCanvasAgg(figure).print_png(target, metadata={"Software": None})
    return target.getvalue()


def _figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def _settled(figure: Figure) -> Figure:
    """The figure with its layout worked out, once for both kinds of file.

    That and printing through the canvases (savefig draws everything twice) more than halve the time.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    return figure


def panels(evaluation: Evaluation, draw: Any, measures: list[str] | None = None) -> Figure:
    """One panel a measure, side by side, drawn by one of `curves`; one legend for all."""
    names = list(evaluation.measures) if measures is None else measures
    columns = min(len(names), 3)
    rows = math.ceil(len(names) / columns)
    with rc_context(SETTINGS):
        figure = _figure(4.0 * columns, 3.1 * rows + 0.3)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, name in zip(grid, names, strict=False):
            draw(axes, evaluation, name)
        for axes in grid[len(names) :]:
            axes.remove()
        figure.legend(*grid[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return _settled(figure)


def risk_coverage(evaluation: Evaluation) -> Figure:
    """Share of wrong decisions among those kept, when the most uncertain are left out first."""
    with rc_context(SETTINGS):
        figure = _figure(5.6, 4.2 + 0.1 * len(evaluation.measures))
        curves.risk_coverage(figure.subplots(), evaluation)
        figure.legend(loc="outside lower center", ncols=2)
        return _settled(figure)


def reliability(evaluation: Evaluation) -> Figure:
    """Accuracy against mean confidence of each bin, the counts beneath, ECE and MCE written."""
    number = evaluation.calibration.binned(evaluation.calibration.fine).number
    confidence, accuracy = calibration_readings.reliability(evaluation)
    low, width = np.arange(number.size) / number.size, 1 / number.size
    errors = (
        calibration_readings.expected_calibration_error(evaluation),
        calibration_readings.maximum_calibration_error(evaluation),
    )
    with rc_context(SETTINGS):
        figure = _figure(4.8, 5.4)
        upper, lower = figure.subplots(2, sharex=True, height_ratios=(3.2, 1))
        upper.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), label="perfectly calibrated")
        upper.bar(
            low, accuracy, width, align="edge", color=SKY, ec="white", lw=0.6, alpha=0.75, label="accuracy"
        )
        upper.vlines(confidence, accuracy, confidence, color=VERMILION, lw=2, label="gap to confidence")
        upper.plot(
            confidence,
            accuracy,
            "o",
            color=BLUE,
            ms=4,
            clip_on=False,
            zorder=3,
            label="bin at its mean confidence",
        )
        written = "\n".join(
            f"{name} {'undefined' if math.isnan(error) else f'{error:.4f}'}"
            for name, error in zip(("ECE", "MCE"), errors, strict=True)
        )
        upper.text(0.97, 0.04, written, transform=upper.transAxes, ha="right", va="bottom", fontsize=10,
                   bbox={"boxstyle": "round", "fc": "white", "ec": "#cccccc"})  # fmt: skip
        upper.set(title="Reliability", ylabel="accuracy")
        upper.legend(loc="upper left")
        unit_axes(upper)
        lower.bar(low, number, width, align="edge", color=BLUE, ec="white", lw=0.6)
        lower.set(xlabel="confidence of the decision", ylabel="pixels", xlim=(0, 1))
        lower.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        lower.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        lower.grid(True, axis="y", lw=0.7)
        return _settled(figure)


def confusion(evaluation: Evaluation) -> Figure:
    """Counts of reference against predicted class; colours are shares of the row (the reference class)."""
    matrix = readings.confusion_matrix(evaluation)
    totals = matrix.sum(axis=1, keepdims=True)
    shares = np.divide(matrix, totals, out=np.full(matrix.shape, np.nan), where=totals > 0)
    names, n = [axis_name(one.name) for one in evaluation.classes], len(matrix)
    side = min(3.2 + 0.42 * n, 14.0)
    with rc_context(SETTINGS):
        figure = _figure(side + 1.0, side)
        axes = figure.subplots()
        axes.set_facecolor("#eeeeee")  # where a class has no reference
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        figure.colorbar(image, ax=axes, shrink=0.8, label="share of the reference class")
        if n <= MOST_COUNTED_CLASSES:
            digits = len(f"{matrix.max():,}")
            size = min(9.0, 72 * (side - 2.6) / n / (0.72 * max(digits, 3)))
            for (row, column), count in np.ndenumerate(matrix):
                if count and size >= 4:
                    ink = "white" if shares[row, column] > 0.55 else "#111111"
                    axes.text(column, row, f"{count:,}", ha="center", va="center", fontsize=size, color=ink)
        if n <= MOST_NAMED_CLASSES:
            axes.set_xticks(range(n), names, rotation=55, ha="right", rotation_mode="anchor")
            axes.set_yticks(range(n), names)
            axes.tick_params(labelsize=9 if n <= 30 else 6)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set(title="Confusion matrix (pixels)", xlabel="predicted class", ylabel="reference class")
        return _settled(figure)


def classes(evaluation: Evaluation) -> Figure:
    """Recall, precision and F1 of every class; a cross stands where one is undefined."""
    names = [axis_name(one.name) for one in evaluation.classes]
    place, height = np.arange(len(names)), 0.27
    with rc_context(SETTINGS):
        figure = _figure(6.4, min(1.4 + 0.42 * len(names), 40.0))
        axes = figure.subplots()
        drawn = (("recall", readings.recall, BLUE), ("precision", readings.precision, ORANGE),
                 ("F1", readings.f1, GREEN))  # fmt: skip
        for shift, (label, formula, color) in zip((-height, 0.0, height), drawn, strict=True):
            values = formula(evaluation)
            axes.barh(place + shift, values, height, color=color, ec="white", lw=0.4, label=label)
            undefined = np.isnan(values)
            axes.plot(np.full(undefined.sum(), 0.008), (place + shift)[undefined], "x", color=color, ms=4)
        axes.set_yticks(place, names)
        axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6), xlabel="recall, precision, F1 (× is undefined)")
        axes.grid(True, axis="x", lw=0.7)
        figure.legend(loc="outside upper center", ncols=3)
        return _settled(figure)


def picture(evaluation: Evaluation, name: str, values: NDArray[Any], dims: tuple[str, ...]) -> Figure:
    """A map: few levels in colours of their own, numbers in viridis; light grey where undefined."""
    rows, columns = values.shape
    scale = 3.9 / max(rows, columns, 1)
    with rc_context(SETTINGS):
        figure = _figure(max(columns * scale, 1.6) + 1.7, max(rows * scale, 1.6) + 0.9)
        axes = figure.subplots()
        axes.set_facecolor("#e8e8e8")
        numbers = np.asarray(values, np.float64)
        levels = _levels(evaluation, name, numbers)
        if levels is None:
            upper = evaluation.measures[name].reach if name in evaluation.measures else None
            low = None if upper is None else 0.0
            image = axes.imshow(numbers, cmap="viridis", vmin=low, vmax=upper, interpolation="nearest")
            label = value_label(evaluation, name) if name in evaluation.measures else pretty(name)
            figure.colorbar(image, ax=axes, shrink=0.85, label=label)
        else:
            index = np.full(numbers.shape, np.nan)
            for i, (code, _, _) in enumerate(levels):
                index[numbers == code] = i
            steps = BoundaryNorm(np.arange(len(levels) + 1) - 0.5, len(levels))
            colors = ListedColormap([color for _, _, color in levels])
            image = axes.imshow(index, cmap=colors, norm=steps, interpolation="nearest")
            every = math.ceil(len(levels) / 32)
            shrink = min(0.9, 0.06 * len(levels))
            bar = figure.colorbar(image, ax=axes, shrink=shrink, aspect=24 * shrink, anchor=(0.0, 0.5))
            bar.set_ticks(list(range(0, len(levels), every)), labels=[one[1] for one in levels[::every]])
            bar.ax.tick_params(labelsize=8, length=0)
            bar.ax.minorticks_off()
            bar.ax.invert_yaxis()
        axes.set(title=pretty(name), xlabel=f"{dims[-1]} (pixels)", ylabel=f"{dims[-2]} (pixels)")
        axes.spines[:].set_visible(False)
        return _settled(figure)


def _levels(evaluation: Evaluation, name: str, values: NDArray[Any]) -> list[tuple[int, str, Any]] | None:
    """Value, label and colour of each level of a map that has few; None for maps of numbers."""
    if name == "correct":
        return [(1, "correct", BLUE), (0, "wrong", VERMILION)]
    if name == "predicted":
        hues = np.array([to_rgb(color) for color in (*COLORS[:-1], YELLOW)])
        shades = np.concatenate([hues, hues * 0.55, 1 - (1 - hues) * 0.45])  # as they are, dark, light
        shown = enumerate(evaluation.classes)
        return [(one.code, axis_name(one.name, 20), tuple(shades[i % len(shades)])) for i, one in shown]
    if name == "confused_classes":
        most = int(np.nanmax(values, initial=1))
        colors = colormaps["viridis"](np.linspace(0, 1, most))
        return [(number, str(number), tuple(colors[number - 1])) for number in range(1, most + 1)]
    return None
