"""Write the report of an evaluation, or that of a finished output folder again; optionally with another model."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.maps import map_names, preview
from dask_uncert.io.output_folder import Progress, being_written, is_finished, read_record, rewritten
from dask_uncert.io.output_lock import check_writable, reserved
from dask_uncert.io.overview import load_overview
from dask_uncert.io.owned_folder import owned_files, remove_files
from dask_uncert.io.paths import AnyPath, absolute, as_path, copy_tree
from dask_uncert.io.summary_cache import Frame
from dask_uncert.io.summary_store import load, save
from dask_uncert.jobs.cohort.compare import compare
from dask_uncert.jobs.cohort.output import MAPS, SUMMARY, FinishedCohort, is_cohort, load_cases, write_summary
from dask_uncert.jobs.provenance import RunRecord, counted_unit, digest, write_run
from dask_uncert.reports.drawing import SMALL, drawing_process
from dask_uncert.reports.results.cohort import Cohort, OtherModel
from dask_uncert.reports.results.read import DEFAULT_INTERVALS
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.registry import AnyEvaluation
from dask_uncert.summaries.regression import RegressionEvaluation
from dask_uncert.summaries.stack import Stack

COMPARISON_FILES = ("tables/comparison.csv", "figures/comparison.png", "figures/comparison.svg")


def report(
    result: Evaluation | RegressionEvaluation | Stack | str | AnyPath,
    folder: str | AnyPath | None = None,
    *,
    against: str | AnyPath | None = None,
    maps: str | AnyPath | None = None,
    fresh: bool = False,
    all_figures: bool = False,
    progress: Progress | None = None,
) -> AnyEvaluation:
    """Write the results, tables, figures and page of an evaluation; of a finished output folder, write them again.

    Parameters
    ----------
    result : Evaluation, RegressionEvaluation, Stack, str or path
        What `evaluate` returned, or cases; or the output folder of a job or a merge, which may be a URL.
    folder : str or path, optional
        The new output folder of an evaluation or cases. `load`, `merge`, `compare` and the commands read it.
    against : str or path, optional
        For a cohort's folder: the output folder of another model on the same cases, to compare with.
    maps : str or path, optional
        For an evaluation: the Zarr group of maps that `evaluate` wrote, to show and to copy into the folder.
    fresh : bool, default False
        Replace another finished result in `folder`.
    all_figures : bool, default False
        Draw every figure as PNG and SVG, not only what the page shows.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` as work goes on.

    Returns
    -------
    Evaluation or RegressionEvaluation
        The result; of a cohort, the sum of its cases.

    Raises
    ------
    InputError
        If the folder is unfinished, cannot be written or holds something else, or the two cannot be compared; nothing
        is written then.

    Notes
    -----
    Reads no input. The command is ``dask-uncert report``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.report("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no folder nothing.
    """
    if isinstance(result, Evaluation | RegressionEvaluation | Stack):
        if folder is None or against is not None:
            raise InputError("report: name the folder to write, such as du.report(evaluation, 'out'), without against.")
        return _write(result, absolute(folder), maps, fresh, all_figures, progress)
    if folder is not None or maps is not None:
        raise InputError(f"report: {result} is an output folder, which has its own maps; its report is written there.")
    path = as_path(result)
    read_record(path)
    with reserved(absolute(path)):
        return _rewrite(path, against, all_figures, progress)


def _write(
    result: Evaluation | RegressionEvaluation | Stack,
    output: AnyPath,
    maps: str | AnyPath | None,
    fresh: bool,
    all_figures: bool,
    progress: Progress | None,
) -> AnyEvaluation:
    """Write a new output folder of counts in memory; one that holds the same is left as it is."""
    total = result.total() if isinstance(result, Stack) else result
    counts = [hashlib.blake2b(array.astype("<i8").tobytes()).hexdigest() for _, _, array in total.arrays()]
    cases = [[case.name, case.groups] for case in result.cases] if isinstance(result, Stack) else None
    fingerprint = digest(total.frame(), counts, cases, None if maps is None else str(maps))
    about = {"dask-uncert": version("dask-uncert")}
    with reserved(output):
        if is_finished(output, fingerprint, fresh):
            return total
        names = [] if maps is None else map_names(str(maps))
        tiles = total.tiles if isinstance(total, Evaluation) else None
        unit = counted_unit(0 if tiles is None else tiles.positions.shape[1] - 1)
        record: RunRecord = {"fingerprint": fingerprint, "about": about, "maps": names, "unit": unit}
        with being_written(output) as working:
            cohort = None
            if isinstance(result, Stack):
                rows = (rows for _, rows in result.sparse_cases())
                write_summary(working, Frame(result.frame, result.layout), result.cases, rows)
                cohort = Cohort(load_cases(working), confidence=DEFAULT_INTERVALS)
                record["job"] = {"confidence": DEFAULT_INTERVALS}
            else:
                save(total, working / SUMMARY)
            if maps is not None:
                copy_tree(as_path(maps), working / MAPS)
            shown = {name: preview(str(working / MAPS), name) for name in names}
            how: dict[str, Any] = {"all_figures": all_figures, "unit": unit, "progress": progress}
            write_all(total, working, maps=shown, about=about, cohort=cohort, **how)
            write_run(working, total, record)
    return total


def _rewrite(
    path: AnyPath, against: str | AnyPath | None, all_figures: bool, progress: Progress | None
) -> AnyEvaluation:
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
        raise InputError(
            f"{path} is not a cohort: a report shows another model only for cohorts. `dask-uncert compare` also takes scenes."
        )
    elif (path / MAPS).exists():
        maps = {name: preview(str(path / MAPS), name) for name in record.get("maps", [])}
    else:
        maps = dict(load_overview(path))
    evaluation = load(path)
    with rewritten(path) as working, drawing_process(0 if cohort is None else SMALL) as drawing:
        if cohort is None:
            drawing.begin(evaluation, maps, all_figures, record.get("unit", "pixel"))
        how: dict[str, Any] = {"all_figures": all_figures, "unit": record.get("unit", "pixel"), "progress": progress}
        how |= {"without_checksum": record.get("without_checksum", ()), "drawing": drawing}
        write_all(evaluation, working, maps=maps, about=record.get("about", about), cohort=cohort, **how)
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
