"""Workers started as jobs of a batch system (SLURM, PBS, SGE, LSF); the one place that knows dask-jobqueue.

dask-jobqueue does not say when a batch system refuses a job, and closing a cluster whose jobs never began fails in it
(seen with 0.9). So the job is shown to the system first, and what closing raises is put aside.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters.config import SYSTEMS, Batch
from dask_uncert.errors import ClusterError, InputError

if TYPE_CHECKING:
    from distributed import Client

SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "sge": "qsub", "lsf": "bsub"}
JOBS, WAIT = 1, 600
PULSE = 1.0  # seconds between looks at which workers are there
BRIEF, MOST_BRIEF = (
    60,
    3,
)  # a job whose worker stayed fewer seconds died at once; so many for each job that is asked for
Job = tuple[str, str]  # the name of its worker, which another may get, and its number in the batch system


@contextmanager
def start(batch: Batch) -> Iterator[Client]:
    """A Client of a scheduler in this process, with workers as jobs; all end with the `with`.

    Raises InputError where dask-jobqueue or the batch system is not there or an option is not known, ClusterError where
    the system refuses the job or no worker comes in time.
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
        # distributed would cancel a lost worker's job itself, and keep it in its plan: we do it, and replace it
        own = dask.config.set({"distributed.deploy.lost-worker-timeout": "1000 days"})
        with own, Client(cluster) as client:
            _wait(client, batch, cluster)
            with _replaced(batch, cluster, patience):
                yield client
    finally:
        with suppress(AssertionError), quiet():
            cluster.close(timeout=10)


@contextmanager
def quiet() -> Iterator[None]:
    """What ending workers make distributed say of closed connections says nothing new."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _cluster(batch: Batch) -> Any:
    try:
        import dask_jobqueue
    except ModuleNotFoundError:
        raise InputError(
            f"a cluster of kind {batch.system} needs dask-jobqueue, which is not installed. Run `python -m pip install "
            f"'dask-uncert[hpc]'`."
        ) from None
    if shutil.which(SUBMIT[batch.system]) is None:
        raise InputError(
            f"a cluster of kind {batch.system} submits jobs by {SUBMIT[batch.system]}, which is not on this machine's "
            f"PATH. Run the command on a login node."
        )
    options: dict[str, Any] = dict(batch.options)
    options.setdefault("death_timeout", 60)
    options.setdefault("processes", 1)
    options["scheduler_options"] = {"dashboard_address": ":0", **dict(options.get("scheduler_options", {}))}
    if batch.tls or batch.tls is None:
        from distributed import Security

        # Keys in a folder that all nodes see, readable by this user alone; gone when this process ends.
        options["protocol"], options["security"] = "tls://", Security.temporary()
        options.setdefault("shared_temp_directory", tempfile.mkdtemp(prefix=".dask-uncert-", dir=os.getcwd()))
    try:
        return getattr(dask_jobqueue, SYSTEMS[batch.system])(**options)
    except (TypeError, ValueError) as error:
        raise InputError(f"the cluster's options cannot be used: {' '.join(str(error).split())}.") from None


def _check_job(batch: Batch, cluster: Any) -> None:
    """Show the job to SLURM, which can say that it would be refused."""
    if batch.system != "slurm":
        return
    with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
        script.write(cluster.job_script())
        script.flush()
        asked = subprocess.run(
            ["sbatch", "--test-only", script.name], capture_output=True, text=True, check=False
        )
    if asked.returncode:
        said = " ".join(asked.stderr.split()) or f"status {asked.returncode}"
        raise ClusterError(
            f"SLURM would refuse the workers' jobs: {said}. Correct `options` in the cluster's file."
        )


def _wait(client: Client, batch: Batch, cluster: Any) -> None:
    """Until the first worker is there."""
    seconds = batch.wait or WAIT
    end = time.monotonic() + seconds
    while not client.scheduler_info()["workers"]:
        if time.monotonic() > end:
            raise ClusterError(
                f"no worker came within {seconds} s, though {batch.system} took the job. It may wait in the queue (look "
                f"with the system's own command; `wait` in the cluster's file gives more time), or have ended at once: "
                f"{_where_logs(batch)}."
            )
        time.sleep(PULSE)


def _where_logs(batch: Batch) -> str:
    logs = batch.options.get("log_directory")
    return f"its log is in {logs}" if logs else "say `log_directory` under `options` to have its log"


@contextmanager
def _replaced(batch: Batch, cluster: Any, patience: float) -> Iterator[None]:
    """Inside of the `with`, a job is replaced once its workers have been gone for `patience` seconds.

    dask-jobqueue keeps such a job in its plan. Whether a job without a worker waits in the queue or has ended only the
    batch system knows, so one whose worker has never come is left alone.
    """
    watch, over = JobWatch(patience), threading.Event()
    jobs = batch.jobs or JOBS
    most = MOST_BRIEF * max(jobs, batch.most_jobs or 0)

    def look() -> None:
        names = {str(worker.name) for worker in list(cluster.scheduler.workers.values())}
        there = {
            (name, cluster.workers[name].job_id): any(
                f"{name}{end}" in names for end in spec.get("group", [""])
            )
            for name, spec in list(cluster.worker_spec.items())
            if name in cluster.workers
        }
        lost = watch.lost(there, time.monotonic())
        if lost:
            cluster.sync(cluster.scale_down, [name for name, _ in lost])
        if watch.brief > most:
            over.set()
            if batch.most_jobs is not None:
                cluster.adapt(minimum=0, maximum=sum(there.values()))
        elif batch.most_jobs is None and len(cluster.worker_spec) < jobs:
            cluster.scale(jobs=jobs)

    def keep_looking() -> None:
        while not over.wait(PULSE):
            with suppress(
                Exception
            ):  # a batch system that does not answer, in many ways, may do so at the next look
                look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield
    except ClusterError as error:
        if watch.brief <= most:
            raise
        raise ClusterError(
            f"{error} {watch.brief} jobs ended within {BRIEF} s of their worker's start, so no more were submitted: "
            f"{_where_logs(batch)}."
        ) from error
    finally:
        over.set()
        thread.join()


class JobWatch:
    """Tells which jobs are lost: those that had a worker, and have had none for `patience` seconds.

    brief: how many of them died at once, within `BRIEF` seconds of their worker's start.
    """

    def __init__(self, patience: float) -> None:
        self.patience, self.brief = patience, 0
        self.came: dict[Job, float] = {}
        self.left: dict[Job, float] = {}

    def lost(self, there: Mapping[Job, bool], now: float) -> list[Job]:
        """Of jobs, and whether a worker of theirs is there at the time `now`; each is named once."""
        found = []
        for job, present in there.items():
            if present:
                self.came.setdefault(job, now)
                self.left.pop(job, None)
            elif job in self.came and now - self.left.setdefault(job, now) >= self.patience:
                self.brief += self.left.pop(job) - self.came.pop(job) < BRIEF
                found.append(job)
        return found
