"""Run a job: open its inputs, evaluate them on a cluster, write the output folder."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.blocks.kernels.cache import ensure_cache
from dask_uncert.clusters import connect
from dask_uncert.clusters.monitor import (
    keep_logs_of_failure,
    performance_page,
    watchdog,
    worker_logs,
)
from dask_uncert.clusters.monitor import progress as watched
from dask_uncert.errors import InputError, InputWarning
from dask_uncert.execution.checkpoints import MAPS, run_checkpoints
from dask_uncert.execution.evaluate import with_maps, with_overview, write_coordinates
from dask_uncert.execution.fault_isolation import compute_isolating_faults, explain_killed_workers
from dask_uncert.execution.memory import fit_to_memory
from dask_uncert.execution.plan import Plan
from dask_uncert.io.maps import are_intact, preview
from dask_uncert.io.open import format_of
from dask_uncert.io.output_folder import Progress, being_written, is_finished
from dask_uncert.io.output_lock import reserved
from dask_uncert.io.overview import save_overview
from dask_uncert.io.owned_folder import check_new_file_outside, check_outside
from dask_uncert.io.paths import AnyPath, absolute, as_path, is_remote
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.retries import retry_count
from dask_uncert.io.summary_store import load, save
from dask_uncert.jobs.cohort.plan import folders_of
from dask_uncert.jobs.cohort.run import failure_message, run_cohort
from dask_uncert.jobs.first_use import compiling, steps
from dask_uncert.jobs.load import cluster_of, files_of, plan_job, read_job, resolve
from dask_uncert.jobs.provenance import (
    ABOUT_MAPS,
    RunRecord,
    about,
    check_unchanged,
    cluster_record,
    counted_unit,
    fingerprint,
    input_record,
    job_record,
    read_retries,
    silent,
    write_run,
)
from dask_uncert.jobs.schema import AnyJob, CohortJob
from dask_uncert.metrics.remarks import result_remarks
from dask_uncert.reports.drawing import drawing_process
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.registry import AnyEvaluation

if TYPE_CHECKING:
    from distributed import Client


class FailedCasesWarning(UserWarning):
    """Some cases of a cohort failed; the results are of the others."""


def run(
    job: str | Path | Mapping[str, Any],
    *,
    cluster: str | Path | Client | None = None,
    out: str | AnyPath | None = None,
    fresh: bool = False,
    overrides: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    performance_report: str | Path | None = None,
) -> AnyEvaluation:
    """Run a job and write its output folder.

    Parameters
    ----------
    job : str, path or mapping
        A job file, or its content as a mapping.
    cluster : str, path or distributed.Client, optional
        ``"local"``, a cluster file, an address or a client, instead of the job's `cluster`.
    out : str or path, optional
        The output folder, instead of the job's `output`. May be a URL.
    fresh : bool, default False
        Recompute and replace an existing result.
    overrides : mapping, optional
        Job keys and their values instead of the job's, such as ``{"calibration.bins": 20}``.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` as work goes on.
    performance_report : str or path, optional
        HTML file for dask's performance report of the pass. The page needs no network.

    Returns
    -------
    Evaluation or RegressionEvaluation
        The result; of a cohort, the sum of its cases.

    Raises
    ------
    InputError
        If the job or an input cannot be used; nothing is written then.
    ClusterError
        If the cluster cannot be reached or is lost; finished blocks and cases are kept for the next run.
    OutputError
        If the output cannot be written.

    Warns
    -----
    FailedCasesWarning
        If some cases of a cohort failed; the results are of the others.
    InputWarning
        If an input can be used, but is odd.
    NoCacheWarning
        If compiled code cannot be kept for the next run.

    Notes
    -----
    A run that was stopped resumes when it is started again. A finished result is loaded, not computed again. The
    command is ``dask-uncert run``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.run("job.yaml")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no job file at job.yaml.
    """
    retries = dict([retry_count()])  # before the inputs are opened
    checked, folder = read_job(job, overrides)
    output = output_of(checked, folder, out)
    target = cluster if cluster is not None else cluster_of(checked, folder)
    page = None if performance_report is None else Path(performance_report)
    if page is not None:
        if os.path.lexists(page):
            raise InputError(f"{page} exists; name another file for the performance report.")
        check_new_file_outside(page, folders_of(output))
    files = files_of(checked, folder, job, target)
    report, failed = progress or silent, dict[str, str]()
    if not isinstance(checked, CohortJob):
        plan = plan_job(checked, folder)
        evaluation = _run_scene(checked, plan, retries, output, target, fresh, report, page, files)
        remarks = result_remarks(evaluation, getattr(checked, "ignore", ()))
    else:
        with reserved(output):
            evaluation, failed, remarks = run_cohort(checked, folder, output, target, fresh, report, page, files)
    for remark in remarks:
        warnings.warn(remark, InputWarning, stacklevel=2)
    if failed:
        warnings.warn(failure_message(failed, output), FailedCasesWarning, stacklevel=2)
    return evaluation


def output_of(job: AnyJob | CohortJob, folder: Path, out: str | AnyPath | None = None) -> AnyPath:
    """Return the output folder of a job, or `out` instead; folder: the one that the job's paths are relative to."""
    return absolute(out if out is not None else resolve(job.output, folder))


