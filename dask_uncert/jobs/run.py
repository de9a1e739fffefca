"""A job, run: inputs opened, the pass on a cluster, the output folder written."""

from __future__ import annotations

import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters import connect
from dask_uncert.clusters.monitor import LOG, BlockCounts, guarded, logged, logs, progress, reported
from dask_uncert.errors import InputError
from dask_uncert.execution.checkpoints import MAPS, Checkpoints, run_checkpoints
from dask_uncert.execution.evaluate import with_maps, write_coordinates
from dask_uncert.execution.fault_isolation import compute_isolating_faults, explain_killed_workers
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.execution.plan import Plan
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.names import gap_of
from dask_uncert.io.maps import preview
from dask_uncert.io.open import format_of
from dask_uncert.io.output_folder import Report, being_written, is_finished, versions, write_record
from dask_uncert.io.paths import AnyPath, absolute, as_path, is_remote
from dask_uncert.io.retries import retry_count
from dask_uncert.io.saving import load, save
from dask_uncert.jobs.cohort.run import failure, run_cohort
from dask_uncert.jobs.cohort_schema import CohortJob
from dask_uncert.jobs.load import cluster_of, plan_job, read_job, resolve
from dask_uncert.jobs.provenance import about, facts_of, fingerprint, input_of, remarks_of, tried
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.registry import AnyEvaluation

if TYPE_CHECKING:
    from distributed import Client


class InputWarning(UserWarning):
    """An input can be used, but is odd."""


class FailedCasesWarning(UserWarning):
    """Some cases of a cohort failed; the results are of the others."""


def run(
    job: str | Path | Mapping[str, Any],
    *,
    cluster: str | Path | Client | None = None,
    out: str | AnyPath | None = None,
    fresh: bool = False,
    sets: Mapping[str, Any] | None = None,
    report: Report | None = None,
    performance_report: str | Path | None = None,
) -> AnyEvaluation:
    """Run a job, a file or its mapping, and write its output folder; returns the Evaluation of its kind.

    cluster, out: instead of the job's. fresh: run again even where the same evaluation is finished, and
    replace another's. sets: dotted words and values in place of the job's. report(what, done, total) is
    called as work goes on. performance_report: a file for dask's own page about the pass, which needs no network.

    Raises InputError for a job or input that cannot be used; nothing is written then.

    >>> import dask_uncert as du
    >>> du.run("job.yaml")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no job file at job.yaml.
    """
    words, folder = read_job(job, sets)
    output = absolute(out if out is not None else resolve(words.output, folder))
    target = cluster if cluster is not None else cluster_of(words, folder)
    page = None if performance_report is None else Path(performance_report)
    if isinstance(words, CohortJob):
        pooled, failed = run_cohort(words, folder, output, target, fresh, report, page)
        if failed:
            warnings.warn(failure(failed, output), FailedCasesWarning, stacklevel=2)
        return pooled
    tried_before = dict([retry_count()])
    plan = plan_job(words, folder)
    read = {name: cube for name, cube in plan.scene.cubes.items() if gap_of(name) is None}
    stored = {name: cube.data.fingerprint() for name, cube in read.items()}
    mark = fingerprint(words, plan, stored)
    for remark in remarks_of(plan):
        warnings.warn(remark, InputWarning, stacklevel=2)
    if is_finished(output, mark, fresh):
        return load(output)
    started = datetime.now(UTC)
    elsewhere: dict[str, AnyPath] | None = {} if is_remote(output) else None
    with (
        connect.connect(target, **_apart(target, read)) as client,
        run_checkpoints(
            output, _key(mark, plan := fit_to_memory(plan, connect.memory_per_thread(client))), fresh
        ) as kept,
        logged(client, as_path(kept.folder)),
        being_written(output, elsewhere) as working,
    ):
        clock, tried_before = time.perf_counter(), tried(client) | tried_before
        plan = replace(plan, checkpoints=kept)
        if plan.request.layers:
            plan = _with_maps(plan, kept)
        tasks, left = plan.tasks(), plan.unfinished_blocks()
        with guarded(client):
            plan = _with_distances(plan, client, report or _silent)
        measured = time.perf_counter()
        with (
            _watch(client, "evaluate-block", left, "evaluate", report or _silent) as counts,
            guarded(client, _named(plan)),
            reported(page),
        ):
            evaluation, alone = compute_isolating_faults(plan, client)
        summed = time.perf_counter()
        facts, said = facts_of(client, tried_before), logs(client)
        check_unchanged(read, stored)
        save(evaluation, working / "summary.zarr")
        write_coordinates(plan)
        write_all(evaluation, working, maps=_thumbnails(plan), about=about(plan))
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
                name: {**input_of(cube.data), "fingerprint": stored[name]}
                for name, cube in read.items()
                if hasattr(cube.data, "store")
            },
            "remarks": remarks_of(plan),
            "started": started.isoformat(timespec="seconds"),
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "blocks": plan.grid.blocks,
            "blocks_computed": left,
            "blocks_computed_again": counts.again + (alone and alone - (left - counts.finished)),
            "tasks": tasks,
            "maps": list(plan.request.layers),
            "bytes_read": sum(plan.nbytes().values()),
            **facts,
            "counted": int(evaluation.ledger.counted),
            "excluded": evaluation.ledger.reasons(),
        }
        if said:
            (working / LOG).write_text(said, encoding="utf-8")
        _move_maps(plan, working, elsewhere)
        write_record(working, record)
    return evaluation


