"""The page of an evaluation: one file that works without a network, and without its controls if scripts are off.

Numbers are those of `results.json`, maps are embedded pictures, the script has its counts from `payload` and its charts
from `charts`. Every name is escaped. The same arguments give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dask_uncert.io.map_types import Maps
from dask_uncert.reports.figures import curves
from dask_uncert.reports.figures.confidence_joint import joint_distributions
from dask_uncert.reports.figures.layout import png, svg
from dask_uncert.reports.figures.maps import levels_of, map_figure_names, soft_maps
from dask_uncert.reports.figures.style import OUTCOMES
from dask_uncert.reports.names import file_names, pretty, unit
from dask_uncert.reports.page.charts import chart_texts
from dask_uncert.reports.page.cohort import cohort_context
from dask_uncert.reports.page.formatting import percent
from dask_uncert.reports.page.payload import payload
from dask_uncert.reports.page.templates import common_context, environment, file_text, image_source
from dask_uncert.reports.page.zones import zones_context
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.spec.map_names import soft_labels, soft_picture
from dask_uncert.summaries.evaluation import Evaluation

TIMES = "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
TITLE = "Evaluation of predictions and their uncertainty"
MOST_BYTES, MOST_MAP_BYTES = 8_000_000, 3_000_000
"""Size of the page and of its maps; joint histograms and maps beyond it are left out and listed."""
MOST_CLASSES = 60
"""Above this number of classes the confusion matrix is a picture, and class distances are only in the CSV file."""
FIGURES = ("reliability", "corp", "risk_coverage", "uncertainty_confusion")
"""Figures on the page besides maps and ECDFs."""
SCRIPTS = ("soft_confusion", "metrics", "formatting", "charts", "explorer", "decision_threshold", "sort_and_enlarge")
"""Names of the scripts, in the order in which they depend on each other."""
OTHER_SCRIPTS = ("sort_and_enlarge",)
"""Names of the scripts of a page that has nothing to explore."""


def scene_page(
    evaluation: Evaluation,
    results: Mapping[str, Any],
    maps: Maps,
    about: Mapping[str, str],
    figures: Mapping[str, bytes],
    statistics: CohortStatistics | None = None,
    counted_unit: str = "pixel",
) -> str:
    """Return the page as text.

    maps: subsampled maps.
    about: provenance, text by label, in display order; `title` is the heading.
    figures: contents of the figures' files by name.
    counted_unit: what is counted, "pixel" or "voxel".
    """
    explores = bool(evaluation.joint or evaluation.measures or evaluation.calibration)
    names = [*(SCRIPTS if explores else OTHER_SCRIPTS), *(["cohort"] if statistics else [])]
    scripts = [file_text(f"{name}.js", counted_unit) for name in names]
    shown, hidden = _maps(evaluation, maps, figures)
    charts = chart_texts()
    context = {
        **common_context(results, about, TITLE, counted_unit),
        "overall": results["overall"],
        "measures": results["measures"],
        "interval_note": interval_note(results),
        "units": {name: unit(measure.measure) for name, measure in evaluation.measures.items()},
        "fits": len(evaluation.classes) <= MOST_CLASSES,
        "pictures": _pictures(evaluation, figures),
        "maps": shown,
        "maps_left_out": hidden,
        "at_maximum": _at_maximum(results),
        "zones": zones_context(evaluation, results),
        "has_joint": bool(evaluation.joint),
        "explores": explores,
        "cohort": None if statistics is None else cohort_context(statistics, results, evaluation),
        **charts,
        "scripts": [Markup(charts["script"]), *map(Markup, scripts)],
        "charts": Markup(charts["charts"]),
    }
    template = environment(counted_unit).get_template("scene.html.jinja")
    everything = payload(evaluation, MOST_BYTES)
    page = template.render(context, payload=Markup(everything.text), left_out=everything.left_out)
    if not everything.left_out and len(page.encode()) <= MOST_BYTES:
        return page
    # Joint histograms may fill what is left of the page without any of them.
    empty = payload(evaluation, 0)
    around = template.render(context, payload="", left_out=empty.left_out)
    full = payload(evaluation, MOST_BYTES - len(around.encode()))
    return template.render(context, payload=Markup(full.text), left_out=full.left_out)


def page_figures(evaluation: Evaluation, maps: Maps) -> list[str]:
    """Return the names of the figures that the page shows."""
    confusion = ["confusion"] if len(evaluation.classes) > MOST_CLASSES else []
    return [*FIGURES, *confusion, *page_maps(maps).values()]


def _pictures(evaluation: Evaluation, figures: Mapping[str, bytes]) -> dict[str, Any]:
    """Return image sources; each measure has its own ECDF picture, which stays legible on a narrow screen."""
    names = [name for name in FIGURES if f"{name}.svg" in figures]
    pictures: dict[str, Any] = {name: image_source("svg+xml", figures[f"{name}.svg"]) for name in names}
    pictures["ecdf"] = {
        name: image_source("svg+xml", svg(curves.panels(evaluation, curves.ecdf, [name])))
        for name in evaluation.measures
    }
    pictures["joint"] = {  # the outcomes apart, so that a narrow screen has them below one another
        joint.measure: {
            outcome: image_source("png", png(drawn))
            for outcome, _, _ in OUTCOMES
            if (drawn := joint_distributions(evaluation, [joint.measure], [outcome])) is not None
        }
        for joint in evaluation.confidence_joint
    }
    if len(evaluation.classes) > MOST_CLASSES:
        pictures["confusion"] = image_source("png", figures["confusion.png"])
    return pictures


def _maps(evaluation: Evaluation, maps: Maps, figures: Mapping[str, bytes]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the maps that fit, in order, and the files of the others."""
    shown: list[dict[str, Any]] = []
    left_out = []
    used = 0
    labels = zip(soft_labels(evaluation.classes), evaluation.classes, strict=True)
    titles = {soft_picture(label): f"Soft confusion of {c.name}" for label, c in labels}
    for name, file in page_maps(maps).items():
        values, dims = maps[name]
        content = figures[f"{file}.png"]
        source = image_source("png", content)
        if used + len(source) > MOST_MAP_BYTES:
            left_out.append(f"{file}.png")
            continue
        used += len(source)
        width, height = (int.from_bytes(content[i : i + 4]) for i in (16, 20))  # from the header of the PNG
        shown.append(
            {
                "title": titles.get(name, pretty(name)),
                "text": _map_text(evaluation, name, values),
                "source": source,
                "shape": TIMES.join(f"{size:,}" for size in values.shape[:2]),
                "dims": TIMES.join(dims[:2]),
                "wide": width > 1.6 * height,
            }
        )
    return shown, left_out


