"""Figures of a cohort: each metric over its cases, its groups, and its comparison with another model."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle

from dask_uncert.metrics import cohort as cohort_metrics
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.cohort_strips import HEIGHT, difference_strips, mean_and_pooled, whole_strips
from dask_uncert.reports.figures.strips import Strip
from dask_uncert.reports.figures.style import BLUE, DPI, GREY, VERMILION, styled
from dask_uncert.reports.names import axis_name
from dask_uncert.reports.results.cohort import CohortStatistics, OtherModel
from dask_uncert.reports.results.headline import Metric

INK, VIOLIN = "#1b1f24", "#7f9bb0"
ACROSS, TALL = 4.6, 0.95  # inches of a strip
FOOT = 32.0  # pixels below the dots, for mean and pooled
POINTS = 0.72  # per pixel of the page
MOST_SHOWN = 4  # metrics in the figure of groups
MARKS = (("D", INK, INK, 4.6, 9.0), ("s", VERMILION, "white", 4.8, 24.0))
"""Marker, colour, fill, size and pixels below the dots, of the mean and of the pooled number."""


@styled
def cohort_strips(statistics: CohortStatistics) -> Figure:
    """Draw a strip per metric: a dot per case, their density, quantiles over patients, and means with intervals."""
    several = len(statistics.cohort.stack) > len(statistics.whole.patients)
    figure, _ = _strip_panels((metric, strip, metric.better) for metric, strip in whole_strips(statistics))
    _legend(figure, "case" if several else "patient", "pooled", spread=True)
    return figure


@styled
def comparison(statistics: CohortStatistics, against: OtherModel) -> Figure:
    """Draw the differences of two models: a dot per patient, mean and pooled difference with intervals."""
    strips = difference_strips(statistics, against)
    figure, panels = _strip_panels(
        (metric, strip, f"{'above' if metric.best else 'below'} 0: A is better") for metric, strip in strips
    )
    for axes in panels:
        axes.axvline(0.0, color=GREY, lw=1.0, zorder=1)
    layout.label_panel(panels[-1], x=f"this evaluation (A) minus {axis_name(against.name, 40)} (B)", far=0.0)
    _legend(figure, "patient", "pooled difference", spread=False)
    return figure


@styled
def cohort_groups(statistics: CohortStatistics) -> Figure | None:
    """Draw mean and pooled metrics of the groups of each column, with intervals; a panel per metric."""
    shown = {column: parts for column, parts in statistics.shown.items() if len(parts) > 1}
    if not shown:
        return None
    metrics = statistics.headline[:MOST_SHOWN]
    names = {column: [axis_name(value, 24) for value in parts] for column, parts in shown.items()}
    left = 0.35 + max(layout.widest_text(labels) for labels in names.values())
    size, top, gap = 1.75, 0.62, 0.62
    heights = [0.34 * len(parts) + 0.12 for parts in shown.values()]
    across = left + len(metrics) * (size + 0.28)
    figure = Figure(figsize=(across, top + sum(heights) + gap * len(heights)), dpi=DPI)
    y = top
    for (column, parts), height in zip(shown.items(), heights, strict=True):
        panels = []
        for k, metric in enumerate(metrics):
            axes = layout.add_panel(figure, left + k * (size + 0.28), y, size, height)
            _group_panel(axes, metric, parts.values())
            axes.set_yticks(range(len(parts)), names[column])
            layout.label_panel(axes, metric.short if y == top else "")
            axes.set_xlim(*_range(metric, statistics))
            panels.append(axes)
        layout.outer_labels(panels, len(metrics), "y")
        panels[0].set_title(f"by {axis_name(column, 20)}", loc="right", x=-0.06, pad=5, fontsize=8.5)
        y += height + gap
    _legend(figure, None, "pooled", spread=False)
    return figure


def _range(metric: Metric, statistics: CohortStatistics) -> tuple[float, float]:
    """Return the range of a metric over all groups, with some space around."""
    known = [
        value
        for parts in statistics.shown.values()
        for group in parts.values()
        for mark in mean_and_pooled(group, metric)
        for value in mark
        if value is not None and math.isfinite(value)
    ] or [metric.low, metric.high]
    space = 0.04 * (max(known) - min(known)) or 0.05
    return min(known) - space, max(known) + space


def _group_panel(axes: Axes, metric: Metric, groups: Collection[cohort_metrics.GroupStatistics]) -> None:
    for row, group in enumerate(groups):
        marks: Any = mean_and_pooled(group, metric)
        drawn = zip(MARKS, marks, (-0.15, 0.15), strict=True)
        for (marker, colour, fill, points, _), (value, *ends), shift in drawn:
            if ends[0] is not None:
                axes.plot(ends, [row + shift] * 2, color=colour, lw=1.4)
            axes.plot(value, row + shift, marker, color=colour, mfc=fill, ms=points)
    axes.set_ylim(len(groups) - 0.45, -0.55)
    axes.grid(axis="x")
    axes.locator_params(axis="x", nbins=4)
    axes.tick_params(axis="y", length=0)


def draw_strip(axes: Axes, strip: Strip) -> None:
    """Draw a strip as on the page; its y axis is in pixels from the top."""
    axis = strip.axis

    def value(percent: float) -> float:
        return axis.low + percent / 100 * (axis.high - axis.low)

    if strip.quantiles is not None:
        q = [value(percent) for percent in strip.quantiles]
        axes.add_patch(Rectangle((q[1], 1), q[3] - q[1], HEIGHT - 2, color="#dce9f3", lw=0))
        axes.add_patch(Rectangle((q[0], HEIGHT / 2 - 2), q[4] - q[0], 4, color="#c9d6e0", lw=0))
        axes.vlines(q[2], 1, HEIGHT - 1, color="#4d6f8a", lw=1.5)
    if strip.violin is not None:  # without a fill, which would hide the quantiles
        outline = [(value(x), y) for x, y in strip.violin]
        axes.add_patch(Polygon(outline, fill=False, ec=VIOLIN, lw=1.0, zorder=2))
    area = (2 * strip.radius * POINTS) ** 2
    axes.scatter([dot.value for dot in strip.dots], [dot.y for dot in strip.dots], area, BLUE, alpha=0.5, lw=0, zorder=3,
                 clip_on=False)  # fmt: skip
    for mark, (marker, colour, fill, points, below) in zip((strip.mean, strip.pooled), MARKS, strict=True):
        y = HEIGHT + below
        if mark.low is not None and mark.high is not None:
            axes.hlines(y, value(mark.low), value(mark.high), color=colour, lw=1.5)
        if mark.x is not None:
            axes.plot(value(mark.x), y, marker, color=colour, mfc=fill, ms=points, clip_on=False, zorder=4)
    axes.set_xlim(axis.low, axis.high)
    axes.set_ylim(HEIGHT + FOOT, 0)
    axes.set_xticks(*zip(*((value(tick.x), tick.label) for tick in axis.ticks()), strict=True))
    axes.grid(axis="x")
    axes.set_yticks([])
    axes.spines[["left"]].set_visible(False)


def _strip_panels(rows: Iterable[tuple[Metric, Strip, str]]) -> tuple[Figure, list[Axes]]:
    """Draw strips below one another, each with the name of its metric and a note to its left."""
    rows = list(rows)
    names = [axis_name(metric.label, 30) for metric, _, _ in rows]
    left = 0.25 + min(layout.widest_text(names) * layout.BOLD, 2.6)
    margins = layout.Margins(left, right=0.25, top=0.5)
    figure, panels = layout.panel_grid(len(rows), 1, (ACROSS, TALL), margins, (0.3, 0.36))
    for axes, name, (_, strip, note) in zip(panels, names, rows, strict=True):
        draw_strip(axes, strip)
        style: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "va": "top"}
        axes.text(-0.18 / ACROSS, 0.95, name, weight="bold", fontsize=9, **style)
        axes.text(-0.18 / ACROSS, 0.7, note, fontsize=7.5, color=GREY, **style)
    return figure, panels


def _legend(figure: Figure, dot: str | None, pooled: str, spread: bool) -> None:
    entries: list[tuple[str, Any]] = []
    if dot is not None:
        entries.append((dot, Line2D([], [], ls="", marker="o", color=BLUE, alpha=0.5, mew=0, ms=5)))
        entries.append((f"density of {dot}s", Line2D([], [], color=VIOLIN, lw=1.0)))
    if spread:
        entries.append(("middle half of patients", Rectangle((0, 0), 1, 1, color="#dce9f3")))
    for (marker, colour, fill, points, _), label in zip(MARKS, ("mean over patients", pooled), strict=True):
        entries.append((label, Line2D([], [], marker=marker, color=colour, mfc=fill, ms=points, lw=1.5)))
    labels, handles = zip(*entries, strict=True)
    layout.shared_legend(figure, handles, labels, layout.LegendPlan(4, 1))
