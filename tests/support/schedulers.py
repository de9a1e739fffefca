"""A scheduler and its workers on this machine, each a process that dask's own commands start, as an operator does."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

import dask_uncert as du

DASK = [sys.executable, "-m", "dask"]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def scheduler(
    folder: Path,
    *,
    workers: int = 2,
    threads: int = 2,
    nanny: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Its address, and the processes: the scheduler's, then the workers' or their nannies'."""
    address = f"tcp://127.0.0.1:{free_port()}"
    at = [
        "--host",
        "127.0.0.1",
        "--nthreads",
        str(threads),
        "--no-dashboard",
        "--local-directory",
        str(folder),
    ]
    worker = [*DASK, "worker", address, *at, *([] if nanny else ["--no-nanny"])]
    started = [[*DASK, "scheduler", "--host", address, "--no-dashboard"], *[worker] * workers]
    with (folder / "cluster.txt").open("w") as log:
        words = {"cwd": folder, "stdout": log, "stderr": log, "env": environment}
        running = [subprocess.Popen(one, **words) for one in started]
        try:
            with du.connect(address, timeout=60) as client:
                client.wait_for_workers(workers, timeout=60)
            yield address, running
        finally:
            for processes in (running[1:], running[:1]):  # workers end only while there is a scheduler
                for process in processes:
                    process.terminate()
                for process in processes:
                    try:
                        process.wait(20)
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.wait()


def not_connected(error, match, *cluster, **options):
    """Connecting to a cluster ends in an error of one paragraph with this message."""
    with pytest.raises(error, match=match) as caught, du.connect(*cluster, **options):
        pass
    assert "\n" not in str(caught.value)
