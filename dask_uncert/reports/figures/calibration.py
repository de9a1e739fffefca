"""Calibration figures: the reliability of predictions, and the calibration curve of every class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dask_uncert.formulas import calibration
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics import calibration as calibration_metrics
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.style import BLUE, DPI, GREY, SKY, VERMILION, styled
from dask_uncert.reports.names import axis_name
from dask_uncert.summaries.evaluation import Evaluation

CROSS = ([0, 1, math.nan, 0.5, 0.5], [0.5, 0.5, math.nan, 0, 1])  # grid lines that need no ticks
POINTS = np.linspace(0, 1, 51)
DELTA = 0.05
FEW = 10  # pixels; the share of fewer says little
MOST_CURVES = 16


@styled
def reliability(evaluation: Evaluation) -> Figure:
    """Draw the accuracy and the mean confidence of each bin, its pixels below, and ECE and MCE."""
    bins = evaluation.stated.binned(evaluation.stated.fine).number
    confidence, accuracy = calibration_metrics.reliability(evaluation)
    errors = {
        "ECE": calibration_metrics.expected_calibration_error(evaluation),
        "MCE": calibration_metrics.maximum_calibration_error(evaluation),
    }
    figure, upper, lower = calibration_panels(bins, errors)
    _bars(upper, accuracy, color=SKY, alpha=0.75, label="accuracy")
    upper.vlines(confidence, accuracy, confidence, color=VERMILION, lw=2, label="gap")
    (dots,) = upper.plot(confidence, accuracy, "o", color=BLUE, ms=4, clip_on=False, zorder=3)
    dots.set_label("bin at its mean confidence")
    upper.legend(loc="upper left")
    layout.label_panel(upper, "Reliability", "", "accuracy")
    layout.label_panel(lower, "", "confidence", "pixels")
    return figure


def calibration_panels(pixels: Any, errors: Mapping[str, float]) -> tuple[Figure, Axes, Axes]:
    """Return a figure, its upper panel with the diagonal and the errors, and its lower panel of pixels per bin."""
    figure = Figure(figsize=(4.8, 5.3), dpi=DPI)
    upper = layout.add_panel(figure, 0.75, 0.3, 3.9, 3.3)
    lower = layout.add_panel(figure, 0.75, 3.75, 3.9, 1.0)
    upper.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 3)), label="perfectly calibrated")
    text = "\n".join(f"{name} {'undefined' if math.isnan(error) else f'{error:.4f}'}" for name, error in errors.items())
    box = {"boxstyle": "round", "fc": "white", "ec": "#cccccc"}
    upper.text(0.97, 0.04, text, transform=upper.transAxes, ha="right", va="bottom", fontsize=10, bbox=box)
    layout.unit_axes(upper)
    upper.tick_params(labelbottom=False)
    _bars(lower, pixels, color=BLUE)
    lower.set_xlim(0, 1)
    layout.count_ticks(lower, 3)
    lower.grid(True, axis="y", lw=0.7)
    return figure, upper, lower


def _bars(axes: Axes, heights: Any, **style: Any) -> None:
    starts = np.arange(len(heights)) / len(heights)
    axes.bar(starts, heights, 1 / len(heights), align="edge", ec="white", lw=0.6, **style)


def fill_gaps(axes: Axes, x: Floats, y: Floats, where: Any = None) -> list[Any]:
    """Fill the gaps of a curve below and above the diagonal; return both patches for a legend."""
    below = axes.fill_between(x, np.fmin(y, x), x, where, color=VERMILION, alpha=0.3, lw=0)
    return [below, axes.fill_between(x, x, np.fmax(y, x), where, color=SKY, alpha=0.45, lw=0)]


@styled
def class_curves(evaluation: Evaluation) -> Figure:
    """Draw the observed share of each class against its predicted probability ([J22] figure 12).

    Each point shows a window of .05 to either side; windows of fewer than ten pixels are drawn thin. Grey bars show
    the square root of the number of pixels; the highest fills a quarter of the panel. Of two classes only the second
    is drawn; of more than sixteen, those with the most reference pixels. ECE is that of the class.
    """
    chosen = drawn_classes(evaluation)
    binned = evaluation.stated.binned(evaluation.stated.fine_by_class)
    errors = calibration.expected_calibration_error(*binned)
    labels = ["perfectly calibrated", "observed share", "overconfident", "underconfident"]
    columns = layout.columns_of(len(chosen), 4)
    side = 1.6 if columns > 1 else 3.2
    plan = layout.plan_legend(labels, 0.8 + columns * (side + 0.2))
    margins = layout.Margins(top=0.27 + plan.height)
    figure, panels = layout.panel_grid(len(chosen), columns, (side, side), margins, (0.2, 0.36))
    handles: list[Any] = []
    for axes, index in zip(panels, chosen, strict=True):
        n, share = calibration_metrics.windows_curve(evaluation, index, POINTS, DELTA)
        roots = np.sqrt(binned.number[index])
        bars = np.arange(roots.size + 1) / roots.size
        axes.stairs(0.25 * roots / (roots.max() or 1), bars, fill=True, color="#d5d5d5")
        axes.plot(*CROSS, color="#e2e2e2", lw=0.7, zorder=0.5)
        diagonal = axes.plot([0, 1], [0, 1], color=GREY, lw=0.9, ls=(0, (4, 3)))
        enough = np.where(n >= FEW, share, np.nan)
        gaps = fill_gaps(axes, POINTS, enough, n >= FEW)
        axes.plot(POINTS, share, color=BLUE, lw=0.5)
        handles = [*diagonal, *axes.plot(POINTS, enough, color=BLUE, lw=1.7), *gaps]
        error = "–" if math.isnan(errors[index]) else f"{errors[index]:.4f}"
        axes.text(0.97, 0.05, f"ECE {error}", transform=axes.transAxes, ha="right", fontsize=7.5)
        axes.set(xlim=(0, 1), ylim=(0, 1.015))
        name = axis_name(evaluation.classes[index].name, 19 if columns > 1 else 28)
        layout.label_panel(axes, name, "predicted probability", "observed share")
    layout.outer_unit_ticks(panels, columns)
    layout.shared_legend(figure, handles, labels, plan)
    return figure


def drawn_classes(evaluation: Evaluation) -> list[int]:
    """Return the indices of the classes that `class_curves` shows, in the order of the table."""
    support = evaluation.decisions.confusion.sum(axis=1)
    if support.size == 2:
        return [1]
    return sorted(np.argsort(-support, kind="stable")[:MOST_CURVES].tolist())
