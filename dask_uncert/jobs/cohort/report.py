"""The report of a finished cohort written again, from its Summaries; also against another model on the same cases."""

from __future__ import annotations

from dask_uncert.errors import InputError
from dask_uncert.io.output_folder import rewritten
from dask_uncert.io.paths import AnyPath, absolute, remove
from dask_uncert.io.saving import load
from dask_uncert.io.stack_store import read_cases
from dask_uncert.jobs.cohort.case import MAIN
from dask_uncert.jobs.cohort.compare import compare
from dask_uncert.jobs.cohort.output import SUMMARY, finished_cohort, lost_cases, map_folders_of, map_pictures
from dask_uncert.reports.results.cohort import Cohort, OtherModel
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.evaluation import Evaluation

ABOUT_AGAINST = ("tables/comparison.csv", "figures/comparison.png", "figures/comparison.svg")


def rewrite_cohort(place: AnyPath, against: AnyPath | None = None) -> Evaluation:
    """Write tables, figures, results and page of a finished cohort again; returns the sum of its cases.

    against: the folder of another model. Raises InputError, before anything is written, where the two do not
    compare; see `compare`.
    """
    finished = finished_cohort(place)
    record, stack = finished.record, finished.stacks[MAIN]
    evaluation = load(place)
    assert isinstance(evaluation, Evaluation)
    confidence = record.get("job", {}).get("confidence")
    other = None
    if against is not None:
        if str(absolute(against).resolve()) == str(absolute(place).resolve()):
            raise InputError(f"{against} is this very evaluation; name that of another model.")
        words = {k: (confidence or {}).get(k, v) for k, v in HOW.items()}
        found = compare(place, against, **words)
        other = OtherModel(str(against), read_cases(str(against / SUMMARY)), found, words["level"])
    pictures = map_pictures(map_folders_of(finished), record.get("maps", []))
    cohort = Cohort(
        stack, record.get("failed", {}), confidence, lost_cases(record), pictures, other, finished.raters
    )
    if against is None:
        for name in ABOUT_AGAINST:
            remove(place / name)
    with rewritten(place) as working:
        write_all(evaluation, working, about=record.get("about", {}), cohort=cohort)
    return evaluation


HOW = {"replicates": 1000, "level": 0.95, "seed": 0}
"""Of intervals, where the job says nothing."""
