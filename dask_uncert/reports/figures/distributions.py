"""How measures are distributed over right and wrong decisions: densities, by class, by confused classes, by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from numpy.typing import NDArray

from dask_uncert.formulas import distributions
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics import classification
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.curves import value_axis, value_label
from dask_uncert.reports.figures.layout import Margins, columns_of, outer, sheet, widest, words
from dask_uncert.reports.figures.style import GREY, OUTCOMES, SETTINGS
from dask_uncert.reports.names import axis_name, pretty
from dask_uncert.reports.results.breakdowns import by_class, by_confused
from dask_uncert.summaries.distribution import PER_OCTAVE, Distribution
from dask_uncert.summaries.evaluation import Evaluation

BARS = 50  # of a density over the range of a measure
PER_BAR = 8  # bins of a predicted uncertainty that make a bar: a quarter octave
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_NAMED = 60
MARKS = {"correct": "o", "wrong": "s"}


def chosen_threshold(evaluation: Evaluation, name: str) -> float | None:
    """Of the thresholds that the job named for a measure, the one with the largest USen + USpe; None without any.

    Where several are equal, the lowest; where nothing was wrong (or right), the sum is undefined everywhere: None.
    """
    taus = evaluation.measures[name].thresholds
    found = classification.uncertainty_confusion(evaluation, name)
    both = np.asarray(found["USen"]) + np.asarray(found["USpe"])
    if not taus or np.isnan(both).all():
        return None
    return float(taus[int(np.nanargmax(both))])


def density_bars(one: Distribution, histogram: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Edges and density of a measure's bars, which are whole fine bins; NaN where there is no value.

    The density is of values, or of their logarithms to base 10 where the measure has no range; there, bars begin
    above the bin that holds 0.
    """
    edges = np.asarray(one.edges)
    if one.wide:
        wanted = edges[1] * 2.0 ** (np.arange(0, 4096, PER_BAR) / PER_OCTAVE)
        wanted = wanted[wanted < edges[-1]]
    else:
        wanted = np.array([one.upper * i / BARS for i in range(BARS)])
    places = np.unique(np.searchsorted(edges, wanted))
    bounds = np.append(edges[places], edges[-1])
    width = np.diff(np.log10(bounds) if one.wide else bounds)
    return bounds, ratio(np.add.reduceat(histogram, places), histogram.sum()) / width


def densities(evaluation: Evaluation) -> Figure:
    """Density of every measure over right and over wrong decisions, and the chosen threshold ([A22] figure 3)."""
    names = list(evaluation.measures)
    columns = columns_of(len(names))
    labels = [
        *(_counted(evaluation, outcome) for outcome, _, _ in OUTCOMES),
        "threshold of largest USen + USpe",
    ]
    with rc_context(SETTINGS):
        size = (2.3, 1.7) if columns > 1 else (3.8, 2.6)
        plan = layout.key(labels, 0.8 + columns * (size[0] + 0.4))
        gap = 0.62 if any(one.wide for one in evaluation.distributions) else 0.42
        figure, panels = sheet(len(names), columns, size, Margins(top=0.27 + plan.height), (gap, 0.78))
        drawn = [_density(axes, evaluation, name) for axes, name in zip(panels, names, strict=True)]
        for place in range(1, len(names)):
            if place % columns and panels[place].get_xscale() == panels[place - 1].get_xscale():
                panels[place].set_ylabel("")
        layout.legend(figure, drawn[0], labels, plan)
    return figure


