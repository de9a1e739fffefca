"""Soft confusion drawn: what certainty and damping weigh, and what every spread and damping makes of the metrics."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from dask_uncert.formulas.soft import certainty, damping_factor
from dask_uncert.reports import sheets
from dask_uncert.reports.curves import value_label
from dask_uncert.reports.names import axis_name, file_names, pretty
from dask_uncert.reports.sheets import Margins, at, outer, sheet, ticks, words
from dask_uncert.reports.style import COLORS, DASHES, DPI, GREY, SETTINGS
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint import JointHistogram
from dask_uncert.summaries.soft_confusion import CELLS, SoftSettings
from dask_uncert.summaries.sweeps import Sweep, sweep

Floats = NDArray[np.float64]
MOST_THRESHOLDS, MOST_CURVES, MOST_GROUPS, MOST_SWEPT = 3, 6, 4, 8
SIGMAS = tuple(i / 50 for i in range(26))  # 0, .02, ..., .5
DAMPINGS = (0.0, 0.5, 1.0, 2.0)
SEEN = 0.002  # a bound that is wider than a line
F1 = ("f1",)
OTHERS = ("accuracy", "precision", "recall", "false_positive_rate")
SHARE = "share of weight left"
TITLES = {"f1": "F1", "false_positive_rate": "false-positive rate"}


def weight_functions(evaluation: Evaluation) -> Figure | None:
    """Certainty around each threshold and damping of the uncertainty, at the job's settings ([S22] figures 4, 5).

    A row for each set of settings, the first four; up to three thresholds and six curves a panel. None without soft
    confusion.
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
        height = figure.get_size_inches()[1]
        for row, (s, names) in enumerate(groups):
            top = 0.55 + row * (high + down)
            figure.text(0.1 / width, 1 - (top - 0.45) / height, _group_title(s, names), fontsize=10, weight="bold", va="top")
            thresholds = spread_out(s.thresholds, MOST_THRESHOLDS)
            for column, t in enumerate(thresholds):
                axes = at(figure, left + column * (wide + gap), top, wide, high)
                p = _fine_near(t)
                axes.axvline(t, color=GREY, lw=0.9, ls=(0, (1, 2)))
                for sigma, look in _looks(s.sigmas):
                    axes.plot(p, certainty(p, t, sigma, s.distribution, s.df), label=f"σ = {sigma:g}", **look)
                _share_axes(axes)
                words(axes, f"t = {t:g}", "probability p", "certainty A(p)" if column == 0 else "")
                if column:
                    axes.tick_params(labelleft=False)
            _beside(axes, wide)
            if s.uncertainty is not None:
                axes = at(figure, left + widest_row * (wide + gap) + key + 0.55, top, wide, high)
                reach = evaluation.measures[s.uncertainty].reach if s.uncertainty in evaluation.measures else 1.0
                u = np.linspace(0, reach, 201)
                for d, look in _looks(s.dampings):
                    axes.plot(u, damping_factor(u, d, s.damping_form), label=f"d = {d:g}", **look)
                _share_axes(axes, reach)
                label = value_label(evaluation, s.uncertainty) if s.uncertainty in evaluation.measures else "uncertainty"
                words(axes, "damping", f"u, {label}", "damping C(u)")
                _beside(axes, wide)
    return figure


def soft_groups(evaluation: Evaluation) -> list[tuple[SoftSettings, list[str]]]:
    """The sets of settings of the job, each with the names of the classes it is asked of."""
    found: dict[SoftSettings, list[str]] = {}
    for one in evaluation.soft_confusion:
        name = evaluation.classes[one.settings.class_index].name
        found.setdefault(replace(one.settings, class_index=0), []).append(name)
    return list(found.items())


def spread_out(values: Sequence[float], most: int) -> list[float]:
    """At most `most` of the values in rising order, the lowest and the highest among them.

    >>> spread_out([0.3, 0.1, 0.2, 0.4, 0.5], 3)
    [0.1, 0.3, 0.5]
    """
    rising = sorted(set(values))
    if len(rising) <= most:
        return rising
    return [rising[round(i * (len(rising) - 1) / (most - 1))] for i in range(most)]


def _looks(values: Sequence[float]) -> list[tuple[float, dict[str, Any]]]:
    """Colour and dashes of the curve of each value."""
    chosen = spread_out(values, MOST_CURVES)
    return [
        (value, {"color": COLORS[i], "ls": DASHES[i % len(DASHES)], "lw": 1.7}) for i, value in enumerate(chosen)
    ]


def _fine_near(t: float) -> Floats:
    """Places over [0, 1], the threshold itself among them."""
    return np.unique(np.concatenate([np.linspace(0, 1, 201), [t]]))


def _share_axes(axes: Any, reach: float = 1.0) -> None:
    axes.set(xlim=(0, reach), ylim=(0, 1.03))
    axes.grid(True, lw=0.7)
    ticks(axes, "xy" if reach == 1 else "y")


def _beside(axes: Any, wide: float) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1 + 0.1 / wide, 1.0), borderaxespad=0.0, handlelength=1.9, fontsize=8)


