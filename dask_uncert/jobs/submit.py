"""Jobs sent off: the driver runs as a task of a running scheduler, or as a job of SLURM; and their commands' work.

A driver is `run` itself, so a job that lost its worker, its node or its scheduler goes on where it was when it is
submitted again; a driver whose worker dies is started again by the scheduler.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dask_uncert.clusters import connect
from dask_uncert.clusters.config import Address, Batch, Mpi, read_cluster
from dask_uncert.clusters.monitor import drop_all
from dask_uncert.errors import ClusterError, InputError, OutputError
from dask_uncert.io.paths import AnyPath, absolute
from dask_uncert.jobs import submission
from dask_uncert.jobs.load import read_job, resolve
from dask_uncert.jobs.run import FailedCasesWarning, run
from dask_uncert.jobs.submission import Beats, State, Submission, end, is_asked_to_end, record, state_of

POLL = 1.0  # seconds between looks at a job that is waited for
SLURM_WORDS = {"queue": "partition", "account": "account", "walltime": "time"}
DRIVER_MEMORY = "4G"


def submit(
    job: str | Path,
    cluster: str | None = None,
    out: str | AnyPath | None = None,
    fresh: bool = False,
    sets: Mapping[str, Any] | None = None,
) -> Submission:
    """Start a job on a cluster and come back; the cluster must see the job's file and output.

    cluster: an address or a file of `cluster/`, instead of the job's. Raises InputError for a job or cluster that
    cannot be used, and where the output has a job at work already.
    """
    path = Path(job).resolve()
    words, folder = read_job(path, sets)
    target = cluster if cluster is not None else words.cluster
    if target == "local":
        raise InputError(
            "submit needs a cluster that goes on without this terminal: an address, or a file of cluster/."
        )
    if "://" not in target:
        target = str(Path(target).resolve()) if cluster is not None else resolve(target, folder)
    described = Address(target) if "://" in target else read_cluster(target)
    output = str(absolute(out if out is not None else resolve(words.output, folder)))
    one = Submission(str(path), output, target, "scheduler", "", fresh, None if sets is None else dict(sets))
    if isinstance(described, Batch):
        if described.system != "slurm":
            raise InputError(
                f"submit knows SLURM among batch systems; wrap `dask-uncert run` in a job of {described.system}."
            )
        return _to_slurm(one, described)
    if isinstance(described, Address):
        return _to_scheduler(one)
    if isinstance(described, Mpi):
        raise InputError(
            f"{target} works inside of an allocation: write `dask-uncert run` in its batch script."
        )
    raise InputError(
        f"submit needs a cluster that goes on without this terminal, and {target} describes this machine."
    )


def _to_scheduler(one: Submission) -> Submission:
    from distributed import fire_and_forget

    one = replace(one, key=f"dask-uncert-job-{uuid.uuid4().hex}")
    with connect.connect(one.cluster) as client:
        if not client.scheduler_info()["workers"]:
            raise ClusterError(
                f"the cluster at {one.cluster} has no worker that could run the job. Start workers first."
            )
        record(one)
        fire_and_forget(client.submit(drive_on_worker, one.output, key=one.key, pure=False))
        while submission.state_of(one).status == "waiting" and not _is_known(client, one.key):
            time.sleep(0.05)  # the scheduler must have it before this client goes
    return submission.read(one.output)


def _is_known(client: Any, key: str) -> bool:
    found: bool = client.run_on_scheduler(lambda dask_scheduler: key in dask_scheduler.tasks)
    return found


def drive_on_worker(output: str) -> None:
    """What the scheduler's task does: the whole run, over all workers."""
    from distributed import worker_client

    one = submission.read(output)
    with worker_client() as client:
        drive(one, client)