def _run_scene(
    job: AnyJob,
    plan: Plan,
    retries: dict[str, int],
    output: AnyPath,
    cluster: str | Path | Client,
    fresh: bool,
    report: Progress,
    page: Path | None,
    files: Mapping[str, str],
) -> AnyEvaluation:
    """Run the pass of a scene or a regression and write its output folder; retries: of reads, before it was planned."""
    read = _stored_inputs(plan)
    stored = {name: array.fingerprint() for name, array in read.items()}
    mark = fingerprint(job, plan, stored)
    for remark in (remarks := plan.scene.remarks):
        warnings.warn(remark, InputWarning, stacklevel=3)
    if is_finished(output, mark, fresh):
        return load(output)
    check_outside(folders_of(output), {**files, **{name: array.store for name, array in read.items()}})
    with reserved(output):
        if is_finished(output, mark, fresh):  # by another run, in between
            return load(output)
        return _evaluate_scene(job, plan, output, cluster, fresh, report, page, stored, mark, remarks, retries)


def _evaluate_scene(
    job: AnyJob,
    plan: Plan,
    output: AnyPath,
    cluster: str | Path | Client,
    fresh: bool,
    report: Progress,
    page: Path | None,
    stored: Mapping[str, str | None],
    mark: str | None,
    remarks: list[str],
    retries: dict[str, int],
) -> AnyEvaluation:
    """Evaluate the plan of a scene on a cluster and write the output folder.

    stored: fingerprints of the inputs by name; mark: that of the result; retries: those of this process until now.
    """
    started, read = datetime.now(UTC), _stored_inputs(plan)
    ensure_cache()  # for all processes
    if cluster == "local":
        plan.compile_ahead()
    elsewhere: dict[str, AnyPath] | None = {} if is_remote(output) else None
    report("start the cluster", 0, 1)
    with (
        connect.connect(cluster, **_process_options(cluster, read)) as client,
        run_checkpoints(
            output, _key(mark, plan := fit_to_memory(plan, connect.memory_per_thread(client))), fresh
        ) as kept,
        keep_logs_of_failure(client, as_path(kept.folder)),
        being_written(output, elsewhere) as working,
        drawing_process(sum(plan.nbytes().values())) as drawing,
    ):
        report("start the cluster", 1, 1)
        start, retries = time.perf_counter(), read_retries(client) | retries
        asked = list(plan.request.layers)
        plan = replace(with_overview(plan), checkpoints=kept)
        if plan.request.layers:
            again = plan.unfinished_blocks() < plan.grid.blocks and are_intact(kept.maps, list(plan.request.layers))
            if not again:  # finished blocks without their maps are computed again
                kept.clear()
            plan = with_maps(plan, kept.maps, ABOUT_MAPS, again)
        tasks, left = plan.tasks(), plan.unfinished_blocks()
        with watchdog(client):
            plan = _with_distances(plan, client, report)
        measured = time.perf_counter()
        done = steps(report, "evaluate", left, f"{compiling(cluster)} the first block")
        with (
            watched(client, "evaluate-block", left, done, plan.reduction().sizes()) as counts,
            watchdog(client, _block_names(plan)),
            performance_page(page),
        ):
            evaluation, alone = compute_isolating_faults(plan, client)
        summed = time.perf_counter()
        cluster_facts, log = cluster_record(client, retries), worker_logs(client)
        check_unchanged(read, stored)
        write_coordinates(plan)
        maps = {name: preview(plan.writer.store, name) for name in plan.request.layers} if plan.writer else {}
        unit, without = counted_unit(len(plan.scene.shape)), plan.without_checksum()
        drawing.begin(evaluation, maps, unit=unit)
        save(evaluation, working / "summary.zarr")
        shown = about(plan, described := job_record(job, started))
        how: dict[str, Any] = {"unit": unit, "without_checksum": without, "progress": report, "drawing": drawing}
        write_all(evaluation, working, maps=maps, about=shown, **how)
        if maps and not asked:
            save_overview(working, maps)
        written = time.perf_counter()
        record: RunRecord = {
            **described,
            "about": shown,
            "fingerprint": mark,
            "unit": unit,
            "inputs": {name: input_record(array, stored[name]) for name, array in read.items()},
            "remarks": [*remarks, *result_remarks(evaluation, getattr(job, "ignore", ()))],
            "without_checksum": without,
            "blocks": plan.grid.blocks,
            "blocks_computed": left,
            "blocks_computed_again": counts.recomputed + (alone and alone - (left - counts.finished)),
            "tasks": tasks,
            "maps": asked,
            "bytes_read": sum(plan.nbytes().values()),
            **cluster_facts,
        }
        if plan.writer is not None and asked:  # last, so that a run that fails before it still finds its maps
            if elsewhere is None:
                shutil.move(plan.writer.store, working / MAPS)
            else:
                elsewhere[MAPS] = as_path(plan.writer.store)
        seconds = {"class_distances": measured - start, "pass": summed - measured, "report": written - summed}
        write_run(working, evaluation, record, seconds, log)
    return evaluation


