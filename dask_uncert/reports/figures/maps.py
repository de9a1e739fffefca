"""Figures of maps: one by one, and all measures side by side with correct and wrong predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from dask_uncert.io.map_types import Dim, Map, Maps
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.curves import lowest, powers, value_label
from dask_uncert.reports.figures.style import BLUE, VERMILION, class_colours, styled
from dask_uncert.reports.names import axis_name, file_names, pretty, unit
from dask_uncert.spec.map_names import IN_SET, SET_SIZE, soft_labels, soft_picture_label, soft_weight_map
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import COLOURS

Levels = Sequence[tuple[int, str, Any]]
"""Value, label and colour of each level of a map with few values."""

UNDEFINED, PALE = "#e2e2e2", "#f6eeb4"  # light grey, light yellow
CELL_NAMES = {"TP": "true positive", "FN": "false negative", "FP": "false positive", "TN": "true negative"}
CORRECT_OR_WRONG: Levels = ((1, "correct", BLUE), (0, "wrong", VERMILION))
IN_OR_NOT: Levels = ((1, "in the set", BLUE), (0, "not in it", PALE))
KILOMETRES = 10_000  # metres, from which axes count in kilometres
RIGHT = 1.0  # room for a colour bar, in inches


class SoftMap(NamedTuple):
    """Maps of one class's soft confusion: the label in their names, the picture, and the weights by cell."""

    label: str
    picture: Map
    weights: dict[str, Map]


def soft_maps(maps: Maps) -> list[SoftMap]:
    """Return the maps of every soft confusion of which the picture and all four weights are there."""
    pictures = []
    for name, (values, dims) in maps.items():
        label = soft_picture_label(name)
        names = {cell: soft_weight_map(cell, label) for cell in CELL_NAMES}
        if values.ndim == 3 and all(weight in maps for weight in names.values()):
            weights = {cell: maps[weight] for cell, weight in names.items()}
            pictures.append(SoftMap(label, (values, dims), weights))
    return pictures


def map_figure_names(maps: Maps) -> dict[str, str]:
    """Return the name of each map's figure.

    Maps of one dimension have no figure; the four weights of a soft confusion share another one.
    """
    weights = {soft_weight_map(cell, soft.label) for soft in soft_maps(maps) for cell in CELL_NAMES}
    shown = [name for name, (values, _) in maps.items() if name not in weights and values.ndim > 1]
    return {name: f"map_{safe}" for name, safe in file_names(shown).items()}


@styled
def picture(evaluation: Evaluation, name: str, values: NDArray[Any], dims: tuple[str, ...]) -> Figure:
    """Draw a map: levels in their own colours, numbers in viridis, pictures unchanged, grey where undefined."""
    if values.ndim == 3:
        levels: Levels | None = [(0, cell, tuple(np.array(COLOURS[cell]) / 255)) for cell in CELL_NAMES]
        title = f"Soft confusion of {soft_class(evaluation, name.removeprefix('soft_'))}"
    else:
        levels, title = levels_of(evaluation, name, values), pretty(name)
    measure = evaluation.measures.get(name)
    if levels is None:
        if measure is None:
            return value_map(values, dims, Normalize(), title)
        ticks = powers(lowest(measure), measure.reach) if measure.wide else None
        return value_map(values, dims, value_norm(measure), title, value_label(evaluation, name), ticks)
    figure, axes = _frame(values, 0.45 + layout.widest_text([label for _, label, _ in levels], 8))
    if values.ndim == 3:
        axes.imshow(values, interpolation="nearest")
    else:
        _paint(axes, values, levels)
    _level_legend(axes, levels[:: math.ceil(len(levels) / 32)])
    axes.set(title=title)
    _place(axes, dims)
    return figure


@styled
def value_map(
    values: NDArray[Any],
    dims: tuple[str, ...],
    norm: Normalize,
    title: str,
    label: str | None = None,
    ticks: tuple[list[float], list[str]] | None = None,
    extend: str = "neither",
) -> Figure:
    """Draw a map of numbers in viridis with a colour bar, whose label is the title by default."""
    figure, axes = _frame(values, RIGHT)
    image = axes.imshow(np.asarray(values, np.float64), cmap="viridis", norm=norm, interpolation="nearest")
    box, width = axes.get_position(), figure.get_size_inches()[0]
    position = (box.x1 + 0.15 / width, box.y0 + 0.08 * box.height, 0.14 / width, 0.84 * box.height)
    bar = figure.colorbar(image, cax=figure.add_axes(position), label=label or title, extend=extend)
    if ticks is not None:
        bar.set_ticks(ticks[0], labels=ticks[1])
        bar.minorticks_off()
    axes.set(title=title)
    _place(axes, dims)
    return figure


def value_norm(measure: Distribution) -> Normalize:
    """Return the scale from values to colours: over the range of a measure, or logarithmic if it has none."""
    return LogNorm(lowest(measure), measure.reach, clip=True) if measure.wide else Normalize(0.0, measure.reach)


def soft_class(evaluation: Evaluation, label: str) -> str:
    """Return the name of the class whose soft maps end with this label."""
    labels = soft_labels(evaluation.classes)
    return axis_name(evaluation.classes[labels.index(label)].name if label in labels else label)