def _to_slurm(one: Submission, batch: Batch) -> Submission:
    one = replace(one, system="slurm")
    record(one)
    place = one.place
    options = {SLURM_WORDS[word]: value for word, value in batch.options.items() if word in SLURM_WORDS}
    options |= {
        "job-name": "dask-uncert",
        "output": place / submission.LOG if isinstance(place, Path) else "dask-uncert-%j.log",
        "mem": DRIVER_MEMORY,
        "cpus-per-task": 1,
    }
    lines = [f"#SBATCH --{word}={value}" for word, value in options.items()]
    command = shlex.join([sys.executable, "-m", "dask_uncert.jobs.submit", one.output])
    script = "\n".join(["#!/bin/bash", *lines, command, ""])
    try:
        asked = subprocess.run(
            ["sbatch", "--parsable"], input=script, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        end(one, "failed", "sbatch is not here")
        raise InputError("sbatch is not on this machine's PATH. Submit on a login node.") from None
    if asked.returncode:
        said = " ".join(asked.stderr.split())
        end(one, "failed", said)
        raise ClusterError(f"SLURM refused the job: {said}. Correct `options` in {one.cluster}.")
    known = replace(submission.read(one.output), key=asked.stdout.strip().split(";")[0])
    submission.amend(known)
    return known


def drive(one: Submission, cluster: Any) -> None:
    """Run the job and write down how it fares and ends; what goes wrong is in the log."""
    import warnings

    beats = Beats(one)

    def stop() -> None:
        client = cluster if not isinstance(cluster, str) else None
        if client is None:
            from distributed import get_client

            with suppress(ValueError):
                client = get_client()
        if client is not None:
            drop_all(client)

    try:
        with beats.beating(stop), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", FailedCasesWarning)
            run(
                one.job,
                cluster=cluster,
                out=one.output,
                fresh=one.fresh,
                sets=one.sets,
                report=beats.report,
            )
    except BaseException as error:
        if is_asked_to_end(one):
            end(one, "cancelled", "it was asked to end; submit it again to go on where it was")
            return
        submission.log(one, traceback.format_exc())
        text = " ".join(str(error).split()) or type(error).__name__
        plain = isinstance(error, InputError | ClusterError | OutputError)
        end(one, "failed", text if plain else f"{type(error).__name__}: {text}")
        return
    failed = [str(w.message) for w in said if issubclass(w.category, FailedCasesWarning)]
    if failed:
        submission.log(one, "\n".join([*failed, ""]))
    end(one, "failed" if failed else "done", failed[0] if failed else f"the result is in {one.output}")


def status(output: str | AnyPath) -> State:
    """How the job of an output fares."""
    one = submission.read(output)
    found = state_of(one)
    if one.system == "slurm" and found.status in ("waiting", "lost") and one.key:
        asked = subprocess.run(
            ["squeue", "-h", "-j", one.key, "-o", "%T"], capture_output=True, text=True, check=False
        )
        queued = asked.stdout.strip()
        if not queued:
            return State(
                "lost",
                f"job {one.key} has left SLURM's queue without a result: see {one.place / submission.LOG}",
            )
        return State(found.status, f"{found.said} (SLURM job {one.key}: {queued})")
    return found


def wait(output: str | AnyPath, timeout: float | None = None) -> State:
    """Until the job has ended, or is lost, or for so many seconds."""
    limit = None if timeout is None else time.monotonic() + timeout
    while (found := status(output)).status in ("waiting", "running"):
        if limit is not None and time.monotonic() > limit:
            break
        time.sleep(POLL)
    return found


def cancel(output: str | AnyPath, timeout: float = 60.0) -> State:
    """Ask the job to end and wait until it has; what is finished is kept for another submission."""
    one = submission.read(output)
    if state_of(one).status in submission.ENDED:
        return state_of(one)
    submission.ask_to_end(one)
    if one.system == "slurm" and state_of(one).status == "waiting":
        subprocess.run(["scancel", one.key], capture_output=True, check=False)
        end(one, "cancelled", "it was taken out of the queue")
    found = wait(output, timeout)
    if found.status == "running" and one.system == "slurm":
        subprocess.run(["scancel", one.key], capture_output=True, check=False)
        end(one, "cancelled", "it did not answer, so SLURM ended it")
    return state_of(one)


if __name__ == "__main__":
    _one = submission.read(sys.argv[1])
    drive(_one, _one.cluster)
    sys.exit(0 if state_of(_one).status == "done" else 1)