def _stored_inputs(plan: Plan) -> dict[str, StoredArray]:
    read = {name: cube.stored for name, cube in plan.scene.cubes.items() if cube.stored is not None}
    return read | {f"geometry of {name}": cube.like for name, cube in plan.scene.cubes.items() if cube.like is not None}


def _with_distances(plan: Plan, client: Client, report: Progress) -> Plan:
    if plan.distances is None:
        return plan
    blocks = plan.distances.grid.blocks
    done = steps(report, "class distances", blocks, "read the first block")
    with (
        watched(client, "class-distances-read", blocks, done),
        explain_killed_workers("the features"),
    ):
        return plan.with_distances()


def _block_names(plan: Plan) -> Callable[[Any], str]:
    """Return a function that names the blocks a task works on, by its key."""
    length, sizes = len(plan.grid.dims) + 1, plan.reduction().sizes()

    def name(key: Any) -> str:
        if not (isinstance(key, tuple) and len(key) == length):
            return str(key)
        what = f"{sizes[key[1:]]} blocks from" if key[1:] in sizes else "the block"
        return f"{what} {plan.grid.describe(key[1:])}"

    return name


def _process_options(cluster: Any, read: Mapping[str, StoredArray]) -> dict[str, bool]:
    """Return the option for processes instead of threads on this machine if HDF5 is read.

    HDF5 reads only one array at a time in a process, and a damaged file may end the process (seen once in about 300
    damaged files).
    """
    if cluster == "local" and any(format_of(array.store).extra == "netcdf" for array in read.values()):
        return {"processes": True}
    return {}


def _key(mark: str | None, plan: Plan) -> str | None:
    """Return the key of checkpoints: they belong to a job cut into blocks of one size."""
    return None if mark is None else f"{mark} {plan.grid.block}"