def _map_text(evaluation: Evaluation, name: str, values: NDArray[Any]) -> str:
    """Return what a map shows, for those who cannot see it: its most frequent levels, or the range of its numbers."""
    if values.ndim == 3:
        return "the weight of each pixel as colours"
    known = values[np.isfinite(values)]
    if not known.size:
        return "no pixel has a value"
    levels = levels_of(evaluation, name, values)
    if levels is None:
        return f"from {known.min():.3g} to {known.max():.3g}, mean {known.mean():.3g}"
    shares = sorted(((float((known == code).mean()), label) for code, label, _ in levels), key=lambda pair: -pair[0])
    text = ", ".join(f"{label} {percent(share, 1)}" for share, label in shares[:3] if share)
    return text.replace(r"\$", "$")  # escaped for figures


def page_maps(maps: Maps) -> dict[str, str]:
    """Return the name of the figure of each map; that of a soft confusion shows all four weights."""
    merged = file_names(soft.label for soft in soft_maps(maps))
    pictures = {soft_picture(label): f"soft_maps_{safe}" for label, safe in merged.items()}
    return map_figure_names(maps) | pictures


def _at_maximum(results: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the names and shares of the classes at which q'(H∘H)q is largest."""
    if results["class_distances"] is None:
        return []
    shares = zip(results["classes"], results["class_distances"]["at"], strict=True)
    return [(c["name"], share) for c, share in shares if share]


def interval_note(results: Mapping[str, Any]) -> str:
    """Return a note on the small numbers below others; empty without intervals.

    >>> interval_note({"overall": {"kappa_interval": [0.6, 0.8]}, "confidence": {"level": 0.95}})
    ' Small numbers are 95 % confidence intervals.'
    """
    if not any(key.endswith("_interval") for key in results["overall"]):
        return ""
    level = (results.get("confidence") or {}).get("level")
    return f" Small numbers are {'' if level is None else f'{100 * level:g} % '}confidence intervals."
