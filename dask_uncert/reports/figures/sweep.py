"""Metrics of the soft confusion and the share of weight left, against spread and damping."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics import distributions as distribution_metrics
from dask_uncert.metrics.sweep import Sweep, sweep
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.style import MOST_CURVES, curve_styles, styled, thin_out
from dask_uncert.reports.names import axis_name, file_names, pretty
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram
from dask_uncert.summaries.soft_confusion import SoftSettings

MOST_THRESHOLDS, MOST_HISTOGRAMS = 3, 8
SIGMAS = tuple(i / 50 for i in range(26))  # 0, .02, ..., .5
DAMPINGS = (0.0, 0.5, 1.0, 2.0)
VISIBLE = 0.002  # bounds above this are wider than a line
F1 = ("f1",)
OTHERS = ("accuracy", "precision", "recall", "false_positive_rate")
SHARE = "share of weight left"
TITLES = {"f1": "F1", "false_positive_rate": "false-positive rate"}


def drawn_histograms(evaluation: Evaluation) -> dict[str, JointHistogram]:
    """Return the joint histograms to draw, by a name for files: the eight with the most reference pixels."""
    support = evaluation.decisions.confusion.sum(axis=1)
    order = sorted(evaluation.joint, key=lambda joint: -support[joint.settings.class_index])[:MOST_HISTOGRAMS]
    names = [evaluation.classes[joint.settings.class_index].name for joint in order]
    labels = [
        name if names.count(name) == 1 else f"{name} {joint.settings.uncertainty or 'undamped'} {i}"
        for i, (name, joint) in enumerate(zip(names, order, strict=True))
    ]
    safe = file_names(labels)
    return {safe[label]: joint for label, joint in zip(labels, order, strict=True)}


def drawn_sweep(evaluation: Evaluation, joint: JointHistogram) -> Sweep:
    """Return the sweep of a joint histogram to draw.

    It has up to three thresholds of the histogram, `SIGMAS`, and up to six dampings: those of the job and some between.
    The other options are those of the job's first entry with that class, uncertainty and, if there is one, reference
    threshold.
    """
    s = joint.settings
    similar = [
        soft.settings
        for soft in evaluation.soft_confusion
        if (soft.settings.class_index, soft.settings.uncertainty) == (s.class_index, s.uncertainty)
    ]
    similar.sort(key=lambda settings: settings.reference_threshold != s.reference_threshold)
    options = similar[0] if similar else SoftSettings(s.class_index, s.thresholds)
    dampings = [0.0]
    if s.uncertainty is not None:
        unit = _inverse_size(evaluation, s.uncertainty)
        finite = [d for d in options.dampings if math.isfinite(d)]
        dampings = thin_out([*finite, *(unit * d for d in DAMPINGS)], MOST_CURVES)
    return sweep(
        replace(evaluation, joint=(joint,)),
        thresholds=thin_out(s.thresholds, MOST_THRESHOLDS) or [0.5],
        sigmas=SIGMAS,
        dampings=dampings,
        distribution=options.distribution,
        df=options.df,
        damping_form=options.damping_form,
        reference_threshold=options.reference_threshold,
        reference_certainty=options.reference_certainty,
    )


def _inverse_size(evaluation: Evaluation, name: str) -> float:
    """Return the power of ten that scales values of an uncertainty without a range to about 1; 1 for other measures."""
    measure = evaluation.measures.get(name)
    if measure is None or not measure.wide:
        return 1.0
    median = float(distribution_metrics.quantiles(evaluation, name, 0.5))
    return 10.0 ** -round(math.log10(median)) if median > 0 else 1.0  # also 1 for NaN


def _span(values: Floats, bounds: Floats) -> tuple[float, float]:
    """Return the range of a metric over all settings, at least .02."""
    visible = np.where(bounds > VISIBLE, bounds, 0.0)
    ends = np.clip(np.stack([values - visible, values + visible]), 0, 1)
    if np.isnan(ends).all():
        return 0.0, 1.0
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    wider = max(0.01 - (high - low) / 2, 0.05 * (high - low))
    return max(low - wider, -0.001), min(high + wider, 1.001)


@styled
def sweep_panels(evaluation: Evaluation, joint: JointHistogram, metrics: Sequence[str]) -> Figure:
    """Draw metrics and the share of weight left against sigma, a curve per damping ([S22] figures 8, 9).

    There is a row per threshold. A band shows the error bound where it is wider than the line. Axes of F1 and of the
    share go from 0 to 1, those of other metrics over the range of their values.
    """
    drawn = drawn_sweep(evaluation, joint)
    counted = max(int(evaluation.ledger.counted), 1)
    values = {**drawn.values, SHARE: drawn.share}
    share_bounds: Floats = np.add.reduce([drawn.bounds[cell] for cell in CELLS]) / counted
    bounds = {**drawn.bounds, SHARE: share_bounds}
    columns = len(metrics) + 1
    labels = [f"d = {d:g}" for d in drawn.dampings]
    styles = [style for _, style in curve_styles(drawn.dampings)]
    wide, high, gap = (2.5, 1.8, 0.3) if columns == 2 else (1.4, 1.4, 0.48)
    damped = "" if drawn.uncertainty is None else f", damped by {pretty(drawn.uncertainty)}"
    plan = layout.plan_legend(labels, 0.8 + columns * (wide + gap))
    margins = layout.Margins(left=0.8, top=0.42 + plan.height)
    figure, panels = layout.panel_grid(columns * len(drawn.thresholds), columns, (wide, high), margins, (gap, 0.2))
    width, height = figure.get_size_inches()
    layout.heading(figure, f"{axis_name(drawn.class_name)} against the rest{damped}")
    for i, axes in enumerate(panels):
        row, column = divmod(i, columns)
        metric = (*metrics, SHARE)[column]
        for k, style in enumerate(styles):
            value, bound = values[metric][row, :, k], bounds[metric][row, :, k]
            axes.plot(drawn.sigmas, value, **style)
            if float(np.nanmax(bound, initial=0.0)) > VISIBLE:
                ends = np.clip((value - bound, value + bound), 0, 1)
                axes.fill_between(drawn.sigmas, *ends, color=style["color"], alpha=0.2, lw=0)
        axes.grid(True, lw=0.7)
        if metric in (*F1, SHARE):
            axes.set_ylim(0, 1.015)
            layout.unit_ticks(axes, "y")
        else:
            axes.set_ylim(*_span(values[metric], bounds[metric]))
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlim(0, max(drawn.sigmas) or 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(5 if wide > 2 else 2))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        if metric == SHARE:
            axes.set_facecolor("#f4f4f4")
        title = TITLES.get(metric, metric) if row == 0 else ""
        row_title = f"t = {drawn.thresholds[row]:g}" if column == 0 else ""
        layout.label_panel(axes, title, "threshold spread σ", row_title, 0.5)
    layout.outer_labels(panels, columns, "xy" if columns == 2 else "x")
    handles = [Line2D([], [], **style) for style in styles]
    figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.1 / width, 1 - 0.28 / height), ncols=plan.columns,
                  borderaxespad=0.0, borderpad=0.0)  # fmt: skip
    return figure
