"""Distributions of measures over correct and wrong predictions: densities, by class, by number of confused classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from dask_uncert.formulas import distributions
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.metrics import distributions as distribution_metrics
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.curves import value_axis, value_label
from dask_uncert.reports.figures.style import GREY, OUTCOMES, styled
from dask_uncert.reports.names import axis_name, pretty
from dask_uncert.reports.results import breakdowns
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation

BARS = 50  # of a density over the range of a measure
PER_OCTAVE = 4  # bars of a measure without a range
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_NAMED = 60
MARKS = {"correct": "o", "wrong": "s"}


def chosen_threshold(evaluation: Evaluation, name: str) -> float | None:
    """Return the job's lowest threshold with the largest USen + USpe.

    None without thresholds, and without wrong or correct predictions, which leave the sum undefined.
    """
    taus = evaluation.measures[name].thresholds
    metrics = distribution_metrics.uncertainty_confusion(evaluation, name)
    both = np.asarray(metrics["USen"]) + np.asarray(metrics["USpe"])
    if not taus or np.isnan(both).all():
        return None
    return float(taus[int(np.nanargmax(both))])


def density_bars(measure: Distribution, histogram: Counts) -> tuple[Floats, Floats]:
    """Return the edges and the densities of a measure's bars; NaN if there are no values.

    Bars consist of whole bins. If the measure has no range, the density is that of logarithms to base 10, and bars
    start above the bin of 0.
    """
    edges = np.asarray(measure.edges)
    if measure.wide:
        wanted = edges[1] * 2.0 ** (np.arange(400) / PER_OCTAVE)
        wanted = wanted[wanted < edges[-1]]
    else:
        wanted = np.array([measure.upper * i / BARS for i in range(BARS)])
    starts = np.unique(np.searchsorted(edges, wanted))
    bounds = np.append(edges[starts], edges[-1])
    width = np.diff(np.log10(bounds) if measure.wide else bounds)
    return bounds, ratio(np.add.reduceat(histogram, starts), histogram.sum()) / width


@styled
def densities(evaluation: Evaluation) -> Figure:
    """Draw the density of every measure over correct and over wrong predictions ([A22] figure 3).

    The vertical line is the threshold with the largest USen + USpe.
    """
    names = list(evaluation.measures)
    columns = layout.columns_of(len(names))
    labels = [*_counted(evaluation).values(), "threshold with largest USen + USpe"]
    size = (2.3, 1.7) if columns > 1 else (3.8, 2.6)
    plan = layout.plan_legend(labels, 0.8 + columns * (size[0] + 0.4))
    gap = 0.62 if any(measure.wide for measure in evaluation.distributions) else 0.42
    margins = layout.Margins(top=0.27 + plan.height)
    figure, panels = layout.panel_grid(len(names), columns, size, margins, (gap, 0.78))
    handles = [_density(axes, evaluation, name) for axes, name in zip(panels, names, strict=True)]
    for i in range(1, len(names)):
        if i % columns and panels[i].get_xscale() == panels[i - 1].get_xscale():
            panels[i].set_ylabel("")
    layout.shared_legend(figure, handles[0], labels, plan)
    return figure


def _density(axes: Axes, evaluation: Evaluation, name: str) -> list[Any]:
    """Draw one panel; return the handles of the legend."""
    measure, counts = evaluation.measures[name], distribution_metrics.right_and_wrong(evaluation, name)
    handles: list[Any] = []
    highest = 0.0
    for (_, color, style), histogram in zip(OUTCOMES, counts, strict=True):
        bounds, density = density_bars(measure, histogram)
        axes.stairs(np.nan_to_num(density), bounds, color=color, alpha=0.16, fill=True)
        handles.append(axes.stairs(density, bounds, color=color, ls=style, lw=1.6, baseline=None))
        highest = max(highest, float(np.nanmax(density, initial=0.0)))
    tau, along = chosen_threshold(evaluation, name), axes.get_xaxis_transform()
    taus = [] if tau is None else [tau]
    handles.append(axes.vlines(taus, 0, 1, transform=along, color=GREY, lw=1.2, ls=(0, (4, 2))))
    for value in taus:
        axes.text(value, 0.99, f" {value:g}", transform=along, va="top", fontsize=8, color=GREY)
    value_axis(axes, measure)
    if measure.wide:
        note = _near_zero(measure, *counts)
        axes.text(0.02, 0.99, note, transform=axes.transAxes, va="top", fontsize=7, color=GREY)
    elif measure.upper == 1:
        layout.unit_ticks(axes, "x")
    axes.set_ylim(0, highest * 1.15 or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    label = "density (per factor of 10)" if measure.wide else "density (per unit)"
    layout.label_panel(axes, pretty(name), value_label(evaluation, name), label)
    return handles


def _near_zero(measure: Distribution, correct: Counts, wrong: Counts) -> str:
    """Return a note on what a logarithmic scale cannot show: the shares in the bin that holds 0."""
    shares = [float(ratio(part[0], part.sum())) for part in (correct, wrong)]
    if not any(share > 0 for share in shares):
        return ""
    first, second = ("–" if np.isnan(share) else f"{100 * share:.1f} %" for share in shares)
    return f"up to {measure.edges[1]:.0e}:\n{first} of correct\n{second} of wrong"


def _counted(evaluation: Evaluation) -> dict[str, str]:
    """Return the legend's label of each outcome, with its number of pixels."""
    confusion = evaluation.decisions.confusion
    correct = int(np.trace(confusion))
    numbers = {"correct": correct, "wrong": int(confusion.sum()) - correct}
    return {outcome: f"{outcome} (n = {number:,})" for outcome, number in numbers.items()}


