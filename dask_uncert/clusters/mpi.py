"""Workers as ranks of an allocation's launcher: mpirun, mpiexec or srun, inside of a batch script.

Each rank is one `dask worker` under its nanny, which starts it again when it dies, so the launcher never sees a worker
die: mpirun ends all ranks once one ends badly. No library of MPI is needed, for workers speak dask's own protocol.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters.config import Mpi
from dask_uncert.clusters.jobqueue import quiet
from dask_uncert.errors import ClusterError, InputError

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

LAUNCHER, THREADS, WAIT = "mpirun", 1, 120
PULSE = 0.2  # seconds between looks at whether a worker has come
PATIENCE = 10  # seconds that the launcher may take to end, asked first by its workers' end, then by SIGTERM
LONE = 60  # seconds that a worker goes on without a scheduler
TAIL, LONGEST = 5, 600  # lines and letters of what the launcher said that an error repeats
KEYS = ("tls-ca-file", "tls-cert", "tls-key")


@contextmanager
def start(mpi: Mpi) -> Iterator[Client]:
    """A Client of a scheduler in this process, with a worker in every rank; all end with the `with`.

    Raises InputError for a folder that is not there, ClusterError where the launcher is not there or ends, or no worker
    comes in time; it repeats what the launcher said last.
    """
    command = _launcher(mpi)
    if shutil.which(command[0]) is None:
        raise ClusterError(
            f"the launcher {command[0]} is not on this machine's PATH. Run the command inside of an allocation, after "
            f"`module load` of its MPI, or name another `launcher` in the cluster's file."
        )
    with ExitStack() as stack:
        keys, security = stack.enter_context(_keys(mpi))
        log = stack.enter_context(_log(mpi))
        cluster = _scheduler(mpi, security)
        stack.callback(cluster.close, timeout=PATIENCE)
        options = _options(mpi, keys)
        process = stack.enter_context(
            _launched(
                [*command, sys.executable, "-m", "dask", "worker", cluster.scheduler_address, *options], log
            )
        )
        _wait(cluster, mpi, command[0], process, log)
        stack.callback(_end, cluster, process)
        from distributed import Client

        client = stack.enter_context(Client(cluster))
        try:
            yield client
        except ClusterError as error:
            if process.poll() is None:
                raise
            raise ClusterError(f"{error} {_ended(command[0], process, log)}") from error


def _launcher(mpi: Mpi) -> list[str]:
    given = mpi.launcher or LAUNCHER
    return shlex.split(given) if isinstance(given, str) else [str(word) for word in given]


@contextmanager
def _keys(mpi: Mpi) -> Iterator[tuple[Path | None, Any]]:
    """A folder that only this user can enter, with keys of this run, and what distributed makes of them."""
    if mpi.tls is False:
        yield None, None
        return
    from distributed import Security

    security = Security.temporary()
    texts = security.get_tls_config_for_role("worker")
    shared = _folder(mpi.shared_folder or ".", "shared_folder")
    with tempfile.TemporaryDirectory(prefix=".dask-uncert-", dir=shared) as made:
        for name, text in zip(KEYS, (texts["ca_file"], texts["cert"], texts["key"]), strict=True):
            with open(os.open(Path(made, name), os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
        yield Path(made), security


def _folder(name: str, word: str) -> Path:
    place = Path(name).expanduser().absolute()
    if not place.is_dir():
        raise InputError(f"{word} of the cluster's file: there is no folder {place}.")
    return place


@contextmanager
def _log(mpi: Mpi) -> Iterator[Path]:
    """The file that gets what the launcher and all workers print; kept where a folder for it is named."""
    kept = mpi.log_directory
    if kept is not None:
        Path(kept).expanduser().mkdir(parents=True, exist_ok=True)
    folder = None if kept is None else _folder(kept, "log_directory")
    number, name = tempfile.mkstemp(prefix="workers-", suffix=".log", dir=folder)
    os.close(number)
    try:
        yield Path(name)
    finally:
        if kept is None:
            Path(name).unlink(missing_ok=True)


def _scheduler(mpi: Mpi, security: Any) -> SpecCluster:
    from distributed import Scheduler, SpecCluster

    options: dict[str, Any] = {
        "protocol": "tcp://" if security is None else "tls://",
        "interface": mpi.interface,
        "dashboard_address": "127.0.0.1:0",  # it asks nobody for a key
        "security": security,
    }
    try:
        return SpecCluster(
            scheduler={"cls": Scheduler, "options": options}, security=security, silence_logs=logging.CRITICAL
        )
    except Exception as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise ClusterError(
            f"the scheduler did not start: {reason}. `interface` in the cluster's file must be a network of this "
            f"machine, as `ip link` names it."
        ) from error


def _options(mpi: Mpi, keys: Path | None) -> list[str]:
    """Of `dask worker`, under its own names."""
    given = {
        "nthreads": mpi.threads or THREADS,
        "memory-limit": mpi.memory_limit,
        "interface": mpi.interface,
        "local-directory": mpi.local_directory,
        "death-timeout": LONE,
        "dashboard-address": "127.0.0.1:0",
        **({} if keys is None else {name: keys / name for name in KEYS}),
    }
    return ["--no-dashboard", *(f"--{word}={value}" for word, value in given.items() if value is not None)]


@contextmanager
def _launched(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The launcher, in a session of its own, so that Ctrl-C reaches this process alone; ended with the `with`."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        yield process
    finally:
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, sign)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)


def _end(cluster: SpecCluster, process: subprocess.Popen[bytes]) -> None:
    """End scheduler and workers, and give the launcher time to see its ranks end well."""
    with quiet(), suppress(subprocess.TimeoutExpired):
        cluster.close(timeout=PATIENCE)
        process.wait(PATIENCE)


def _wait(cluster: SpecCluster, mpi: Mpi, launcher: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the first worker is there."""
    seconds = mpi.wait or WAIT
    end = time.monotonic() + seconds
    while not cluster.scheduler.workers:
        if process.poll() is not None:
            raise ClusterError(f"no worker came. {_ended(launcher, process, log)}")
        if time.monotonic() > end:
            raise ClusterError(
                f"no worker came within {seconds} s, though the launcher {launcher} is at work{_said(log)}. The "
                f"nodes must reach this machine over `interface` in the cluster's file; `wait` gives more time."
            )
        time.sleep(PULSE)


def _ended(launcher: str, process: subprocess.Popen[bytes], log: Path) -> str:
    return f"The launcher {launcher} ended with status {process.returncode}{_said(log)}."


def _said(log: Path) -> str:
    """The last lines of the launcher's output, in one."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    text = " / ".join([line for line in lines if line.strip("- ")][-TAIL:])
    return f" and said: {text[-LONGEST:].rstrip('.')}" if text else " and said nothing"
