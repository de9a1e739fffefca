"""Nothing waits for ever: a scheduler that is gone, or workers that never come back, end a scene's run with words."""

from __future__ import annotations

import os
import signal
import threading
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import dask
import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.errors import ClusterError, InputError
from dask_uncert.watching import logged

spec = spec_from_file_location("scheduler_here", Path(__file__).with_name("scheduler_here.py"))
scheduler_here = module_from_spec(spec)
spec.loader.exec_module(scheduler_here)


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
    with scheduler_here.scheduler(tmp_path, workers=1, threads=1, nanny=False) as (address, processes):
        yield address, *processes


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


@pytest.mark.slow
def test_what_workers_warned_of_is_left_by_a_run_that_fails(tmp_path):
    with (
        scheduler_here.scheduler(tmp_path, workers=1, threads=1) as (address, _),
        du.connect(address) as client,
    ):
        (process,) = client.run(os.getpid).values()
        os.kill(process, signal.SIGKILL)
        while client.run(os.getpid, on_error="ignore").values() in ([], [process]):
            time.sleep(0.1)
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(ZeroDivisionError), logged(client, tmp_path / "kept"):
            _ = 1 / 0
        said = (tmp_path / "kept" / "workers.log").read_text()
        with pytest.raises(InputError), logged(client, tmp_path / "refused"):
            raise InputError("a wrong request")
    assert "=== nanny tcp://127.0.0.1:" in said
    assert "Restarting worker" in said
    assert not (tmp_path / "refused").exists()
