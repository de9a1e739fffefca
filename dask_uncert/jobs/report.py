"""Rewrite the report of a finished output folder from its summaries; optionally compared with another model."""

from __future__ import annotations

from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.maps import preview
from dask_uncert.io.output_folder import read_record, rewritten
from dask_uncert.io.output_lock import check_writable, reserved
from dask_uncert.io.owned_folder import owned_files, remove_files
from dask_uncert.io.paths import AnyPath, absolute, as_path
from dask_uncert.io.summary_store import load
from dask_uncert.jobs.cohort.compare import compare
from dask_uncert.jobs.cohort.output import MAPS, FinishedCohort, is_cohort, load_cases
from dask_uncert.reports.results.cohort import Cohort, OtherModel
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.registry import AnyEvaluation

COMPARISON_FILES = ("tables/comparison.csv", "figures/comparison.png", "figures/comparison.svg")
DEFAULT_INTERVALS = {"replicates": 1000, "level": 0.95, "seed": 0}


def report(folder: str | AnyPath, against: str | AnyPath | None = None, *, all_figures: bool = False) -> AnyEvaluation:
    """Rewrite the results, tables, figures and page of a finished output folder.

    Parameters
    ----------
    folder : str or path
        The output folder of a job or a merge. May be a URL.
    against : str or path, optional
        For a cohort: the output folder of another model on the same cases, to compare with.
    all_figures : bool, default False
        Draw every figure, not only those that the page shows.

    Returns
    -------
    Evaluation or RegressionEvaluation
        The result in the folder; of a cohort, the sum of its cases.

    Raises
    ------
    InputError
        If the folder is unfinished or cannot be written, or the two cannot be compared; nothing is written then.

    Notes
    -----
    Reads the summaries and maps in the folder, and no input. The command is ``dask-uncert report``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.report("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no folder nothing.
    """
    path = as_path(folder)
    read_record(path)
    with reserved(absolute(path)):
        return _rewrite(path, against, all_figures)


def _rewrite(path: AnyPath, against: str | AnyPath | None, all_figures: bool) -> AnyEvaluation:
    record = read_record(path)
    check_writable(path)
    about = {f"part {number}": part for number, part in enumerate(record.get("merged", []), 1)}
    for name, source in record.get("inputs", {}).items():
        about[f"input {name}"] = f"{source.get('store')}:{source.get('array')}"
    maps: dict[str, Any] = {}
    cohort = None
    if is_cohort(path):
        cohort = _cohort(path, None if against is None else as_path(against))
    elif against is not None:
        raise InputError(f"{path} is not a cohort: only cohorts are compared, case by case.")
    elif (path / MAPS).exists():
        maps = {name: preview(str(path / MAPS), name) for name in record.get("maps", [])}
    evaluation = load(path)
    with rewritten(path) as working:
        write_all(
            evaluation, working, maps=maps, about=record.get("about", about), cohort=cohort, all_figures=all_figures
        )
    if cohort is not None and against is None:
        remove_files(path, set(owned_files(path)[0]).intersection(COMPARISON_FILES))
    return evaluation


def _cohort(path: AnyPath, other: AnyPath | None) -> Cohort:
    """Return what reports show of a cohort, compared with another one if given."""
    finished = FinishedCohort.read(path)
    if other is None:
        return finished.reported(finished.map_folders())
    if str(absolute(other).resolve()) == str(absolute(path).resolve()):
        raise InputError(f"{other} is the same folder; name that of another model.")
    confidence = finished.record.get("job", {}).get("confidence") or {}
    options = {name: confidence.get(name, default) for name, default in DEFAULT_INTERVALS.items()}
    comparison = compare(path, other, **options)
    against = OtherModel(str(other), load_cases(other), comparison, options["level"])
    return finished.reported(finished.map_folders(), against)