@styled
def measure_maps(evaluation: Evaluation, maps: Maps) -> Figure | None:
    """Draw the maps of all measures with a range, and of correct and wrong predictions ([C23] figures 5-7).

    Measures share one scale: values are divided by the largest possible value. None if there are fewer than two maps.
    """
    bounded = {name: measure for name, measure in evaluation.measures.items() if not measure.wide}
    names = [name for name, (values, _) in maps.items() if name in bounded and values.ndim > 1]
    number = len(names) + ("correct" in maps)
    if not names or number < 2:
        return None
    values, dims = maps[names[0]]
    rows, across = values.shape
    columns = layout.columns_of(number, 4 if across < 1.5 * rows else 2)
    size = map_size(values, 2.2 if 2 / 3 < rows / max(across, 1) < 1.5 else 3.2)
    figure, panels = layout.panel_grid(number, columns, size, layout.Margins(right=RIGHT), (0.2, 0.32))
    for axes, name in zip(panels, names, strict=False):
        upper = bounded[name].upper
        shown = np.asarray(maps[name][0], np.float64) / upper
        image = axes.imshow(shown, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
        scale = "" if upper == 1 else f" / {upper:.3g} {unit(bounded[name].measure)}"
        layout.label_panel(axes, pretty(name) + scale)
    width, height = figure.get_size_inches()
    left = width - RIGHT + 0.15
    bar = layout.add_panel(figure, left, 0.3, 0.13, min(1.6, height - 1.3))
    figure.colorbar(image, cax=bar, label="uncertainty")
    if "correct" in maps:
        _paint(panels[-1], maps["correct"][0], CORRECT_OR_WRONG)
        layout.label_panel(panels[-1], pretty("correct"))
        blank = layout.add_panel(figure, left, height - 0.85, RIGHT, 0.4)
        blank.set_axis_off()
        _level_legend(blank, CORRECT_OR_WRONG, 0.0)
    map_axes(panels, dims)
    layout.outer_labels(panels, columns)
    return figure


def map_size(values: NDArray[Any], longest: float, least: float = 0.6) -> tuple[float, float]:
    """Return width and height of a map in inches; no side is shorter than `least`."""
    rows, columns = values.shape[:2]
    scale = longest / max(rows, columns, 1)
    return max(columns * scale, least), max(rows * scale, least)


def _frame(values: NDArray[Any], right: float) -> tuple[Figure, Axes]:
    figure, (axes,) = layout.panel_grid(1, 1, map_size(values, 3.9, 1.6), layout.Margins(right=right + 0.15))
    axes.set_facecolor(UNDEFINED)
    axes.spines[:].set_visible(False)
    return figure, axes


def map_axes(panels: Sequence[Axes], dims: tuple[str, ...]) -> None:
    """Set background, ticks and labels of maps that are side by side."""
    for axes in panels:
        axes.set_facecolor(UNDEFINED)
        axes.spines[:].set_visible(False)
        axes.locator_params(nbins=4)
        layout.label_panel(axes, None, *_place(axes, dims))


def _place(axes: Axes, dims: Sequence[str]) -> tuple[str, str]:
    """Set ticks and labels of a map's axes at positions, where known, else at indices of pixels; return the labels."""
    rows, columns = axes.images[0].get_size()
    labels = []
    for axis, dim, size in ((axes.xaxis, dims[-1], columns), (axes.yaxis, dims[-2], rows)):
        first, step, label = dim.place if isinstance(dim, Dim) else (0.0, 1.0, f"{dim} (pixels)")
        ends = sorted((first - step / 2, first + (size - 0.5) * step))
        if label.endswith("(m)") and max(map(abs, ends)) >= KILOMETRES:
            first, step, ends, label = first / 1000, step / 1000, [end / 1000 for end in ends], f"{label[:-3]}(km)"
        if (first, step) != (0.0, 1.0):
            values = [v for v in MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(*ends) if ends[0] <= v <= ends[1]]
            digits = max(0, -math.floor(math.log10(np.diff(values).min(initial=1.0)) + 1e-9))
            axis.set_ticks([(v - first) / step for v in values], [f"{v:.{digits}f}" for v in values])
        if axis is axes.yaxis and not label.endswith("(pixels)"):  # positions have many digits
            axes.tick_params(axis="y", labelrotation=90)
        axis.set_label_text(label)
        labels.append(label)
    return labels[0], labels[1]


def _paint(axes: Axes, values: NDArray[Any], levels: Levels) -> None:
    index = np.full(values.shape, np.nan)
    for i, (code, _, _) in enumerate(levels):
        index[values == code] = i
    steps = BoundaryNorm(np.arange(len(levels) + 1) - 0.5, len(levels))
    colours = ListedColormap([colour for _, _, colour in levels])
    axes.imshow(index, cmap=colours, norm=steps, interpolation="nearest")


def _level_legend(axes: Axes, levels: Levels, left: float | None = None) -> None:
    layout.legend_beside(axes, left, handles=[Patch(facecolor=colour) for _, _, colour in levels],
                         labels=[label for _, label, _ in levels], borderpad=0.0, handlelength=1.0,
                         labelspacing=0.35)  # fmt: skip


def levels_of(evaluation: Evaluation, name: str, values: NDArray[Any]) -> Levels | None:
    """Return the levels of a map with few values; None for maps of numbers."""
    if name == "correct":
        return CORRECT_OR_WRONG
    if name == "predicted":
        colours = class_colours(len(evaluation.classes))
        return [(c.code, axis_name(c.name, 20), colour) for c, colour in zip(evaluation.classes, colours, strict=True)]
    if name.startswith(IN_SET):
        return IN_OR_NOT
    if name.startswith(SET_SIZE):
        most = int(np.nanmax(values, initial=0))
        colors = colormaps["viridis"](np.linspace(0, 1, most + 1))
        return [(number, str(number), tuple(colors[number])) for number in range(most + 1)]
    if name == "confused_classes":
        most = int(np.nanmax(values, initial=1))
        colors = colormaps["viridis"](np.linspace(0, 1, most))
        return [(number, str(number), tuple(colors[number - 1])) for number in range(1, most + 1)]
    return None
