"""Workers started as jobs of a batch system (SLURM, PBS, SGE, LSF), with dask-jobqueue.

dask-jobqueue does not report that a batch system refuses a job, and it fails to close a cluster whose jobs never began
(seen with 0.9). So SLURM tests the job first, and errors at closing are ignored.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters.config import SYSTEMS, Batch
from dask_uncert.clusters.monitor import quiet, wait_for_worker
from dask_uncert.errors import ClusterError, InputError, one_line

if TYPE_CHECKING:
    from distributed import Client

SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "sge": "qsub", "lsf": "bsub"}
JOBS, WAIT = 1, 600
POLL_SECONDS = 1.0  # between checks of the workers
SHORT_SECONDS = 60  # a job whose worker stayed for less ended at once
OWN_FOLDER = ".dask-uncert-"  # how the name of the folder with keys begins
MAX_SHORT_JOBS = 3  # for each job requested
Job = tuple[str, str]
"""Name of its worker, which a later job may get, and its number in the batch system."""


@contextmanager
def start(batch: Batch) -> Iterator[Client]:
    """Yield a Client of a scheduler in this process whose workers are jobs; all end with the `with`.

    Raises InputError if dask-jobqueue or the batch system is missing or an option is unknown, ClusterError if the
    system refuses the job or no worker comes in time.
    """
    cluster = _cluster(batch)
    try:
        _check_job(batch, cluster)
        import dask.config
        from dask.utils import parse_timedelta
        from distributed import Client

        patience = parse_timedelta(dask.config.get("distributed.deploy.lost-worker-timeout"))

        if batch.most_jobs is not None:
            cluster.adapt(minimum_jobs=batch.jobs or JOBS, maximum_jobs=batch.most_jobs)
        else:
            cluster.scale(jobs=batch.jobs or JOBS)
        # distributed would cancel a lost worker's job but keep it in its plan; we cancel and replace it
        config = dask.config.set({"distributed.deploy.lost-worker-timeout": "1000 days"})
        with config, Client(cluster) as client:
            wait_for_worker(
                lambda: bool(client.scheduler_info()["workers"]),
                batch.wait or WAIT,
                lambda: (
                    f", though {batch.kind} accepted the job. It may be queued (check with the system's own command; "
                    f"`wait` in the cluster's file gives more time), or have ended at once: {_log_hint(batch)}."
                ),
            )
            with _replace_lost_jobs(batch, cluster, patience):
                yield client
    finally:
        with suppress(AssertionError), quiet():
            cluster.close(timeout=10)
        _remove_keys(cluster)


def _remove_keys(cluster: Any) -> None:
    """Remove the files of the workers' keys now: dask-jobqueue does so only if Python collects the objects that hold them."""
    for name, file in vars(cluster).items():
        if name.startswith("_job_") and hasattr(file, "close"):
            with suppress(OSError):
                file.close()
    folder = Path(cluster.shared_temp_directory or "")
    if folder.name.startswith(OWN_FOLDER):
        with suppress(OSError):
            folder.rmdir()


def _cluster(batch: Batch) -> Any:
    try:
        import dask_jobqueue
    except ModuleNotFoundError:
        raise InputError(
            f"a cluster of kind {batch.kind} needs dask-jobqueue, which is not installed. Run `python -m pip install "
            f"'dask-uncert[hpc]'`."
        ) from None
    if shutil.which(SUBMIT[batch.kind]) is None:
        raise InputError(
            f"a cluster of kind {batch.kind} submits jobs with {SUBMIT[batch.kind]}, which is not on this machine's "
            f"PATH. Run the command on a login node."
        )
    options: dict[str, Any] = {"death_timeout": 60, "processes": 1, **batch.options}
    options["scheduler_options"] = {"dashboard_address": ":0", **dict(options.get("scheduler_options", {}))}
    if batch.tls or batch.tls is None:
        from distributed import Security

        # Keys in a folder that all nodes see and only this user can read.
        options["protocol"], options["security"] = "tls://", Security.temporary()
        options.setdefault("shared_temp_directory", tempfile.mkdtemp(prefix=OWN_FOLDER, dir=os.getcwd()))
    try:
        return getattr(dask_jobqueue, SYSTEMS[batch.kind])(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"the cluster's options cannot be used: {one_line(error)}.") from None


