"""A job, run: inputs opened, the pass on a cluster, the output folder written."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert import clusters
from dask_uncert.checkpoints import keeping
from dask_uncert.cohort_runs import failure, run_cohort
from dask_uncert.cohort_words import CohortJob
from dask_uncert.cubes import Cube
from dask_uncert.errors import ClusterError, InputError
from dask_uncert.evaluate import with_maps, write_coordinates
from dask_uncert.gaps import gap_of
from dask_uncert.job_words import AnyJob
from dask_uncert.jobs import plan_job, read_job, resolve
from dask_uncert.outputs import (
    Report,
    being_written,
    is_finished,
    peak_memory,
    versions,
    write_record,
)
from dask_uncert.plan import Plan
from dask_uncert.regression_plan import RegressionPlan
from dask_uncert.reports.write import write_all
from dask_uncert.saving import load, save
from dask_uncert.stores.maps import MapWriter, preview
from dask_uncert.stores.opening import Stored, format_of
from dask_uncert.stores.retries import taken
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.regression import RegressionEvaluation
from dask_uncert.watching import guarded, logs, progress, reported

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
    output = Path(out).absolute() if out is not None else Path(resolve(words.output, folder))
    target = cluster if cluster is not None else words.cluster
    if isinstance(target, str) and target != "local" and "://" not in target and cluster is None:
        target = resolve(target, folder)
    if isinstance(words, CohortJob):
        pooled, failed = run_cohort(words, folder, output, target, fresh, report)
        if failed:
            warnings.warn(failure(failed, output), FailedCasesWarning, stacklevel=2)
        return pooled
    page = None if performance_report is None else Path(performance_report)
    tried = dict([taken()])
    plan = plan_job(words, folder)
    read = {name: cube for name, cube in plan.scene.cubes.items() if gap_of(name) is None}
    stored = {name: cube.data.fingerprint() for name, cube in read.items()}
    mark = fingerprint(words, plan, stored)
    for remark in remarks_of(plan):
        warnings.warn(remark, InputWarning, stacklevel=2)
    if is_finished(output, mark, fresh):
        return load(output)
    started = datetime.now(UTC)
    key = None if mark is None or not isinstance(plan, Plan) else f"{mark} {plan.grid.block}"
    with (
        clusters.connect(target, **_apart(target, read)) as client,
        keeping(output, key, fresh) as kept,
        being_written(output) as working,
    ):
        _check_memory(plan, client)
        clock, tried = time.perf_counter(), _tried(client) | tried
        if isinstance(plan, Plan):
            plan = replace(plan, checkpoints=kept)
        if plan.request.layers:
            plan = _with_maps(plan, working)
        tasks, left = plan.tasks(), plan.left() if isinstance(plan, Plan) else plan.grid.blocks
        with guarded(client):
            plan = _with_distances(plan, client, report or _silent)
        measured = time.perf_counter()
        with (
            _watch(client, "evaluate-block", left, "evaluate", report or _silent),
            guarded(client),
            reported(page),
        ):
            evaluation = _computed(plan)
        summed = time.perf_counter()
        facts, said = _facts(client, tried), logs(client)
        check_unchanged(read, stored)
        plan = _moved(plan, working)
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
            "blocks_computed": left,
            "tasks": tasks,
            "maps": list(plan.request.layers),
            "bytes_read": sum(plan.nbytes().values()),
            **facts,
            "counted": int(evaluation.ledger.counted),
            "excluded": evaluation.ledger.reasons(),
        }
        if said:
            (working / "workers.log").write_text(said, encoding="utf-8")
        write_record(working, record)
    return evaluation


def _tried(client: Client) -> dict[str, int]:
    """How many reads each process has tried again: the workers, and this one."""
    return dict([taken(), *client.run(taken, on_error="ignore").values()])


def _facts(client: Client, before: Mapping[str, int]) -> dict[str, Any]:
    """What the cluster says of the pass; nothing where it has gone meanwhile, for the result is here."""
    with suppress(Exception):
        return {
            "reads_tried_again": sum(n - before.get(process, 0) for process, n in _tried(client).items()),
            "workers": clusters.describe(client),
            "peak_memory_bytes": max(client.run(peak_memory, on_error="ignore").values(), default=0),
        }
    return {}


def _with_maps(plan: AnyPlan, working: Path) -> AnyPlan:
    """The plan with its maps' group made, or found: it stays with the checkpoints until the run is whole."""
    kept = plan.checkpoints if isinstance(plan, Plan) else None
    store = str(working / "maps.zarr") if kept is None else kept.maps
    again = isinstance(plan, Plan) and plan.left() < plan.grid.blocks and Path(store).is_dir()
    return with_maps(plan, store, _about_maps(plan), again)


def _moved(plan: AnyPlan, working: Path) -> AnyPlan:
    """The plan whose maps are in the output."""
    place = working / "maps.zarr"
    if plan.writer is None or plan.writer.store == str(place):
        return plan
    shutil.move(plan.writer.store, place)
    return replace(plan, writer=MapWriter(str(place)))


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
    return progress(client, prefix, total, lambda n: report(what, n, total))


def fingerprint(job: AnyJob, plan: AnyPlan, stored: Mapping[str, str | None]) -> str | None:
    """Of what is asked, of the inputs as they are stored and of our version; None where inputs cannot tell."""
    if any(mark is None for mark in stored.values()):
        return None
    words = job.model_dump(mode="json", by_alias=True, exclude={"output", "cluster"})
    text = json.dumps([words, repr(plan.request), stored, version("dask-uncert")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _apart(target: Any, read: Mapping[str, Cube]) -> dict[str, bool]:
    """Processes of their own on this machine, where HDF5 is read: it reads one array at a time in each, and a damaged
    file may end the process that reads it (seen once in some 300 damaged files)."""
    stores = [str(getattr(cube.data, "store", "")) for cube in read.values()]
    return (
        {"processes": True}
        if target == "local" and any(format_of(s).module == "netcdf" for s in stores)
        else {}
    )


def _computed(plan: AnyPlan) -> AnyEvaluation:
    """The plan's Evaluation; ClusterError where a block ends every process that evaluates it."""
    try:
        return plan.compute()
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise ClusterError(
            f"a block ended its worker process every time it was evaluated, by a crash or for want of memory: a file may "
            f"be damaged, or blocks be too large for the workers ({' '.join(str(error).split())[:200]})."
        ) from None


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
