"""Curves over the values of measures: ECDFs, uncertainty confusion, and risk against coverage."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dask_uncert.formulas import distributions, selective
from dask_uncert.metrics import classification
from dask_uncert.metrics import distributions as distribution_metrics
from dask_uncert.metrics import selective as selective_metrics
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.style import COLORS, DASHES, GREY, METRICS, OUTCOMES, styled
from dask_uncert.reports.names import pretty, unit
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def value_label(evaluation: Evaluation, name: str) -> str:
    """Return the name of a measure, and the unit of its values if they have one."""
    symbol = unit(evaluation.measures[name].measure)
    return pretty(name) if symbol == "1" else f"{pretty(name)} ({symbol})"


def value_axis(axes: Axes, measure: Distribution) -> None:
    """Set the x axis to a measure's range, or to a logarithmic scale if it has none."""
    if not measure.wide:
        axes.set_xlim(0, measure.reach)
        return
    low = lowest(measure)
    axes.set_xscale("log")
    axes.set_xlim(low, measure.reach)
    axes.set_xticks(*powers(low, measure.reach))
    axes.minorticks_off()


def lowest(measure: Distribution) -> float:
    """Return the lower end of a logarithmic axis: the lower edge of the first filled bin above 0."""
    filled = np.flatnonzero(measure.histogram[..., 1:].sum(axis=(0, 1)))
    return measure.edges[int(filled[0]) + 1] if filled.size else measure.reach / 10


def powers(low: float, high: float, most: int = 4) -> tuple[list[float], list[str]]:
    """Return up to `most` evenly spaced powers of ten in a range with labels; its upper end if there are none.

    >>> powers(0.0005, 2)
    ([0.001, 0.01, 0.1, 1.0], ['10⁻³', '10⁻²', '10⁻¹', '10⁰'])
    """
    tens = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    chosen = tens[:: -(-len(tens) // most) or 1]
    if not chosen:
        return [high], [f"{high:.2g}"]
    return [10.0**k for k in chosen], ["10" + str(k).translate(RAISED) for k in chosen]


@styled
def panels(
    evaluation: Evaluation,
    draw: Callable[[Axes, Evaluation, str], None],
    measures: Sequence[str] | None = None,
) -> Figure:
    """Return a figure with one panel per measure, each drawn by `draw`, and one legend."""
    names = list(evaluation.measures) if measures is None else measures
    columns = layout.columns_of(len(names))
    size = (2.3, 1.8) if columns > 1 else (3.6, 2.5)
    # The legend's labels are known only after drawing; those of the panels differ in digits at most.
    figure, grid = layout.panel_grid(len(names), columns, size, layout.Margins(top=0.54), (0.25, 0.78))
    for axes, name in zip(grid, names, strict=True):
        draw(axes, evaluation, name)
        measure = evaluation.measures[name]
        layout.unit_ticks(axes, "xy" if measure.reach == 1 and not measure.wide else "y")
        layout.label_panel(axes)
    layout.outer_labels(grid, columns, "y")
    handles, labels = grid[0].get_legend_handles_labels()
    layout.shared_legend(figure, handles, labels, layout.plan_legend(labels, figure.get_size_inches()[0]))
    return figure


def ecdf(axes: Axes, evaluation: Evaluation, name: str) -> None:
    """Draw the share of correct and of wrong predictions at or below each value; no line without predictions."""
    for outcome, color, style in OUTCOMES:
        edges, shares = distribution_metrics.ecdf(evaluation, name, outcome)
        n = int(distribution_metrics.histogram(evaluation, name, outcome).sum())
        start = 0.0 if n else np.nan
        x, y = np.concatenate([[0.0], edges]), np.concatenate([[start], shares])
        axes.plot(x, y, style, color=color, lw=1.8, label=f"{outcome} (n = {n:,})")
    axes.set(title=pretty(name), xlabel=f"u, {value_label(evaluation, name)}", ylabel="share of pixels ≤ u")
    layout.unit_axes(axes)
    value_axis(axes, evaluation.measures[name])


def uncertainty_confusion(axes: Axes, evaluation: Evaluation, name: str) -> None:
    """Draw USen, USpe, UPre and UAcc at every edge, with marks at the job's thresholds."""
    measure = evaluation.measures[name]
    taus = np.asarray(measure.edges)[1:]
    counts = distribution_metrics.right_and_wrong(evaluation, name)
    metrics = distributions.uncertainty_confusion(*counts, measure.edges, taus)
    marked = np.flatnonzero(np.isin(taus, measure.thresholds)).tolist()
    for key, color, mark in METRICS:
        axes.plot(taus, metrics[key], f"-{mark}", color=color, lw=1.4, ms=4.5, markevery=marked, label=key)
    axes.set(title=pretty(name), xlabel=f"threshold τ on {value_label(evaluation, name)}", ylabel="metric")
    layout.unit_axes(axes)
    value_axis(axes, measure)


@styled
def risk_coverage(evaluation: Evaluation) -> Figure:
    """Draw the error rate of the pixels kept against their share, the most uncertain left out first."""
    highest = 0.0
    lines = (len(evaluation.measures) + 2) // 2
    figure, (axes,) = layout.panel_grid(1, 1, (4.7, 3.1), layout.Margins(bottom=0.65 + 0.19 * lines))
    for i, name in enumerate(evaluation.measures):
        coverage, risk = selective.risk_coverage(*distribution_metrics.right_and_wrong(evaluation, name))
        area, lowest, highest = selective_metrics.aurc(evaluation, name, bound=True)
        bound = f"{area:.4f} ± {max(area - lowest, highest - area):.0e}"  # by ties within bins
        label = f"{pretty(name)}: AURC {'undefined' if math.isnan(area) else bound}"
        style, color = DASHES[i % len(DASHES)], COLORS[i % len(COLORS)]
        axes.plot(coverage, risk, ls=style, color=color, lw=1.8, label=label)
        highest = max(highest, float(np.nanmax(risk, initial=0.0)))
    error = 1 - classification.accuracy(evaluation)
    if math.isfinite(error):
        axes.axhline(error, color=GREY, lw=1, ls=(0, (1, 3)), label=f"all pixels: error {error:.4f}")
    layout.unit_axes(axes)
    axes.set_ylim(0, min(1.0, highest * 1.06) or 1.0)
    axes.set(xlabel="coverage (share of pixels kept)", ylabel="risk (error rate of pixels kept)")
    layout.label_panel(axes, "Risk against coverage")
    handles, labels = axes.get_legend_handles_labels()
    layout.shared_legend(figure, handles, labels, layout.LegendPlan(2, lines), below=True)
    return figure