@styled
def by_class(evaluation: Evaluation) -> Figure:
    """Draw the mean and quantiles of every measure by reference class and outcome ([C23] figures 8, 9)."""
    names = list(evaluation.measures)
    rows, columns = breakdowns.by_class(evaluation, reference=True), layout.columns_of(len(names), 4)
    shown = [axis_name(row["name"]) for row in rows] if len(rows) <= MOST_NAMED else []
    labels = [f"{label}: mean, 25–75 %, 5–95 %" for label in _counted(evaluation).values()]
    high = min(max(0.235 * len(rows), 1.2), 14.0)
    gap = 0.34 if any(measure.wide for measure in evaluation.distributions) else 0.18
    wide = 1.5 if columns > 1 else 3.8
    margins = layout.Margins(left=0.2 + (layout.widest_text(shown, 8) or 0.45))
    plan = layout.plan_legend(labels, margins.left + columns * (wide + 0.2))
    margins = margins._replace(top=0.27 + plan.height)
    figure, panels = layout.panel_grid(len(names), columns, (wide, high), margins, (gap, 0.75))
    handles: list[Any] = []
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        measure, handles = evaluation.measures[name], []
        for (outcome, color, _), shift in zip(OUTCOMES, (-0.18, 0.18), strict=True):
            counts = measure.histogram[:, distribution_metrics.OUTCOMES[outcome]].sum(axis=1)
            spread = distributions.quantiles(counts, np.asarray(measure.edges), SHARES)
            y = np.arange(len(rows)) + shift
            axes.hlines(y, spread[:, 0], spread[:, 4], color=color, lw=0.8)
            axes.hlines(y, spread[:, 1], spread[:, 3], color=color, lw=2.6, alpha=0.55)
            mean = [row["measures"][name][outcome]["mean"] for row in rows]
            handles += axes.plot(mean, y, MARKS[outcome], color=color, ms=3.6, mec="white", mew=0.5)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        value_axis(axes, measure)
        axes.grid(True, axis="x", lw=0.7)
        class_names = shown if i % columns == 0 else []
        axes.set_yticks(range(len(class_names)), class_names, fontsize=8)
        axes.tick_params(axis="y", length=0)
        if measure.reach == 1 and not measure.wide:
            layout.unit_ticks(axes, "x")
        layout.label_panel(axes, pretty(name), value_label(evaluation, name), "" if shown else "reference class")
    layout.outer_labels(panels, columns, "y")
    layout.shared_legend(figure, handles, labels, plan)
    return figure


@styled
def by_confused_classes(evaluation: Evaluation) -> Figure | None:
    """Draw the mean and standard deviation of every measure by number of confused classes ([C23] figures 9, 10).

    The last panel shows the number of pixels. None if no pixel was counted.
    """
    rows, names = breakdowns.by_confused(evaluation), list(evaluation.measures)
    if not rows:
        return None
    numbers = np.array([row["confused_classes"] for row in rows], np.float64)
    columns = layout.columns_of(len(names) + 1)
    labels = list(_counted(evaluation).values())
    plan = layout.plan_legend(labels, 0.8 + columns * 2.3)
    margins = layout.Margins(top=0.27 + plan.height)
    figure, panels = layout.panel_grid(len(names) + 1, columns, (2.1, 1.7), margins, (0.5, 0.42))
    handles: list[Any] = []
    for axes, name in zip(panels, names, strict=False):
        measure, handles, highest = evaluation.measures[name], [], 0.0
        for (outcome, color, style), shift in zip(OUTCOMES, (-0.1, 0.1), strict=True):
            moments = [row["measures"][name][outcome] for row in rows]
            mean, std = (np.array([float(row[key]) for row in moments]) for key in ("mean", "std"))
            x = numbers + shift
            axes.vlines(x, mean - std, mean + std, color=color, lw=1.2)
            highest = max(highest, float(np.nanmax(mean + std, initial=0.0)))
            handles += axes.plot(x, mean, MARKS[outcome], ls=style, color=color, ms=4, lw=1.0)
        axes.set_ylim(0, highest * 1.1 if measure.wide and highest > 0 else measure.reach)
        if measure.reach == 1 and not measure.wide:
            layout.unit_ticks(axes, "y")
        layout.label_panel(axes, value_label(evaluation, name), "classes with p > 1/C", "mean ± std")
    last = panels[-1]
    correct = np.array([int(row["correct"]) for row in rows])
    wrong = np.array([int(row["n"]) for row in rows]) - correct
    bars: dict[str, Any] = {"width": 0.7, "ec": "white", "lw": 0.4}
    last.bar(numbers, correct, color=OUTCOMES[0][1], **bars)
    last.bar(numbers, wrong, bottom=correct, color=OUTCOMES[1][1], alpha=0.8, **bars)
    layout.count_ticks(last, 4)
    layout.label_panel(last, "Pixels", "classes with p > 1/C", "")
    for i, axes in enumerate(panels):
        axes.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
        axes.set_xticks(numbers[:: -(-numbers.size // 5)])
        axes.grid(True, axis="y", lw=0.7)
        if i % columns:
            axes.set_ylabel("")
    layout.outer_labels(panels, columns, "x")
    layout.shared_legend(figure, handles, labels, plan)
    return figure
