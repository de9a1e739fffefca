"""The most frequent mistakes, and the effect of class distances on their uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dask_uncert.formulas import distributions
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.style import BLUE, GREY, VERMILION, styled
from dask_uncert.reports.names import axis_name
from dask_uncert.summaries.evaluation import Evaluation

MOST_PAIRS = 16
PAIR = "reference → predicted"
MEASURES = (("homophily", BLUE, "o", -0.15), ("gini", VERMILION, "D", 0.15))


@styled
def homophily_and_gini(evaluation: Evaluation) -> Figure | None:
    """Draw homophily and Gini, its case of equal class distances, for the most frequent mistakes ([C23] figures 14, 15).

    A mistake is a pair of reference and predicted class. One panel is for pixels whose reference class was second best,
    the other for the rest. Shown are mean, standard deviation and number of pixels. None without mistakes or without
    both measures.
    """
    pairs = frequent_mistakes(evaluation)
    if not {"homophily", "gini"} <= set(evaluation.measures) or not pairs:
        return None
    names = [axis_name(name, 22) for name in evaluation.class_names]
    shown = [f"{names[i]} → {names[k]}" for i, k in pairs]
    rows = np.arange(len(pairs))
    margins = layout.Margins(left=0.2 + layout.widest_text([*shown, PAIR], 8), right=0.6, top=0.6)
    size = (2.4, max(0.235 * len(pairs), 0.9))
    figure, panels = layout.panel_grid(2, 2, size, margins, (0.75, 0.0))
    handles: list[Any] = []
    for axes, second_best in zip(panels, (1, 0), strict=True):
        handles = []
        for name, color, mark, shift in MEASURES:
            n, mean, std = pair_moments(evaluation, name, pairs, second_best)
            axes.hlines(rows + shift, mean - std, mean + std, color=color, lw=1.2)
            handles += axes.plot(mean, rows + shift, mark, color=color, ms=4)
        for row in np.flatnonzero(n).tolist():
            axes.text(1.03, row, f"{n[row]:,}", fontsize=7.5, color=GREY, va="center")
        axes.text(1.03, -0.75, "pixels", fontsize=7.5, color=GREY, va="bottom")
        axes.set(xlim=(0, 1), ylim=(len(pairs) - 0.4, -0.6))
        axes.grid(True, axis="x", lw=0.7)
        layout.unit_ticks(axes, "x")
        axes.set_yticks([])
        title = "reference second best" if second_best else "reference further down"
        layout.label_panel(axes, title, "uncertainty")
    panels[0].text(-0.04, -0.75, PAIR, fontsize=7.5, color=GREY, va="bottom", ha="right")
    panels[0].set_yticks(rows, shown, fontsize=8)
    panels[0].tick_params(axis="y", length=0)
    layout.shared_legend(figure, handles, ["homophily", "Gini: all class distances equal"])
    return figure


def frequent_mistakes(evaluation: Evaluation) -> list[tuple[int, int]]:
    """Return the indices of reference and predicted class of the most frequent mistakes, most frequent first."""
    wrong = evaluation.decisions.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    pairs = np.stack(np.unravel_index(order, wrong.shape), axis=1).tolist()
    return [(i, k) for i, k in pairs if wrong[i, k]]


def pair_moments(
    evaluation: Evaluation, name: str, pairs: list[tuple[int, int]], second_best: int
) -> tuple[Counts, Floats, Floats]:
    """Return the pixels of each pair of classes, and mean and standard deviation of a measure over them.

    second_best: 1 for pixels whose reference class was second best, 0 for the others.
    """
    index, measure = (*np.array(pairs).T, second_best), evaluation.measures[name]
    n, resolution = evaluation.decisions.pairs[index], measure.resolution
    sums = measure.by_pair[index]
    mean, std = (f(n, sums, resolution) for f in (distributions.mean, distributions.standard_deviation))
    return n, mean * measure.unit, std * measure.unit
