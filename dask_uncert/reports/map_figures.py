"""Pictures of maps: one by one, the measures beside right and wrong, and the four soft weights with their merger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from dask_uncert.one_vs_rest import COLOURS
from dask_uncert.reports.curves import value_label
from dask_uncert.reports.names import axis_name, file_names, pretty
from dask_uncert.reports.sheets import Margins, at, blank, columns_of, inches, outer, sheet, widest, words
from dask_uncert.reports.style import BLUE, CELLS, COLORS, DPI, SETTINGS, VERMILION, YELLOW
from dask_uncert.soft_words import soft_labels
from dask_uncert.summaries.evaluation import Evaluation

Map = tuple[NDArray[Any], tuple[str, ...]]
Maps = Mapping[str, Map]
"""By name: values (two dimensions, NaN where undefined; a picture has a third of size 3, uint8) and the names of
the first two dimensions."""

UNDEFINED = "#e8e8e8"  # light grey: no value there
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
    """What the figure of each map is called; the four weights of a soft confusion share one and have none here."""
    weights = {f"soft_{cell}_{one.label}" for one in soft_maps(maps) for cell in MEANINGS}
    shown = [name for name in maps if name not in weights]
    return {name: f"map_{safe}" for name, safe in file_names(shown).items()}


def picture(evaluation: Evaluation, name: str, values: NDArray[Any], dims: tuple[str, ...]) -> Figure:
    """A map: few levels in colours of their own, numbers in viridis, pictures as they are; grey where undefined."""
    with rc_context(SETTINGS):
        if values.ndim == 3:
            levels = [(0, cell, tuple(part / 255 for part in COLOURS[cell])) for cell in MEANINGS]
            figure, axes = _frame(values, 0.45 + widest(list(MEANINGS), 8))
            axes.imshow(values, interpolation="nearest")
            _level_key(axes, levels)
            title = f"Soft confusion of {_class_name(evaluation, name.removeprefix('soft_'))}"
        else:
            numbers, title = np.asarray(values, np.float64), pretty(name)
            found = _levels(evaluation, name, numbers)
            if found is None:
                figure, axes = _frame(values, RIGHT)
                reach = evaluation.measures[name].reach if name in evaluation.measures else None
                low = None if reach is None else 0.0
                image = axes.imshow(numbers, cmap="viridis", vmin=low, vmax=reach, interpolation="nearest")
                label = title if reach is None else value_label(evaluation, name)
                figure.colorbar(image, cax=_beside(figure, axes), label=label)
            else:
                figure, axes = _frame(values, 0.45 + widest([one[1] for one in found], 8))
                _paint(axes, numbers, found)
                _level_key(axes, found[:: math.ceil(len(found) / 32)])
        axes.set(title=title, xlabel=f"{dims[-1]} (pixels)", ylabel=f"{dims[-2]} (pixels)")
    return figure


def measure_maps(evaluation: Evaluation, maps: Maps) -> Figure | None:
    """The maps of all measures with a range, side by side on one scale, and who was right ([C23] figures 5-7).

    Values are shown as shares of the measure's largest possible value. None where fewer than two would be shown.
    """
    bounded = {name: one for name, one in evaluation.measures.items() if not one.wide}
    names = [name for name in maps if name in bounded]
    if not names or len(names) + ("correct" in maps) < 2:
        return None
    values, dims = maps[names[0]]
    number = len(names) + ("correct" in maps)
    columns = columns_of(number, 4)
    with rc_context(SETTINGS):
        size = _size(values, 2.2)
        figure, panels = sheet(number, columns, size, Margins(right=RIGHT), (0.2, 0.32))
        for axes, name in zip(panels, names, strict=False):
            upper = bounded[name].upper
            shown = np.asarray(maps[name][0], np.float64) / upper
            image = axes.imshow(shown, cmap="viridis", vmin=0, vmax=1, interpolation="nearest")
            words(axes, pretty(name) if upper == 1 else f"{pretty(name)} / {upper:.3g}")
        height = figure.get_size_inches()[1]
        left = figure.get_size_inches()[0] - RIGHT + 0.15
        bar = at(figure, left, 0.3, 0.13, min(1.6, height - 1.3))
        figure.colorbar(image, cax=bar, label="uncertainty")
        if "correct" in maps:
            _paint(panels[-1], np.asarray(maps["correct"][0], np.float64), RIGHT_OR_WRONG)
            words(panels[-1], pretty("correct"))
            _level_key(blank(figure, left, height - 0.85, RIGHT, 0.4), RIGHT_OR_WRONG, 0.0)
        _map_axes(panels, dims)
        outer(panels, columns)
    return figure


def soft_map(evaluation: Evaluation, one: SoftMap) -> Figure:
    """The four weights of a soft confusion and the picture they make, brighter where they are larger ([S22] 6, 7).

    The colours are the paper's green, blue, red and purple, in hues that people with the common colour-vision
    deficiencies can tell apart; `map_soft_<class>` has them as they are stored.
    """
    values, dims = one.weights["TP"]
    wide, high = _size(values, 2.0)
    gap = (0.2, 0.32)
    with rc_context(SETTINGS):
        left, top = 0.62, 0.62
        tall = 2 * high + gap[1]
        broad = tall * wide / high
        size = (left + 2 * wide + gap[0] + 0.3 + broad + 1.1, top + tall + 0.5)
        figure = Figure(figsize=size, dpi=DPI)
        merged = np.zeros((*values.shape, 3))
        small = []
        for place, (cell, (weight, _)) in enumerate(one.weights.items()):
            row, column = divmod(place, 2)
            axes = at(figure, left + column * (wide + gap[0]), top + row * (high + gap[1]), wide, high)
            tinted = np.asarray(weight, np.float64)[..., np.newaxis] * to_rgb(CELLS[cell])
            axes.imshow(_opaque(tinted), interpolation="nearest")
            words(axes, f"{cell}, {MEANINGS[cell]}")
            merged += tinted
            small.append(axes)
        start = left + 2 * wide + gap[0] + 0.3
        axes = at(figure, start, top, broad, tall)
        axes.imshow(_opaque(merged), interpolation="nearest")
        words(axes, "all four")
        _map_axes([*small, axes], dims)
        outer(small, 2)
        axes.set_ylabel("")
        axes.tick_params(left=False, labelleft=False)
        _ramps(at(figure, start + broad + 0.5, top, 0.55, min(tall, 2.0)))
        figure.text(left / size[0], 1 - 0.1 / size[1],
                    _heading(evaluation, one.label), va="top", fontsize=10, weight="bold")  # fmt: skip
    return figure


def _heading(evaluation: Evaluation, label: str) -> str:
    """The class, and the setting its maps were made at where only one can be meant."""
    name = _class_name(evaluation, label)
    group = [
        one.settings
        for one in evaluation.soft_confusion
        if soft_labels(evaluation.classes)[one.settings.class_index] == label
    ]
    if len(group) != 1:
        return f"Weights of {name}"
    s = group[0]
    damped = "" if s.uncertainty is None else f", d = {s.dampings[0]:g} on {pretty(s.uncertainty)}"
    return f"Weights of {name} at t = {s.thresholds[0]:g}, σ = {s.sigmas[0]:g}{damped}"


def _class_name(evaluation: Evaluation, label: str) -> str:
    found = dict(zip(soft_labels(evaluation.classes), evaluation.classes, strict=True)).get(label)
    return axis_name(label if found is None else found.name)


def _size(values: NDArray[Any], longest: float, least: float = 0.6) -> tuple[float, float]:
    """Width and height of a map in inches: its own shape, no side below `least`."""
    rows, columns = values.shape[:2]
    scale = longest / max(rows, columns, 1)
    return max(columns * scale, least), max(rows * scale, least)


def _frame(values: NDArray[Any], right: float) -> tuple[Figure, Axes]:
    figure, (axes,) = sheet(1, 1, _size(values, 3.9, 1.6), Margins(right=right + 0.15))
    axes.set_facecolor(UNDEFINED)
    axes.spines[:].set_visible(False)
    return figure, axes


def _beside(figure: Figure, axes: Axes) -> Axes:
    """Axes of a colour bar to the right of a panel."""
    box, width = axes.get_position(), figure.get_size_inches()[0]
    return figure.add_axes((box.x1 + 0.15 / width, box.y0 + 0.08 * box.height, 0.14 / width, 0.84 * box.height))


def _map_axes(panels: Sequence[Axes], dims: tuple[str, ...]) -> None:
    for axes in panels:
        axes.set_facecolor(UNDEFINED)
        axes.spines[:].set_visible(False)
        axes.locator_params(nbins=4)
        words(axes, None, f"{dims[-1]} (pixels)", f"{dims[-2]} (pixels)")


def _opaque(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """RGB in [0, 1] as RGBA that lets the background through where it is NaN."""
    there = ~np.isnan(colours).any(axis=2, keepdims=True)
    return np.concatenate([np.where(there, np.clip(colours, 0, 1), 0.0), there.astype(np.float64)], axis=2)


def _ramps(axes: Axes) -> None:
    """What the colours of the four weights mean from 0 to 1."""
    hues = np.array([to_rgb(CELLS[cell]) for cell in MEANINGS])
    axes.imshow(np.linspace(0, 1, 128)[:, np.newaxis, np.newaxis] * hues, aspect="auto", origin="lower",
                extent=(-0.5, 3.5, 0, 1), interpolation="nearest")  # fmt: skip
    axes.vlines([0.5, 1.5, 2.5], 0, 1, color="white", lw=1.5)
    axes.set_xticks(range(4), list(MEANINGS), fontsize=7)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(axis="x", length=0)
    axes.spines[:].set_visible(False)
    words(axes, "", "", "weight")


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


def _levels(evaluation: Evaluation, name: str, values: NDArray[Any]) -> Levels | None:
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
