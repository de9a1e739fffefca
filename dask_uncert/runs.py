"""A job, run: inputs opened, the pass on a cluster, the output folder written."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert import clusters
from dask_uncert.cohort_merges import merge_cohorts
from dask_uncert.cohort_outputs import is_cohort
from dask_uncert.cohort_reports import rewrite_cohort
from dask_uncert.cohort_runs import failure, run_cohort
from dask_uncert.cohort_words import CohortJob
from dask_uncert.cubes import Cube
from dask_uncert.errors import InputError
from dask_uncert.evaluate import with_maps, write_coordinates
from dask_uncert.gaps import gap_of
from dask_uncert.job_words import AnyJob
from dask_uncert.jobs import plan_job, read_job, resolve
from dask_uncert.outputs import (
    Report,
    being_written,
    is_finished,
    peak_memory,
    read_record,
    versions,
    write_record,
)
from dask_uncert.plan import Plan
from dask_uncert.regression_plan import RegressionPlan
from dask_uncert.reports.write import write_all
from dask_uncert.saving import load, save
from dask_uncert.stores.maps import preview
from dask_uncert.stores.opening import Stored
from dask_uncert.stores.retries import taken
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.regression import RegressionEvaluation

if TYPE_CHECKING:
    from distributed import Client


class InputWarning(UserWarning):
    """An input can be used, but is odd."""


class FailedCasesWarning(UserWarning):
    """Some cases of a cohort failed; the results are of the others."""


AnyEvaluation = Evaluation | RegressionEvaluation
AnyPlan = Plan | RegressionPlan


def run(
    job: str | Path | Mapping[str, Any],
    *,
    cluster: str | Path | Client | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
    sets: Mapping[str, Any] | None = None,
    report: Report | None = None,
) -> AnyEvaluation:
    """Run a job, a file or its mapping, and write its output folder; returns the Evaluation of its kind.

    cluster, out: instead of the job's. fresh: run again even where the same evaluation is finished, and
    replace another's. sets: dotted words and values in place of the job's. report(what, done, total) is
    called as work goes on.

    Raises InputError for a job or input that cannot be used; nothing is written then.

    >>> import dask_uncert as du
    >>> du.run("job.yaml")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no job file at job.yaml.
    """
    words, folder = read_job(job, sets)
    output = Path(out) if out is not None else Path(resolve(words.output, folder))
    target = cluster if cluster is not None else words.cluster
    if isinstance(target, str) and target != "local" and "://" not in target and cluster is None:
        target = resolve(target, folder)
    if isinstance(words, CohortJob):
        pooled, failed = run_cohort(words, folder, output, target, fresh, report)
        if failed:
            warnings.warn(failure(failed, output), FailedCasesWarning, stacklevel=2)
        return pooled
    plan = plan_job(words, folder)
    read = {name: cube for name, cube in plan.scene.cubes.items() if gap_of(name) is None}
    stored = {name: cube.data.fingerprint() for name, cube in read.items()}
    mark = fingerprint(words, plan, stored)
    for remark in remarks_of(plan):
        warnings.warn(remark, InputWarning, stacklevel=2)
    if is_finished(output, mark, fresh):
        return load(output)
    started = datetime.now(UTC)
    with clusters.connect(target) as client, being_written(output) as working:
        _check_memory(plan, client)
        clock, tried = time.perf_counter(), sum(client.run(taken).values())
        if plan.request.layers:
            plan = with_maps(plan, str(working / "maps.zarr"), _about_maps(plan))
        tasks = plan.tasks()
        plan = _with_distances(plan, client, report or _silent)
        measured = time.perf_counter()
        with _watch(client, "evaluate-block", plan.grid.blocks, "evaluate", report or _silent):
            evaluation = plan.compute()
        summed = time.perf_counter()
        check_unchanged(read, stored)
        save(evaluation, working / "summary.zarr")
        write_coordinates(plan)
        write_all(evaluation, working, maps=_thumbnails(plan, working), about=_about(words, plan))
        seconds = {
            "class_distances": measured - clock,
            "pass": summed - measured,
            "report": time.perf_counter() - summed,
        }
        record = {
            "job": words.model_dump(mode="json", by_alias=True, exclude_none=True),
            "fingerprint": mark,
            "versions": versions(),
            "inputs": {
                name: {**_input(cube.data), "fingerprint": stored[name]}
                for name, cube in read.items()
                if hasattr(cube.data, "store")
            },
            "remarks": remarks_of(plan),
            "started": started.isoformat(timespec="seconds"),
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "blocks": plan.grid.blocks,
            "tasks": tasks,
            "maps": list(plan.request.layers),
            "bytes_read": sum(plan.nbytes().values()),
            "reads_tried_again": max(0, sum(client.run(taken).values()) - tried),
            "workers": clusters.describe(client),
            "peak_memory_bytes": max(client.run(peak_memory).values(), default=0),
            "counted": int(evaluation.ledger.counted),
            "excluded": evaluation.ledger.reasons(),
        }
        write_record(working, record)
    return evaluation


def _silent(what: str, done: int, total: int) -> None:
    return


def _with_distances(plan: AnyPlan, client: Client, report: Report) -> AnyPlan:
    if not isinstance(plan, Plan) or plan.metric is None:
        return plan
    with _watch(client, "class-distances-read", plan.distance_grid.blocks, "class distances", report):
        return plan.known()


def _watch(client: Client, prefix: str, total: int, what: str, report: Report) -> Any:
    if report is _silent:
        return nullcontext()
    report(what, 0, total)
    return clusters.progress(client, prefix, total, lambda n: report(what, n, total))


def fingerprint(job: AnyJob, plan: AnyPlan, stored: Mapping[str, str | None]) -> str | None:
    """Of what is asked, of the inputs as they are stored and of our version; None where inputs cannot tell."""
    if any(mark is None for mark in stored.values()):
        return None
    words = job.model_dump(mode="json", by_alias=True, exclude={"output", "cluster"})
    text = json.dumps([words, repr(plan.request), stored, version("dask-uncert")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def check_unchanged(read: Mapping[str, Cube], stored: Mapping[str, str | None]) -> None:
    """Refuse results of inputs that were written while they were read."""
    for name, cube in read.items():
        if cube.data.fingerprint() != stored[name]:
            raise InputError(
                f"{name}: {cube.where} has changed while it was read, so the numbers are of neither state. Run again "
                f"when it is whole; nothing was written."
            )


def remarks_of(plan: AnyPlan) -> list[str]:
    """What is odd about the inputs, a sentence each."""
    return [remark for cube in plan.scene.cubes.values() for remark in cube.remarks]


def _input(stored: Stored) -> dict[str, Any]:
    return {
        "store": stored.store,
        "array": stored.array,
        "shape": list(stored.shape),
        "dtype": str(stored.dtype),
    }


def _check_memory(plan: AnyPlan, client: Client) -> None:
    """Refuse what cannot fit before anything runs."""
    room = clusters.memory_per_thread(client)
    needed = plan.block_memory()
    if room is not None and needed > room:
        raise InputError(
            f"a block needs {needed / 2**20:.0f} MiB, but the workers have {room / 2**20:.0f} MiB a thread. Store "
            f"the inputs in smaller chunks (now {plan.grid.block} a block), or use fewer threads or more memory."
        )


def _about_maps(plan: AnyPlan) -> dict[str, Any]:
    return {"Conventions": "CF-1.11", "source": "dask-uncert " + version("dask-uncert")}


def _thumbnails(plan: AnyPlan, working: Path) -> dict[str, Any]:
    store = str(working / "maps.zarr")
    return {name: preview(store, name) for name in plan.request.layers}


def _about(job: AnyJob, plan: AnyPlan) -> dict[str, str]:
    """What the report says of where its numbers come from; nothing that changes from run to run."""
    about = {
        f"input {name}": f"{cube.where}, {cube.data.shape} {cube.data.dtype}"
        for name, cube in plan.scene.cubes.items()
        if gap_of(name) is None
    }
    return {**about, **{name: value for name, value in versions().items() if name == "dask-uncert"}}


def merge(
    out: str | Path, folders: Sequence[str | Path], fresh: bool = False, leave_out: Sequence[str] = ()
) -> AnyEvaluation:
    """Add finished evaluations without reading a pixel, and write their sum as an output folder.

    leave_out: cases of cohorts. Raises InputError where a folder is unfinished, given twice or counts something
    else.
    """
    places = [Path(folder).resolve() for folder in folders]
    twice = {str(place) for place in places if places.count(place) > 1}
    if twice:
        raise InputError(f"{', '.join(sorted(twice))} is given twice; it would count twice.")
    output = Path(out)
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


def rewrite_report(folder: str | Path, against: str | Path | None = None) -> AnyEvaluation:
    """Write the tables, figures, results and page of a finished folder again, from its Summaries and maps.

    against: of a cohort, the folder of another model on the same cases, to compare with.
    """
    place = Path(folder)
    record = read_record(place)
    if is_cohort(place):
        return rewrite_cohort(place, None if against is None else Path(against))
    if against is not None:
        raise InputError(
            f"{place} holds one evaluation and no cases: only cohorts are compared case by case."
        )
    evaluation = load(place)
    maps = place / "maps.zarr"
    names = record.get("maps", []) if maps.exists() else []
    inputs = record.get("inputs", {})
    about = {f"input {name}": f"{one['store']}:{one['array']}" for name, one in inputs.items()}
    write_all(evaluation, place, maps={name: preview(str(maps), name) for name in names}, about=about)
    return evaluation
