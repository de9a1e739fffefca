"""What every spread of the threshold and every damping makes of the metrics, with the weight that is left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from dask_uncert.formulas.soft_confusion import CELLS
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics import classification
from dask_uncert.metrics.sweep import Sweep, sweep
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.layout import Margins, heading, outer, sheet, ticks, words
from dask_uncert.reports.figures.style import MOST_CURVES, SETTINGS, looks, spread_out
from dask_uncert.reports.names import axis_name, file_names, pretty
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.joint_histogram import JointHistogram
from dask_uncert.summaries.soft_confusion import SoftSettings

MOST_THRESHOLDS, MOST_SWEPT = 3, 8
SIGMAS = tuple(i / 50 for i in range(26))  # 0, .02, ..., .5
DAMPINGS = (0.0, 0.5, 1.0, 2.0)
SEEN = 0.002  # a bound that is wider than a line
F1 = ("f1",)
OTHERS = ("accuracy", "precision", "recall", "false_positive_rate")
SHARE = "share of weight left"
TITLES = {"f1": "F1", "false_positive_rate": "false-positive rate"}


def swept(evaluation: Evaluation) -> dict[str, JointHistogram]:
    """The joint histograms that are drawn, by a name for files: up to eight, those with most reference pixels."""
    support = evaluation.decisions.confusion.sum(axis=1)
    found = sorted(evaluation.joint, key=lambda one: -support[one.settings.class_index])[:MOST_SWEPT]
    names = [evaluation.classes[one.settings.class_index].name for one in found]
    labels = [
        name if names.count(name) == 1 else f"{name} {one.settings.uncertainty or 'undamped'} {i}"
        for i, (name, one) in enumerate(zip(names, found, strict=True))
    ]
    safe = file_names(labels)
    return {safe[label]: one for label, one in zip(labels, found, strict=True)}


def drawn_sweep(evaluation: Evaluation, joint: JointHistogram) -> Sweep:
    """The sweep of a joint histogram that is drawn.

    Up to three of its thresholds, `SIGMAS`, and up to six dampings, the job's and some between; the other words are
    those of the first entry of that class, damping and, if there is one, reference threshold.
    """
    s = joint.settings
    asked = [
        one.settings
        for one in evaluation.soft_confusion
        if (one.settings.class_index, one.settings.uncertainty) == (s.class_index, s.uncertainty)
    ]
    asked.sort(key=lambda one: one.reference_threshold != s.reference_threshold)
    like = asked[0] if asked else SoftSettings(s.class_index, s.thresholds)
    dampings = [0.0]
    if s.uncertainty is not None:
        unit = _inverse_size(evaluation, s.uncertainty)
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


def _inverse_size(evaluation: Evaluation, name: str) -> float:
    """The power of ten by which values of an uncertainty without a range get near 1; 1 for all others."""
    one = evaluation.measures.get(name)
    median = float(classification.quantiles(evaluation, name, 0.5)) if one is not None and one.wide else 1.0
    return 10.0 ** -round(math.log10(median)) if median > 0 else 1.0  # NaN too is not above 0


def _span(values: Floats, bounds: Floats) -> tuple[float, float]:
    """From the lowest to the highest of a metric at all settings, so that small differences are seen; .02 at least."""
    near = np.where(bounds > SEEN, bounds, 0.0)
    ends = np.clip(np.stack([values - near, values + near]), 0, 1)
    if np.isnan(ends).all():
        return 0.0, 1.0
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    wider = max(0.01 - (high - low) / 2, 0.05 * (high - low))
    return max(low - wider, -0.001), min(high + wider, 1.001)


def sweep_panels(evaluation: Evaluation, joint: JointHistogram, metrics: Sequence[str]) -> Figure:
    """Metrics against sigma, a curve a damping, always with the share of the weight that is left ([S22] 8, 9).

    A row a threshold. A band says how far off a value may be, where that is wider than the line. Axes of F1 and of
    the share go from 0 to 1; those of other metrics only as far as there are values.
    """
    found = drawn_sweep(evaluation, joint)
    counted = max(int(evaluation.ledger.counted), 1)
    values = {**found.values, SHARE: found.share}
    slack: Floats = np.add.reduce([found.bounds[cell] for cell in CELLS]) / counted
    bounds = {**found.bounds, SHARE: slack}
    columns = len(metrics) + 1
    labels = [f"d = {d:g}" for d in found.dampings]
    wide, high, gap = (2.5, 1.8, 0.3) if columns == 2 else (1.4, 1.4, 0.48)
    damped = "" if found.uncertainty is None else f", damped by {pretty(found.uncertainty)}"
    with rc_context(SETTINGS):
        plan = layout.key(labels, 0.8 + columns * (wide + gap))
        margins = Margins(left=0.8, top=0.42 + plan.height)
        figure, panels = sheet(columns * len(found.thresholds), columns, (wide, high), margins, (gap, 0.2))
        width, height = figure.get_size_inches()
        heading(figure, f"{axis_name(found.class_name)} against the rest{damped}")
        for place, axes in enumerate(panels):
            row, column = divmod(place, columns)
            metric = (*metrics, SHARE)[column]
            for number, (_, look) in enumerate(looks(found.dampings)):
                value, bound = values[metric][row, :, number], bounds[metric][row, :, number]
                axes.plot(found.sigmas, value, **look)
                if float(np.nanmax(bound, initial=0.0)) > SEEN:
                    low, upper = np.clip(value - bound, 0, 1), np.clip(value + bound, 0, 1)
                    axes.fill_between(found.sigmas, low, upper, color=look["color"], alpha=0.2, lw=0)
            axes.grid(True, lw=0.7)
            if metric in (*F1, SHARE):
                axes.set_ylim(0, 1.015)
                ticks(axes, "y")
            else:
                axes.set_ylim(*_span(values[metric], bounds[metric]))
                axes.yaxis.set_major_locator(MaxNLocator(4))
                axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.set_xlim(0, max(found.sigmas) or 1.0)
            axes.xaxis.set_major_locator(MaxNLocator(5 if wide > 2 else 2))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            if metric == SHARE:
                axes.set_facecolor("#f4f4f4")
            title = TITLES.get(metric, metric) if row == 0 else ""
            row_title = f"t = {found.thresholds[row]:g}" if column == 0 else ""
            words(axes, title, "spread σ of threshold", row_title, 0.5)
        outer(panels, columns, "xy" if columns == 2 else "x")
        handles = [Line2D([], [], **look) for _, look in looks(found.dampings)]
        figure.legend(handles, labels, loc="upper left", bbox_to_anchor=(0.1 / width, 1 - 0.28 / height), ncols=plan.columns,
                      borderaxespad=0.0, borderpad=0.0)  # fmt: skip
    return figure
