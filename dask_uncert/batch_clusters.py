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
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dask_uncert.cluster_file import SYSTEMS, Batch
from dask_uncert.errors import ClusterError, InputError

if TYPE_CHECKING:
    from distributed import Client

SUBMIT = {"slurm": "sbatch", "pbs": "qsub", "sge": "qsub", "lsf": "bsub"}
JOBS, WAIT = 1, 600
PULSE = 1.0  # seconds between looks at whether a worker has come


@contextmanager
def start(batch: Batch) -> Iterator[Client]:
    """A Client of a scheduler in this process, with workers as jobs; all end with the `with`.

    Raises InputError where dask-jobqueue or the batch system is not there or an option is not known, ClusterError where
    the system refuses the job or no worker comes in time.
    """
    cluster = _cluster(batch)
    try:
        _check_job(batch, cluster)
        from distributed import Client

        if batch.most_jobs is not None:
            cluster.adapt(minimum_jobs=batch.jobs or JOBS, maximum_jobs=batch.most_jobs)
        else:
            cluster.scale(jobs=batch.jobs or JOBS)
        with Client(cluster) as client:
            _wait(client, batch, cluster)
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
            logs = batch.options.get("log_directory")
            raise ClusterError(
                f"no worker came within {seconds} s, though {batch.system} took the job. It may wait in the queue (look "
                f"with the system's own command; `wait` in the cluster's file gives more time), or have ended at once: "
                f"{f'its log is in {logs}' if logs else 'say `log_directory` under `options` to have its log'}."
            )
        time.sleep(PULSE)
