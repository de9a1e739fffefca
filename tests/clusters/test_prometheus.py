"""What Prometheus may ask of a running scheduler: its workers, and the tasks of a run by their names."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

import numpy as np
import pytest
import yaml

import dask_uncert as du
from tests.support import ROOT


@pytest.fixture
def watched(tmp_path):
    """The addresses of a scheduler and of its HTTP server; a worker is there."""
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    address, page = f"tcp://127.0.0.1:{ports[0]}", f"127.0.0.1:{ports[1]}"
    dask = [sys.executable, "-m", "dask"]
    started = [
        [*dask, "scheduler", "--host", address, "--dashboard-address", page],
        [*dask, "worker", address, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1", "--no-dashboard"],
    ]
    with (tmp_path / "log.txt").open("w") as log:
        running = [subprocess.Popen(words, cwd=tmp_path, stdout=log, stderr=log) for words in started]
        try:
            yield address, f"http://{page}"
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(20)


def metrics(page):
    """Numbers by name and labels, as Prometheus would read them."""
    with urlopen(f"{page}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))


@pytest.mark.slow
def test_prometheus_sees_workers_and_the_tasks_of_a_run(watched, tmp_path, without_pictures):
    address, page = watched
    p = np.full((60, 40), 0.7)
    np.save(tmp_path / "p.npy", p)
    np.save(tmp_path / "y.npy", np.ones(p.shape, "u1"))
    inputs = {
        name: {"store": file, "dims": ["y", "x"]} for name, file in (("probabilities", "p.npy"), ("reference", "y.npy"))
    }
    words = {
        "version": 1,
        "kind": "scene",
        "classes": {0: "a", 1: "b"},
        "output": "out",
        "inputs": inputs,
        "maps": ["correct"],
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(words))
    with du.connect(address, timeout=60) as client:
        client.wait_for_workers(1, timeout=60)
        du.run(tmp_path / "job.yaml", cluster=client)
        workers = {name: float(n) for name, n in metrics(page).items() if name.startswith("dask_scheduler_workers{")}
        assert sum(workers.values()) == 1
    blocks = yaml.safe_load((tmp_path / "out" / "run.json").read_text())["blocks"]
    done = 'dask_scheduler_prefix_state_totals_total{state="memory",task_prefix_name="evaluate-block-write-map"}'
    end = time.monotonic() + 20
    while float(metrics(page).get(done, 0)) != blocks and time.monotonic() < end:
        time.sleep(0.1)
    assert float(metrics(page)[done]) == blocks
    with urlopen(f"{page}/status", timeout=10) as answer:
        assert answer.status == 200


def test_the_names_of_tasks_in_the_readme_are_those_in_use():
    text = (ROOT / "cluster" / "README.md").read_text(encoding="utf-8")
    monitoring = text.split("## Monitoring")[1].split("\n## ")[0]
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", monitoring)) - {"dask-uncert"}
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "dask_uncert").rglob("*.py"))
    assert {"evaluate-block", "merge-summaries", "evaluate-case"} <= named
    assert not [name for name in named if name not in source]
