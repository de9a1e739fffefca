"""How figures look: colours of Okabe and Ito, dashes, marks, and matplotlib's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context

from dask_uncert.metrics import distributions

BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, GREY, YELLOW = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#595959", "#F0E442")  # fmt: skip
COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)))
OUTCOMES: tuple[tuple[distributions.Outcome, str, str], ...]
OUTCOMES = (("correct", BLUE, "-"), ("wrong", VERMILION, "--"))
METRICS = (("USen", BLUE, "o"), ("USpe", VERMILION, "s"), ("UPre", GREEN, "^"), ("UAcc", PURPLE, "D"))
CELLS = {"TP": GREEN, "FN": "#AA3377", "FP": VERMILION, "TN": BLUE}
"""Colours of soft confusion [S22]: green, red and blue among these colours, and a purple that stays visible when pale."""
DPI = 150
SETTINGS = {
    "svg.hashsalt": "dask_uncert",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the same everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # fixed: nothing above a panel needs room
    "axes.labelcolor": "#222222",
    "axes.edgecolor": "#767676",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#e2e2e2",
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}
styled = rc_context(SETTINGS)
"""Decorator of functions that draw."""
MOST_CURVES = 6  # of a panel


def thin_out(values: Sequence[float], most: int) -> list[float]:
    """Return at most `most` of the values in rising order, including the lowest and the highest.

    >>> thin_out([0.3, 0.1, 0.2, 0.4, 0.5], 3)
    [0.1, 0.3, 0.5]
    """
    rising = sorted(set(values))
    if len(rising) <= most:
        return rising
    return [rising[round(i * (len(rising) - 1) / (most - 1))] for i in range(most)]


def curve_styles(values: Sequence[float]) -> list[tuple[float, dict[str, Any]]]:
    """Return up to six of the values, each with the colour and dashes of its curve."""
    styles = [{"color": COLORS[i], "ls": DASHES[i % len(DASHES)], "lw": 1.7} for i in range(MOST_CURVES)]
    return list(zip(thin_out(values, MOST_CURVES), styles, strict=False))
