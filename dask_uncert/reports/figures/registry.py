"""The pictures of an Evaluation, drawn from its counts (and its maps, thinned) alone: which there are, and writing them.

Right and wrong are told apart by colour and by line style, in the colours of Okabe and Ito, which people with
the common colour-vision deficiencies can tell apart; numbers on maps use viridis. With the same libraries the
same Evaluation gives the same bytes. Only modules of this folder import matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from dask_uncert.reports.figures import (
    calibration,
    cohort,
    confusion,
    curves,
    distributions,
    mistakes,
    sweep,
    weights,
)
from dask_uncert.reports.figures.layout import (
    Margins,
    columns_of,
    key,
    legend,
    outer,
    png,
    sheet,
    svg,
    ticks,
    words,
)
from dask_uncert.reports.figures.maps import Maps, map_names, measure_maps, picture, soft_maps
from dask_uncert.reports.figures.soft_maps import soft_map
from dask_uncert.reports.figures.style import SETTINGS
from dask_uncert.reports.names import file_names
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.summaries.evaluation import Evaluation

__all__ = ["Maps", "drawings", "figures", "map_names", "panels", "picture", "png", "svg", "write_figures"]


def write_figures(
    evaluation: Evaluation,
    folder: str | Path,
    maps: Maps | None = None,
    drawn: dict[str, bytes] | None = None,
) -> list[str]:
    """Write every figure as PNG (150 dpi) and SVG into `folder`, made if need be; returns the file names.

    drawn: `drawings(evaluation, maps)`, if the caller has them already.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = drawings(evaluation, maps or {}) if drawn is None else drawn
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return list(files)


def drawings(
    evaluation: Evaluation,
    maps: Maps,
    only: Container[str] | None = None,
    numbers: CohortStatistics | None = None,
) -> dict[str, bytes]:
    """Name and content of every file of `write_figures`; of the figures in `only`, if given.

    numbers: of the cases of a cohort.
    """
    found = {}
    for name, figure in figures(evaluation, maps, only, numbers):
        found[f"{name}.png"] = png(figure)
        found[f"{name}.svg"] = svg(figure)
    return found


def figures(
    evaluation: Evaluation,
    maps: Maps,
    only: Container[str] | None = None,
    numbers: CohortStatistics | None = None,
) -> Iterator[tuple[str, Figure]]:
    """Name and drawing of every figure, or of those in `only`; those that there is nothing for are left out."""
    for name, draw in (*_drawn(evaluation, maps), *_of_cohort(numbers)):
        figure = draw() if only is None or name in only else None
        if figure is not None:
            yield name, figure


def _drawn(evaluation: Evaluation, maps: Maps) -> Iterator[tuple[str, Callable[[], Figure | None]]]:
    if evaluation.measures:
        yield "ecdf", lambda: panels(evaluation, curves.ecdf)
        yield "densities", lambda: distributions.densities(evaluation)
        yield "by_class", lambda: distributions.classes_apart(evaluation)
        yield "by_confused_classes", lambda: distributions.confused_apart(evaluation)
        yield "homophily_and_gini", lambda: mistakes.homophily_twin(evaluation)
        yield "uncertainty_confusion", lambda: panels(evaluation, curves.uncertainty_confusion)
        yield "uncertainty_matrices", lambda: confusion.uncertainty_matrices(evaluation)
        yield "risk_coverage", lambda: risk_coverage(evaluation)
    yield "reliability", lambda: calibration.reliability(evaluation)
    yield "class_calibration", lambda: calibration.class_curves(evaluation)
    yield "confusion", lambda: confusion.confusion(evaluation)
    yield "classes", lambda: confusion.classes(evaluation)
    yield "soft_weights", lambda: weights.weight_functions(evaluation)
    for name, joint in sweep.swept(evaluation).items():
        yield f"soft_f1_{name}", partial(sweep.sweep_panels, evaluation, joint, sweep.F1)
        yield (
            f"soft_metrics_{name}",
            partial(sweep.sweep_panels, evaluation, joint, sweep.OTHERS),
        )
    yield "maps_of_measures", lambda: measure_maps(evaluation, maps)
    soft = {one.label: one for one in soft_maps(maps)}
    for label, safe in file_names(soft).items():
        yield f"soft_maps_{safe}", partial(soft_map, evaluation, soft[label])
    for name, title in map_names(maps).items():
        yield title, partial(picture, evaluation, name, *maps[name])


def _of_cohort(numbers: CohortStatistics | None) -> Iterator[tuple[str, Callable[[], Figure | None]]]:
    if numbers is None:
        return
    yield "cohort_strips", lambda: cohort.cohort_strips(numbers)
    yield "cohort_groups", lambda: cohort.cohort_groups(numbers)
    against = numbers.cohort.against
    if against is not None:
        yield "comparison", lambda: cohort.comparison(numbers, against)


def panels(evaluation: Evaluation, draw: Any, measures: list[str] | None = None) -> Figure:
    """One panel a measure, side by side, drawn by one of `curves`; one legend for all."""
    names = list(evaluation.measures) if measures is None else measures
    columns = columns_of(len(names))
    size = (2.3, 1.8) if columns > 1 else (3.6, 2.5)
    with rc_context(SETTINGS):
        # The legend's labels are known once something is drawn; they differ in digits at most.
        figure, grid = sheet(len(names), columns, size, Margins(top=0.54), (0.25, 0.78))
        for axes, name in zip(grid, names, strict=True):
            draw(axes, evaluation, name)
            if evaluation.measures[name].reach == 1 and not evaluation.measures[name].wide:
                ticks(axes, "x")
            ticks(axes, "y")
            words(axes)
        outer(grid, columns, "y")
        handles, labels = grid[0].get_legend_handles_labels()
        legend(figure, handles, labels, key(labels, figure.get_size_inches()[0]))
    return figure


def risk_coverage(evaluation: Evaluation) -> Figure:
    """Share of wrong decisions among those kept, when the most uncertain are left out first."""
    with rc_context(SETTINGS):
        lines = (len(evaluation.measures) + 2) // 2
        figure, (axes,) = sheet(1, 1, (4.7, 3.1), Margins(bottom=0.65 + 0.19 * lines))
        curves.risk_coverage(axes, evaluation)
        words(axes)
        handles, labels = axes.get_legend_handles_labels()
        legend(figure, handles, labels, key(labels, 5.4)._replace(columns=2), below=True)
    return figure