def _check_job(batch: Batch, cluster: Any) -> None:
    """Let SLURM test the job: it can say that it would refuse it."""
    if batch.kind != "slurm":
        return
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(cluster.job_script())
        script.flush()
        command = ["sbatch", "--test-only", script.name]
        test = subprocess.run(command, capture_output=True, text=True, check=False)
    if test.returncode:
        reason = one_line(test.stderr or f"status {test.returncode}")
        raise ClusterError(f"SLURM would refuse the workers' jobs: {reason}. Correct the file's `options`.")


def _log_hint(batch: Batch) -> str:
    logs = batch.options.get("log_directory")
    return f"its log is in {logs}" if logs else "set `log_directory` under `options` to get its log"


@contextmanager
def _replace_lost_jobs(batch: Batch, cluster: Any, patience: float) -> Iterator[None]:
    """Inside the `with`, replace a job once its workers have been gone for `patience` seconds.

    dask-jobqueue keeps such a job in its plan. Only the batch system knows whether a job without a worker is queued or
    has ended, so a job whose worker has never come is left alone.
    """
    jobs = batch.jobs or JOBS
    most = MAX_SHORT_JOBS * max(jobs, batch.most_jobs or 0)
    watch, over = JobWatch(patience), threading.Event()

    def replace_lost() -> None:
        names = {str(worker.name) for worker in list(cluster.scheduler.workers.values())}
        present = {
            (name, cluster.workers[name].job_id): any(f"{name}{end}" in names for end in spec.get("group", [""]))
            for name, spec in list(cluster.worker_spec.items())
            if name in cluster.workers
        }
        lost = watch.lost(present, time.monotonic())
        if lost:
            cluster.sync(cluster.scale_down, [name for name, _ in lost])
        if watch.short > most:
            over.set()
            if batch.most_jobs is not None:
                cluster.adapt(minimum=0, maximum=sum(present.values()))
        elif batch.most_jobs is None and len(cluster.worker_spec) < jobs:
            cluster.scale(jobs=jobs)

    def keep_replacing() -> None:
        while not over.wait(POLL_SECONDS):
            with suppress(Exception):  # a batch system that fails to answer may answer the next time
                replace_lost()

    thread = threading.Thread(target=keep_replacing, daemon=True)
    thread.start()
    try:
        yield
    except ClusterError as error:
        if watch.short <= most:
            raise
        raise ClusterError(
            f"{error} {watch.short} jobs ended within {SHORT_SECONDS} s of their worker's start, so no more were "
            f"submitted: {_log_hint(batch)}."
        ) from error
    finally:
        over.set()
        thread.join()


class JobWatch:
    """Finds lost jobs: they had a worker, but have had none for `patience` seconds.

    short: how many of them ended within `SHORT_SECONDS` of their worker's start.
    """

    def __init__(self, patience: float) -> None:
        self.patience, self.short = patience, 0
        self.came: dict[Job, float] = {}
        self.left: dict[Job, float] = {}

    def lost(self, present: Mapping[Job, bool], now: float) -> list[Job]:
        """Return the lost jobs, each once. present: whether each job has a worker at the time `now`."""
        lost = []
        for job, has_worker in present.items():
            if has_worker:
                self.came.setdefault(job, now)
                self.left.pop(job, None)
            elif job in self.came and now - self.left.setdefault(job, now) >= self.patience:
                self.short += self.left.pop(job) - self.came.pop(job) < SHORT_SECONDS
                lost.append(job)
        return lost
