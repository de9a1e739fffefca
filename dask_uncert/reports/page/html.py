"""The page of an evaluation: one file that needs no network, and reads well without its script.

Numbers come from `results.json`'s mapping, maps are pictures inside the page, words stand in `report.html.jinja`
and `page/`; the counts that the script works with come from `explorer`, its charts from `charts`. Every name is
escaped. The same arguments give the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from dask_uncert.reports.figures import curves, registry
from dask_uncert.reports.figures.maps import soft_maps
from dask_uncert.reports.figures.registry import Maps
from dask_uncert.reports.names import REASONS, file_names, pretty, unit
from dask_uncert.reports.page import bokeh_charts
from dask_uncert.reports.page import payload as payload_page
from dask_uncert.reports.page.cohort import cohort_words
from dask_uncert.reports.page.formatting import bar, breakable, count, number, percent, shade, signed
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.reports.results.scene import results
from dask_uncert.reports.tables.comparison import p_text
from dask_uncert.spec.map_names import soft_labels
from dask_uncert.summaries.evaluation import Class, Evaluation

TIMES = "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
TITLE = "Predictions and their uncertainty, evaluated"
MOST_BYTES = 8_000_000
"""Of the page. Joint histograms, then maps, are left out beyond it, and named."""
MOST_MAP_BYTES = 3_000_000
MOST_CLASSES = 60
"""Of a table of classes by classes; beyond it the page shows the picture and names the CSV file."""
PICTURES = ("reliability", "risk_coverage", "uncertainty_confusion")
"""Figures that stand in the page, beside maps and distributions."""
SCRIPTS = ("mathematics.js", "readings.js", "writing.js", "drawing.js", "explorer.js", "furniture.js")
COHORT_SCRIPT = "cohort.js"


def write_report(
    evaluation: Evaluation,
    path: str | Path,
    maps: Maps | None = None,
    about: Mapping[str, str] | None = None,
    found: dict[str, Any] | None = None,
    drawn: dict[str, bytes] | None = None,
    numbers: CohortStatistics | None = None,
) -> None:
    """Write the page of an evaluation to `path`.

    maps: name to (two-dimensional values, NaN where undefined; names of the dimensions), of a size to show.
    about: where the numbers come from, label to text, in the order shown; `title` is the heading.
    found, drawn: `results(evaluation)` and `figures.drawings(evaluation, maps)`, if the caller has them.
    numbers: of the cases of a cohort.
    """
    found = results(evaluation) if found is None else found
    if drawn is None:
        only = {*PICTURES, "confusion", *_map_files(maps or {}).values()}
        drawn = registry.drawings(evaluation, maps or {}, only)
    text = page(evaluation, maps or {}, about or {}, found, drawn, numbers)
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def page(
    evaluation: Evaluation,
    maps: Maps,
    about: Mapping[str, str],
    found: dict[str, Any],
    drawn: dict[str, bytes],
    numbers: CohortStatistics | None = None,
) -> str:
    """The page as text."""
    template = _environment().get_template("report.html.jinja")
    shown, left_out = _maps(evaluation.classes, maps, drawn)
    words: dict[str, Any] = {
        "title": about.get("title", TITLE),
        "about": {label: text for label, text in about.items() if label != "title"},
        "found": found,
        "overall": found["overall"],
        "measures": found["measures"],
        "total": found["counted"] + sum(found["excluded"].values()),
        "reasons": REASONS,
        "interval_note": interval_note(found),
        "units": {name: unit(one.measure) for name, one in evaluation.measures.items()},
        "fits": len(evaluation.classes) <= MOST_CLASSES,
        "pictures": _pictures(evaluation, drawn),
        "maps": shown,
        "maps_left_out": left_out,
        "at_maximum": _at_maximum(found),
        "has_joint": bool(evaluation.joint),
        "cohort": None if numbers is None else cohort_words(numbers, found, evaluation),
        "scripts": [
            Markup(bokeh_charts.bokeh_script()),
            *(Markup(_part(name)) for name in (*SCRIPTS, *(() if numbers is None else (COHORT_SCRIPT,)))),
        ],
        "charts": Markup(bokeh_charts.charts()),
        **bokeh_charts.WORDS,
    }
    # With every joint histogram left out the page is as long as it gets around them: what is left is theirs.
    nothing = payload_page.chosen(evaluation, 0)
    around = template.render(words, payload="", left_out=nothing.left_out)
    chosen = payload_page.chosen(evaluation, MOST_BYTES - len(around.encode()))
    return template.render(words, payload=Markup(chosen.text), left_out=chosen.left_out)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FunctionLoader(_part),
    )
    environment.filters |= {
        "count": count,
        "number": number,
        "percent": percent,
        "signed": signed,
        "breakable": breakable,
        "p": p_text,
        "pretty": pretty,
        "shade": shade,
        "bar": bar,
    }
    return environment


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _source(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(content).decode("ascii")


def _pictures(evaluation: Evaluation, drawn: dict[str, bytes]) -> dict[str, Any]:
    """Sources of images; the ECDFs come one panel a measure, so that a narrow screen shows them legibly."""
    pictures: dict[str, Any] = {
        name: _source("svg+xml", drawn[f"{name}.svg"]) for name in PICTURES if f"{name}.svg" in drawn
    }
    pictures["ecdf"] = {
        name: _source("svg+xml", registry.svg(registry.panels(evaluation, curves.ecdf, [name])))
        for name in evaluation.measures
    }
    if len(evaluation.classes) > MOST_CLASSES:
        pictures["confusion"] = _source("png", drawn["confusion.png"])
    return pictures


def _maps(
    classes: tuple[Class, ...], maps: Maps, drawn: dict[str, bytes]
) -> tuple[list[dict[str, Any]], list[str]]:
    """The maps in their order while they fit, and the files of those that do not."""
    shown: list[dict[str, Any]] = []
    left_out = []
    used = 0
    soft = {f"soft_{label}": one.name for label, one in zip(soft_labels(classes), classes, strict=True)}
    for name, file in _map_files(maps).items():
        values, dims = maps[name]
        content = drawn[f"{file}.png"]
        source = _source("png", content)
        if used + len(source) > MOST_MAP_BYTES:
            left_out.append(f"{file}.png")
            continue
        used += len(source)
        title = f"Soft confusion of {soft[name]}" if name in soft else pretty(name)
        size = f"{values.shape[0]:,}{TIMES}{values.shape[1]:,}"
        wide, high = (int.from_bytes(content[at : at + 4]) for at in (16, 20))  # of every PNG's head
        shown.append(
            {
                "title": title,
                "source": source,
                "shape": size,
                "dims": TIMES.join(dims[:2]),
                "wide": wide > 1.6 * high,
            }
        )
    return shown, left_out


def _map_files(maps: Maps) -> dict[str, str]:
    """The figure that shows each map: of a soft confusion that with all four weights and their merger."""
    merged = file_names(one.label for one in soft_maps(maps))
    return registry.map_names(maps) | {f"soft_{label}": f"soft_maps_{safe}" for label, safe in merged.items()}


def _at_maximum(found: dict[str, Any]) -> list[tuple[str, float]]:
    """Classes of the mixture at which q'(H∘H)q is largest, and their shares."""
    distances = found["class_distances"]
    if distances is None:
        return []
    shares = zip(found["classes"], distances["at"], strict=True)
    return [(one["name"], share) for one, share in shares if share]


def interval_note(found: dict[str, Any]) -> str:
    """What the small numbers under others are; nothing where there are no intervals.

    >>> interval_note({"overall": {"kappa_interval": [0.6, 0.8]}, "confidence": {"level": 0.95}})
    ' Small numbers beneath: 95 % confidence intervals.'
    """
    if not any(key.endswith("_interval") for key in found["overall"]):
        return ""
    level = (found.get("confidence") or {}).get("level")
    return f" Small numbers beneath: {'' if level is None else f'{100 * level:g} % '}confidence intervals."
