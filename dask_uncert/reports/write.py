"""Write all reports of a finished evaluation into one folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.reports.drawing import DrawingProcess, Progress, silent
from dask_uncert.reports.names import in_unit
from dask_uncert.reports.results.cohort import (
    Cohort,
    CohortStatistics,
    cohort_intervals,
    cohort_results,
    cohort_statistics,
)
from dask_uncert.reports.results.intervals import scene_intervals
from dask_uncert.reports.results.regression import regression_results
from dask_uncert.reports.results.scene import scene_results, to_json
from dask_uncert.reports.tables.cohort import cohort_tables
from dask_uncert.reports.tables.csv import as_csv
from dask_uncert.reports.tables.regression import regression_tables
from dask_uncert.reports.tables.scene import scene_tables
from dask_uncert.reports.tables.zones import zone_tables
from dask_uncert.summaries.regression import RegressionEvaluation

if TYPE_CHECKING:
    from dask_uncert.io.map_types import Maps
    from dask_uncert.summaries.registry import AnyEvaluation


def write_all(
    evaluation: AnyEvaluation,
    folder: str | Path,
    maps: Maps | None = None,
    about: Mapping[str, str] | None = None,
    cohort: Cohort | None = None,
    all_figures: bool = False,
    unit: str = "pixel",
    progress: Progress | None = None,
    without_checksum: Sequence[str] = (),
    drawing: DrawingProcess | None = None,
) -> list[str]:
    """Write `results.json`, `tables/`, `figures/` and `report.html` into `folder`, and create it if necessary.

    maps: subsampled maps.
    about: provenance shown on the page, text by label; `title` is the heading.
    cohort: the cases whose sum is the evaluation, if they were kept.
    all_figures: also those that the page does not show, and each as PNG and SVG; drawing takes most of the time of a small run.
    unit: what is counted, "pixel" or "voxel". progress: called with the stage, the steps that are done, and their number.
    without_checksum: inputs whose stored chunks have no checksum.
    drawing: a process that has begun to draw the same evaluation and maps, with the same options.

    Returns the written paths, relative to `folder`. The same arguments give the same bytes.
    """
    statistics, report = None, progress or silent
    report("report: numbers", 0, 1)
    tables: Mapping[str, Iterable[Iterable[Any]]]
    if isinstance(evaluation, RegressionEvaluation):
        results, tables = regression_results(evaluation), regression_tables(evaluation)
    elif cohort is None:
        intervals = scene_intervals(evaluation)
        results = scene_results(evaluation, intervals)
        tables = {**dict(scene_tables(evaluation, results, intervals)), **dict(zone_tables(evaluation, results))}
    else:
        statistics = cohort_statistics(cohort, evaluation)
        results = cohort_results(evaluation, statistics)
        intervals = cohort_intervals(statistics)
        tables = {**dict(scene_tables(evaluation, results, intervals)), **cohort_tables(statistics)}
    if without_checksum:
        results["without_checksum"] = list(without_checksum)
        about = {**(about or {}), "inputs without a checksum": ", ".join(without_checksum)}
    files = {
        "results.json": to_json(results).encode(),
        **{f"tables/{name}.csv": as_csv(in_units(rows, unit)).encode() for name, rows in tables.items()},
    }
    report("report: numbers", 1, 1)
    files |= figures_and_page(
        evaluation, results, maps or {}, about or {}, statistics, all_figures, unit, report, drawing
    )
    for name, content in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return list(files)


def in_units(rows: Iterable[Iterable[Any]], unit: str) -> list[list[Any]]:
    """Return a table whose header, and whose column of units, name what is counted."""
    header, *body = ([*row] for row in rows)
    named = [in_unit(text, unit) if isinstance(text, str) and text.endswith("pixels)") else text for text in header]
    if header[-1] == "unit":
        body = [[*row[:-1], in_unit(row[-1], unit)] for row in body]
    return [named, *body]


def figures_and_page(
    evaluation: AnyEvaluation,
    results: dict[str, Any],
    maps: Maps,
    about: Mapping[str, str],
    statistics: CohortStatistics | None,
    all_figures: bool = False,
    unit: str = "pixel",
    report: Progress = silent,
    drawing: DrawingProcess | None = None,
) -> dict[str, bytes]:
    """Return the contents of the figures and of the page by path, from the process that draws them, if it did."""
    files = None if drawing is None else drawing.finish(results, about, report)
    if files is not None:
        return files
    from dask_uncert.reports.pictures import draw, with_page  # loads what draws

    pictures = draw(evaluation, maps, statistics, all_figures, unit, report)
    return with_page(evaluation, results, maps, about, pictures, statistics, unit, report)
