"""Confidence and uncertainty together, over correct and over wrong predictions, with their marginals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.distributions import OUTCOMES, Outcome
from dask_uncert.reports.figures import layout
from dask_uncert.reports.figures.curves import powers, value_label
from dask_uncert.reports.figures.style import DPI, GREY, styled
from dask_uncert.reports.figures.style import OUTCOMES as STYLES
from dask_uncert.summaries.confidence_joint import ConfidenceJoint
from dask_uncert.summaries.evaluation import Evaluation

SIDE, MARGINAL, GAP = 2.2, 0.42, 0.06  # inches of a square, of its marginals, and between them
LEFT, ABOVE, BELOW, BAR = 0.62, 0.3, 0.5, 0.62
FACES = "viridis_r"  # few pixels are pale, as no pixels are white
TICKS = 5


@styled
def joint_distributions(
    evaluation: Evaluation, names: Sequence[str] | None = None, outcomes: Sequence[Outcome] = ("correct", "wrong")
) -> Figure | None:
    """Draw the confidence against measures, right beside wrong ([A22] figure 5); a row a measure, by default all kept.

    Colours and marginals are shares of the outcome's pixels. None where nothing was kept.
    """
    joints = [joint for joint in evaluation.confidence_joint if names is None or joint.measure in names]
    if not joints:
        return None
    block = LEFT + SIDE + GAP + MARGINAL, ABOVE + MARGINAL + GAP + SIDE + BELOW
    figure = Figure(figsize=(len(outcomes) * block[0] + BAR + 0.15, len(joints) * block[1]), dpi=DPI)
    for row, joint in enumerate(joints):
        shares = _shares(joint)
        filled = np.concatenate([s[s > 0] for s in shares.values()])
        largest = float(filled.max(initial=0.0)) or 1.0
        smallest = float(filled.min(initial=largest / 10))
        norm = LogNorm(smallest, largest)
        top = row * block[1] + ABOVE
        for column, outcome in enumerate(outcomes):
            mesh = _square(figure, evaluation, joint, outcome, (column * block[0] + LEFT, top), shares[outcome], norm)
        bar = layout.add_panel(figure, len(outcomes) * block[0] + 0.1, top + MARGINAL + GAP, 0.09, SIDE)
        ticks, labels = powers(smallest, largest)
        figure.colorbar(mesh, cax=bar, label="share of the outcome").set_ticks(ticks, labels=labels)
        bar.minorticks_off()
    return figure


def _shares(joint: ConfidenceJoint) -> dict[Outcome, Floats]:
    """Return the shares (confidence, bin) of the pixels of each outcome; 0 without pixels."""
    counts = {outcome: joint.pixels[list(OUTCOMES[outcome])].sum(axis=0) for outcome, _, _ in STYLES}
    return {outcome: np.nan_to_num(ratio(n, n.sum())) for outcome, n in counts.items()}


def _square(
    figure: Figure,
    evaluation: Evaluation,
    joint: ConfidenceJoint,
    outcome: Outcome,
    corner: tuple[float, float],
    shares: Floats,
    norm: LogNorm,
) -> QuadMesh:
    """Draw one outcome at this upper left corner; return what the colour bar explains."""
    left, top = corner
    measure = evaluation.measures[joint.measure]
    color, style = next((color, style) for name, color, style in STYLES if name == outcome)
    n = int(joint.pixels[list(OUTCOMES[outcome])].sum())
    x, y = np.asarray(joint.confidence_edges), np.asarray(joint.edges)
    first = int(np.searchsorted(x, 1 / len(evaluation.classes), side="left")) - 1  # no confidence is below 1/C
    filled = np.flatnonzero(joint.pixels.sum(axis=(0, 1)))
    low, high = (int(filled[0]), int(filled[-1]) + 1) if measure.wide and filled.size else (0, len(y) - 1)
    at = np.arange(len(y)) if measure.wide else y  # octaves are equally high
    square = layout.add_panel(figure, left, top + MARGINAL + GAP, SIDE, SIDE)
    mesh = square.pcolormesh(x, at, np.ma.masked_equal(shares.T, 0), norm=norm, cmap=FACES, rasterized=True)
    square.set(xlim=(x[first], 1), ylim=(at[low], at[high]))
    if measure.wide:
        ticks = sorted({int(i) for i in np.linspace(low, high, TICKS)})
        square.set_yticks(ticks, [f"{y[i]:.2g}" for i in ticks])
    square.grid(lw=0.5, alpha=0.6)
    above = layout.add_panel(figure, left, top, SIDE, MARGINAL)
    above.stairs(shares.sum(axis=1), x, color=color, fill=True, alpha=0.3)
    above.stairs(shares.sum(axis=1), x, color=color, ls=style, lw=1.2, baseline=None)
    above.set(xlim=square.get_xlim(), xticks=[], yticks=[])
    beside = layout.add_panel(figure, left + SIDE + GAP, top + MARGINAL + GAP, MARGINAL - GAP, SIDE)
    beside.stairs(shares.sum(axis=0), at, color=color, orientation="horizontal", fill=True, alpha=0.3)
    beside.stairs(shares.sum(axis=0), at, color=color, orientation="horizontal", ls=style, lw=1.2, baseline=None)
    beside.set(ylim=square.get_ylim(), xticks=[], yticks=[])
    for axes in (above, beside):
        axes.spines[["left" if axes is above else "bottom"]].set_visible(False)
        axes.spines[["bottom", "left"]].set_color(GREY)
    layout.label_panel(above, f"{outcome} (n = {n:,})", "", "", far=0.0)
    square.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    layout.label_panel(square, "", "confidence", value_label(evaluation, joint.measure))
    return mesh
