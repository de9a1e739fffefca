"""The page's interactive charts, drawn by Bokeh in the browser; only this module imports bokeh.

Charts are empty here; `charts.js` fills the named sources and moves the named ranges. Bokeh's ids, which depend on all
models made before, are renumbered so that the same charts give the same bytes.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from bokeh.document import Document
from bokeh.models import ColumnDataSource, HoverTool, NumeralTickFormatter, Range1d
from bokeh.plotting import figure
from bokeh.resources import Resources

from dask_uncert.reports.figures.style import BLUE, GREEN, GREY, METRICS, OUTCOMES, PURPLE, SKY, VERMILION
from dask_uncert.reports.page.payload import json_text

LINES = ("solid", "dashed", "dashdot", "dotted")
DAMPINGS = tuple(zip((0.0, 0.5, 1.0, 2.0), (BLUE, VERMILION, GREEN, PURPLE), LINES, strict=True))
"""Fixed dampings ([S22] figure 8), their colours and lines; the chosen damping is drawn too."""
SOFT_METRICS = {
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
}
SOFT = {"f1": "F1", "share": "share of weight left"}
SOFT |= {key: SOFT_METRICS[key] for key in ("accuracy", "precision", "recall", "false_positive_rate")}
"""Charts against sigma and their labels."""
INK, LIGHT_GREY = "#1b1f24", "#aab2ba"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'
MARKS = {"o": "circle", "s": "square", "^": "triangle", "D": "diamond"}


def bokeh_script() -> str:
    """Return the core of BokehJS for a script element, without widgets, tables, WebGL and mathematics."""
    return "\n".join(Resources(mode="inline", components=["bokeh"], log_level="error").js_raw)


@lru_cache(maxsize=1)
def charts() -> str:
    """Return all charts as JSON for `Bokeh.embed.embed_items`: {"doc": a document, "roots": {model id: element id}}."""
    document = Document(title="explorer")
    for name, chart in {**_soft_confusion(), **_uncertainty(), **_reliability()}.items():
        chart.name = f"chart-{name}"  # also the id of its element
        document.add_root(chart)
    known: dict[str, str] = {}
    renumbered = re.sub(
        r'(?<="id":)"[^"]+"',
        lambda match: known.setdefault(match[0], f'"m{len(known) + 1}"'),
        json.dumps(document.to_json(deferred=False), separators=(",", ":")),
    )
    plain = json.loads(renumbered)
    roots = {root["id"]: root["attributes"]["name"] for root in plain["roots"]}
    return json_text({"doc": plain, "roots": roots})


def _chart(x: str, y: str, height: int, **options: Any) -> figure:
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
        **{"x_range": Range1d(0, 1), "y_range": Range1d(0, 1.02), **options},
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


def _dot(color: str, size: int = 8) -> dict[str, Any]:
    """Return the style of a dot at the chosen value."""
    return {"size": size, "fill_color": "white", "line_color": color, "line_width": 2}


def _soft_confusion() -> dict[str, figure]:
    """Return metrics against sigma: a line per damping, the chosen one in black, its error bound as a band."""
    columns = ("sigma", *SOFT, *(f"{key}_{end}" for key in SOFT for end in ("low", "high")))
    fixed = [_source(f"curve-{i}", *columns) for i in range(len(DAMPINGS))]
    chosen, now = _source("curve-chosen", *columns), _source("now", "sigma", *SOFT)
    sigmas = Range1d(0, 0.5, name="sigma-range")
    drawn = {}
    for key, label in SOFT.items():
        options = {} if key == "share" else {"y_range": Range1d(0, 1, name=f"{key}-range")}
        chart = _chart("threshold spread σ", label, 216, x_range=sigmas, **options)
        if key == "share":
            chart.background_fill_color = "#f3f5f7"
        chart.vspan(x="sigma", source=now, line_color=GREY, line_width=1, line_dash="4 3")
        for source, (_, color, dash) in zip(fixed, DAMPINGS, strict=True):
            chart.line("sigma", key, source=source, line_color=color, line_dash=dash, line_width=1.8)
        chart.varea("sigma", f"{key}_low", f"{key}_high", source=chosen, fill_color=INK, fill_alpha=0.15)
        line = chart.line("sigma", key, source=chosen, line_color=INK, line_width=2.6)
        chart.scatter("sigma", key, source=now, **_dot(INK, 9))
        tips = [("σ", "@sigma{0.000}"), (label, f"@{key}{{0.0000}}"), ("weight left", "@share{0.0 %}")]
        chart.add_tools(HoverTool(renderers=[line], tooltips=tips, mode="vline", line_policy="nearest"))
        drawn[f"soft-{key}"] = chart
    return drawn


def _uncertainty() -> dict[str, figure]:
    """Return the ECDFs of a measure, the metrics of its uncertainty confusion, and risk against coverage."""
    reach = Range1d(0, 1, name="u-range")
    metrics, outcomes = [key for key, _, _ in METRICS], [name for name, _, _ in OUTCOMES]
    tau = _source("tau", "tau", "coverage", "risk", *metrics, *outcomes)
    line = {"source": tau, "line_color": INK, "line_width": 1.4, "line_dash": "4 3"}
    ecdf = _chart("u", "share ≤ u", 270, x_range=reach)
    ecdf.vspan(x="tau", **line)
    for outcome, color, style in OUTCOMES:
        source = _source(f"ecdf-{outcome}", "u", "share")
        dash = "solid" if style == "-" else "dashed"
        ecdf.step("u", "share", source=source, mode="after", line_color=color, line_dash=dash, line_width=2)
        ecdf.scatter("tau", outcome, source=tau, **_dot(color))
    confusion = _chart("threshold τ", "metric", 270, x_range=reach)
    confusion.vspan(x="tau", **line)
    curves = _source("tau-curves", "tau", *metrics)
    for (key, color, mark), dash in zip(METRICS, LINES, strict=True):
        confusion.line("tau", key, source=curves, line_color=color, line_dash=dash, line_width=1.8)
        confusion.scatter("tau", key, source=tau, marker=MARKS[mark], **_dot(color))
    risks = Range1d(0, 1, name="risk-range")
    risk = _chart("coverage (share kept)", "risk (error rate of those kept)", 270, y_range=risks)
    others, everything, chosen = (_source(name, "coverage", "risk") for name in ("risk-others", "risk-all", "risk"))
    risk.multi_line("coverage", "risk", source=others, line_color=LIGHT_GREY, line_width=1.3)
    risk.line("coverage", "risk", source=everything, line_color=GREY, line_dash="dotted")
    risk.line("coverage", "risk", source=chosen, line_color=BLUE, line_width=2.2)
    risk.vspan(x="coverage", **line)
    risk.scatter("coverage", "risk", source=tau, **_dot(VERMILION, 10))
    return {"ecdf": ecdf, "uncertainty-confusion": confusion, "risk-coverage": risk}


def _reliability() -> dict[str, figure]:
    """Return observed share against predicted probability, and the pixels of each bin."""
    source = _source("reliability", "low", "high", "stated", "observed", "n")
    upper = _chart("", "observed share", 210)
    upper.xaxis.major_label_text_font_size = "0px"
    upper.line([0, 1], [0, 1], line_color=GREY, line_dash="5 4")
    bars = {"source": source, "line_color": "white"}
    upper.quad("low", "high", "observed", 0, fill_color=SKY, fill_alpha=0.55, **bars)
    gap = {"source": source, "line_color": VERMILION, "line_width": 2.4}
    upper.segment("stated", "stated", "stated", "observed", **gap)
    upper.scatter("stated", "observed", size=7, fill_color=BLUE, **bars)
    lower = _chart("predicted probability", "pixels", 110, y_range=Range1d(0, 1, name="bin-range"))
    lower.quad("low", "high", "n", 0, fill_color=BLUE, **bars)
    lower.yaxis.formatter = NumeralTickFormatter(format="0a")
    lower.yaxis.ticker.desired_num_ticks = 2
    return {"reliability": upper, "reliability-bins": lower}


DASHES = {"solid": "", "dashed": "7 4", "dashdot": "8 3 2 3", "dotted": "2 3"}
CONTEXT: dict[str, Any] = {
    "dampings": [{"damping": d, "color": color, "dashes": DASHES[dash]} for d, color, dash in DAMPINGS],
    "soft_charts": SOFT,
    "soft_metrics": SOFT_METRICS,
    "uncertainty_metrics": {
        "USen": "wrong predictions that are uncertain",
        "USpe": "correct predictions that are certain",
        "UPre": "uncertain predictions that are wrong",
        "UAcc": "correct and certain, or wrong and uncertain",
        "coverage": "predictions that are certain (kept)",
        "risk": "kept predictions that are wrong",
    },
    "uncertainty_marks": [
        {"name": key, "color": color, "dashes": DASHES[dash], "mark": MARKS[mark]}
        for (key, color, mark), dash in zip(METRICS, LINES, strict=True)
    ],
}
"""Legends of the charts and rows of the tables next to them, for the template."""
