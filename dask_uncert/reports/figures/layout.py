"""Figures whose panels stand where inches say, and the two kinds of file they become.

A layout that is worked out from drawn text costs as much as drawing; here margins are known beforehand, widths of
names are looked up in the font, and titles and labels keep fixed distances. That, few ticks, and printing
through the canvases (savefig draws everything twice) cut the time of a figure of four panels to a third.
pyplot is not touched, and matplotlib's settings are put back after each figure.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from dask_uncert.reports.figures.style import DPI, SETTINGS

UNIT_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
NARROW = 1.7  # inches, below which every other tick has a label
BOLD = 1.13  # bold text is so much wider
LINE = 0.19  # height of a line of a legend, in inches
MARK = 0.55  # width of a legend's mark and the space around an entry, in inches


class Margins(NamedTuple):
    """Around the panels, in inches."""

    left: float = 0.62
    right: float = 0.15
    bottom: float = 0.5
    top: float = 0.3


def sheet(
    number: int,
    columns: int,
    panel: tuple[float, float],
    margins: Margins,
    gaps: tuple[float, float] = (0.35, 0.75),
) -> tuple[Figure, list[Axes]]:
    """A figure of `number` panels, row by row; panel and gaps: width and height in inches."""
    rows = -(-number // columns)
    width = margins.left + columns * panel[0] + (columns - 1) * gaps[0] + margins.right
    height = margins.top + rows * panel[1] + (rows - 1) * gaps[1] + margins.bottom
    figure = Figure(figsize=(width, height), dpi=DPI)
    found = []
    for place in range(number):
        row, column = divmod(place, columns)
        x = margins.left + column * (panel[0] + gaps[0])
        y = height - margins.top - row * (panel[1] + gaps[1]) - panel[1]
        found.append(figure.add_axes((x / width, y / height, panel[0] / width, panel[1] / height)))
    return figure, found


def at(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """A panel where these inches say, counted from the upper left corner of the figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def blank(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """A place without frame and ticks, as for `at`."""
    axes = at(figure, left, top, width, height)
    axes.set_axis_off()
    return axes


def columns_of(number: int, most: int = 3) -> int:
    """How many panels stand side by side: few rows, and few empty places in the last.

    >>> [columns_of(n) for n in (1, 2, 3, 4, 5, 9)], columns_of(8, most=4)
    ([1, 2, 3, 2, 3, 3], 4)
    """
    if number <= most:
        return max(number, 1)
    rows = -(-number // most)
    return -(-number // rows)


def inches(axes: Axes) -> tuple[float, float]:
    """Width and height of a panel."""
    figure, box = axes.get_figure(root=True), axes.get_position(original=True)
    assert figure is not None
    across, down = figure.get_size_inches()
    return float(box.width * across), float(box.height * down)


def words(
    axes: Axes, title: str | None = None, x: str | None = None, y: str | None = None, far: float = 0.42
) -> None:
    """Title and labels of a panel, at distances that need not be measured; by default those it has.

    What is wider than the panel is written smaller. far: of the label from the left edge, in inches.
    """
    width, height = inches(axes)
    title, x = axes.get_title() if title is None else title, axes.get_xlabel() if x is None else x
    axes.set_title(
        title, y=1.0, pad=5, fontsize=min(10.0, 10.0 * (width + 0.1) / (BOLD * text_width(title, 10) or 1))
    )
    axes.set_xlabel(x, fontsize=min(9.0, 9.0 * (width + 0.1) / (text_width(x) or 1)))
    axes.set_ylabel(axes.get_ylabel() if y is None else y)
    axes.xaxis.set_label_coords(0.5, -0.25 / height)
    axes.yaxis.set_label_coords(-far / width, 0.5)


def heading(figure: Figure, text: str, left: float = 0.1, top: float = 0.08) -> None:
    """A line above panels, at these inches from the upper left corner; smaller where it would not fit."""
    across, down = figure.get_size_inches()
    size = min(10.0, 10.0 * (across - left - 0.1) / (BOLD * text_width(text, 10) or 1))
    figure.text(left / across, 1 - top / down, text, fontsize=size, weight="bold", va="top")


def ticks(axes: Axes, directions: str = "xy") -> None:
    """Five ticks for shares in [0, 1], three where a panel is narrow."""
    for direction, length in zip("xy", inches(axes), strict=True):
        if direction in directions:
            places = UNIT_TICKS[:: 2 if length < NARROW else 1]
            getattr(axes, f"set_{direction}ticks")(places, [f"{place:g}" for place in places])


def outer(panels: Sequence[Axes], columns: int, directions: str = "xy") -> None:
    """Leave tick labels and labels out where the panel to the left (y) or below (x) says the same."""
    for place, axes in enumerate(panels):
        if "y" in directions and place % columns:
            axes.tick_params(labelleft=False)
            axes.set_ylabel("")
        if "x" in directions and place + columns < len(panels):
            axes.tick_params(labelbottom=False)
            axes.set_xlabel("")


def outer_ticks(panels: Sequence[Axes], columns: int) -> None:
    """Ticks for shares, and labels, at the left and lower edges only: inner ones take a third of the time to draw."""
    for place, axes in enumerate(panels):
        left, lowest = place % columns == 0, place + columns >= len(panels)
        ticks(axes, "y" * left + "x" * lowest)
        if not left:
            axes.set(yticks=[], ylabel="")
        if not lowest:
            axes.set(xticks=[], xlabel="")


def text_width(text: str, size: float = 9.0) -> float:
    """Width of a line of text in inches."""
    return float(text_to_path.get_text_width_height_descent(text, _font(size), False)[0]) / 72


def widest(texts: Sequence[str], size: float = 9.0) -> float:
    """Width of the widest, in inches; 0 where there is none."""
    return max((text_width(text, size) for text in texts), default=0.0)


def _font(size: float) -> FontProperties:
    return FontProperties(family=str(SETTINGS["font.family"]), size=size)


class Key(NamedTuple):
    """A legend planned: how many columns and lines it takes, and their height in inches."""

    columns: int
    lines: int

    @property
    def height(self) -> float:
        return self.lines * LINE + 0.08


def key(labels: Sequence[str], width: float) -> Key:
    """Plan the legend of these labels over a width in inches."""
    columns = min(max(int(width / (widest(labels, 8.5) + MARK)), 1), max(len(labels), 1))
    lines = math.ceil(len(labels) / columns)
    return Key(math.ceil(len(labels) / max(lines, 1)) or 1, lines)


def legend(
    figure: Figure, handles: Sequence[Any], labels: Sequence[str], plan: Key, below: bool = False
) -> None:
    """One legend for all panels, along the upper or the lower edge."""
    at = ("lower center", (0.5, 0.0)) if below else ("upper center", (0.5, 1.0))
    figure.legend(handles, labels, loc=at[0], bbox_to_anchor=at[1], ncols=plan.columns, borderaxespad=0.3)


def svg(figure: Figure) -> bytes:
    """The figure as SVG without a date, its text as outlines: it looks the same on every machine."""
    target = io.BytesIO()
    with rc_context(SETTINGS):
        FigureCanvasSVG(figure).print_svg(target, metadata={"Date": None, "Creator": None})
    figure.dpi = DPI  # print_svg leaves 72
    return target.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as PNG."""
    target = io.BytesIO()
    with rc_context(SETTINGS):
        options = {"compress_level": 3}  # 8 % larger than 6, in half the time
        FigureCanvasAgg(figure).print_png(target, metadata={"Software": None}, pil_kwargs=options)
    return target.getvalue()


def settled(figure: Figure) -> Figure:
    """A figure with a layout engine, its layout worked out once for both kinds of file."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    return figure
