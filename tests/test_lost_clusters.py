"""Nothing waits for ever: a scheduler that is gone, or workers that never come back, end a scene's run with words."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time

import dask
import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.errors import ClusterError


@pytest.fixture
def job(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random((900, 800, 6), dtype="f4")
    np.save(tmp_path / "p.npy", p / p.sum(axis=-1, keepdims=True))
    np.save(tmp_path / "y.npy", rng.integers(0, 6, (900, 800)).astype("u1"))
    words = {
        "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(6)}, "output": "out", "measures": ["entropy"],
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.npy", "dims": ["y", "x"]},
        },
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(words))
    return tmp_path / "job.yaml"


@pytest.fixture
def cluster(tmp_path):
    """Address, scheduler and worker without a nanny, whose kernels are cold: a block takes a while."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "dask"]
    words = [
        [*dask, "scheduler", "--host", address, "--no-dashboard"],
        [*dask, "worker", address, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--no-dashboard"],
    ]
    with (tmp_path / "log").open("w") as log:
        running = [subprocess.Popen(one, cwd=tmp_path, stdout=log, stderr=log) for one in words]
        with du.connect(address, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
        yield address, *running
        for process in reversed(running):
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(("which", "said"), [(1, "no worker for"), (0, "scheduler was lost|no worker for")])
def test_a_cluster_that_is_lost_ends_the_run_in_time(job, cluster, which, said):
    address, *processes = cluster
    over = threading.Event()

    def kill():
        """Once a block is done."""
        while not over.is_set() and not list(job.parent.glob("out.blocks/*.case")):
            time.sleep(0.002)
        processes[which].send_signal(signal.SIGKILL)

    start = time.monotonic()
    threading.Thread(target=kill, daemon=True).start()
    with (
        dask.config.set({"dask-uncert.patience": 6}),
        pytest.raises(ClusterError, match=f"({said}).* what was finished is kept"),
    ):
        du.run(job, cluster=address)
    over.set()
    assert time.monotonic() - start < 100
    assert not (job.parent / "out").exists()
    assert list(job.parent.glob("out.blocks/*.case"))
    du.run(job)
    assert (job.parent / "out" / "run.json").exists()
