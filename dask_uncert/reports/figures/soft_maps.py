"""The four weights of a soft confusion as maps, and the picture of all four."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from dask_uncert.formulas.typing import Floats
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.maps import CELL_NAMES, SoftMap, map_axes, map_size, soft_class
from dask_uncert.reports.figures.style import CELLS, styled
from dask_uncert.reports.names import pretty
from dask_uncert.spec.map_names import soft_labels
from dask_uncert.summaries.evaluation import Evaluation


@styled
def soft_map(evaluation: Evaluation, soft: SoftMap) -> Figure:
    """Draw the four weights of a soft confusion, and all four in one; smaller weights are paler ([S22] figures 6, 7).

    The colours are green, blue, red and purple as in the paper, but on white, and in hues that people with the common
    colour-vision deficiencies can tell apart. `map_soft_<class>` shows the stored picture.
    """
    values, dims = soft.weights["TP"]
    wide, high = map_size(values, 2.0)
    tall = 2 * high + 0.32
    broad = tall * wide / high
    margins = layout.Margins(right=broad + 1.7, top=0.62)
    figure, small = layout.panel_grid(4, 2, (wide, high), margins, (0.2, 0.32))
    merged = np.ones((*values.shape, 3))
    for axes, (cell, (weight, _)) in zip(small, soft.weights.items(), strict=True):
        absorbed = np.asarray(weight, np.float64)[..., np.newaxis] * (1 - np.array(to_rgb(CELLS[cell])))
        axes.imshow(_opaque(1 - absorbed), interpolation="nearest")
        layout.label_panel(axes, f"{cell}, {CELL_NAMES[cell]}")
        merged -= absorbed
    start = margins.left + 2 * wide + 0.5
    axes = layout.add_panel(figure, start, margins.top, broad, tall)
    axes.imshow(_opaque(merged), interpolation="nearest")
    layout.label_panel(axes, "all four")
    map_axes([*small, axes], dims)
    layout.outer_labels(small, 2)
    axes.set_ylabel("")
    axes.tick_params(left=False, labelleft=False)
    _colour_scales(layout.add_panel(figure, start + broad + 0.5, margins.top, 0.8, min(tall, 2.0)))
    layout.heading(figure, _title(evaluation, soft.label), margins.left, 0.1)
    return figure


def _title(evaluation: Evaluation, label: str) -> str:
    """Return a title with the class, and with the setting of its maps if the class has only one."""
    name, labels = soft_class(evaluation, label), soft_labels(evaluation.classes)
    every = [soft.settings for soft in evaluation.soft_confusion]
    of_class = [settings for settings in every if labels[settings.class_index] == label]
    if len(of_class) != 1:
        return f"Weights of {name}"
    (s,) = of_class
    damped = "" if s.uncertainty is None else f", d = {s.dampings[0]:g} on {pretty(s.uncertainty)}"
    return f"Weights of {name} at t = {s.thresholds[0]:g}, σ = {s.sigmas[0]:g}{damped}"


def _opaque(colours: Floats) -> Floats:
    """Return RGB in [0, 1] as RGBA, transparent where it is NaN."""
    defined = ~np.isnan(colours).any(axis=2, keepdims=True)
    return np.concatenate([np.where(defined, np.clip(colours, 0, 1), 0.0), defined.astype(np.float64)], axis=2)


def _colour_scales(axes: Axes) -> None:
    """Draw the colours of the four weights from 0 to 1."""
    hues = np.array([to_rgb(CELLS[cell]) for cell in CELL_NAMES])
    axes.imshow(1 - np.linspace(0, 1, 128)[:, np.newaxis, np.newaxis] * (1 - hues), aspect="auto", origin="lower",
                extent=(-0.5, 3.5, 0, 1), interpolation="nearest")  # fmt: skip
    axes.set_xticks(range(4), list(CELL_NAMES), fontsize=7)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(axis="x", length=0)
    axes.spines[:].set_visible(False)
    layout.label_panel(axes, "", "grey: not counted", "weight")
