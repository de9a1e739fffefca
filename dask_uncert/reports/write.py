"""Everything people read of a finished evaluation, into one folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dask_uncert.reports.figures.registry import Maps, drawings, write_figures
from dask_uncert.reports.page.html import write_report
from dask_uncert.reports.results.cohort import Cohort, cohort_intervals, cohort_results, cohort_statistics
from dask_uncert.reports.results.intervals import scene_intervals
from dask_uncert.reports.results.regression import write_regression
from dask_uncert.reports.results.scene import results, to_json
from dask_uncert.reports.tables.cohort import write_cohort_tables
from dask_uncert.reports.tables.scene import write_tables
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.regression import RegressionEvaluation


def write_all(
    evaluation: Evaluation | RegressionEvaluation,
    folder: str | Path,
    maps: Maps | None = None,
    about: Mapping[str, str] | None = None,
    cohort: Cohort | None = None,
) -> list[str]:
    """Write `results.json`, `tables/`, `figures/` and `report.html` into `folder`, made if need be.

    maps: name to (two-dimensional values, NaN where undefined; names of the dimensions), of a size to show.
    about: where the numbers come from, for the page, label to text; `title` is its heading.
    cohort: the cases whose sum the evaluation is, if they were kept apart.

    Returns the paths written, relative to `folder`. The same arguments give the same bytes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(evaluation, RegressionEvaluation):
        return write_regression(evaluation, folder, maps, about)
    statistics = None if cohort is None else cohort_statistics(cohort, evaluation)
    if statistics is None:
        intervals = scene_intervals(evaluation)
        found = results(evaluation, intervals)
    else:
        intervals = cohort_intervals(statistics)
        found = cohort_results(evaluation, statistics)
    (folder / "results.json").write_text(to_json(found), encoding="utf-8")
    tables = write_tables(evaluation, folder / "tables", found, intervals)
    if statistics is not None:
        tables += write_cohort_tables(statistics, folder / "tables")
    drawn = drawings(evaluation, maps or {}, None, statistics)
    figures = write_figures(evaluation, folder / "figures", maps, drawn)
    write_report(evaluation, folder / "report.html", maps, about, found, drawn, statistics)
    return [
        "results.json",
        *(f"tables/{name}" for name in tables),
        *(f"figures/{name}" for name in figures),
        "report.html",
    ]
