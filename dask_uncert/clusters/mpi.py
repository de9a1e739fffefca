"""Workers started as MPI ranks: by mpirun, mpiexec or srun, inside a batch script.

Each rank is one `dask worker` with a nanny that restarts it when it dies. So the launcher never sees a worker die, after
which mpirun would end all ranks. No MPI library is needed, because workers use dask's own protocol.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters.config import Mpi
from dask_uncert.clusters.monitor import quiet, wait_for_worker
from dask_uncert.errors import ClusterError, InputError, one_line

if TYPE_CHECKING:
    from distributed import Client, SpecCluster

LAUNCHER, THREADS, WAIT = "mpirun", 1, 120
POLL_SECONDS = 0.2  # between checks whether a worker has come
PATIENCE = 10  # seconds that the launcher may take to end: first when its workers end, then after SIGTERM
DEATH_TIMEOUT = 60  # seconds after which a worker without a scheduler ends
MAX_LINES, MAX_LETTERS = 5, 600  # of the launcher's output that an error repeats
KEYS = ("tls-ca-file", "tls-cert", "tls-key")


@contextmanager
def start(mpi: Mpi) -> Iterator[Client]:
    """Yield a Client of a scheduler in this process, with a worker in every rank; all end with the `with`.

    Raises InputError for a missing folder, ClusterError if the launcher is missing or ends, or no worker comes in time;
    it repeats the launcher's last output.
    """
    launcher = mpi.launcher or LAUNCHER
    command = shlex.split(launcher) if isinstance(launcher, str) else list(map(str, launcher))
    if shutil.which(command[0]) is None:
        raise ClusterError(
            f"the launcher {command[0]} is not on this machine's PATH. Run the command inside an allocation, after "
            f"`module load` of its MPI, or name another `launcher` in the cluster's file."
        )
    with ExitStack() as stack:
        keys, security = stack.enter_context(_keys(mpi))
        log = stack.enter_context(_log(mpi))
        cluster = _scheduler(mpi, security)
        stack.callback(cluster.close, timeout=PATIENCE)
        worker = [sys.executable, "-m", "dask", "worker", cluster.scheduler_address, *_options(mpi, keys)]
        process = stack.enter_context(_launched([*command, *worker], log))

        def has_worker() -> bool:
            if not cluster.scheduler.workers and process.poll() is not None:
                raise ClusterError(f"no worker came. {_ended(command[0], process, log)}")
            return bool(cluster.scheduler.workers)

        def hint() -> str:
            return (
                f", though the launcher {command[0]} is running{_last_output(log)}. The nodes must reach this machine over "
                f"`interface` in the cluster's file; `wait` gives more time."
            )

        wait_for_worker(has_worker, mpi.wait or WAIT, hint, POLL_SECONDS)
        stack.callback(_end, cluster, process)
        from distributed import Client

        client = stack.enter_context(Client(cluster))
        try:
            yield client
        except ClusterError as error:
            if process.poll() is None:
                raise
            raise ClusterError(f"{error} {_ended(command[0], process, log)}") from error


@contextmanager
def _keys(mpi: Mpi) -> Iterator[tuple[Path | None, Any]]:
    """Yield a folder with the keys of this run, which only this user can enter, and the Security made of them."""
    if mpi.tls is False:
        yield None, None
        return
    from distributed import Security

    security = Security.temporary()
    texts = security.get_tls_config_for_role("worker")
    shared = Path(mpi.shared_folder or ".").expanduser().absolute()
    if not shared.is_dir():
        raise InputError(f"shared_folder of the cluster's file: there is no folder {shared}.")
    with tempfile.TemporaryDirectory(prefix=".dask-uncert-", dir=shared) as folder:
        for name, text in zip(KEYS, (texts["ca_file"], texts["cert"], texts["key"]), strict=True):
            with open(os.open(Path(folder, name), os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
        yield Path(folder), security


@contextmanager
def _log(mpi: Mpi) -> Iterator[Path]:
    """Yield the file with the output of the launcher and all workers; it is kept if `log_directory` is set."""
    folder = None if mpi.log_directory is None else Path(mpi.log_directory).expanduser().absolute()
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix="workers-", suffix=".log", dir=folder)
    os.close(number)
    try:
        yield Path(name)
    finally:
        if folder is None:
            Path(name).unlink(missing_ok=True)


def _scheduler(mpi: Mpi, security: Any) -> SpecCluster:
    from distributed import Scheduler, SpecCluster

    options: dict[str, Any] = {
        "protocol": "tcp://" if security is None else "tls://",
        "interface": mpi.interface,
        "dashboard_address": "127.0.0.1:0",  # it is not protected by keys
        "security": security,
    }
    scheduler = {"cls": Scheduler, "options": options}
    try:
        return SpecCluster(scheduler=scheduler, security=security, silence_logs=logging.CRITICAL)
    except Exception as error:
        raise ClusterError(
            f"the scheduler did not start: {one_line(error.__cause__ or error)}. `interface` in the cluster's file "
            f"must be a network of this machine, as `ip link` lists it."
        ) from error


def _options(mpi: Mpi, keys: Path | None) -> list[str]:
    options = {
        "nthreads": mpi.threads or THREADS,
        "memory-limit": mpi.memory_limit,
        "interface": mpi.interface,
        "local-directory": mpi.local_directory,
        "death-timeout": DEATH_TIMEOUT,
        "dashboard-address": "127.0.0.1:0",
        **({} if keys is None else {name: keys / name for name in KEYS}),
    }
    return ["--no-dashboard", *(f"--{key}={value}" for key, value in options.items() if value is not None)]


@contextmanager
def _launched(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the launcher in its own session, so that Ctrl-C reaches only this process; end it with the `with`."""
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True)
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(PATIENCE)


def _end(cluster: SpecCluster, process: subprocess.Popen[bytes]) -> None:
    """End scheduler and workers, and give the launcher time to end with them."""
    with quiet(), suppress(subprocess.TimeoutExpired):
        cluster.close(timeout=PATIENCE)
        process.wait(PATIENCE)


def _ended(launcher: str, process: subprocess.Popen[bytes], log: Path) -> str:
    return f"The launcher {launcher} ended with status {process.returncode}{_last_output(log)}."


def _last_output(log: Path) -> str:
    """Return the last lines of the launcher's output, joined, to end a sentence."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    text = " / ".join([line for line in lines if line.strip("- ")][-MAX_LINES:])
    return f" and printed: {text[-MAX_LETTERS:].rstrip('.')}" if text else " and printed nothing"