def _density(axes: Axes, evaluation: Evaluation, name: str) -> list[Any]:
    """One panel; what the legend shows."""
    one, (right, wrong) = evaluation.measures[name], classification.right_and_wrong(evaluation, name)
    handles: list[Any] = []
    highest = 0.0
    for (_, color, style), histogram in zip(OUTCOMES, (right, wrong), strict=True):
        bounds, density = density_bars(one, histogram)
        axes.stairs(np.nan_to_num(density), bounds, color=color, alpha=0.16, fill=True)
        handles.append(axes.stairs(density, bounds, color=color, ls=style, lw=1.6, baseline=None))
        highest = max(highest, float(np.nanmax(density, initial=0.0)))
    tau, along = chosen_threshold(evaluation, name), axes.get_xaxis_transform()
    where = [] if tau is None else [tau]
    handles.append(axes.vlines(where, 0, 1, transform=along, color=GREY, lw=1.2, ls=(0, (4, 2))))
    for value in where:
        axes.text(value, 0.99, f" {value:g}", transform=along, va="top", fontsize=8, color=GREY)
    value_axis(axes, one)
    if one.wide:
        said = _near_zero(one, right, wrong)
        axes.text(0.02, 0.99, said, transform=axes.transAxes, va="top", fontsize=7, color=GREY)
    elif one.upper == 1:
        layout.ticks(axes, "x")
    axes.set_ylim(0, highest * 1.15 or 1.0)
    axes.yaxis.set_major_locator(MaxNLocator(3))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    label = "density (per factor of 10)" if one.wide else "density (per unit)"
    words(axes, pretty(name), value_label(evaluation, name), label)
    return handles


def _near_zero(one: Distribution, right: NDArray[np.int64], wrong: NDArray[np.int64]) -> str:
    """What a logarithmic scale cannot show: the shares of right and of wrong in the bin that holds 0."""
    shares = [float(ratio(part[0], part.sum())) for part in (right, wrong)]
    if not any(share > 0 for share in shares):
        return ""
    said = ["–" if np.isnan(share) else f"{100 * share:.1f} %" for share in shares]
    return f"up to {one.edges[1]:.0e}:\n{said[0]} of correct\n{said[1]} of wrong"


def _counted(evaluation: Evaluation, outcome: str) -> str:
    confusion = evaluation.decisions.confusion
    right = int(np.trace(confusion))
    return f"{outcome} (n = {right if outcome == 'correct' else int(confusion.sum()) - right:,})"


def classes_apart(evaluation: Evaluation) -> Figure:
    """Mean and quantiles of every measure by reference class, right and wrong apart ([C23] figures 8, 9)."""
    names = list(evaluation.measures)
    rows, columns = by_class(evaluation, reference=True), columns_of(len(names), 4)
    shown = [axis_name(row["name"]) for row in rows] if len(rows) <= MOST_NAMED else []
    labels = [f"{_counted(evaluation, outcome)}: mean, 25–75 %, 5–95 %" for outcome, _, _ in OUTCOMES]
    with rc_context(SETTINGS):
        high = min(max(0.235 * len(rows), 1.2), 14.0)
        gap = 0.34 if any(one.wide for one in evaluation.distributions) else 0.18
        wide = 1.5 if columns > 1 else 3.8
        margins = Margins(left=0.2 + (widest(shown, 8) or 0.45))
        plan = layout.key(labels, margins.left + columns * (wide + 0.2))
        figure, panels = sheet(
            len(names), columns, (wide, high), margins._replace(top=0.27 + plan.height), (gap, 0.75)
        )
        place = np.arange(len(rows), dtype=np.float64)
        handles: list[Any] = []
        for at, (axes, name) in enumerate(zip(panels, names, strict=True)):
            one, handles = evaluation.measures[name], []
            for (outcome, color, _), shift in zip(OUTCOMES, (-0.18, 0.18), strict=True):
                counts = one.histogram[:, classification.OUTCOMES[outcome]].sum(axis=1)
                spread = distributions.quantiles(counts, np.asarray(one.edges), SHARES)
                y = place + shift
                axes.hlines(y, spread[:, 0], spread[:, 4], color=color, lw=0.8)
                axes.hlines(y, spread[:, 1], spread[:, 3], color=color, lw=2.6, alpha=0.55)
                mean = [row["measures"][name][outcome]["mean"] for row in rows]
                handles += axes.plot(mean, y, MARKS[outcome], color=color, ms=3.6, mec="white", mew=0.5)
            axes.set_ylim(len(rows) - 0.4, -0.6)
            value_axis(axes, one)
            axes.grid(True, axis="x", lw=0.7)
            _class_ticks(axes, shown if at % columns == 0 else [])
            if one.reach == 1 and not one.wide:
                layout.ticks(axes, "x")
            words(axes, pretty(name), value_label(evaluation, name), "" if shown else "reference class")
        outer(panels, columns, "y")
        layout.legend(figure, handles, labels, plan)
    return figure


