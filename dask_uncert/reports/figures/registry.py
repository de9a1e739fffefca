"""All figures of an Evaluation, drawn from its counts and its thinned maps, and their files.

Correct and wrong predictions differ in colour and in line style. The colours are those of Okabe and Ito, which people
with the common colour-vision deficiencies can tell apart; numbers on maps use viridis. With the same libraries, the
same Evaluation gives the same bytes. Only modules of this folder import matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial

from matplotlib.figure import Figure

from dask_uncert.io.map_types import Maps
from dask_uncert.reports.figures import (
    calibration,
    cohort,
    confidence_joint,
    confusion,
    corp,
    curves,
    distributions,
    mistakes,
    sweep,
    weights,
)
from dask_uncert.reports.figures.layout import png, svg
from dask_uncert.reports.figures.maps import map_figure_names, measure_maps, picture, soft_maps
from dask_uncert.reports.figures.soft_maps import soft_map
from dask_uncert.reports.names import file_names, in_unit
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.summaries.evaluation import Evaluation

Draw = Callable[[], Figure | None]
OF_PIXELS = ("map_", "soft_maps_", "confusion", "joint_distributions")


def figure_files(figures: Iterable[tuple[str, Figure]], unit: str = "pixel", both: bool = True) -> dict[str, bytes]:
    """Return the files of every figure by name.

    unit: what is counted, "pixel" or "voxel".
    both: as PNG (150 dpi) and as SVG; else maps and matrices as PNG, others as SVG, as the page shows them.
    """
    files = {}
    for name, figure in figures:
        if unit != "pixel":
            _rename_units(figure, unit)
        of_pixels = name.startswith(OF_PIXELS)
        if both or of_pixels:
            files[f"{name}.png"] = png(figure)
        if both or not of_pixels:
            files[f"{name}.svg"] = svg(figure)
    return files


def _rename_units(figure: Figure, unit: str) -> None:
    """Put the unit into titles, labels of axes and legends."""
    for axes in figure.axes:
        legend = axes.get_legend()
        for text in (axes.title, axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend else ())):
            text.set_text(in_unit(text.get_text(), unit))


def figures(
    evaluation: Evaluation,
    maps: Maps,
    only: Container[str] | None = None,
    statistics: CohortStatistics | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the drawing of every figure that has data, by default of all, else of those in `only`.

    progress: called with the number of figures that are drawn and written, and how many there are.
    """
    every = (*_scene_figures(evaluation, maps, statistics), *_cohort_figures(statistics))
    chosen = [(name, draw) for name, draw in every if only is None or name in only]
    for number, (name, draw) in enumerate(chosen):
        if progress is not None:
            progress(number, len(chosen))
        figure = draw()
        if figure is not None:
            yield name, figure
    if progress is not None:
        progress(len(chosen), len(chosen))


def _scene_figures(
    evaluation: Evaluation, maps: Maps, statistics: CohortStatistics | None
) -> Iterator[tuple[str, Draw]]:
    if evaluation.measures:
        yield "ecdf", lambda: curves.panels(evaluation, curves.ecdf)
        yield "densities", lambda: distributions.densities(evaluation)
        yield "joint_distributions", lambda: confidence_joint.joint_distributions(evaluation)
        yield "by_class", lambda: distributions.by_class(evaluation)
        if evaluation.calibration is not None:
            yield "by_confused_classes", lambda: distributions.by_confused_classes(evaluation)
        yield "homophily_and_gini", lambda: mistakes.homophily_and_gini(evaluation)
        yield "uncertainty_confusion", lambda: curves.panels(evaluation, curves.uncertainty_confusion)
        yield "uncertainty_matrices", lambda: confusion.uncertainty_matrices(evaluation)
        yield "risk_coverage", lambda: curves.risk_coverage(evaluation)
    if evaluation.calibration is not None:
        yield "reliability", lambda: calibration.reliability(evaluation)
        yield "corp", lambda: corp.scene_curve(evaluation, statistics)
        yield "class_calibration", lambda: calibration.class_curves(evaluation)
    yield "confusion", lambda: confusion.confusion(evaluation)
    yield "classes", lambda: confusion.classes(evaluation)
    yield "soft_weights", lambda: weights.weight_functions(evaluation)
    for name, joint in sweep.drawn_histograms(evaluation).items():
        yield f"soft_f1_{name}", partial(sweep.sweep_panels, evaluation, joint, sweep.F1)
        yield f"soft_metrics_{name}", partial(sweep.sweep_panels, evaluation, joint, sweep.OTHERS)
    yield "maps_of_measures", lambda: measure_maps(evaluation, maps)
    soft = {soft_confusion.label: soft_confusion for soft_confusion in soft_maps(maps)}
    for label, safe in file_names(soft).items():
        yield f"soft_maps_{safe}", partial(soft_map, evaluation, soft[label])
    for name, file_name in map_figure_names(maps).items():
        yield file_name, partial(picture, evaluation, name, *maps[name])


def _cohort_figures(statistics: CohortStatistics | None) -> Iterator[tuple[str, Draw]]:
    if statistics is None:
        return
    yield "cohort_strips", lambda: cohort.cohort_strips(statistics)
    yield "cohort_groups", lambda: cohort.cohort_groups(statistics)
    against = statistics.cohort.against
    if against is not None:
        yield "comparison", lambda: cohort.comparison(statistics, against)
