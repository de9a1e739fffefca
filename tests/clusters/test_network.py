"""Hosts of their own for scheduler, workers and command: cables cut, workers frozen, anything killed; the same bits."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest

import dask_uncert as du
from tests.support import networks, scenes

BLOCKS = 120  # of one chunk each, in 64 groups
THREADS = 1  # of each of the two workers
QUEUED = 1  # tasks that the scheduler sends a worker beyond its threads
SHARE = 0.05  # of the blocks that may be computed again beside what was in flight
TRACED = """
import os, time
from dask_uncert.execution import tasks as block_tasks


def dask_setup(worker):
    whole = block_tasks.EvaluateBlock.__call__

    def traced(self, arrays, offset):
        begin = time.time()
        time.sleep(0.05)
        found = whole(self, arrays, offset)
        with open(os.environ["TRACE"], "a") as file:
            file.write(f"{offset} {begin} {time.time()}\\n")
        return found

    block_tasks.EvaluateBlock.__call__ = traced
"""
"""What workers load first: a block takes a while, as those of real scenes do, and leaves a line when it is done."""
QUICK = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s",
    "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "6s",
    "DASK_DASK_UNCERT__PATIENCE": "10",
}
"""As cluster/README.md says for clusters that should notice soon."""
LIMIT = 90  # seconds that a run may take, whatever happens to it
FAULTS = ("worker", "nanny", "scheduler", "client", "cable", "frozen")
pytestmark = pytest.mark.needs("root", "ip")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A scene of many blocks, and its evaluation on this machine."""
    scene = scenes.Scene(tmp_path_factory.mktemp("job"))
    return scene.job, scene.wanted()


class Cluster:
    """A scheduler, two workers under nannies and commands, each on a host of its own."""

    def __init__(self, net, folder):
        self.net, self.folder = net, folder
        self.address = f"tcp://{net.address('sched')}:8786"
        self.log = (folder / "cluster.txt").open("a")
        self.trace, self.preload = folder / "trace.txt", folder / "traced.py"
        self.preload.write_text(TRACED)
        self.scheduler = self.workers = None

    def up(self):
        environment = {**os.environ, **QUICK, "TRACE": str(self.trace)}
        words = {"env": environment, "cwd": self.folder, "stdout": self.log, "stderr": self.log}
        dask = (sys.executable, "-m", "dask")
        at = ("--host", self.net.address("sched"), "--port", "8786", "--no-dashboard")
        self.scheduler = self.net.run("sched", *dask, "scheduler", *at, **words)
        more = ("--nthreads", str(THREADS), "--no-dashboard", "--local-directory", str(self.folder))
        more += ("--preload", str(self.preload))
        self.workers = {
            name: self.net.run(name, *dask, "worker", self.address, "--host", self.net.address(name), *more, **words)
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
        words = scenes.command(job, out, "--cluster", self.address, many=BLOCKS)
        return self.net.run("cli", *words, env={**os.environ, **QUICK}, stderr=subprocess.PIPE, text=True)

    def again(self, struck):
        """Blocks that were done at a moment and were computed once more after it: what was in flight is not of these."""
        done = {}
        for line in self.trace.read_text().splitlines():
            offset, begin, end = line.rsplit(" ", 2)
            done.setdefault(offset, []).append((float(begin), float(end)))
        assert len(done) == BLOCKS
        times = done.values()
        return sum(min(e for _, e in one) < struck and max(b for b, _ in one) > struck for one in times)

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


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_the_bits_are_the_same(job, tmp_path, seed, record_property):
    fault, rng = FAULTS[seed % len(FAULTS)], random.Random(seed)
    with networks.network() as net:
        cluster, out = Cluster(net, tmp_path), tmp_path / "out"
        cluster.up()
        cluster.wait_for_workers()
        kept, start = tmp_path / "out.blocks", time.monotonic()
        command = cluster.command(job[0], out)
        many = rng.randint(0, 60)
        while len(scenes.finished(kept)) < many and command.poll() is None:
            time.sleep(0.005)
        struck = time.time()
        cluster.strike(fault, command)
        status = command.wait(LIMIT)
        message = command.stderr.read()
        assert time.monotonic() - start < LIMIT
        if status:
            assert fault in ("client", "scheduler", "cable", "frozen"), message
            done = len(scenes.finished(kept))
            net.cable("w1", whole=True)
            cluster.down()
            cluster.up()
            cluster.wait_for_workers()
            again = cluster.command(job[0], out)
            assert again.wait(LIMIT) == 0, again.stderr.read()
        found = scenes.record(out)
        assert found["blocks"] == BLOCKS
        if status:
            assert found["blocks_computed"] <= BLOCKS - done
            assert found["blocks_computed_again"] == 0
        again = cluster.again(struck)
        record_property("measured", f"{fault} after {many} groups: {again} blocks again, {status=}")
        assert again <= SHARE * BLOCKS
        # The scheduler counts what it heard of: not the last results of a worker that was lost.
        assert found["blocks_computed_again"] <= again + THREADS + QUEUED
        assert du.load(out) == job[1]
        assert not kept.exists()
        cluster.down()


def test_hosts_are_apart():
    with networks.network() as net, socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        script = f"import socket; socket.create_connection(('127.0.0.1', {here.getsockname()[1]}), timeout=2)"
        assert net.run("w1", sys.executable, "-c", script, stderr=subprocess.DEVNULL).wait(20) != 0
