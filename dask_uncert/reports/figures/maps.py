"""Pictures of maps: one by one, and the measures side by side with right and wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dask_uncert.reports.figures.curves import lowest, powers, value_label
from dask_uncert.reports.figures.layout import (
    Margins,
    at,
    blank,
    columns_of,
    inches,
    outer,
    sheet,
    widest,
    words,
)
from dask_uncert.reports.figures.style import BLUE, COLORS, SETTINGS, VERMILION, YELLOW
from dask_uncert.reports.names import axis_name, file_names, pretty, unit
from dask_uncert.spec.map_names import soft_labels
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import COLOURS

Map = tuple[NDArray[Any], tuple[str, ...]]
Maps = Mapping[str, Map]
"""By name: values (two dimensions, NaN where undefined; a picture has a third of size 3, uint8) and the names of
the first two dimensions."""

UNDEFINED = "#e2e2e2"  # light grey: no value there
MEANINGS = {"TP": "true positive", "FN": "false negative", "FP": "false positive", "TN": "true negative"}
RIGHT = 1.0  # room for a colour bar, in inches


class SoftMap(NamedTuple):
    """The maps of one class's soft confusion: what their names end with, the picture, the weights by cell."""

    label: str
    picture: Map
    weights: dict[str, Map]


def soft_maps(maps: Maps) -> list[SoftMap]:
    """Every picture of a soft confusion among the maps that has its four weights beside it."""
    found = []
    for name, one in maps.items():
        label = name.removeprefix("soft_")
        names = {cell: f"soft_{cell}_{label}" for cell in MEANINGS}
        if one[0].ndim == 3 and all(weight in maps for weight in names.values()):
            found.append(SoftMap(label, one, {cell: maps[weight] for cell, weight in names.items()}))
    return found


def map_names(maps: Maps) -> dict[str, str]:
    """What the figure of each map is called.

    The four weights of a soft confusion share one and have none here; nor has a map of one dimension.
    """
    weights = {f"soft_{cell}_{one.label}" for one in soft_maps(maps) for cell in MEANINGS}
    shown = [name for name, (values, _) in maps.items() if name not in weights and values.ndim > 1]
    return {name: f"map_{safe}" for name, safe in file_names(shown).items()}


def picture(evaluation: Evaluation, name: str, values: NDArray[Any], dims: tuple[str, ...]) -> Figure:
    """A map: few levels in colours of their own, numbers in viridis, pictures as they are; grey where undefined."""
    with rc_context(SETTINGS):
        if values.ndim == 3:
            levels = [(0, cell, tuple(part / 255 for part in COLOURS[cell])) for cell in MEANINGS]
            figure, axes = _frame(values, 0.45 + widest(list(MEANINGS), 8))
            axes.imshow(values, interpolation="nearest")
            _level_key(axes, levels)
            title = f"Soft confusion of {soft_class(evaluation, name.removeprefix('soft_'))}"
        else:
            numbers, title = np.asarray(values, np.float64), pretty(name)
            found = levels_of(evaluation, name, numbers)
            if found is None:
                figure, axes = _frame(values, RIGHT)
                one = evaluation.measures.get(name)
                norm = Normalize() if one is None else value_norm(one)
                image = axes.imshow(numbers, cmap="viridis", norm=norm, interpolation="nearest")
                label = title if one is None else value_label(evaluation, name)
                bar = figure.colorbar(image, cax=_beside(figure, axes), label=label)
                if one is not None and one.wide:
                    places, said = powers(lowest(one), one.reach)
                    bar.set_ticks(places, labels=said)
                    bar.minorticks_off()
            else:
                figure, axes = _frame(values, 0.45 + widest([one[1] for one in found], 8))
                _paint(axes, numbers, found)
                _level_key(axes, found[:: math.ceil(len(found) / 32)])
        axes.set(title=title, xlabel=f"{dims[-1]} (pixels)", ylabel=f"{dims[-2]} (pixels)")
    return figure


def value_norm(one: Distribution) -> Normalize:
    """From values to colours: over a measure's range, or logarithmic where it has none; lower values look lowest."""
    return LogNorm(lowest(one), one.reach, clip=True) if one.wide else Normalize(0.0, one.reach)


def soft_class(evaluation: Evaluation, label: str) -> str:
    """The name of the class whose soft maps end with this label."""
    found = dict(zip(soft_labels(evaluation.classes), evaluation.classes, strict=True)).get(label)
    return axis_name(label if found is None else found.name)


