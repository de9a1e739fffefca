"""The figures and the page of an evaluation as files, drawn here or as a process of its own; importing this is slow."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from dask_uncert.io.map_types import Maps
from dask_uncert.reports.drawing import Progress, silent
from dask_uncert.reports.figures.registry import figure_files, figures
from dask_uncert.reports.figures.regression import regression_figures
from dask_uncert.reports.page.regression import regression_page
from dask_uncert.reports.page.scene import page_figures, scene_page
from dask_uncert.reports.page.templates import load_templates
from dask_uncert.reports.results.cohort import CohortStatistics
from dask_uncert.summaries.registry import AnyEvaluation
from dask_uncert.summaries.regression import RegressionEvaluation


def draw(
    evaluation: AnyEvaluation,
    maps: Maps,
    statistics: CohortStatistics | None = None,
    all_figures: bool = False,
    unit: str = "pixel",
    report: Progress = silent,
) -> dict[str, bytes]:
    """Return the contents of the figures by name, by default of those that the page shows."""
    if isinstance(evaluation, RegressionEvaluation):
        return figure_files(regression_figures(evaluation, maps), unit, all_figures)
    only = None if all_figures else {*page_figures(evaluation, maps), "comparison"}
    drawn = figures(evaluation, maps, only, statistics, partial(report, "report: figures"))
    return figure_files(drawn, unit, all_figures)


def with_page(
    evaluation: AnyEvaluation,
    results: dict[str, Any],
    maps: Maps,
    about: Mapping[str, str],
    pictures: Mapping[str, bytes],
    statistics: CohortStatistics | None = None,
    unit: str = "pixel",
    report: Progress = silent,
) -> dict[str, bytes]:
    """Return the contents of the figures and of the page that shows them, by path."""
    report("report: page", 0, 1)
    if isinstance(evaluation, RegressionEvaluation):
        page = regression_page(results, maps, about, pictures, unit)
    else:
        page = scene_page(evaluation, results, maps, about, pictures, statistics, unit)
    report("report: page", 1, 1)
    return {**{f"figures/{name}": content for name, content in pictures.items()}, "report.html": page.encode()}


def serve() -> None:
    """Draw one report as the process that `drawing_process` starts: what to draw comes from stdin, files go to stdout."""
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write between the messages
    import scipy.optimize  # noqa: F401 - of the isotonic curve

    load_templates()

    def send(message: object) -> None:
        pickle.dump(message, target, pickle.HIGHEST_PROTOCOL)
        target.flush()

    with suppress(EOFError, KeyboardInterrupt, OSError), warnings.catch_warnings():
        evaluation, maps, all_figures, unit = pickle.load(source)
        warnings.simplefilter("error")
        for unseen in (DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", unseen)
        pictures = draw(evaluation, maps, None, all_figures, unit, lambda *step: send(step))
        results, about = pickle.load(source)
        send(with_page(evaluation, results, maps, about, pictures, None, unit))