def _with_maps(plan: Plan, kept: Checkpoints) -> Plan:
    """The plan with its maps' group made, or found: it stays with the checkpoints until the run is whole."""
    again = as_path(kept.maps).is_dir() and plan.unfinished_blocks() < plan.grid.blocks
    if not again:  # groups whose maps are gone are not finished
        kept.clear()
    return with_maps(plan, kept.maps, _about_maps(plan), again)


def _move_maps(plan: Plan, working: Path, elsewhere: dict[str, AnyPath] | None) -> None:
    """Put the maps into the output, or name them to be copied there within their store; last, for a run that fails
    before goes on with them."""
    if plan.writer is None:
        return
    if elsewhere is not None:
        elsewhere[MAPS] = as_path(plan.writer.store)
    else:
        shutil.move(plan.writer.store, working / MAPS)


def _silent(what: str, done: int, total: int) -> None:
    return


def _with_distances(plan: Plan, client: Client, report: Report) -> Plan:
    if plan.distances is None:
        return plan
    blocks = plan.distances.grid.blocks
    with (
        _watch(client, "class-distances-read", blocks, "class distances", report),
        explain_killed_workers("the features"),
    ):
        return plan.with_distances()


def _watch(
    client: Client, prefix: str, total: int, what: str, report: Report
) -> AbstractContextManager[BlockCounts]:
    report(what, 0, total)
    return progress(client, prefix, total, lambda n: report(what, n, total))


def _named(plan: Plan) -> Callable[[Any], str]:
    """Says which block a task works on, by its key."""
    known = len(plan.grid.dims) + 1
    return lambda key: (
        f"the block {plan.grid.describe(key[1:])}"
        if isinstance(key, tuple) and len(key) == known
        else str(key)
    )


def _apart(target: Any, read: Mapping[str, Cube]) -> dict[str, bool]:
    """Processes of their own on this machine, where HDF5 is read: it reads one array at a time in each, and a damaged
    file may end the process that reads it (seen once in some 300 damaged files)."""
    stores = [str(getattr(cube.data, "store", "")) for cube in read.values()]
    return (
        {"processes": True}
        if target == "local" and any(format_of(s).extra == "netcdf" for s in stores)
        else {}
    )


def check_unchanged(read: Mapping[str, Cube], stored: Mapping[str, str | None]) -> None:
    """Refuse results of inputs that were written while they were read."""
    for name, cube in read.items():
        if cube.data.fingerprint() != stored[name]:
            raise InputError(
                f"{name}: {cube.where} has changed while it was read, so the numbers are of neither state. Run again "
                f"when it is whole; nothing was written."
            )


def _key(mark: str | None, plan: Plan) -> str | None:
    """Of what finished blocks count for: the same job, cut into the same blocks."""
    return None if mark is None else f"{mark} {plan.grid.block}"


def _about_maps(plan: Plan) -> dict[str, Any]:
    return {"Conventions": "CF-1.11", "source": "dask-uncert " + version("dask-uncert")}


def _thumbnails(plan: Plan) -> dict[str, Any]:
    return (
        {} if plan.writer is None else {one: preview(plan.writer.store, one) for one in plan.request.layers}
    )