def _class_ticks(axes: Axes, shown: list[str]) -> None:
    axes.set_yticks(range(len(shown)), shown, fontsize=8)
    axes.tick_params(axis="y", length=0)


def confused_apart(evaluation: Evaluation) -> Figure | None:
    """Mean and standard deviation of every measure by the number of confused classes ([C23] figures 9, 10).

    The last panel counts the pixels. None where nothing was counted.
    """
    rows, names = by_confused(evaluation), list(evaluation.measures)
    if not rows:
        return None
    numbers = np.array([row["confused_classes"] for row in rows], np.float64)
    columns = columns_of(len(names) + 1)
    labels = [f"{_counted(evaluation, outcome)}" for outcome, _, _ in OUTCOMES]
    with rc_context(SETTINGS):
        size = (2.1, 1.7)
        plan = layout.key(labels, 0.8 + columns * 2.3)
        figure, panels = sheet(len(names) + 1, columns, size, Margins(top=0.27 + plan.height), (0.5, 0.42))
        handles: list[Any] = []
        for axes, name in zip(panels, names, strict=False):
            one, handles, highest = evaluation.measures[name], [], 0.0
            for (outcome, color, style), shift in zip(OUTCOMES, (-0.1, 0.1), strict=True):
                of = [row["measures"][name][outcome] for row in rows]
                mean, std = (np.array([float(one[key]) for one in of]) for key in ("mean", "std"))
                axes.vlines(numbers + shift, mean - std, mean + std, color=color, lw=1.2)
                highest = max(highest, float(np.nanmax(mean + std, initial=0.0)))
                handles += axes.plot(
                    numbers + shift, mean, MARKS[outcome], ls=style, color=color, ms=4, lw=1.0
                )
            axes.set_ylim(0, highest * 1.1 if one.wide and highest > 0 else one.reach)
            if one.reach == 1 and not one.wide:
                layout.ticks(axes, "y")
            _numbered(axes, numbers)
            words(axes, value_label(evaluation, name), "classes with p > 1/C", "mean ± std")
        below = np.zeros(numbers.size)
        for (outcome, color, _), sign in zip(OUTCOMES, (True, False), strict=True):
            counts = np.array(
                [int(row["correct"]) if sign else int(row["n"]) - int(row["correct"]) for row in rows]
            )
            panels[-1].bar(numbers, counts, 0.7, bottom=below, color=color, alpha=1.0 if sign else 0.8, ec="white", lw=0.4,
                           label=outcome)  # fmt: skip
            below = below + counts
        _numbered(panels[-1], numbers)
        panels[-1].yaxis.set_major_locator(MaxNLocator(4, integer=True))
        panels[-1].yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        words(panels[-1], "Pixels", "classes with p > 1/C", "")
        for place, axes in enumerate(panels):
            if place % columns:
                axes.set_ylabel("")
        outer(panels, columns, "x")
        layout.legend(figure, handles, labels, plan)
    return figure


def _numbered(axes: Axes, numbers: Floats) -> None:
    axes.set_xlim(numbers[0] - 0.6, numbers[-1] + 0.6)
    axes.set_xticks(numbers[:: -(-numbers.size // 5)])
    axes.grid(True, axis="y", lw=0.7)
