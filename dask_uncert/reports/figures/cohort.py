"""Figures of a cohort: how each number is spread over its cases, its groups side by side, two models' differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from dask_uncert.metrics import cohort as cohort_metrics
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.cohort_strips import HEIGHT, difference_strips, whole_strips
from dask_uncert.reports.figures.layout import Margins, at, outer, sheet, widest, words
from dask_uncert.reports.figures.strip_plot import Mark, Strip
from dask_uncert.reports.figures.style import BLUE, DPI, GREY, SETTINGS, VERMILION
from dask_uncert.reports.names import axis_name
from dask_uncert.reports.results.cohort import CohortStatistics, OtherModel
from dask_uncert.reports.results.headline import Metric

INK = "#1b1f24"
ACROSS = 4.6  # inches of a strip
TALL = 0.95
FOOT = 32.0  # pixels below the dots, for mean and pooled
POINTS = 0.72  # of a pixel of the page
MOST_SHOWN = 4  # metrics of groups
MARKS = {"mean": ("D", INK, INK, 4.6, 9.0), "pooled": ("s", VERMILION, "white", 4.8, 24.0)}
"""Marker, colour, fill, size, and pixels below the dots."""


def cohort_strips(numbers: CohortStatistics) -> Figure:
    """A strip a metric: every case a dot, median, middle half and nine tenths of patients, means with intervals."""
    rows = list(whole_strips(numbers))
    labels = [metric.label for metric, _ in rows]
    with rc_context(SETTINGS):
        figure, panels = _stacked(labels)
        for axes, (metric, one) in zip(panels, rows, strict=True):
            draw_strip(axes, one)
            _named(axes, axis_name(metric.label, 30), metric.better)
        several = len(numbers.cohort.stack) > len(numbers.whole.patients)
        _key(figure, "visit of a patient" if several else "patient", "pooled", spread=True)
    return figure


def comparison(numbers: CohortStatistics, against: OtherModel) -> Figure:
    """Differences of two models: every patient a dot, the mean and the pooled difference with intervals."""
    rows = list(difference_strips(numbers, against))
    with rc_context(SETTINGS):
        figure, panels = _stacked([metric.label for metric, _ in rows])
        for axes, (metric, one) in zip(panels, rows, strict=True):
            axes.axvline(0.0, color=GREY, lw=1.0, zorder=1)
            draw_strip(axes, one)
            _named(
                axes, axis_name(metric.label, 30), f"{'above' if metric.best else 'below'} 0: first better"
            )
        _key(figure, "difference of a patient", "pooled difference", spread=False)
    return figure


def cohort_groups(numbers: CohortStatistics) -> Figure | None:
    """Groups side by side: a row of panels a grouping column, a panel a metric, mean and pooled with intervals."""
    shown = {column: parts for column, parts in numbers.shown.items() if len(parts) > 1}
    if not shown:
        return None
    metrics = numbers.headline[:MOST_SHOWN]
    ranges = {metric.name: _range(metric, numbers) for metric in metrics}
    names = {column: [axis_name(value, 24) for value in parts] for column, parts in shown.items()}
    left = 0.35 + max(widest(of) for of in names.values())
    size, top, gap = 1.75, 0.62, 0.62
    heights = [0.34 * len(parts) + 0.12 for parts in shown.values()]
    with rc_context(SETTINGS):
        across = left + len(metrics) * (size + 0.28)
        figure = Figure(figsize=(across, top + sum(heights) + gap * len(heights)), dpi=DPI)
        y = top
        for (column, parts), height in zip(shown.items(), heights, strict=True):
            panels = [at(figure, left + k * (size + 0.28), y, size, height) for k, _ in enumerate(metrics)]
            for axes, metric in zip(panels, metrics, strict=True):
                _group_panel(axes, metric, parts)
                axes.set_yticks(range(len(parts)), names[column])
                words(axes, metric.short if y == top else "")
            for axes, metric in zip(panels, metrics, strict=True):
                axes.set_xlim(*ranges[metric.name])
            outer(panels, len(metrics), "y")
            panels[0].set_title(f"by {axis_name(column, 20)}", loc="right", x=-0.06, pad=5, fontsize=8.5)
            y += height + gap
        _key(figure, None, "pooled", spread=False)
    return figure


def _range(metric: Metric, numbers: CohortStatistics) -> tuple[float, float]:
    """Of the axis that all groups share for a metric: what is drawn, and a little more."""
    found: list[float] = []
    for of in (of for parts in numbers.shown.values() for of in parts.values()):
        i = of.metrics.index(metric.name)
        for values, ends in ((of.mean, of.mean_interval), (of.pooled, of.pooled_interval)):
            found += [values[i], *(() if ends is None else (ends.low[i], ends.high[i]))]
    known = [float(value) for value in found if math.isfinite(value)] or [metric.low, metric.high]
    room = 0.04 * (max(known) - min(known)) or 0.05
    return min(known) - room, max(known) + room


def _group_panel(axes: Axes, metric: Metric, parts: dict[str, cohort_metrics.GroupStatistics]) -> None:
    for row, of in enumerate(parts.values()):
        i = of.metrics.index(metric.name)
        for name, values, ends, shift in (
            ("mean", of.mean, of.mean_interval, -0.15),
            ("pooled", of.pooled, of.pooled_interval, 0.15),
        ):
            marker, colour, fill, points, _ = MARKS[name]
            if ends is not None:
                axes.plot([ends.low[i], ends.high[i]], [row + shift] * 2, color=colour, lw=1.4)
            axes.plot(values[i], row + shift, marker, color=colour, mfc=fill, ms=points)
    axes.set_ylim(len(parts) - 0.45, -0.55)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(axis="y", length=0)


def draw_strip(axes: Axes, one: Strip) -> None:
    """A strip as on the page: pixels across become the panel's height, from the top."""
    axis = one.axis

    def value(percent: float) -> float:
        return axis.low + percent / 100 * (axis.high - axis.low)

    if one.quantiles is not None:
        q = [value(percent) for percent in one.quantiles]
        axes.add_patch(Rectangle((q[1], 1), q[3] - q[1], HEIGHT - 2, color="#dce9f3", lw=0))
        axes.add_patch(Rectangle((q[0], HEIGHT / 2 - 2), q[4] - q[0], 4, color="#c9d6e0", lw=0))
        axes.vlines(q[2], 1, HEIGHT - 1, color="#4d6f8a", lw=1.5)
    across = (2 * one.radius * POINTS) ** 2
    axes.scatter([dot.value for dot in one.dots], [dot.y for dot in one.dots], across, BLUE, alpha=0.5, lw=0, zorder=3,
                 clip_on=False)  # fmt: skip
    for name, mark in (("mean", one.mean), ("pooled", one.pooled)):
        _mark(axes, mark, name, value)
    axes.set_xlim(axis.low, axis.high)
    axes.set_ylim(HEIGHT + FOOT, 0)
    axes.set_xticks(*zip(*((value(tick.x), tick.label) for tick in axis.ticks()), strict=True))
    axes.grid(axis="x")
    axes.set_yticks([])
    axes.spines[["left"]].set_visible(False)


