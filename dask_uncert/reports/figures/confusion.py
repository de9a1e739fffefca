"""Who was right: the confusion matrix, numbers of each class, and right against certain at named thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from dask_uncert.formulas.confusion import ratio
from dask_uncert.metrics import classification
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.distributions import chosen_threshold
from dask_uncert.reports.figures.layout import Margins, at, blank, sheet, text_width, widest, words
from dask_uncert.reports.figures.style import BLUE, DPI, GREEN, ORANGE, SETTINGS
from dask_uncert.reports.names import axis_name, pretty
from dask_uncert.summaries.evaluation import Evaluation

MOST_COUNTED_CLASSES = 24  # of a confusion matrix whose cells still hold legible counts
MOST_NAMED_CLASSES = 60
MOST_THRESHOLDS = 3
DARK = 0.55  # a share from which on ink is white
SIDE, ACROSS, DOWN = 0.62, 1.85, 2.05  # of a cell, from matrix to matrix: inches


def confusion(evaluation: Evaluation) -> Figure:
    """Counts of reference against predicted class ([A22] figure 5); colours are shares of the reference class."""
    matrix = classification.confusion_matrix(evaluation)
    shares = ratio(matrix, matrix.sum(axis=1, keepdims=True))
    names, n = [axis_name(one.name) for one in evaluation.classes], len(matrix)
    side = min(0.9 + 0.42 * n, 11.0)
    label_size = 9 if n <= 30 else 6
    with rc_context(SETTINGS):
        named = widest(names, label_size) if n <= MOST_NAMED_CLASSES else 0.2
        left, below = 0.5 + named, 0.5 + 0.84 * named
        figure = Figure(figsize=(left + side + 1.1, 0.35 + side + below), dpi=DPI)
        axes = at(figure, left, 0.35, side, side)
        axes.set_facecolor("#eeeeee")  # where a class has no reference
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        bar = at(figure, left + side + 0.15, 0.35 + 0.1 * side, 0.16, 0.8 * side)
        figure.colorbar(image, cax=bar, label="share of the reference class")
        if n <= MOST_COUNTED_CLASSES:
            digits = len(f"{matrix.max():,}")
            size = min(9.0, 72 * side / n / (0.72 * max(digits, 3)))
            for (row, column), count in np.ndenumerate(matrix):
                if count and size >= 4:
                    ink = _ink(shares[row, column])
                    axes.text(column, row, f"{count:,}", ha="center", va="center", fontsize=size, color=ink)
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


def classes(evaluation: Evaluation) -> Figure:
    """Recall, precision and F1 of every class; a cross stands where one is undefined."""
    names = [axis_name(one.name) for one in evaluation.classes]
    place, height = np.arange(len(names)), 0.27
    with rc_context(SETTINGS):
        margins = Margins(left=0.25 + widest(names), top=0.35)
        figure, (axes,) = sheet(1, 1, (4.6, min(0.4 + 0.36 * len(names), 40.0)), margins)
        drawn = (("recall", classification.recall, BLUE), ("precision", classification.precision, ORANGE),
                 ("F1", classification.f1, GREEN))  # fmt: skip
        for shift, (label, formula, color) in zip((-height, 0.0, height), drawn, strict=True):
            values = formula(evaluation)
            axes.barh(place + shift, values, height, color=color, ec="white", lw=0.4, label=label)
            undefined = np.isnan(values)
            axes.plot(np.full(undefined.sum(), 0.008), (place + shift)[undefined], "x", color=color, ms=4)
        axes.set_yticks(place, names)
        axes.set(xlim=(0, 1), ylim=(len(names) - 0.4, -0.6))
        axes.grid(True, axis="x", lw=0.7)
        words(axes, "", "recall, precision, F1 (× is undefined)")
        handles, labels = axes.get_legend_handles_labels()
        bars = [
            handle
            for handle, label in zip(handles, labels, strict=True)
            if label in ("recall", "precision", "F1")
        ]
        layout.legend(figure, bars, ["recall", "precision", "F1"], layout.Key(3, 1))
    return figure


def uncertainty_matrices(evaluation: Evaluation) -> Figure | None:
    """Right or wrong against certain or uncertain, a row a measure, at up to three thresholds ([A22] figure 5).

    Of more named thresholds, the lowest, the one with the largest USen + USpe and the highest are drawn. Colours are
    shares of all right, or of all wrong decisions. None where no measure has a named threshold.
    """
    chosen = {name: _drawn_thresholds(evaluation, name) for name in evaluation.measures}
    chosen = {name: taus for name, taus in chosen.items() if taus}
    if not chosen:
        return None
    columns = max(map(len, chosen.values()))
    width, height = 0.95 + columns * ACROSS - 0.25, 0.35 + len(chosen) * DOWN - 0.2
    with rc_context(SETTINGS):
        figure = Figure(figsize=(width, height), dpi=DPI)
        axes = blank(
            figure, 0, 0, width, height
        )  # one for all matrices, in inches: each of its own takes far longer
        axes.set(xlim=(0, width), ylim=(height, 0))
        cells, shares = [], []
        for row, (name, taus) in enumerate(chosen.items()):
            top = 0.35 + row * DOWN
            axes.text(
                0.2,
                top + SIDE,
                pretty(name),
                weight="bold",
                fontsize=9.5,
                va="center",
                ha="center",
                rotation=90,
            )
            for place, outcome in enumerate(("correct", "wrong")):
                axes.text(0.88, top + (place + 0.5) * SIDE, outcome, ha="right", va="center", fontsize=8)
            found = classification.uncertainty_confusion(evaluation, name, taus)
            for column, tau in enumerate(taus):
                left = 0.95 + column * ACROSS
                axes.text(left + SIDE, top - 0.07, f"τ = {tau:g}", weight="bold", ha="center", va="bottom")
                shares += _matrix(
                    axes, {key: values[column].item() for key, values in found.items()}, left, top
                )
                cells += [(left + x * SIDE, top + y * SIDE) for y, x in np.ndindex(2, 2)]
        squares = PatchCollection(
            [Rectangle(corner, SIDE, SIDE) for corner in cells], cmap="Blues", ec="white", lw=0.5
        )
        squares.set(array=np.ma.masked_invalid(shares), clim=(0, 1))
        axes.add_collection(squares, autolim=False)
    return figure


def _drawn_thresholds(evaluation: Evaluation, name: str) -> list[float]:
    taus = list(evaluation.measures[name].thresholds)
    if len(taus) <= MOST_THRESHOLDS:
        return taus
    best = chosen_threshold(evaluation, name)
    middle = best if best is not None and best not in (taus[0], taus[-1]) else taus[len(taus) // 2]
    return [taus[0], middle, taus[-1]]


def _matrix(axes: Axes, found: dict[str, Any], left: float, top: float) -> list[float]:
    """The words of one uncertainty confusion matrix and its four numbers; its shares, row by row."""
    counts = np.array([[found["TC"], found["FU"]], [found["FC"], found["TU"]]])
    shares = ratio(counts, counts.sum(axis=1, keepdims=True))
    size = min(9.0, 9.0 * 0.52 / text_width(f"{counts.max():,}"))
    for (row, column), name in zip(np.ndindex(2, 2), ("TC", "FU", "FC", "TU"), strict=True):
        x, y = left + (column + 0.5) * SIDE, top + (row + 0.5) * SIDE
        said = f"{name}\n{counts[row, column]:,}"
        axes.text(x, y, said, ha="center", va="center", fontsize=size, color=_ink(shares[row, column]))
    for place, word in enumerate(("certain", "uncertain")):
        axes.text(left + (place + 0.5) * SIDE, top + 2 * SIDE + 0.05, word, ha="center", va="top", fontsize=8)
    lines = [[f"{key} {_said(found[key])}" for key in keys] for keys in (("USen", "USpe"), ("UPre", "UAcc"))]
    numbers = "\n".join("   ".join(line) for line in lines)
    axes.text(left + SIDE, top + 2 * SIDE + 0.23, numbers, ha="center", va="top", fontsize=7.5)
    return [float(share) for share in shares.ravel()]


def _ink(share: Any) -> str:
    return "white" if share > DARK else "#111111"


def _said(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"
