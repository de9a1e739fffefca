"""Submit jobs to a running scheduler or to SLURM; show their status, wait for them, cancel them."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dask_uncert.clusters import connect
from dask_uncert.clusters.config import Address, Batch, Mpi, read_cluster
from dask_uncert.errors import ClusterError, InputError, one_line
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.io.owned_folder import check_outside
from dask_uncert.io.paths import AnyPath, named_path
from dask_uncert.jobs.drive import drive_on_worker
from dask_uncert.jobs.load import files_of, read_job, resolve
from dask_uncert.jobs.run import output_of
from dask_uncert.jobs.submission import ENDED, LOG, JobStatus, Submission, folder_of, submitted

NEEDS = "submit needs a cluster that keeps running without this terminal"
POLL = 1.0  # seconds between looks at a job
FIRST_WORKER = 30.0  # seconds to wait for one
SLURM_OPTIONS = {"queue": "partition", "account": "account", "walltime": "time"}
MEMORY = "4G"  # of the SLURM job that drives the cluster


def submit(
    job: str | Path,
    *,
    cluster: str | None = None,
    out: str | AnyPath | None = None,
    fresh: bool = False,
    overrides: Mapping[str, Any] | None = None,
) -> Submission:
    """Start a job on a cluster that keeps running without this process, and return at once.

    Parameters
    ----------
    job : str or path
        A job file. The cluster must be able to read it and to write the output.
    cluster : str, optional
        The address of a running scheduler or a cluster file of SLURM, instead of the job's `cluster`.
    out : str or path, optional
        The output folder, instead of the job's `output`. May be a URL.
    fresh : bool, default False
        Recompute and replace an existing result.
    overrides : mapping, optional
        Job keys and their values instead of the job's, such as ``{"calibration.bins": 20}``.

    Returns
    -------
    Submission
        What was submitted. Its `output` names the job in `status`, `wait` and `cancel`.

    Raises
    ------
    InputError
        If the job or the cluster cannot be used, or a job for this output is already running.
    ClusterError
        If the cluster cannot be reached, has no worker, or refuses the job.

    Notes
    -----
    The command is ``dask-uncert submit``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.submit("job.yaml", cluster="tcp://scheduler:8786")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no job file at ...job.yaml.
    """
    path = Path(named_path(job))
    checked, folder = read_job(path, overrides)
    target = cluster if cluster is not None else checked.cluster
    if target == "local":
        raise InputError(f"{NEEDS}: an address, or a cluster file.")
    if "://" not in target:
        target = named_path(target) if cluster is not None else resolve(target, folder)
    described = read_cluster(target)
    output = str(output_of(checked, folder, out))
    check_outside([folder_of(output)], files_of(checked, folder, path, target))
    submission = Submission(str(path), output, target, "scheduler", "", fresh, dict(overrides or {}))
    if isinstance(described, Batch):
        if described.kind != "slurm":
            raise InputError(f"submit supports SLURM; put `dask-uncert run` in a job of {described.kind}.")
        return _to_slurm(submission, described)
    if isinstance(described, Address):
        return _to_scheduler(submission)
    if isinstance(described, Mpi):
        raise InputError(f"{target} works inside an allocation: write `dask-uncert run` in its batch script.")
    raise InputError(f"{NEEDS}, and {target} describes this machine.")


@shared_sections
def status(output: str | AnyPath) -> JobStatus:
    """Return the status of a submitted job.

    {Parameters: submitted output}

    Returns
    -------
    JobStatus
        Its `status` is "waiting", "running", "lost" (no heartbeat for a minute), "done", "failed" or "cancelled"; its
        `message` gives details.

    {Raises: never submitted}

    Notes
    -----
    The command is ``dask-uncert status``; without an id it lists all (`submissions`).

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.status("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: no job was submitted for nothing: there is no ...
    """
    submission = Submission.read(output)
    current = submission.status()
    if submission.system != "slurm" or current.status not in ("waiting", "lost") or not submission.key:
        return current
    squeue = ["squeue", "-h", "-j", submission.key, "-o", "%T"]
    if queued := subprocess.run(squeue, capture_output=True, text=True, check=False).stdout.strip():
        return JobStatus(current.status, f"{current.message} (SLURM job {submission.key}: {queued})")
    ended = f"job {submission.key} has left SLURM's queue without a result"
    return JobStatus("lost", f"{ended}: see {submission.folder / LOG}")


def submissions() -> dict[str, JobStatus]:
    """Return the status of every job that this user submitted from this machine, by its output folder.

    Returns
    -------
    dict of str to JobStatus
        The latest last. A job whose folder ``OUTPUT.job`` was removed is not in it; one whose folder cannot be read is
        "lost", and its message says why.

    Notes
    -----
    The command is ``dask-uncert status`` without an id. Outputs are listed in ``dask-uncert/submitted.txt`` under
    ``$XDG_STATE_HOME``, by default ``~/.local/state``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> {status.status for status in du.submissions().values()} <= {"waiting", "running", "lost", "done", "failed", "cancelled"}
    True
    """
    found = {}
    for job in submitted():
        try:
            found[job.output] = status(job.output)
        except InputError as error:
            found[job.output] = JobStatus("lost", str(error))
    return found


@shared_sections
def wait(output: str | AnyPath, timeout: float | None = None) -> JobStatus:
    """Wait until a submitted job has ended or is lost.

    {Parameters: submitted output}
    timeout : float, optional
        Seconds to wait at most.

    {Returns: last status}

    {Raises: never submitted}

    Notes
    -----
    The command is ``dask-uncert wait``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.wait("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: no job was submitted for nothing: there is no ...
    """
    limit = None if timeout is None else time.monotonic() + timeout
    while (current := status(output)).status in ("waiting", "running"):
        if limit is not None and time.monotonic() > limit:
            break
        time.sleep(POLL)
    return current


@shared_sections
def cancel(output: str | AnyPath, timeout: float = 60.0) -> JobStatus:
    """Cancel a submitted job; what it has finished is kept, so that it resumes if it is submitted again.

    {Parameters: submitted output}
    timeout : float, default 60
        Seconds to wait for it to stop.

    {Returns: last status}

    {Raises: never submitted}

    Notes
    -----
    The command is ``dask-uncert cancel``.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.cancel("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: no job was submitted for nothing: there is no ...
    """
    submission = Submission.read(output)
    if submission.status().status in ENDED:
        return submission.status()
    submission.request_cancel()
    if submission.system == "slurm" and submission.status().status == "waiting":
        _end_in_slurm(submission, "it was taken out of the queue")
    if wait(output, timeout).status == "running" and submission.system == "slurm":
        _end_in_slurm(submission, "it did not answer, so SLURM ended it")
    return submission.status()


def _end_in_slurm(submission: Submission, message: str) -> None:
    subprocess.run(["scancel", submission.key], capture_output=True, check=False)
    submission.end("cancelled", message)


def _to_scheduler(submission: Submission) -> Submission:
    from distributed import fire_and_forget

    submission = replace(submission, key=f"dask-uncert-job-{uuid.uuid4().hex}")
    with connect.connect(submission.cluster) as client:
        try:  # workers that were started a moment ago may still be on their way
            client.wait_for_workers(1, timeout=FIRST_WORKER)
        except TimeoutError:
            raise ClusterError(
                f"the cluster at {submission.cluster} has no worker, and none came within {FIRST_WORKER:g} s. Start workers first."
            ) from None
        submission.create()
        key = submission.key
        fire_and_forget(client.submit(drive_on_worker, submission.output, key=key, pure=False))
        while submission.status().status == "waiting" and not client.run_on_scheduler(
            lambda dask_scheduler: key in dask_scheduler.tasks
        ):
            time.sleep(0.05)  # the scheduler must have the task before this client closes
    return Submission.read(submission.output)


def _to_slurm(submission: Submission, batch: Batch) -> Submission:
    submission = replace(submission, system="slurm")
    submission.create()
    log = submission.folder / LOG
    options = {SLURM_OPTIONS[name]: value for name, value in batch.options.items() if name in SLURM_OPTIONS}
    options |= {
        "job-name": "dask-uncert",
        "output": log if isinstance(log, Path) else "dask-uncert-%j.log",
        "mem": MEMORY,
        "cpus-per-task": 1,
    }
    lines = [f"#SBATCH --{name}={value}" for name, value in options.items()]
    command = shlex.join([sys.executable, "-m", "dask_uncert.jobs.drive", submission.output])
    script = "\n".join(["#!/bin/bash", *lines, command, ""])
    try:
        answer = subprocess.run(["sbatch", "--parsable"], input=script, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        submission.end("failed", "there is no sbatch on this machine")
        raise InputError("sbatch is not on this machine's PATH. Submit on a login node.") from None
    if answer.returncode:
        reason = one_line(answer.stderr)
        submission.end("failed", reason)
        raise ClusterError(f"SLURM refused the job: {reason}. Correct `options` in {submission.cluster}.")
    key = answer.stdout.strip().split(";")[0]
    submission = replace(Submission.read(submission.output), key=key)
    submission.write()
    return submission