def _mark(axes: Axes, mark: Mark, name: str, value: Any) -> None:
    marker, colour, fill, points, below = MARKS[name]
    if mark.low is not None and mark.high is not None:
        axes.hlines(HEIGHT + below, value(mark.low), value(mark.high), color=colour, lw=1.5)
    if mark.x is not None:
        axes.plot(
            value(mark.x), HEIGHT + below, marker, color=colour, mfc=fill, ms=points, clip_on=False, zorder=4
        )


def _stacked(labels: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Strips below one another, room for their names to the left."""
    left = 0.25 + min(widest([axis_name(label, 30) for label in labels]) * layout.BOLD, 2.6)
    return sheet(
        len(labels), 1, (ACROSS, TALL), Margins(left=left, top=0.5, bottom=0.35, right=0.25), (0.3, 0.36)
    )


def _named(axes: Axes, label: str, small: str) -> None:
    width = layout.inches(axes)[0]
    axes.text(
        -0.18 / width, 0.95, label, transform=axes.transAxes, ha="right", va="top", weight="bold", fontsize=9
    )
    axes.text(
        -0.18 / width, 0.7, small, transform=axes.transAxes, ha="right", va="top", fontsize=7.5, color=GREY
    )


def _key(figure: Figure, dot: str | None, pooled: str, spread: bool) -> None:
    handles: list[Any] = []
    labels: list[str] = []
    if dot is not None:
        handles.append(Line2D([], [], ls="", marker="o", color=BLUE, alpha=0.5, mew=0, ms=5))
        labels.append(dot)
    if spread:
        handles.append(Rectangle((0, 0), 1, 1, color="#dce9f3"))
        labels.append("middle half of patients")
    for name, label in (("mean", "mean over patients"), ("pooled", pooled)):
        marker, colour, fill, points, _ = MARKS[name]
        handles.append(Line2D([], [], marker=marker, color=colour, mfc=fill, ms=points, lw=1.5))
        labels.append(label)
    layout.legend(
        figure, handles, labels, layout.key(labels, figure.get_size_inches()[0])._replace(columns=4)
    )
