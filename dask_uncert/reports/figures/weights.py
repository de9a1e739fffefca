"""What certainty and damping make of a weight, as functions: the settings of a job's soft confusion, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dask_uncert.formulas.soft_confusion import certainty, damping_factor
from dask_uncert.reports.figures.curves import lowest, value_axis, value_label
from dask_uncert.reports.figures.layout import at, heading, inches, ticks, words
from dask_uncert.reports.figures.style import DPI, GREY, SETTINGS, looks, spread_out
from dask_uncert.reports.names import axis_name, pretty
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.soft_confusion import SoftSettings

MOST_THRESHOLDS, MOST_GROUPS = 3, 4


def weight_functions(evaluation: Evaluation) -> Figure | None:
    """Certainty around each threshold and damping of the uncertainty, at the job's settings ([S22] figures 4, 5).

    A row for each set of settings, the first four; up to three thresholds and six curves a panel. The threshold is drawn
    dotted. None without soft confusion.
    """
    groups = soft_groups(evaluation)[:MOST_GROUPS]
    if not groups:
        return None
    widest_row = max(min(len(s.thresholds), MOST_THRESHOLDS) for s, _ in groups)
    wide, high, left, gap, key, down = 1.75, 1.6, 0.62, 0.2, 0.8, 0.95
    with rc_context(SETTINGS):
        damped = any(s.uncertainty is not None for s, _ in groups)
        width = left + widest_row * (wide + gap) + key + damped * (0.55 + wide + gap + key)
        figure = Figure(figsize=(width, 0.55 + len(groups) * (high + down) - 0.4), dpi=DPI)
        for row, (s, names) in enumerate(groups):
            top = 0.55 + row * (high + down)
            heading(figure, _group_title(s, names), top=top - 0.45)
            thresholds = spread_out(s.thresholds, MOST_THRESHOLDS)
            for column, t in enumerate(thresholds):
                axes = at(figure, left + column * (wide + gap), top, wide, high)
                p = _fine_near(t)
                axes.axvline(t, color=GREY, lw=0.9, ls=(0, (1, 2)))
                for sigma, look in looks(s.sigmas):
                    axes.plot(p, certainty(p, t, sigma, s.distribution, s.df), label=f"σ = {sigma:g}", **look)
                _share_axes(axes)
                words(axes, f"t = {t:g}", "probability p", "certainty A(p)" if column == 0 else "")
                if column:
                    axes.tick_params(labelleft=False)
            _beside(axes)
            if s.uncertainty is not None:
                _damping(
                    at(figure, left + widest_row * (wide + gap) + key + 0.55, top, wide, high), evaluation, s
                )
    return figure


def soft_groups(evaluation: Evaluation) -> list[tuple[SoftSettings, list[str]]]:
    """The sets of settings of the job, each with the names of the classes it is asked of."""
    found: dict[SoftSettings, list[str]] = {}
    for one in evaluation.soft_confusion:
        name = evaluation.classes[one.settings.class_index].name
        found.setdefault(replace(one.settings, class_index=0), []).append(name)
    return list(found.items())


def _fine_near(t: float) -> NDArray[np.float64]:
    """Places over [0, 1], the threshold itself among them."""
    return np.unique(np.concatenate([np.linspace(0, 1, 201), [t]]))


def _damping(axes: Any, evaluation: Evaluation, s: SoftSettings) -> None:
    """Damping against the uncertainty that damps, as far as there are values of it."""
    one = evaluation.measures.get(str(s.uncertainty))
    reach = 1.0 if one is None else one.reach
    u = np.linspace(0, reach, 201)
    if one is not None and one.wide:
        u = np.geomspace(lowest(one), reach, 201)
    for d, look in looks(s.dampings):
        axes.plot(u, damping_factor(u, d, s.damping_form), label=f"d = {d:g}", **look)
    _share_axes(axes, reach)
    if one is not None:
        value_axis(axes, one)
    words(
        axes,
        "damping",
        "u" if one is None else f"u, {value_label(evaluation, one.measure.name)}",
        "damping C(u)",
    )
    _beside(axes)


def _share_axes(axes: Any, reach: float = 1.0) -> None:
    axes.set(xlim=(0, reach), ylim=(0, 1.03))
    axes.grid(True, lw=0.7)
    ticks(axes, "xy" if reach == 1 else "y")


def _beside(axes: Any) -> None:
    right = 1 + 0.1 / inches(axes)[0]
    axes.legend(
        loc="upper left", bbox_to_anchor=(right, 1.0), borderaxespad=0.0, handlelength=1.9, fontsize=8
    )


def _group_title(s: SoftSettings, names: Sequence[str]) -> str:
    of = axis_name(names[0]) if len(names) == 1 else f"{len(names)} classes"
    df = "" if s.df is None else f" (df {s.df:g})"
    form = "" if s.uncertainty is None else f", {s.damping_form} damping by {pretty(s.uncertainty)}"
    return f"Weights of {of}: {s.distribution}{df} threshold{form}"
