"""Hosts of their own for scheduler, workers and command: cables cut, workers frozen, anything killed; the same bits."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import yaml
import zarr

import dask_uncert as du

spec = spec_from_file_location("network_here", Path(__file__).with_name("network_here.py"))
network_here = module_from_spec(spec)
spec.loader.exec_module(network_here)
QUIET = (
    "from dask_uncert.reports import write; write.drawings = lambda *a: {}; write.write_figures = lambda *a: []; "
    "write.write_report = lambda *a: None; from dask_uncert.cli import main; main()"
)
QUICK = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "6s",
    "DASK_DASK_UNCERT__PATIENCE": "10",
}
"""As cluster/README.md says for clusters that should notice soon."""
LIMIT = 90  # seconds that a run may take, whatever happens to it
FAULTS = ("worker", "nanny", "scheduler", "client", "cable", "frozen")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not network_here.possible(), reason="this machine does not let us make network namespaces"
    ),
]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A scene of many blocks, and its evaluation on this machine."""
    folder = tmp_path_factory.mktemp("job")
    rng = np.random.default_rng(0)
    p = rng.random((1200, 1000, 6), dtype="f4")
    p /= p.sum(axis=-1, keepdims=True)
    y = rng.integers(0, 6, (1200, 1000)).astype("u1")
    group = zarr.open_group(folder / "s.zarr", mode="w")
    for name, values, dims in (("p", p, ("y", "x", "class")), ("y", y, ("y", "x"))):
        chunks = (100, 100, *values.shape[2:])
        group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype, dimension_names=dims)[
            ...
        ] = values
    words = {
        "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(6)}, "output": "out", "measures": ["entropy", "gini"],
        "inputs": {"probabilities": {"store": "s.zarr", "array": "p"}, "reference": {"store": "s.zarr", "array": "y"}},
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(words))
    wanted = du.evaluate(p, y, classes=[str(i) for i in range(6)], measures=["entropy", "gini"])
    return folder / "job.yaml", wanted


class Cluster:
    """A scheduler, two workers under nannies and commands, each on a host of its own."""

    def __init__(self, net, folder):
        self.net, self.folder = net, folder
        self.address = f"tcp://{net.address('sched')}:8786"
        self.log = (folder / "cluster.txt").open("a")
        self.scheduler = self.workers = None

    def up(self):
        words = {"env": {**os.environ, **QUICK}, "cwd": self.folder, "stdout": self.log, "stderr": self.log}
        dask = (sys.executable, "-m", "dask")
        at = ("--host", self.net.address("sched"), "--port", "8786", "--no-dashboard")
        self.scheduler = self.net.run("sched", *dask, "scheduler", *at, **words)
        more = ("--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder))
        self.workers = {
            name: self.net.run(
                name, *dask, "worker", self.address, "--host", self.net.address(name), *more, **words
            )
            for name in ("w1", "w2")
        }

    def down(self):
        for name in ("w1", "w2", "sched"):
            for process in self.net.processes(name):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        for process in (self.scheduler, *self.workers.values()):
            process.wait(20)

    def command(self, job, out):
        words = (
            sys.executable,
            "-c",
            QUIET,
            "run",
            str(job),
            "--cluster",
            self.address,
            "--out",
            str(out),
            "--quiet",
        )
        return self.net.run("cli", *words, env={**os.environ, **QUICK}, stderr=subprocess.PIPE, text=True)

    def wait_for_workers(self):
        script = f"from distributed import Client; c = Client({self.address!r}, timeout=30); c.wait_for_workers(2, timeout=60); c.close()"
        done = self.net.run("cli", sys.executable, "-c", script, stderr=subprocess.DEVNULL)
        assert done.wait(90) == 0

    def strike(self, fault, command):
        """Do one bad thing."""
        name = "w1"
        if fault == "client":
            command.kill()
        elif fault == "scheduler":
            self.scheduler.kill()
        elif fault == "cable":
            self.net.cable(name, whole=False)
        else:
            nanny = self.workers[name].pid
            below = [process for process in self.net.processes(name) if process != nanny]
            which = signal.SIGSTOP if fault == "frozen" else signal.SIGKILL
            for process in (nanny, *below) if fault == "nanny" else below:
                with suppress(ProcessLookupError):
                    os.kill(process, which)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_the_bits_are_the_same(job, tmp_path, seed):
    fault, rng = FAULTS[seed % len(FAULTS)], random.Random(seed)
    with network_here.network() as net:
        cluster, out = Cluster(net, tmp_path), tmp_path / "out"
        cluster.up()
        cluster.wait_for_workers()
        kept, start = tmp_path / "out.blocks", time.monotonic()
        command = cluster.command(job[0], out)
        many = rng.randint(0, 10)
        while len(list(kept.glob("*.case"))) < many and command.poll() is None:
            time.sleep(0.005)
        cluster.strike(fault, command)
        status = command.wait(LIMIT)
        said = command.stderr.read()
        assert time.monotonic() - start < LIMIT
        if status:
            assert fault in ("client", "scheduler", "cable", "frozen"), said
            done = len(list(kept.glob("*.case")))
            net.cable("w1", whole=True)
            cluster.down()
            cluster.up()
            cluster.wait_for_workers()
            again = cluster.command(job[0], out)
            assert again.wait(LIMIT) == 0, again.stderr.read()
            record = json.loads((out / "run.json").read_text())
            assert record["blocks_computed"] <= record["blocks"] - done
        assert du.load(out) == job[1]
        assert not kept.exists()
        cluster.down()


def test_hosts_are_apart():
    with network_here.network() as net, socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        script = f"import socket; socket.create_connection(('127.0.0.1', {here.getsockname()[1]}), timeout=2)"
        assert net.run("w1", sys.executable, "-c", script, stderr=subprocess.DEVNULL).wait(20) != 0
