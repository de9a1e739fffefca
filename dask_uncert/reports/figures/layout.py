"""Layout of figures in inches, and their two file formats.

A layout computed from drawn text takes as long as drawing. Here margins are known beforehand, widths of names are
looked up in the font, and titles and labels keep fixed distances. Together with few ticks and printing through the
canvases (savefig draws everything twice) this cuts the time of a figure of four panels to a third.
pyplot is not used, and matplotlib's settings are restored after each figure.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from dask_uncert.reports.figures.style import DPI, SETTINGS, styled

UNIT_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
NARROW = 1.7  # inches, below which every other tick has a label
BOLD = 1.13  # width of bold text, relative to regular text
LINE = 0.19  # height of a line of a legend, in inches
MARK = 0.55  # width of a legend's mark and the space around an entry, in inches


class Margins(NamedTuple):
    """Space around the panels, in inches."""

    left: float = 0.62
    right: float = 0.15
    bottom: float = 0.5
    top: float = 0.3


def panel_grid(
    number: int,
    columns: int,
    panel: tuple[float, float],
    margins: Margins,
    gaps: tuple[float, float] = (0.35, 0.75),
) -> tuple[Figure, list[Axes]]:
    """Return a figure of `number` panels, row by row; panel and gaps: width and height in inches."""
    rows = -(-number // columns)
    width = margins.left + columns * panel[0] + (columns - 1) * gaps[0] + margins.right
    height = margins.top + rows * panel[1] + (rows - 1) * gaps[1] + margins.bottom
    figure = Figure(figsize=(width, height), dpi=DPI)
    panels = []
    for i in range(number):
        row, column = divmod(i, columns)
        left, top = margins.left + column * (panel[0] + gaps[0]), margins.top + row * (panel[1] + gaps[1])
        panels.append(add_panel(figure, left, top, *panel))
    return figure, panels


def add_panel(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add a panel at these inches from the upper left corner of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def columns_of(number: int, most: int = 3) -> int:
    """Return the number of panels in a row, so that there are few rows and few gaps in the last.

    >>> [columns_of(n) for n in (1, 2, 3, 4, 5, 9)], columns_of(8, most=4)
    ([1, 2, 3, 2, 3, 3], 4)
    """
    rows = -(-number // most)
    return -(-number // rows) if rows else 1


def panel_size(axes: Axes) -> tuple[float, float]:
    """Return the width and height of a panel in inches."""
    figure, box = axes.get_figure(root=True), axes.get_position(original=True)
    assert figure is not None
    across, down = figure.get_size_inches()
    return float(box.width * across), float(box.height * down)


def label_panel(
    axes: Axes, title: str | None = None, x: str | None = None, y: str | None = None, far: float = 0.42
) -> None:
    """Set the title and the labels of a panel at fixed distances; None keeps the current text.

    Text wider than the panel becomes smaller. far: inches from the y label to the left edge.
    """
    width, height = panel_size(axes)
    title = axes.get_title() if title is None else title
    x = axes.get_xlabel() if x is None else x
    axes.set_title(title, y=1.0, pad=5, fontsize=fitting_size(title, width + 0.1, 10.0, BOLD))
    axes.set_xlabel(x, fontsize=fitting_size(x, width + 0.1))
    axes.set_ylabel(axes.get_ylabel() if y is None else y)
    axes.xaxis.set_label_coords(0.5, -0.25 / height)
    axes.yaxis.set_label_coords(-far / width, 0.5)


def heading(figure: Figure, text: str, left: float = 0.1, top: float = 0.08) -> None:
    """Write a line above the panels, at these inches from the upper left corner; smaller if it would not fit."""
    across, down = figure.get_size_inches()
    size = fitting_size(text, across - left - 0.1, 10.0, BOLD)
    figure.text(left / across, 1 - top / down, text, fontsize=size, weight="bold", va="top")


def fitting_size(text: str, width: float, size: float = 9.0, weight: float = 1.0) -> float:
    """Return the font size, at most `size`, at which a line of text fits a width in inches."""
    return min(size, size * width / (weight * text_width(text, size) or 1))


def unit_axes(axes: Axes) -> None:
    """Set both axes to shares, with a grid."""
    axes.set(xlim=(0, 1), ylim=(0, 1.015))
    axes.grid(True, lw=0.7)


def unit_ticks(axes: Axes, directions: str = "xy") -> None:
    """Set five ticks for shares in [0, 1], three if the panel is narrow."""
    for direction, length in zip("xy", panel_size(axes), strict=True):
        if direction in directions:
            values = UNIT_TICKS[:: 2 if length < NARROW else 1]
            getattr(axes, f"set_{direction}ticks")(values, [f"{value:g}" for value in values])


def count_ticks(axes: Axes, most: int) -> None:
    """Set at most `most` + 1 ticks at whole numbers on the y axis, with thousands separators, or in millions."""
    axes.yaxis.set_major_locator(MaxNLocator(most, integer=True))
    millions = axes.get_ylim()[1] >= 1e6  # whose digits would run into the label of the axis
    axes.yaxis.set_major_formatter(lambda x, _: f"{x / 1e6:,g} M" if millions and x else f"{x:,.0f}")


def outer_labels(panels: Sequence[Axes], columns: int, directions: str = "xy") -> None:
    """Remove the labels and tick labels that the panel to the left (y) or below (x) repeats."""
    for i, axes in enumerate(panels):
        if "y" in directions and i % columns:
            axes.tick_params(labelleft=False)
            axes.set_ylabel("")
        if "x" in directions and i + columns < len(panels):
            axes.tick_params(labelbottom=False)
            axes.set_xlabel("")


def outer_unit_ticks(panels: Sequence[Axes], columns: int) -> None:
    """Set ticks for shares and labels at the left and lower edges only: inner ones take a third of the drawing time."""
    for i, axes in enumerate(panels):
        left, lowest = i % columns == 0, i + columns >= len(panels)
        unit_ticks(axes, "y" * left + "x" * lowest)
        if not left:
            axes.set(yticks=[], ylabel="")
        if not lowest:
            axes.set(xticks=[], xlabel="")


def text_width(text: str, size: float = 9.0) -> float:
    """Return the width of a line of text in inches."""
    font = FontProperties(family=str(SETTINGS["font.family"]), size=size)
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0]) / 72


def widest_text(texts: Sequence[str], size: float = 9.0) -> float:
    """Return the width of the widest text in inches; 0 if there is none."""
    return max((text_width(text, size) for text in texts), default=0.0)


class LegendPlan(NamedTuple):
    """Columns and lines of a legend."""

    columns: int
    lines: int

    @property
    def height(self) -> float:
        """Height in inches."""
        return self.lines * LINE + 0.08


def plan_legend(labels: Sequence[str], width: float) -> LegendPlan:
    """Return the columns and lines that these labels take over a width in inches."""
    columns = min(max(int(width / (widest_text(labels, 8.5) + MARK)), 1), max(len(labels), 1))
    lines = math.ceil(len(labels) / columns)
    return LegendPlan(math.ceil(len(labels) / max(lines, 1)) or 1, lines)


def shared_legend(
    figure: Figure,
    handles: Sequence[Any],
    labels: Sequence[str],
    plan: LegendPlan | None = None,
    below: bool = False,
) -> None:
    """Draw one legend for all panels along the upper or lower edge."""
    plan = plan_legend(labels, figure.get_size_inches()[0]) if plan is None else plan
    loc, anchor = ("lower center", (0.5, 0.0)) if below else ("upper center", (0.5, 1.0))
    figure.legend(handles, labels, loc=loc, bbox_to_anchor=anchor, ncols=plan.columns, borderaxespad=0.3)


def legend_beside(axes: Axes, left: float | None = None, **options: Any) -> None:
    """Draw the legend of a panel to its right, or `left` panel widths from its left edge."""
    left = 1 + 0.12 / panel_size(axes)[0] if left is None else left
    axes.legend(loc="upper left", bbox_to_anchor=(left, 1.0), borderaxespad=0.0, fontsize=8, **options)


@styled
def svg(figure: Figure) -> bytes:
    """Return the figure as SVG, without a date and with text as outlines, so that it looks the same everywhere."""
    target = io.BytesIO()
    FigureCanvasSVG(figure).print_svg(target, metadata={"Date": None, "Creator": None})
    figure.dpi = DPI  # print_svg leaves 72
    return target.getvalue()


@styled
def png(figure: Figure) -> bytes:
    """Return the figure as PNG."""
    target = io.BytesIO()
    options = {"compress_level": 3}  # 8 % larger than 6, in half the time
    FigureCanvasAgg(figure).print_png(target, metadata={"Software": None}, pil_kwargs=options)
    return target.getvalue()
