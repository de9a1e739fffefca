"""The page's moving charts, drawn by Bokeh in the browser; the only door to bokeh.

Charts are empty here: `page/explorer.js` fills the named sources and moves the named ranges. The same arguments
give the same bytes, so Bokeh's running ids are numbered anew.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from bokeh.document import Document
from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from dask_uncert.reports.figures.style import BLUE, GREEN, GREY, METRICS, OUTCOMES, PURPLE, SKY, VERMILION
from dask_uncert.reports.page.payload import text

DAMPINGS = (0.0, 0.5, 1.0, 2.0)
"""Of the curves that always stand beside that of the chosen damping ([S22] figure 8)."""
LINES = ("solid", "dashed", "dashdot", "dotted")
CURVES = tuple(zip(DAMPINGS, (BLUE, VERMILION, GREEN, PURPLE), LINES, strict=True))
SOFT = {
    "f1": "F1",
    "share": "share of the weight left",
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "false_positive_rate": "false-positive rate",
}
"""Charts against sigma, the share right after F1."""
INK = "#1b1f24"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'
MARKS = {"o": "circle", "s": "square", "^": "triangle", "D": "diamond"}


def bokeh_script() -> str:
    """BokehJS, to stand in a script element: the core alone, without widgets, tables, WebGL and mathematics."""
    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="error").js_raw)


@lru_cache(maxsize=1)
def charts() -> str:
    """All charts as JSON for `Bokeh.embed.embed_items`: {"doc": a document, "roots": {model id: element id}}."""
    document = Document(title="explorer")
    for name, chart in {**_soft(), **_certain(), **_reliability()}.items():
        chart.name = f"chart-{name}"  # also the id of the element that holds it
        document.add_root(chart)
    plain = json.loads(json.dumps(document.to_json(deferred=False)))
    renumbered = _renumbered(plain)
    roots = {root["id"]: root["attributes"]["name"] for root in renumbered["roots"]}
    return text({"doc": renumbered, "roots": roots})


def _renumbered(value: Any) -> Any:
    """Ids in the order in which they stand: m1, m2, ..."""
    known: dict[str, str] = {}

    def walk(part: Any) -> Any:
        if isinstance(part, dict):
            return {
                key: known.setdefault(inner, f"m{len(known) + 1}")
                if key == "id" and isinstance(inner, str)
                else walk(inner)
                for key, inner in part.items()
            }
        return [walk(inner) for inner in part] if isinstance(part, list) else part

    return walk(value)


def _chart(x: str, y: str, height: int, **words: Any) -> figure:
    chart = figure(
        height=height,
        sizing_mode="stretch_width",
        min_width=200,
        tools="",
        toolbar_location=None,
        x_axis_label=x,
        y_axis_label=y,
        min_border_left=60,
        min_border_right=14,
        min_border_top=10,
        **{"x_range": Range1d(0, 1), "y_range": Range1d(0, 1.02), **words},
    )
    chart.outline_line_color = None
    chart.grid.grid_line_color = "#e6e9ec"
    for axis in chart.axis:
        axis.axis_line_color = axis.major_tick_line_color = "#767f89"
        axis.minor_tick_line_color = None
        axis.major_label_text_color = "#444c56"
        axis.axis_label_text_color = INK
        axis.axis_label_text_font_style = "normal"
        axis.major_label_text_font = axis.axis_label_text_font = FONT
        axis.major_label_text_font_size = "11px"
        axis.axis_label_text_font_size = "12px"
        axis.axis_label_standoff = 6
        axis.major_tick_in = 0
        axis.major_tick_out = 4
        axis.ticker.desired_num_ticks = 5
    return chart


def _source(name: str, *columns: str) -> ColumnDataSource:
    return ColumnDataSource({column: [] for column in columns}, name=name)


def _soft() -> dict[str, figure]:
    """Metrics of the soft confusion against sigma: a line a damping, the chosen one in black, its bound as a band."""
    columns = ("sigma", *SOFT, *(f"{key}_{end}" for key in SOFT for end in ("low", "high")))
    fixed = [_source(f"curve-{i}", *columns) for i in range(len(CURVES))]
    own, now = _source("curve-own", *columns), _source("now", "sigma", *SOFT)
    sigmas = Range1d(0, 0.5, name="sigma-range")
    found = {}
    for key, label in SOFT.items():
        words = {} if key == "share" else {"y_range": Range1d(0, 1, name=f"{key}-range")}
        chart = _chart("spread σ of the threshold", label, 216, x_range=sigmas, **words)
        if key == "share":
            chart.background_fill_color = "#f3f5f7"
        chart.vspan(x="sigma", source=now, line_color=GREY, line_width=1, line_dash="4 3")
        for source, (_, color, dash) in zip(fixed, CURVES, strict=True):
            chart.line("sigma", key, source=source, line_color=color, line_dash=dash, line_width=1.8)
        chart.varea("sigma", f"{key}_low", f"{key}_high", source=own, fill_color=INK, fill_alpha=0.15)
        line = chart.line("sigma", key, source=own, line_color=INK, line_width=2.6)
        chart.scatter("sigma", key, source=now, size=9, fill_color="white", line_color=INK, line_width=2.2)
        tips = [("σ", "@sigma{0.000}"), (label, f"@{key}{{0.0000}}"), ("share left", "@share{0.0 %}")]
        chart.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline", line_policy="nearest"))
        found[f"soft-{key}"] = chart
    return found


def _certain() -> dict[str, figure]:
    """What the threshold tau on a measure parts: distributions, the metrics of [A22], risk against coverage."""
    reach = Range1d(0, 1, name="u-range")
    tau = _source(
        "tau", "tau", "coverage", "risk", *(key for key, _, _ in METRICS), *(name for name, _, _ in OUTCOMES)
    )
    line = {"source": tau, "line_color": INK, "line_width": 1.4, "line_dash": "4 3"}
    ecdf = _chart("u", "share with value ≤ u", 270, x_range=reach)
    ecdf.vspan(x="tau", **line)
    for outcome, color, style in OUTCOMES:
        source = _source(f"ecdf-{outcome}", "u", "share")
        dash = "solid" if style == "-" else "dashed"
        ecdf.step("u", "share", source=source, mode="after", line_color=color, line_dash=dash, line_width=2)
        ecdf.scatter("tau", outcome, source=tau, size=8, fill_color="white", line_color=color, line_width=2)
    confusion = _chart("threshold τ", "metric", 270, x_range=reach)
    confusion.vspan(x="tau", **line)
    curves = _source("tau-curves", "tau", *(key for key, _, _ in METRICS))
    for (key, color, mark), dash in zip(METRICS, LINES, strict=True):
        confusion.line("tau", key, source=curves, line_color=color, line_dash=dash, line_width=1.8)
        confusion.scatter("tau", key, source=tau, marker=MARKS[mark], size=8, fill_color="white", line_color=color,
                          line_width=2)  # fmt: skip
    risk = _chart("coverage (share kept)", "risk (share wrong of the kept)", 270,
                  y_range=Range1d(0, 1, name="risk-range"))  # fmt: skip
    risk.multi_line("coverage", "risk", source=_source("risk-others", "coverage", "risk"), line_color="#aab2ba",
                    line_width=1.3)  # fmt: skip
    risk.line(
        "coverage",
        "risk",
        source=_source("risk-all", "coverage", "risk"),
        line_color=GREY,
        line_dash="dotted",
    )
    risk.line("coverage", "risk", source=_source("risk", "coverage", "risk"), line_color=BLUE, line_width=2.2)
    risk.vspan(x="coverage", **line)
    risk.scatter(
        "coverage", "risk", source=tau, size=10, fill_color="white", line_color=VERMILION, line_width=2.4
    )
    return {"ecdf": ecdf, "uncertainty-confusion": confusion, "risk-coverage": risk}


def _reliability() -> dict[str, figure]:
    """Observed share against stated probability, the pixels of each bin beneath."""
    source = _source("reliability", "low", "high", "stated", "observed", "n")
    upper = _chart("", "share that came true", 210)
    upper.xaxis.major_label_text_font_size = "0px"
    upper.line([0, 1], [0, 1], line_color=GREY, line_dash="5 4")
    upper.quad(
        "low", "high", "observed", 0, source=source, fill_color=SKY, fill_alpha=0.55, line_color="white"
    )
    upper.segment(
        "stated", "stated", "stated", "observed", source=source, line_color=VERMILION, line_width=2.4
    )
    upper.scatter("stated", "observed", source=source, size=7, fill_color=BLUE, line_color="white")
    lower = _chart("stated probability", "pixels", 110, y_range=Range1d(0, 1, name="bin-range"))
    lower.quad("low", "high", "n", 0, source=source, fill_color=BLUE, line_color="white")
    lower.yaxis.formatter = NumeralTickFormatter(format="0a")
    lower.yaxis.ticker.desired_num_ticks = 2
    return {"reliability": upper, "reliability-bins": lower}


DASHES = {"solid": "", "dashed": "7 4", "dashdot": "8 3 2 3", "dotted": "2 3"}
WORDS: dict[str, Any] = {
    "curves": [{"damping": d, "color": color, "dashes": DASHES[dash]} for d, color, dash in CURVES],
    "soft_charts": SOFT,
    "soft_metrics": {
        "f1": "F1 (Dice)",
        "accuracy": "accuracy",
        "precision": "precision",
        "recall": "recall",
        "false_positive_rate": "false-positive rate",
        "specificity": "specificity",
        "negative_predictive_value": "negative pred. value",
        "balanced_accuracy": "balanced accuracy",
        "iou": "IoU (Jaccard)",
        "matthews": "Matthews correlation",
        "kappa": "Cohen’s kappa",
    },
    "uncertain_metrics": [
        ("USen", "USen", "of the wrong that is uncertain"),
        ("USpe", "USpe", "of the right that is certain"),
        ("UPre", "UPre", "of the uncertain that is wrong"),
        ("UAcc", "UAcc", "that is right and certain, or wrong and uncertain"),
        ("coverage", "coverage", "that is certain: kept"),
        ("risk", "risk", "of the kept that is wrong"),
    ],
    "uncertain_marks": [
        {"name": key, "color": color, "dashes": DASHES[dash], "mark": MARKS[mark]}
        for (key, color, mark), dash in zip(METRICS, LINES, strict=True)
    ],
}
"""What the template says of the charts: legends, and the tables beside them."""
