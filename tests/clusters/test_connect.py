"""Clusters for real: in this process, in processes of their own, and a scheduler reached by address."""

from __future__ import annotations

import operator
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest
from distributed import Client, Security, get_worker

from dask_uncert.clusters.config import Local, read_cluster
from dask_uncert.clusters.connect import connect, describe, memory_per_thread
from dask_uncert.clusters.memory import PROCESS_BYTES
from dask_uncert.clusters.monitor import progress
from dask_uncert.errors import ClusterError, InputError
from tests.support import ROOT, schedulers
from tests.support.schedulers import not_connected

PAUSE = lambda n: (time.sleep(0.002), n)[1]  # noqa: E731  pickled by value: workers cannot import tests


def listening(process: psutil.Process) -> set[str]:
    return {c.laddr.ip for c in process.net_connections() if c.status == psutil.CONN_LISTEN}


def children() -> list[psutil.Process]:
    """Processes below this one, without the resource tracker that Python keeps once it has spawned."""
    below = psutil.Process().children(recursive=True)
    alive = [process for process in below if process.status() != psutil.STATUS_ZOMBIE]
    return [process for process in alive if "resource_tracker" not in " ".join(process.cmdline())]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler and its worker, each a process started by dask's own commands."""
    folder = tmp_path_factory.mktemp("running")
    with schedulers.scheduler(folder, workers=1, nanny=False) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test runs in an empty folder; files, processes and listeners of ours are gone after it."""
    scratch = tmp_path / "scratch"
    here = tmp_path / "here"
    scratch.mkdir()
    here.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(here)
    before = {process.pid for process in children()}
    ports = len(listening(psutil.Process()))
    yield
    assert {process.pid for process in children()} <= before
    assert len(listening(psutil.Process())) == ports
    assert not list(here.iterdir())
    assert dask.config.get("scheduler", None) is None
    assert not [path for path in scratch.iterdir() if path.name.startswith("dask-uncert-")]


def progress_counts_each_task_once(client: Any) -> None:
    for _ in range(2):  # the second count starts at zero
        seen: list[int] = []
        with progress(client, "pause", 200, seen.append):
            futures = client.map(PAUSE, range(200), pure=False, key="pause")
            others = client.map(operator.add, range(50), range(50), pure=False)
            client.gather([*futures, *others])
        assert seen == sorted(set(seen))
        assert seen[0] > 0
        assert seen[-1] == 200
        assert len(seen) < 60
    left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
    assert not [name for name in left if "pause" in name]


def test_local_is_one_process_with_threads_on_loopback() -> None:
    from dask.system import CPU_COUNT

    with connect() as client:
        (worker,) = client.scheduler_info()["workers"].values()
        assert worker["nthreads"] == CPU_COUNT
        assert client.submit(os.getpid, pure=False).result() == os.getpid()
        assert listening(psutil.Process()) <= {"127.0.0.1"}
        assert client.scheduler.address.startswith("inproc://")  # no port for dask's protocol at all
        assert Client.current() is client
        assert client.profile()["count"] == 0  # no other thread's frames are looked at
        progress_counts_each_task_once(client)
    assert client.status == "closed"


@pytest.mark.slow
def test_local_processes_listen_on_loopback() -> None:
    with connect(processes=True, workers=2, threads=1, memory_limit="300 MiB") as client:
        workers = client.scheduler_info()["workers"].values()
        assert [worker["nthreads"] for worker in workers] == [1, 1]
        assert {worker["memory_limit"] for worker in workers} == {300 * 2**20}
        assert describe(client) == {"workers": 2, "threads": 2, "memory_bytes": 600 * 2**20}
        assert memory_per_thread(client) == pytest.approx(
            0.7 * 300 * 2**20 - PROCESS_BYTES
        )  # nothing is left for a block
        address = client.scheduler.address
        for other, security in ((address.replace("tls://", "tcp://"), None), (address, Security.temporary())):
            with pytest.raises(OSError, match=r"."):  # who has no key, or one of their own, stays outside
                Client(other, security=security, timeout=5, set_as_default=False)
        used = set(client.run(os.getpid).values())
        assert len(used) == 2
        assert os.getpid() not in used
        assert listening(psutil.Process()) == {"127.0.0.1"}
        for pid in used:
            assert listening(psutil.Process(pid)) == {"127.0.0.1"}
        progress_counts_each_task_once(client)


def test_arguments_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    file.write_text("kind: local\nworkers: 2\nthreads: 1\n")
    with connect(file, threads=3) as client:
        workers = client.scheduler_info()["workers"].values()
        assert [worker["nthreads"] for worker in workers] == [3, 3]


def test_the_dashboard_is_served_only_when_asked_for() -> None:
    from urllib.request import urlopen

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with connect(dashboard=port) as client, urlopen(client.dashboard_link, timeout=10) as page:
        assert client.dashboard_link == f"http://127.0.0.1:{port}/status"
        assert b"Dask" in page.read()


def test_the_file_of_the_repository_is_the_default() -> None:
    assert read_cluster(ROOT / "cluster" / "local.yaml") == Local(processes=False, dashboard=False)


def test_an_existing_client_is_left_open() -> None:
    with connect() as client:
        with connect(client) as same:
            assert same is client
        assert client.submit(operator.add, 1, 2).result() == 3
        not_connected(InputError, "workers describe a local cluster", client, workers=2)


@pytest.mark.slow
def test_a_running_scheduler_is_reached_and_left_running(scheduler: str) -> None:
    for _ in range(2):
        with connect(scheduler) as client:
            assert client.submit(operator.add, 1, 2).result(timeout=20) == 3
            progress_counts_each_task_once(client)


def test_an_address_without_a_scheduler_ends_in_time() -> None:
    with socket.socket() as silent:  # accepts, and never says a word
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        nobody = "tcp://127.0.0.1:1"
        for address in (f"tcp://127.0.0.1:{silent.getsockname()[1]}", nobody):
            begin = time.perf_counter()
            not_connected(ClusterError, f"{address} within 1 s", address, timeout=1)
            assert time.perf_counter() - begin < 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: local\nworker: 2\n", "Unknown key `worker`. Did you mean `workers`\\?"),
        ("kind: local\nworkers: 0\n", "`workers` should be greater than or equal to 1, found 0"),
        ("kind: local\nthreads: 1000000000000\n", "`threads` should be less than or equal to 4096"),
        ("kind: local\nworkers: 1000000000000\n", "`workers` should be less than or equal to 1000000"),
        ("kind: local\nmemory_limit: -4 GiB\n", "such as '4 GiB', from 1 byte to 1 PiB, found '-4 GiB'"),
        ("kind: local\nmemory_limit: 1e300 GiB\n", "such as '4 GiB', from 1 byte to 1 PiB"),
        ("kind: local\nthreads: true\n", "`threads` should be a number, found True"),
        ("kind: local\nprocesses: 3\n", "`processes` should be a valid boolean.* found 3"),
        ("kind: local\nmemory_limit: [4]\n", "`memory_limit` should be a number of bytes, such as '4 GiB'"),
        ("kind: local\ndashboard: ':8787'\n", "`dashboard` should be"),
        ("kind: address\naddress: tcp://localhost\n", "`address` should end with the scheduler's port, such as tcp:"),
        ("kind: moon\n", "must say `kind`, one of local"),
        ("kind: [local\n", "is not valid YAML"),
        ("", "must say `kind`, one of local"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught, connect(file):
        pass
    assert "\n" not in str(caught.value)
    assert "cluster.yaml" in str(caught.value)


def test_wrong_arguments_are_refused() -> None:
    not_connected(InputError, r"no file .*missing\.yaml", "missing.yaml")
    not_connected(InputError, "such as tcp://host:8786", "localhost:8786")
    not_connected(InputError, "found 3", 3)
    not_connected(InputError, "timeout", timeout=0)
    not_connected(InputError, r"connect\(\): `workers` should be greater", workers=-1)
    not_connected(InputError, "such as '4 GiB', found 'lots'", memory_limit="lots")
    not_connected(InputError, "threads describe", "tcp://127.0.0.1:1", threads=2)


def test_progress_reports_while_tasks_run_and_knows_tuple_keys_and_tasks_of_several_blocks() -> None:
    with connect() as client:
        spoken = Path("spoken")

        def advance(n: int) -> None:
            if n == 11:
                spoken.touch()

        def wait(n: int) -> bool:
            end = time.monotonic() + 10
            while n == 9 and not spoken.exists() and time.monotonic() < end:
                time.sleep(0.01)
            return time.monotonic() < end

        graph = {("evaluate-block-token", n): (wait, n) for n in range(10)}
        with progress(client, "evaluate-block", 12, advance, {(0,): 3}):
            assert all(client.get(graph, list(graph)))
        spoken.unlink()


def test_progress_lets_errors_through_and_cleans_up() -> None:
    with connect() as client:
        with pytest.raises(ZeroDivisionError), progress(client, "pause", 10, lambda n: None):
            client.submit(lambda: 1 / 0).result()
        left = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.plugins))
        assert not [name for name in left if "pause" in name]


def test_progress_counts_a_recomputed_task_once() -> None:
    with connect() as client:
        seen: list[int] = []
        with progress(client, "pause", 2, seen.append):
            for _ in range(3):
                client.submit(PAUSE, 1, key="pause-once").result()  # released, hence computed again
                time.sleep(0.05)
        assert seen[-1] == 1


def test_the_client_is_the_one_dask_uses() -> None:
    where = dask.delayed(lambda: get_worker().scheduler.address)  # get_client there would change dask's config
    own = Client(processes=False, set_as_default=False, dashboard_address="127.0.0.1:0")
    with own, own.cluster, connect() as client:
        assert where().compute() == client.scheduler.address
        with connect(own):
            assert where().compute() == own.scheduler.address
        assert where().compute() == client.scheduler.address


@pytest.mark.slow
def test_a_performance_report_needs_no_network(tmp_path: Path) -> None:
    import numpy as np
    import yaml

    import dask_uncert as du
    from dask_uncert.reports import write

    np.save(tmp_path / "p.npy", np.full((20, 20), 0.7))
    np.save(tmp_path / "y.npy", np.ones((20, 20), "u1"))
    inputs = {
        name: {"store": f"{name[0] if name != 'reference' else 'y'}.npy", "dims": ["y", "x"]}
        for name in ("probabilities", "reference")
    }
    job = {"version": 1, "kind": "scene", "classes": {0: "a", 1: "b"}, "output": "out", "inputs": inputs}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "figures_and_page", lambda *arguments: {})
        du.run(tmp_path / "job.yaml", performance_report=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "evaluate-block" in page
    assert '<script src="http' not in page


SCRIPT = """
print("once")
import dask_uncert as du

def twice(n):
    return 2 * n

with du.connect(processes=True, workers=2, threads=1) as client:
    print(client.gather(client.map(twice, range(3))), __spec__)
print(__spec__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["file", "standard input", "module"])
def test_a_script_without_a_main_guard_starts_processes(tmp_path, way):
    (tmp_path / "script.py").write_text(SCRIPT)
    words = {"file": ["script.py"], "standard input": ["-"], "module": ["-m", "script"]}[way]
    text = SCRIPT if way == "standard input" else None
    command = [sys.executable, *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    once, values, after = done.stdout.splitlines()
    assert (once, values[:9]) == ("once", "[0, 2, 4]")
    assert ("name='script'" in after) == (way == "module")
    assert done.stderr == ""