def measure_maps(evaluation: Evaluation, maps: Maps) -> Figure | None:
    """The maps of all measures with a range, side by side on one scale, and who was right ([C23] figures 5-7).

    Values are shown as shares of the measure's largest possible value. None where fewer than two would be shown.
    """
    bounded = {name: one for name, one in evaluation.measures.items() if not one.wide}
    names = [name for name, (values, _) in maps.items() if name in bounded and values.ndim > 1]
    number = len(names) + ("correct" in maps)
    if not names or number < 2:
        return None
    values, dims = maps[names[0]]
    rows, across = values.shape
    columns = columns_of(number, 4 if across < 1.5 * rows else 2)
    with rc_context(SETTINGS):
        size = map_size(values, 2.2 if 2 / 3 < rows / max(across, 1) < 1.5 else 3.2)
        figure, panels = sheet(number, columns, size, Margins(right=RIGHT), (0.2, 0.32))
        for axes, name in zip(panels, names, strict=False):
            upper = bounded[name].upper
            shown = np.asarray(maps[name][0], np.float64) / upper
            image = axes.imshow(shown, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
            words(
                axes,
                pretty(name) if upper == 1 else f"{pretty(name)} / {upper:.3g} {unit(bounded[name].measure)}",
            )
        height = figure.get_size_inches()[1]
        left = figure.get_size_inches()[0] - RIGHT + 0.15
        bar = at(figure, left, 0.3, 0.13, min(1.6, height - 1.3))
        figure.colorbar(image, cax=bar, label="uncertainty")
        if "correct" in maps:
            _paint(panels[-1], np.asarray(maps["correct"][0], np.float64), RIGHT_OR_WRONG)
            words(panels[-1], pretty("correct"))
            _level_key(blank(figure, left, height - 0.85, RIGHT, 0.4), RIGHT_OR_WRONG, 0.0)
        map_axes(panels, dims)
        outer(panels, columns)
    return figure


def map_size(values: NDArray[Any], longest: float, least: float = 0.6) -> tuple[float, float]:
    """Width and height of a map in inches: its own shape, no side below `least`."""
    rows, columns = values.shape[:2]
    scale = longest / max(rows, columns, 1)
    return max(columns * scale, least), max(rows * scale, least)


def _frame(values: NDArray[Any], right: float) -> tuple[Figure, Axes]:
    figure, (axes,) = sheet(1, 1, map_size(values, 3.9, 1.6), Margins(right=right + 0.15))
    axes.set_facecolor(UNDEFINED)
    axes.spines[:].set_visible(False)
    return figure, axes


def _beside(figure: Figure, axes: Axes) -> Axes:
    """Axes of a colour bar to the right of a panel."""
    box, width = axes.get_position(), figure.get_size_inches()[0]
    return figure.add_axes(
        (box.x1 + 0.15 / width, box.y0 + 0.08 * box.height, 0.14 / width, 0.84 * box.height)
    )


def map_axes(panels: Sequence[Axes], dims: tuple[str, ...]) -> None:
    """Frame, ticks and labels of maps that stand side by side."""
    for axes in panels:
        axes.set_facecolor(UNDEFINED)
        axes.spines[:].set_visible(False)
        axes.locator_params(nbins=4)
        words(axes, None, f"{dims[-1]} (pixels)", f"{dims[-2]} (pixels)")


Levels = Sequence[tuple[int, str, Any]]
"""Value, label and colour of each level of a map that has few."""
RIGHT_OR_WRONG: Levels = ((1, "correct", BLUE), (0, "wrong", VERMILION))


def _paint(axes: Axes, numbers: NDArray[np.float64], levels: Levels) -> None:
    index = np.full(numbers.shape, np.nan)
    for place, (code, _, _) in enumerate(levels):
        index[numbers == code] = place
    steps = BoundaryNorm(np.arange(len(levels) + 1) - 0.5, len(levels))
    colours = ListedColormap([colour for _, _, colour in levels])
    axes.imshow(index, cmap=colours, norm=steps, interpolation="nearest")


def _level_key(axes: Axes, levels: Levels, place: float | None = None) -> None:
    """Which colour is which level, to the right of the map."""
    right = 1 + 0.12 / inches(axes)[0] if place is None else place
    axes.legend([Patch(facecolor=colour) for _, _, colour in levels], [label for _, label, _ in levels],
                loc="upper left", bbox_to_anchor=(right, 1.0), borderaxespad=0.0, borderpad=0.0, handlelength=1.0,
                fontsize=8, labelspacing=0.35)  # fmt: skip


def levels_of(evaluation: Evaluation, name: str, values: NDArray[Any]) -> Levels | None:
    """The levels of a map that has few; None for maps of numbers."""
    if name == "correct":
        return RIGHT_OR_WRONG
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
