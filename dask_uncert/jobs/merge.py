"""Finished folders: added without reading a pixel, and their reports written again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from dask_uncert.errors import InputError
from dask_uncert.io.maps import preview
from dask_uncert.io.output_folder import (
    being_written,
    is_finished,
    read_record,
    rewritten,
    versions,
    write_record,
)
from dask_uncert.io.paths import AnyPath, absolute, as_path
from dask_uncert.io.saving import load, save
from dask_uncert.jobs.cohort.merge import merge_cohorts
from dask_uncert.jobs.cohort.output import is_cohort
from dask_uncert.jobs.cohort.report import rewrite_cohort
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.registry import AnyEvaluation


def merge(
    out: str | AnyPath, folders: Sequence[str | AnyPath], fresh: bool = False, leave_out: Sequence[str] = ()
) -> AnyEvaluation:
    """Add finished evaluations without reading a pixel, and write their sum as an output folder.

    leave_out: cases of cohorts. Raises InputError where a folder is unfinished, given twice or counts something
    else.
    """
    places: list[AnyPath] = [absolute(folder).resolve() for folder in folders]
    twice = {str(place) for place in places if places.count(place) > 1}
    if twice:
        raise InputError(f"{', '.join(sorted(twice))} is given twice; it would count twice.")
    output = absolute(out)
    records = [read_record(place) for place in places]
    if leave_out or any(is_cohort(place) for place in places):
        return merge_cohorts(output, places, leave_out, fresh)
    marks = [record.get("fingerprint") for record in records]
    mark = None
    if all(isinstance(one, str) for one in marks):  # inputs that cannot be compared make no identity
        mark = hashlib.sha256("".join(sorted(map(str, marks))).encode()).hexdigest()
    if is_finished(output, mark, fresh):
        return load(output)
    first, *rest = (load(place) for place in places)
    kinds = sorted({type(part).__name__ for part in (first, *rest)})
    if len(kinds) > 1:
        raise InputError(f"these evaluations are of different kinds and do not add: {', '.join(kinds)}.")
    try:
        total = sum(rest, start=first)
    except ValueError as error:
        raise InputError(f"these evaluations do not add: {error}.") from None
    with being_written(output) as working:
        save(total, working / "summary.zarr")
        about = {f"part {i + 1}": str(place) for i, place in enumerate(places)}
        write_all(total, working, about=about)
        write_record(
            working,
            {
                "merged": [str(place) for place in places],
                "fingerprint": mark,
                "versions": versions(),
                "counted": int(total.ledger.counted),
                "excluded": total.ledger.reasons(),
            },
        )
    return total


def rewrite_report(folder: str | AnyPath, against: str | AnyPath | None = None) -> AnyEvaluation:
    """Write the tables, figures, results and page of a finished folder again, from its Summaries and maps.

    against: of a cohort, the folder of another model on the same cases, to compare with.
    """
    place = as_path(folder)
    record = read_record(place)
    if is_cohort(place):
        return rewrite_cohort(place, None if against is None else as_path(against))
    if against is not None:
        raise InputError(
            f"{place} holds one evaluation and no cases: only cohorts are compared case by case."
        )
    evaluation = load(place)
    maps = place / "maps.zarr"
    names = record.get("maps", []) if maps.exists() else []
    inputs = record.get("inputs", {})
    about = {f"input {name}": f"{one['store']}:{one['array']}" for name, one in inputs.items()}
    with rewritten(place) as working:
        write_all(evaluation, working, maps={name: preview(str(maps), name) for name in names}, about=about)
    return evaluation