def _group_title(s: SoftSettings, names: Sequence[str]) -> str:
    of = axis_name(names[0]) if len(names) == 1 else f"{len(names)} classes"
    df = "" if s.df is None else f" (df {s.df:g})"
    form = "" if s.uncertainty is None else f", {s.damping_form} damping by {pretty(s.uncertainty)}"
    return f"Weights of {of}: {s.distribution}{df} threshold{form}"


def sweeps(evaluation: Evaluation) -> Iterator[tuple[str, Sweep]]:
    """A name for files and the sweep of every joint histogram, of those with most reference pixels where there are many.

    Up to three of the named thresholds, `SIGMAS`, and up to six dampings: the job's, and some between.
    """
    support = evaluation.decisions.confusion.sum(axis=1)
    found = sorted(evaluation.joint, key=lambda one: -support[one.settings.class_index])[:MOST_SWEPT]
    names = [evaluation.classes[one.settings.class_index].name for one in found]
    labels = [
        name if names.count(name) == 1 else f"{name} {one.settings.uncertainty or 'undamped'} {i}"
        for i, (name, one) in enumerate(zip(names, found, strict=True))
    ]
    safe = file_names(labels)
    for label, one in zip(labels, found, strict=True):
        yield safe[label], _sweep(evaluation, one)


def _sweep(evaluation: Evaluation, joint: JointHistogram) -> Sweep:
    s = joint.settings
    asked = [
        one.settings
        for one in evaluation.soft_confusion
        if (one.settings.class_index, one.settings.uncertainty) == (s.class_index, s.uncertainty)
    ]
    like = asked[0] if asked else SoftSettings(s.class_index, s.thresholds)
    dampings = [0.0]
    if s.uncertainty is not None:
        reach = evaluation.measures[s.uncertainty].reach if s.uncertainty in evaluation.measures else 1.0
        unit = 10.0 ** -round(math.log10(reach))
        named = [d for d in like.dampings if math.isfinite(d)]
        dampings = spread_out([*named, *(unit * d for d in DAMPINGS)], MOST_CURVES)
    return sweep(
        replace(evaluation, joint=(joint,)),
        thresholds=spread_out(s.thresholds, MOST_THRESHOLDS) or [0.5],
        sigmas=SIGMAS,
        dampings=dampings,
        distribution=like.distribution,
        df=like.df,
        damping_form=like.damping_form,
        reference_threshold=like.reference_threshold,
        reference_certainty=like.reference_certainty,
    )


def sweep_panels(swept: Sweep, counted: int, metrics: Sequence[str]) -> Figure:
    """Metrics against sigma, a curve a damping, always with the share of the weight that is left ([S22] 8, 9).

    A row a threshold. A band says how far off a value may be, where that is wider than the line.
    """
    values = {**swept.values, SHARE: swept.share}
    bounds = {**swept.bounds, SHARE: sum(swept.bounds[cell] for cell in CELLS) / max(counted, 1)}
    columns = len(metrics) + 1
    labels = [f"d = {d:g}" for d in swept.dampings]
    wide, high = (2.5, 1.8) if columns == 2 else (1.5, 1.5)
    damped = "" if swept.uncertainty is None else f", damped by {pretty(swept.uncertainty)}"
    with rc_context(SETTINGS):
        plan = sheets.key(labels, 0.8 + columns * (wide + 0.25))
        margins = Margins(left=0.7, top=0.5 + plan.height)
        figure, panels = sheet(columns * len(swept.thresholds), columns, (wide, high), margins, (0.22, 0.2))
        width, height = figure.get_size_inches()
        title = f"{axis_name(swept.class_name)} against the rest{damped}"
        figure.text(0.1 / width, 1 - 0.08 / height, title, fontsize=10, weight="bold", va="top")
        for place, axes in enumerate(panels):
            row, column = divmod(place, columns)
            metric = (*metrics, SHARE)[column]
            for number, (_, look) in enumerate(_looks(swept.dampings)):
                value, bound = values[metric][row, :, number], bounds[metric][row, :, number]
                axes.plot(swept.sigmas, value, **look)
                if float(np.nanmax(bound, initial=0.0)) > SEEN:
                    low, upper = np.clip(value - bound, 0, 1), np.clip(value + bound, 0, 1)
                    axes.fill_between(swept.sigmas, low, upper, color=look["color"], alpha=0.2, lw=0)
            axes.set(xlim=(0, max(swept.sigmas) or 1.0), ylim=(0, 1.015))
            axes.grid(True, lw=0.7)
            ticks(axes, "y")
            axes.locator_params(axis="x", nbins=5)
            if metric == SHARE:
                axes.set_facecolor("#f4f4f4")
            title = TITLES.get(metric, metric) if row == 0 else ""
            words(axes, title, "spread σ of the threshold", f"t = {swept.thresholds[row]:g}")
        outer(panels, columns)
        handles = [Line2D([], [], **look) for _, look in _looks(swept.dampings)]
        figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.1 / width, 1 - 0.28 / height), ncols=plan.columns,
                      borderaxespad=0.0, borderpad=0.0)  # fmt: skip
    return figure
