"""How figures look: colours of Okabe and Ito, dashes, marks, and matplotlib's settings as plain data."""

from __future__ import annotations

from dask_uncert.summaries import readings

BLUE, VERMILION, GREEN, ORANGE, SKY, PURPLE, GREY, YELLOW = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#595959", "#F0E442")  # fmt: skip
COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
DASHES = ("-", "--", "-.", (0, (1, 1.2)), (0, (5, 1, 1, 1, 1, 1)))
OUTCOMES: tuple[tuple[readings.Outcome, str, str], ...] = (("correct", BLUE, "-"), ("wrong", VERMILION, "--"))
METRICS = (("USen", BLUE, "o"), ("USpe", VERMILION, "s"), ("UPre", GREEN, "^"), ("UAcc", PURPLE, "D"))
CELLS = {"TP": GREEN, "FN": PURPLE, "FP": VERMILION, "TN": BLUE}
"""Of soft confusion [S22]: green, purple, red and blue among these colours."""
DPI = 150
SETTINGS = {
    "svg.hashsalt": "dask_uncert",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the same everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # not moved out of the way of what is above: nothing is
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
