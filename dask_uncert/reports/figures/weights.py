"""Certainty and damping as functions, at the settings of a job's soft confusion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dask_uncert.formulas.soft_confusion import certainty, damping_factor
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.curves import lowest, value_axis, value_label
from dask_uncert.reports.figures.style import DPI, GREY, curve_styles, styled, thin_out
from dask_uncert.reports.names import axis_name, pretty
from dask_uncert.reports.results.by_setting import by_settings
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftSettings

MOST_THRESHOLDS, MOST_GROUPS = 3, 4


@styled
def weight_functions(evaluation: Evaluation) -> Figure | None:
    """Draw certainty around each threshold, and damping, at the job's settings ([S22] figures 4, 5).

    There is a row for each of the first four sets of settings, with up to three thresholds (dotted) and six curves per
    panel. None without soft confusion.
    """
    groups = list(by_settings(evaluation).items())[:MOST_GROUPS]
    if not groups:
        return None
    widest_row = max(min(len(s.thresholds), MOST_THRESHOLDS) for s, _ in groups)
    wide, high, left, gap, key, down = 1.75, 1.6, 0.62, 0.2, 0.8, 0.95
    right = left + widest_row * (wide + gap) + key
    damped = any(s.uncertainty is not None for s, _ in groups)
    width = right + damped * (0.55 + wide + gap + key)
    figure = Figure(figsize=(width, 0.55 + len(groups) * (high + down) - 0.4), dpi=DPI)
    for row, (s, group) in enumerate(groups):
        top = 0.55 + row * (high + down)
        names = [axis_name(evaluation.classes[soft.settings.class_index].name) for soft in group]
        layout.heading(figure, _group_title(s, names), top=top - 0.45)
        for column, t in enumerate(thin_out(s.thresholds, MOST_THRESHOLDS)):
            axes = layout.add_panel(figure, left + column * (wide + gap), top, wide, high)
            p = np.unique([*np.linspace(0, 1, 201), t])
            axes.axvline(t, color=GREY, lw=0.9, ls=(0, (1, 2)))
            for sigma, style in curve_styles(s.sigmas):
                axes.plot(p, certainty(p, t, sigma, s.distribution, s.df), label=f"σ = {sigma:g}", **style)
            _weight_axes(axes)
            layout.label_panel(axes, f"t = {t:g}", "probability p", "" if column else "certainty A(p)")
            axes.tick_params(labelleft=not column)
        layout.legend_beside(axes, handlelength=1.9)
        if s.uncertainty is not None:
            _draw_damping(layout.add_panel(figure, right + 0.55, top, wide, high), evaluation, s)
    return figure


def _draw_damping(axes: Axes, evaluation: Evaluation, s: SoftSettings) -> None:
    """Draw the damping factor over the range of the uncertainty."""
    measure = evaluation.measures.get(str(s.uncertainty))
    reach = 1.0 if measure is None else measure.reach
    u = np.linspace(0, reach, 201)
    if measure is not None and measure.wide:
        u = np.geomspace(lowest(measure), reach, 201)
    for d, style in curve_styles(s.dampings):
        axes.plot(u, damping_factor(u, d, s.damping_form), label=f"d = {d:g}", **style)
    _weight_axes(axes, reach)
    label = "u"
    if measure is not None:
        value_axis(axes, measure)
        label = f"u, {value_label(evaluation, measure.measure.name)}"
    layout.label_panel(axes, "damping", label, "damping C(u)")
    layout.legend_beside(axes, handlelength=1.9)


def _weight_axes(axes: Axes, reach: float = 1.0) -> None:
    axes.set(xlim=(0, reach), ylim=(0, 1.03))
    axes.grid(True, lw=0.7)
    layout.unit_ticks(axes, "xy" if reach == 1 else "y")


def _group_title(s: SoftSettings, names: Sequence[str]) -> str:
    classes = names[0] if len(names) == 1 else f"{len(names)} classes"
    df = "" if s.df is None else f" (df {s.df:g})"
    form = "" if s.uncertainty is None else f", {s.damping_form} damping by {pretty(s.uncertainty)}"
    return f"Weights of {classes}: {s.distribution}{df} threshold{form}"
