"""How figures look: colours of Okabe and Ito, colours of classes, dashes, marks, and matplotlib's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context

from dask_uncert.metrics import distributions

BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, GREY, YELLOW = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#595959", "#F0E442")  # fmt: skip
COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
MANY = (
    "#1f77b3", "#ff7e0e", "#2ba02b", "#d62628", "#9367bc", "#8c564b", "#e277c1", "#7e7e7e", "#bcbc21", "#16bdcf",
    "#3a0182", "#004201", "#0fffa8", "#5d003f", "#bcbcff", "#d8afa1", "#b80080", "#004d52", "#6b6400", "#7c0100",
    "#6026ff", "#ffff9a", "#564964", "#8cb893", "#93fbff", "#018267", "#90ff00", "#8200a0", "#ac8944", "#5b3400",
    "#ffbff2", "#ff6e75", "#798cff", "#dd00ff", "#505646", "#004489", "#ffbf60", "#ff018c", "#bdc8cf", "#af97b5",
    "#b65600", "#017000", "#cd87ff", "#1cd646", "#bfebc3", "#7997b5", "#a56089", "#6e8956", "#bc7c75", "#8a2844",
    "#00acff", "#8ed4ff", "#4b6d77", "#00d4b1", "#9300f2", "#8a9500", "#5d5b9e", "#fddfba", "#00939e", "#ffdb00",
)  # fmt: skip
"""Sixty colours by Glasbey's method, the first ten like matplotlib's: `glasbey_category10` of colorcet (CC BY 4.0)."""
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


def class_colours(number: int) -> list[str]:
    """Return the colours of this many classes: up to seven those of Okabe and Ito, else `MANY`, again after sixty.

    >>> class_colours(3)
    ['#0072B2', '#D55E00', '#009E73']
    """
    palette = (*COLORS[:-1], YELLOW) if number < len(COLORS) + 1 else MANY
    return [palette[i % len(palette)] for i in range(number)]


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
