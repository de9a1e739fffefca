"""Add finished output folders, without reading a pixel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.output_folder import being_written, is_finished, read_record
from dask_uncert.io.output_lock import reserved
from dask_uncert.io.owned_folder import check_outside
from dask_uncert.io.paths import AnyPath, absolute, is_remote
from dask_uncert.io.summary_store import load, save
from dask_uncert.jobs.cohort.merge import CohortUnion
from dask_uncert.jobs.cohort.output import SUMMARY, is_cohort
from dask_uncert.jobs.provenance import RunRecord, digest, write_run
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.case import composed
from dask_uncert.summaries.registry import AnyEvaluation


def merge(
    out: str | AnyPath,
    folders: Sequence[str | AnyPath],
    *,
    leave_out: Sequence[str] = (),
    fresh: bool = False,
) -> AnyEvaluation:
    """Add finished evaluations without reading a pixel, and write their sum as an output folder.

    Parameters
    ----------
    out : str or path
        The output folder. May be a URL.
    folders : sequence of str or path
        Finished output folders: of scenes or regressions with the same options, or of cohorts.
    leave_out : sequence of str, optional
        Names of cases of cohorts that are left out.
    fresh : bool, default False
        Replace an existing result.

    Returns
    -------
    Evaluation or RegressionEvaluation
        The sum.

    Raises
    ------
    InputError
        If a folder is unfinished or given twice, a scene or case is in two folders, a case to leave out is in none, the
        output is among the folders, or they were evaluated with different options.

    Notes
    -----
    Counts are integers, so the sum equals one evaluation of all pixels, bit by bit. The command is
    ``dask-uncert merge``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.merge("both", ["north", "south"])
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no folder ...north.
    """
    leave_out = [composed(name) for name in leave_out]
    paths: list[AnyPath] = [absolute(folder).resolve() for folder in folders]
    if repeated := {str(path) for path in paths if paths.count(path) > 1}:
        raise InputError(f"{', '.join(sorted(repeated))} is given twice; it would count twice.")
    output = absolute(out)
    records = [read_record(path) for path in paths]
    check_outside([output], {f"folder {path}": str(path) for path in paths})
    fingerprints = [record.get("fingerprint") for record in records]
    union = CohortUnion.of(paths, leave_out) if leave_out or any(map(is_cohort, paths)) else None
    scenes = sorted(set().union(*_scenes(paths, records))) if union is None else []
    fingerprint = None if None in fingerprints else digest(sorted(fingerprints), sorted(leave_out))
    if is_finished(output, fingerprint, fresh):
        return load(output)
    without = sorted({name for part in records for name in part.get("without_checksum", ())})
    record: RunRecord = {
        "merged": [str(path) for path in paths],
        "fingerprint": fingerprint,
        "scenes": scenes,
        "unit": str(records[0].get("unit", "pixel")),
        "without_checksum": without,
    }
    about = {f"part {number}": str(path) for number, path in enumerate(paths, 1)}
    elsewhere: dict[str, AnyPath] | None = {} if is_remote(output) else None
    with reserved(output):
        if is_finished(output, fingerprint, fresh):  # by another run, in between
            return load(output)
        with being_written(output, elsewhere) as working:
            if union is None:
                cohort = None
                save(_sum(paths), working / SUMMARY)
            else:
                if leave_out:
                    about["left out"] = ", ".join(leave_out)
                union_record, cohort = union.write(working, elsewhere)
                record = {**record, "about": about, **union_record}
            total = load(working)
            write_all(total, working, about=about, cohort=cohort, unit=record["unit"], without_checksum=without)
            write_run(working, total, record)
    return total


def _scenes(paths: Sequence[AnyPath], records: Sequence[Mapping[str, Any]]) -> list[set[str]]:
    """Return what identifies the scenes in each folder; InputError if a scene is in two, which would count it twice."""
    scenes: list[set[str]] = []
    for path, record in zip(paths, records, strict=True):
        own = {str(key) for key in (record.get("id"), record.get("fingerprint")) if key}
        both = own | set(record.get("scenes", ()))
        for earlier, others in zip(paths, scenes, strict=False):
            if others & both:
                raise InputError(f"{earlier} and {path} hold the same scene; it would count twice. Leave one out.")
        scenes.append(both)
    return scenes


def _sum(folders: Sequence[AnyPath]) -> AnyEvaluation:
    first, *rest = (load(folder) for folder in folders)
    kinds = sorted({type(part).__name__ for part in (first, *rest)})
    if len(kinds) > 1:
        raise InputError(f"these evaluations are of different kinds and cannot be added: {', '.join(kinds)}.")
    try:
        return sum(rest, start=first)
    except ValueError as error:
        raise InputError(f"these evaluations cannot be added: {error}.") from None
