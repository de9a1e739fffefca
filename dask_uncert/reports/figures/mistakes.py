"""The most frequent mistakes, and what class distances make of their uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dask_uncert.formulas import distributions
from dask_uncert.formulas.typing import Floats
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.layout import Margins, sheet, widest, words
from dask_uncert.reports.figures.style import BLUE, GREY, SETTINGS, VERMILION
from dask_uncert.reports.names import axis_name
from dask_uncert.summaries.evaluation import Evaluation

MOST_PAIRS = 16
PAIR = "reference → predicted"


def homophily_twin(evaluation: Evaluation) -> Figure | None:
    """Homophily beside its equidistant twin, Gini, for the most frequent mistakes ([C23] figures 14, 15).

    A mistake is a reference and a predicted class; a panel says whether the reference came second. Mean and standard
    deviation, and the number of pixels. None without both measures or without a mistake.
    """
    pairs = frequent_mistakes(evaluation)
    if not {"homophily", "gini"} <= set(evaluation.measures) or not pairs:
        return None
    names = [axis_name(one.name, 22) for one in evaluation.classes]
    shown = [f"{names[i]} → {names[k]}" for i, k in pairs]
    places = np.arange(len(pairs))
    with rc_context(SETTINGS):
        margins = Margins(left=0.2 + widest([*shown, PAIR], 8), right=0.6, top=0.6)
        size = (2.4, max(0.235 * len(pairs), 0.9))
        figure, panels = sheet(2, 2, size, margins, (0.75, 0.0))
        handles: list[Any] = []
        for axes, near in zip(panels, (1, 0), strict=True):
            handles = []
            for name, color, mark, shift in (("homophily", BLUE, "o", -0.15), ("gini", VERMILION, "D", 0.15)):
                n, mean, std = pair_spread(evaluation, name, pairs, near)
                axes.hlines(places + shift, mean - std, mean + std, color=color, lw=1.2)
                handles += axes.plot(mean, places + shift, mark, color=color, ms=4)
            for place in np.flatnonzero(n).tolist():
                axes.text(1.03, place, f"{n[place]:,}", fontsize=7.5, color=GREY, va="center")
            axes.text(1.03, -0.75, "pixels", fontsize=7.5, color=GREY, va="bottom")
            axes.set(xlim=(0, 1), ylim=(len(pairs) - 0.4, -0.6))
            axes.grid(True, axis="x", lw=0.7)
            layout.ticks(axes, "x")
            axes.set_yticks([])
            words(axes, "reference second best" if near else "reference further down", "uncertainty")
        panels[0].text(-0.04, -0.75, PAIR, fontsize=7.5, color=GREY, va="bottom", ha="right")
        panels[0].set_yticks(places, shown, fontsize=8)
        panels[0].tick_params(axis="y", length=0)
        labels = ["homophily", "Gini: all classes equally far apart"]
        layout.legend(figure, handles, labels, layout.key(labels, figure.get_size_inches()[0]))
    return figure


def frequent_mistakes(evaluation: Evaluation) -> list[tuple[int, int]]:
    """Reference and predicted class of the most frequent wrong decisions, the most frequent first."""
    wrong = evaluation.decisions.confusion.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_PAIRS]
    found = np.stack(np.unravel_index(order, wrong.shape), axis=1).tolist()
    return [(i, k) for i, k in found if wrong[i, k]]


def pair_spread(
    evaluation: Evaluation, name: str, pairs: list[tuple[int, int]], near: int
) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Pixels, mean and standard deviation of a measure over each pair's decisions; NaN where there is none.

    near: 1 for those whose reference class was second best, else 0.
    """
    i, k = np.array(pairs).T
    one = evaluation.measures[name]
    n, sums = evaluation.decisions.pairs[i, k, near], one.by_pair[i, k, near]
    return n, distributions.mean(n, sums) * one.unit, distributions.standard_deviation(n, sums) * one.unit
