"""A real mpirun: the bits of this machine, also when a worker is killed; what ends early is said, and nothing stays."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import dask
import psutil
import pytest
import yaml
from distributed import Client, Security

import dask_uncert as du
from dask_uncert.clusters.config import Mpi, read_cluster
from dask_uncert.errors import ClusterError, InputError
from dask_uncert.jobs.submit import submit
from tests.support import cohorts
from tests.support.schedulers import not_connected

real = pytest.mark.needs("mpirun")
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", 2]


@pytest.fixture
def described(tmp_path, monkeypatch):
    """A file that describes two workers of one thread, in an empty folder; no process of ours is left after the test."""
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")  # tests run as root in a container
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def write(**words):
        place = tmp_path / "mpi.yaml"
        given = {"launcher": MPIRUN, "memory_limit": "1 GiB", "interface": "lo", "wait": 60, **words}
        given |= {"local_directory": str(tmp_path), "log_directory": str(tmp_path / "logs")}
        place.write_text(yaml.safe_dump({"kind": "mpi", **given}))
        return place

    yield write
    end = time.monotonic() + 90  # a worker that never reached its scheduler gives up after 60 s
    while (left := of_workers(tmp_path)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left
    assert not list((tmp_path / "here").iterdir())  # keys


def of_workers(tmp_path):
    """Processes of a launcher and its ranks, told by the folder of theirs that a test names."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if any(str(tmp_path) in word for word in words if word.startswith("--local-directory")):
            found.append(process)
    return [one for one in found if one.info["status"] != psutil.STATUS_ZOMBIE]


@real
def test_the_command_on_mpi_gives_the_bits_of_this_machine(described, long_job, tmp_path):
    job, expected = long_job
    command = [Path(sys.executable).with_name("dask-uncert"), "run", job, "--cluster", described()]
    done = subprocess.run(
        [*map(str, command), "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert du.load(tmp_path / "out") == expected
    assert "Traceback" not in done.stderr
    (log,) = (tmp_path / "logs").iterdir()
    assert "Start worker" in log.read_text()


@real
def test_a_worker_that_is_killed_changes_nothing(described, long_job, tmp_path, without_pictures):
    job, expected = long_job
    with du.connect(described()) as client:
        client.wait_for_workers(2, timeout=60)
        before = set(client.run(os.getpid).values())
        killed = []

        def report(what, done, total):
            if what == "evaluate" and 0 < done < total and not killed:
                killed.append(min(before))
                os.kill(min(before), signal.SIGKILL)

        assert du.run(job, cluster=client, out=tmp_path / "out", progress=report) == expected
        assert killed
        client.wait_for_workers(2, timeout=60)  # its nanny has started another
        after = set(client.run(os.getpid).values())
        assert len(after) == 2
        assert killed[0] not in after


@real
def test_a_client_without_the_keys_is_refused(described, tmp_path):
    with du.connect(described(threads=2)) as client:
        address = client.scheduler.address
        workers = client.scheduler_info()["workers"]
        assert all(one.startswith("tls://") for one in [address, *workers])
        assert {(one["nthreads"], one["memory_limit"]) for one in workers.values()} == {(2, 2**30)}
        for other, security in ((address.replace("tls://", "tcp://"), None), (address, Security.temporary())):
            with pytest.raises(OSError, match=r"."):
                Client(other, security=security, timeout=5, set_as_default=False)
        (folder,) = (tmp_path / "here").iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()} == {0o600}
        assert len(list(folder.iterdir())) == 3


@real
def test_without_tls_and_with_an_error_inside(described, tmp_path):
    seen = []

    def inside():
        with du.connect(described(tls=False)) as client:
            seen.extend([client.scheduler.address, *(tmp_path / "here").iterdir()])
            client.submit(lambda: 1 / 0).result(timeout=30)

    with pytest.raises(ZeroDivisionError):
        inside()
    assert len(seen) == 1
    assert seen[0].startswith("tcp://")


@real
def test_workers_end_with_a_command_that_is_killed(described, tmp_path):
    (tmp_path / "keys").mkdir()
    file = described(shared_folder=str(tmp_path / "keys"))
    code = f"import dask_uncert as du, time\nwith du.connect({str(file)!r}): print(1, flush=True), time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"
        assert of_workers(tmp_path)
        process.kill()  # the fixture waits for its workers' end


@real
def test_a_launcher_that_ends_during_a_run_is_reported(described, long_job, tmp_path, without_pictures):
    def report(what, done, total):
        if what == "evaluate" and 0 < done < total:
            for launcher in of_workers(tmp_path):
                if launcher.name() == "mpirun":
                    for one in launcher.children(recursive=True):
                        one.kill()

    with (
        dask.config.set({"dask-uncert.patience": 6}),
        pytest.raises(ClusterError, match=r"no worker for .*The launcher mpirun ended with status [1-9]"),
    ):
        du.run(long_job[0], cluster=described(), out=tmp_path / "out", progress=report)
    assert not (tmp_path / "out").exists()


@real
def test_the_launchers_own_error_is_repeated(described):
    not_connected(
        ClusterError,
        r"no worker came\. The launcher mpirun ended with .* printed: .*nonsense",
        described(launcher="mpirun --nonsense"),
    )


@pytest.mark.needs("sh", "false")
def test_a_launcher_that_fails_or_starts_no_worker_is_reported(described):
    start = time.monotonic()
    for launcher, message in (
        ("false", "no worker came. The launcher false ended with status 1 and printed nothing."),
        (["sh", "-c", "echo one; echo two >&2; exit 3"], "ended with status 3 and printed: one / two."),
        (
            ["sh", "-c", "echo here; sleep 600 & wait"],
            "no worker came within 2 s.* is running and printed: here. The",
        ),
        ("nothing_of_the_kind -n 4", "the launcher nothing_of_the_kind is not on this machine's PATH"),
    ):
        not_connected(ClusterError, message, described(launcher=launcher, wait=2))
    assert time.monotonic() - start < 20
    not_connected(ClusterError, r"the scheduler did not start: .*moon0", described(interface="moon0"))
    not_connected(InputError, r"shared_folder .* no folder /nowhere", described(shared_folder="/nowhere"))


def test_options_of_a_file(tmp_path):
    place = tmp_path / "mpi.yaml"

    def read(text):
        place.write_text(f"kind: mpi\n{text}")
        return read_cluster(place)

    assert read("launcher: [mpirun, -n, 4]\nthreads: 8") == Mpi(launcher=["mpirun", "-n", 4], threads=8)
    assert read("launcher: srun\nmemory_limit: 4 GiB") == Mpi(launcher="srun", memory_limit="4 GiB")
    for text, message in (
        ("launcher: []", "`launcher` is empty"),
        ("launcher: [mpirun, [4]]", r"`launcher\.1` should be"),
        ("launcher: [mpirun, true]", r"`launcher\.1` should be"),
        ("ranks: 4", "Unknown key `ranks`. Known keys: kind, launcher, threads, memory_limit"),
        ("interface: 3", "`interface` should be a valid string, found 3"),
        ("shared_folder: ''", "`shared_folder` is empty"),
    ):
        with pytest.raises(InputError, match=message):
            read(text)


def test_a_submitted_job_does_not_use_an_allocation(described, tmp_path):
    job = cohorts.Cohort(tmp_path, ["A"]).job()
    with pytest.raises(InputError, match="works inside an allocation"):
        submit(job, cluster=str(described()), out=tmp_path / "out")
