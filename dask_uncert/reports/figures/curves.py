"""Curves read off an Evaluation, drawn onto axes that `figures` gives (nothing of matplotlib is imported)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.formulas import distributions, selective
from dask_uncert.metrics import classification
from dask_uncert.metrics import selective as selective_metrics
from dask_uncert.reports.figures.style import COLORS, DASHES, GREY, METRICS, OUTCOMES
from dask_uncert.reports.names import pretty, unit
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Evaluation

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def value_label(evaluation: Evaluation, name: str) -> str:
    """A measure's name with the unit of its values, where they have one."""
    kind = unit(evaluation.measures[name].measure)
    return pretty(name) if kind == "1" else f"{pretty(name)} ({kind})"


def _right_and_wrong(evaluation: Evaluation, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return classification.histogram(evaluation, name, "correct"), classification.histogram(
        evaluation, name, "wrong"
    )


def unit_axes(axes: Any) -> None:
    """Shares upwards and to the right."""
    axes.set(xlim=(0, 1), ylim=(0, 1.015))
    axes.grid(True, lw=0.7)


def value_axis(axes: Any, one: Distribution) -> None:
    """A measure's values to the right: over its range, or on a logarithmic scale where it has none."""
    if not one.wide:
        axes.set_xlim(0, one.reach)
        return
    low = lowest(one)
    axes.set_xscale("log")
    axes.set_xlim(low, one.reach)
    axes.set_xticks(*powers(low, one.reach))
    axes.minorticks_off()


def lowest(one: Distribution) -> float:
    """Where values of a measure without range begin on paper: below the first filled bin that does not hold 0."""
    filled = np.flatnonzero(one.histogram[..., 1:].sum(axis=(0, 1)))
    return one.edges[int(filled[0]) + 1] if filled.size else one.reach / 10


def powers(low: float, high: float, most: int = 4) -> tuple[list[float], list[str]]:
    """Powers of ten between two numbers, at most so many, evenly spread, and what they are called; an end if none is.

    >>> powers(0.0005, 2)
    ([0.001, 0.01, 0.1, 1.0], ['10⁻³', '10⁻²', '10⁻¹', '10⁰'])
    """
    tens = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    chosen = tens[:: -(-len(tens) // most) or 1]
    if not chosen:
        return [high], [f"{high:.2g}"]
    return [10.0**k for k in chosen], ["10" + str(k).translate(RAISED) for k in chosen]


def ecdf(axes: Any, evaluation: Evaluation, name: str) -> None:
    """Share of right and of wrong decisions at or below each value; no line where there are none."""
    for outcome, color, style in OUTCOMES:
        edges, shares = classification.ecdf(evaluation, name, outcome)
        n = int(classification.histogram(evaluation, name, outcome).sum())
        start = 0.0 if n else np.nan
        x, y = np.concatenate([[0.0], edges]), np.concatenate([[start], shares])
        axes.plot(x, y, style, color=color, lw=1.8, label=f"{outcome} (n = {n:,})")
    axes.set(
        title=pretty(name),
        xlabel=f"u, {value_label(evaluation, name)}",
        ylabel="share of pixels with value ≤ u",
    )
    unit_axes(axes)
    value_axis(axes, evaluation.measures[name])


def uncertainty_confusion(axes: Any, evaluation: Evaluation, name: str) -> None:
    """USen, USpe, UPre and UAcc at every threshold that is an edge; marks at those the job named."""
    one = evaluation.measures[name]
    taus = np.asarray(one.edges)[1:]
    curves = distributions.uncertainty_confusion(*_right_and_wrong(evaluation, name), one.edges, taus)
    named = np.flatnonzero(np.isin(taus, one.thresholds)).tolist()
    for key, color, mark in METRICS:
        axes.plot(taus, curves[key], f"-{mark}", color=color, lw=1.4, ms=4.5, markevery=named, label=key)
    axes.set(title=pretty(name), xlabel=f"threshold τ on {value_label(evaluation, name)}", ylabel="metric")
    unit_axes(axes)
    value_axis(axes, one)


def risk_coverage(axes: Any, evaluation: Evaluation) -> None:
    """Share of wrong decisions among those kept, one curve a measure."""
    highest = 0.0
    for i, name in enumerate(evaluation.measures):
        coverage, risk = selective.risk_coverage(*_right_and_wrong(evaluation, name))
        area = selective_metrics.aurc(evaluation, name)
        label = f"{pretty(name)}: AURC {'undefined' if math.isnan(area) else f'{area:.4f}'}"
        style, color = DASHES[i % len(DASHES)], COLORS[i % len(COLORS)]
        axes.plot(coverage, risk, ls=style, color=color, lw=1.8, label=label)
        highest = max(highest, float(np.nanmax(risk, initial=0.0)))
    error = 1 - classification.accuracy(evaluation)
    if math.isfinite(error):
        axes.axhline(error, color=GREY, lw=1, ls=(0, (1, 3)), label=f"all kept: error {error:.4f}")
    axes.set(title="Risk against coverage", xlabel="coverage (share of pixels kept)")
    axes.set(ylabel="risk (share wrong among the kept)")
    unit_axes(axes)
    axes.set_ylim(0, min(1.0, highest * 1.06) or 1.0)
