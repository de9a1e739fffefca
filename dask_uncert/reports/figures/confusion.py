"""The confusion matrix, the metrics of each class, and uncertainty confusion matrices at the job's thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dask_uncert.formulas.confusion import ratio
from dask_uncert.metrics import classification
from dask_uncert.metrics import distributions as distribution_metrics
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.distributions import chosen_threshold
from dask_uncert.reports.figures.style import BLUE, DPI, GREEN, ORANGE, styled
from dask_uncert.reports.names import axis_name, pretty
from dask_uncert.summaries.evaluation import Evaluation

MOST_COUNTED_CLASSES = 24  # with more classes, counts would be too small to read
MOST_NAMED_CLASSES = 60
MOST_THRESHOLDS = 3
DARK = 0.55  # text on larger shares is white
SIDE, ACROSS, DOWN = 0.62, 1.85, 2.05  # inches: side of a cell, steps between matrices
CENTRE: dict[str, Any] = {"ha": "center", "va": "center"}


@styled
def confusion(evaluation: Evaluation) -> Figure:
    """Draw the confusion matrix ([A22] figure 5); colours are shares of the reference class."""
    matrix = evaluation.decisions.confusion
    shares = ratio(matrix, matrix.sum(axis=1, keepdims=True))
    names, n = [axis_name(name) for name in evaluation.class_names], len(matrix)
    side = min(0.9 + 0.42 * n, 11.0)
    label_size = 9 if n <= 30 else 6
    named = layout.widest_text(names, label_size) if n <= MOST_NAMED_CLASSES else 0.2
    left, below = 0.5 + named, 0.5 + 0.84 * named
    figure = Figure(figsize=(left + side + 1.1, 0.35 + side + below), dpi=DPI)
    axes = layout.add_panel(figure, left, 0.35, side, side)
    axes.set_facecolor("#eeeeee")  # rows without reference pixels
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    bar = layout.add_panel(figure, left + side + 0.15, 0.35 + 0.1 * side, 0.16, 0.8 * side)
    figure.colorbar(image, cax=bar, label="share of the reference class")
    if n <= MOST_COUNTED_CLASSES:
        digits = len(f"{matrix.max():,}")
        size = min(9.0, 72 * side / n / (0.72 * max(digits, 3)))
        for (row, column), count in np.ndenumerate(matrix):
            if count and size >= 4:
                axes.text(column, row, f"{count:,}", fontsize=size, color=_ink(shares[row, column]), **CENTRE)
    if n <= MOST_NAMED_CLASSES:
        axes.set_xticks(range(n), names, rotation=55, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(n), names)
        axes.tick_params(labelsize=label_size)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set(title="Confusion matrix (pixels)", xlabel="predicted class", ylabel="reference class")
    axes.xaxis.set_label_coords(0.5, (0.2 - below) / side, transform=axes.transAxes)
    axes.yaxis.set_label_coords((0.35 - left) / side, 0.5)
    return figure


@styled
def classes(evaluation: Evaluation) -> Figure:
    """Draw recall, precision and F1 of every class; a cross marks an undefined one."""
    names = [axis_name(name) for name in evaluation.class_names]
    rows, height = np.arange(len(names)), 0.27
    metrics = {
        "recall": (classification.recall(evaluation).values, BLUE),
        "precision": (classification.precision(evaluation).values, ORANGE),
        "F1": (classification.f1(evaluation).values, GREEN),
    }
    margins = layout.Margins(left=0.25 + layout.widest_text(names), top=0.35)
    figure, (axes,) = layout.panel_grid(1, 1, (4.6, min(0.4 + 0.36 * len(names), 40.0)), margins)
    bars = []
    for shift, (values, color) in zip((-height, 0.0, height), metrics.values(), strict=True):
        bars.append(axes.barh(rows + shift, values, height, color=color, ec="white", lw=0.4))
        undefined = np.isnan(values)
        axes.plot(np.full(undefined.sum(), 0.008), (rows + shift)[undefined], "x", color=color, ms=4)
    axes.set_yticks(rows, names)
    axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))
    axes.grid(True, axis="x", lw=0.7)
    layout.label_panel(axes, "", "recall, precision, F1 (× undefined)")
    layout.shared_legend(figure, bars, list(metrics), layout.LegendPlan(3, 1))
    return figure


@styled
def uncertainty_matrices(evaluation: Evaluation) -> Figure | None:
    """Draw uncertainty confusion matrices, a row per measure, at up to three thresholds ([A22] figure 5).

    If the job has more thresholds, the lowest, the highest and the one with the largest USen + USpe are drawn. Colours
    are shares of the correct or of the wrong predictions. None if no measure has a threshold.
    """
    chosen = {name: taus for name in evaluation.measures if (taus := _drawn_thresholds(evaluation, name))}
    if not chosen:
        return None
    columns = max(map(len, chosen.values()))
    width, height = 0.95 + columns * ACROSS - 0.25, 0.35 + len(chosen) * DOWN - 0.2
    figure = Figure(figsize=(width, height), dpi=DPI)
    # One panel in inches for all matrices: a panel for each takes far longer.
    axes = layout.add_panel(figure, 0, 0, width, height)
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(height, 0))
    squares, shares = [], []
    for row, (name, taus) in enumerate(chosen.items()):
        top = 0.35 + row * DOWN
        axes.text(0.2, top + SIDE, pretty(name), weight="bold", fontsize=9.5, rotation=90, **CENTRE)
        for i, outcome in enumerate(("correct", "wrong")):
            axes.text(0.88, top + (i + 0.5) * SIDE, outcome, ha="right", va="center", fontsize=8)
        metrics = distribution_metrics.uncertainty_confusion(evaluation, name, taus)
        for column, tau in enumerate(taus):
            left = 0.95 + column * ACROSS
            axes.text(left + SIDE, top - 0.07, f"τ = {tau:g}", weight="bold", ha="center", va="bottom")
            numbers = {key: values[column].item() for key, values in metrics.items()}
            shares += _matrix(axes, numbers, left, top)
            squares += [Rectangle((left + x * SIDE, top + y * SIDE), SIDE, SIDE) for y, x in np.ndindex(2, 2)]
    cells = PatchCollection(squares, cmap="Blues", ec="white", lw=0.5)
    cells.set(array=np.ma.masked_invalid(shares), clim=(0, 1))
    axes.add_collection(cells, autolim=False)
    return figure


def _drawn_thresholds(evaluation: Evaluation, name: str) -> list[float]:
    taus = list(evaluation.measures[name].thresholds)
    if len(taus) <= MOST_THRESHOLDS:
        return taus
    best = chosen_threshold(evaluation, name)
    middle = best if best is not None and best not in (taus[0], taus[-1]) else taus[len(taus) // 2]
    return [taus[0], middle, taus[-1]]


def _matrix(axes: Axes, numbers: Mapping[str, Any], left: float, top: float) -> list[float]:
    """Write an uncertainty confusion matrix and its four metrics; return its shares, row by row."""
    counts = np.array([[numbers["TC"], numbers["FU"]], [numbers["FC"], numbers["TU"]]])
    shares = ratio(counts, counts.sum(axis=1, keepdims=True))
    size = min(9.0, 9.0 * 0.52 / layout.text_width(f"{counts.max():,}"))
    for (row, column), name in zip(np.ndindex(2, 2), ("TC", "FU", "FC", "TU"), strict=True):
        x, y = left + (column + 0.5) * SIDE, top + (row + 0.5) * SIDE
        ink = _ink(shares[row, column])
        axes.text(x, y, f"{name}\n{counts[row, column]:,}", fontsize=size, color=ink, **CENTRE)
    for i, label in enumerate(("certain", "uncertain")):
        axes.text(left + (i + 0.5) * SIDE, top + 2 * SIDE + 0.05, label, ha="center", va="top", fontsize=8)
    metrics = {key: numbers[key] for key in ("USen", "USpe", "UPre", "UAcc")}
    rounded = (f"{key} {'–' if np.isnan(value) else f'{value:.3f}'}" for key, value in metrics.items())
    text = "{}   {}\n{}   {}".format(*rounded)
    axes.text(left + SIDE, top + 2 * SIDE + 0.23, text, ha="center", va="top", fontsize=7.5)
    return shares.ravel().tolist()


def _ink(share: Any) -> str:
    return "white" if share > DARK else "#111111"
