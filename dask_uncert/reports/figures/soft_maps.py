"""The four weights of a soft confusion as maps, and the picture that they make together."""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dask_uncert.reports.figures.layout import at, heading, outer, words
from dask_uncert.reports.figures.maps import MEANINGS, SoftMap, map_axes, map_size, soft_class
from dask_uncert.reports.figures.style import CELLS, DPI, SETTINGS
from dask_uncert.reports.names import pretty
from dask_uncert.spec.map_names import soft_labels
from dask_uncert.summaries.evaluation import Evaluation


def soft_map(evaluation: Evaluation, one: SoftMap) -> Figure:
    """The four weights of a soft confusion and the picture they make, paler where they are smaller ([S22] 6, 7).

    Green, blue, red and purple as in the paper, but on white, which prints, and in hues that people with the common
    colour-vision deficiencies can tell apart; `map_soft_<class>` shows the colours as they are stored.
    """
    values, dims = one.weights["TP"]
    wide, high = map_size(values, 2.0)
    gap = (0.2, 0.32)
    with rc_context(SETTINGS):
        left, top = 0.62, 0.62
        tall = 2 * high + gap[1]
        broad = tall * wide / high
        size = (left + 2 * wide + gap[0] + 0.3 + broad + 1.4, top + tall + 0.5)
        figure = Figure(figsize=size, dpi=DPI)
        merged = np.ones((*values.shape, 3))
        small = []
        for place, (cell, (weight, _)) in enumerate(one.weights.items()):
            row, column = divmod(place, 2)
            axes = at(figure, left + column * (wide + gap[0]), top + row * (high + gap[1]), wide, high)
            taken = np.asarray(weight, np.float64)[..., np.newaxis] * (1 - np.array(to_rgb(CELLS[cell])))
            axes.imshow(_opaque(1 - taken), interpolation="nearest")
            words(axes, f"{cell}, {MEANINGS[cell]}")
            merged -= taken
            small.append(axes)
        start = left + 2 * wide + gap[0] + 0.3
        axes = at(figure, start, top, broad, tall)
        axes.imshow(_opaque(merged), interpolation="nearest")
        words(axes, "all four")
        map_axes([*small, axes], dims)
        outer(small, 2)
        axes.set_ylabel("")
        axes.tick_params(left=False, labelleft=False)
        _ramps(at(figure, start + broad + 0.5, top, 0.8, min(tall, 2.0)))
        heading(figure, _heading(evaluation, one.label), left, 0.1)
    return figure


def _heading(evaluation: Evaluation, label: str) -> str:
    """The class, and the setting its maps were made at where only one can be meant."""
    name = soft_class(evaluation, label)
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


def _opaque(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """RGB in [0, 1] as RGBA that lets the background through where it is NaN."""
    there = ~np.isnan(colours).any(axis=2, keepdims=True)
    return np.concatenate([np.where(there, np.clip(colours, 0, 1), 0.0), there.astype(np.float64)], axis=2)


def _ramps(axes: Axes) -> None:
    """What the colours of the four weights mean from 0 to 1."""
    hues = np.array([to_rgb(CELLS[cell]) for cell in MEANINGS])
    axes.imshow(1 - np.linspace(0, 1, 128)[:, np.newaxis, np.newaxis] * (1 - hues), aspect="auto", origin="lower",
                extent=(-0.5, 3.5, 0, 1), interpolation="nearest")  # fmt: skip
    axes.set_xticks(range(4), list(MEANINGS), fontsize=7)
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(axis="x", length=0)
    axes.spines[:].set_visible(False)
    words(axes, "", "grey: not counted", "weight")
