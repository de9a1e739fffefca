"""A real SLURM: the run of this machine, bit for bit; a cancelled job, a refused one, workers that never come."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import dask
import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.clusters import jobqueue
from dask_uncert.clusters.config import Address, Batch, Local, read_cluster
from dask_uncert.clusters.monitor import watchdog
from dask_uncert.errors import ClusterError, InputError
from tests.support import ROOT, slurm
from tests.support.schedulers import not_connected

real = pytest.mark.needs(*slurm.PROGRAMS)


@pytest.fixture(scope="module")
def environment():
    temporary = tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True)
    with temporary as folder, slurm.slurm(Path(folder)) as found:  # munge wants a folder that all may enter
        yield found


@pytest.fixture
def here(environment, monkeypatch, tmp_path):
    """SLURM's commands work in this process; a file that describes a cluster of two jobs."""
    monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
    monkeypatch.chdir(tmp_path)
    options = {
        "queue": "debug", "cores": 1, "processes": 1, "memory": "1500MB", "walltime": "00:10:00", "interface": "lo",
        "log_directory": str(tmp_path / "logs"), "local_directory": str(tmp_path), "python": sys.executable,
        "scheduler_options": {"interface": "lo"},
    }  # fmt: skip

    def write(**words):
        place = tmp_path / "slurm.yaml"
        merged = {**options, **words.pop("options", {})}
        place.write_text(yaml.safe_dump({"kind": "slurm", "jobs": 2, "wait": 60, "options": merged, **words}))
        return place

    return write


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A scene in many blocks, and its evaluation on this machine."""
    folder = tmp_path_factory.mktemp("job")
    rng = np.random.default_rng(0)
    np.save(folder / "p.npy", rng.dirichlet(np.ones(4), (400, 300)).astype("f4"))
    np.save(folder / "y.npy", rng.integers(0, 4, (400, 300)).astype("u1"))
    words = {
        "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(4)}, "output": "out",
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.npy", "dims": ["y", "x"]},
        },
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(words))
    return folder / "job.yaml", du.run(folder / "job.yaml")


@real
def test_the_command_on_slurm_gives_the_bits_of_this_machine(here, job, tmp_path, environment):
    program = Path(sys.executable).with_name("dask-uncert")
    command = [program, "run", job[0], "--cluster", here(), "--out", tmp_path / "out"]
    done = subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert du.load(tmp_path / "out") == job[1]
    assert "Traceback" not in done.stderr
    left = subprocess.run(["squeue", "-h", "-t", "R,PD"], env=environment, capture_output=True, text=True, check=False)
    assert left.stdout == ""
    assert not list(tmp_path.glob(".dask-uncert-*"))  # keys


@real
def test_srun_launches_workers_as_mpirun_does(here, job, tmp_path, without_pictures):
    launcher = ["srun", "-n", 2, "--mem", "2000M"]
    words = {"kind": "mpi", "launcher": launcher, "memory_limit": "900 MiB", "interface": "lo", "wait": 60}
    (tmp_path / "mpi.yaml").write_text(yaml.safe_dump({**words, "local_directory": str(tmp_path)}))
    with du.connect(tmp_path / "mpi.yaml") as client:
        client.wait_for_workers(2, timeout=60)
        assert du.run(job[0], cluster=client, out=tmp_path / "out") == job[1]


def running(environment, *states):
    """The numbers of jobs that SLURM runs, or of those in other states."""
    words = ["squeue", "-h", "-o", "%i", "-t", ",".join(states or ("R",))]
    found = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


@real
@pytest.mark.parametrize("processes", [1, 2])
def test_a_worker_job_that_is_cancelled_is_replaced_and_changes_nothing(
    here, environment, long_job, tmp_path, without_pictures, processes
):
    job, expected = long_job
    cancelled = []

    def report(what, done, total):
        if what == "evaluate" and 0 < done < total and not cancelled:
            cancelled.append(min(running(environment)))
            subprocess.run(["scancel", *cancelled], env=environment, check=True)

    options = {"cores": processes, "processes": processes, "memory": f"{1500 * processes}MB"}
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "2s"}),
        du.connect(here(options=options)) as client,
    ):
        client.wait_for_workers(2 * processes, timeout=60)
        assert du.run(job, cluster=client, out=tmp_path / "out", progress=report) == expected
        assert cancelled
        until(lambda: len(running(environment) - set(cancelled)) == 2)
        client.wait_for_workers(2 * processes, timeout=60)


@real
def test_an_adaptive_cluster_grows_within_a_run_and_changes_nothing(
    here, environment, long_job, tmp_path, without_pictures
):
    job, expected = long_job
    cancelled, seen = [], set()

    def report(what, done, total):
        now = running(environment)
        seen.update(now)
        if what == "evaluate" and 0 < done < total and len(now) > 1 and not cancelled:
            cancelled.append(max(now))
            subprocess.run(["scancel", *cancelled], env=environment, check=True)

    words = {"target-duration": "500ms", "interval": "200ms"}  # the run is short
    quick = {f"distributed.adaptive.{word}": value for word, value in words.items()}
    with (
        dask.config.set({**quick, "distributed.deploy.lost-worker-timeout": "2s"}),
        du.connect(here(jobs=1, most_jobs=3)) as client,
    ):
        assert len(running(environment)) == 1
        assert du.run(job, cluster=client, out=tmp_path / "out", progress=report) == expected
        assert cancelled
        assert len(seen) > 1
        until(lambda: len(client.nthreads()) == 1)  # as few as asked for, once the work is done
        until(lambda: len(running(environment)) == 1)


@real
def test_jobs_that_end_at_once_are_not_submitted_forever(here, environment, job, tmp_path, monkeypatch):
    monkeypatch.setattr(jobqueue, "MAX_SHORT_JOBS", 2)
    before = running(environment, "all")
    short = {"worker_extra_args": ["--lifetime", "4s"], "death_timeout": 30}

    def inside():
        with du.connect(here(jobs=1, options=short)) as client, watchdog(client, patience=20):
            client.submit(time.sleep, 600).result()

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1s"}),
        pytest.raises(
            ClusterError,
            match=r"no worker for .* 3 jobs ended within 60 s of .* no more were submitted: its log",
        ),
    ):
        inside()
    assert len(running(environment, "all") - before) == 3


def test_a_job_is_lost_once_its_worker_has_been_away_for_long():
    a, b, waiting = ("a", "1"), ("b", "2"), ("c", "3")
    watch = jobqueue.JobWatch(patience=10)
    assert watch.lost({a: True, b: True, waiting: False}, 0) == []
    assert watch.lost({a: False, b: True, waiting: False}, 100) == []
    assert watch.lost({a: True, b: True, waiting: False}, 109) == []  # its nanny has started another
    assert watch.lost({a: False, b: True, waiting: False}, 110) == []
    assert watch.lost({a: False, b: True, waiting: False}, 119) == []
    assert watch.lost({a: False, b: True, waiting: False}, 120) == [a]
    assert watch.lost({("a", "4"): True, b: True, waiting: False}, 121) == []
    assert watch.short == 0
    assert watch.lost({("a", "4"): False, b: True}, 150) == []
    assert watch.lost({("a", "4"): False, b: True}, 160) == [("a", "4")]
    assert watch.short == 1


@real
def test_a_job_that_slurm_would_refuse_is_reported_at_once(here):
    start = time.monotonic()
    not_connected(
        ClusterError,
        r"SLURM would refuse the workers' jobs: .*invalid partition specified: nowhere",
        here(options={"queue": "nowhere"}),
    )
    assert time.monotonic() - start < 20


@real
def test_workers_that_never_come_end_the_wait(here, tmp_path):
    not_connected(
        ClusterError,
        r"no worker came within 4 s, though slurm accepted the job.*its log is in",
        here(wait=4, options={"python": "/bin/false"}),
    )


@real
def test_workers_use_tls_by_default(here):
    with du.connect(here(jobs=1)) as client:
        assert client.scheduler.address.startswith("tls://")
        assert all(address.startswith("tls://") for address in client.scheduler_info()["workers"])


def test_options_of_a_file(tmp_path):
    place = tmp_path / "c.yaml"

    def read(text):
        place.write_text(text)
        return read_cluster(place)

    assert read("kind: local\nworkers: 2") == Local(workers=2)
    assert read("kind: pbs\njobs: 3\noptions: {cores: 4}") == Batch(kind="pbs", jobs=3, options={"cores": 4})
    at = read("kind: address\naddress: tls://h:1\nca_file: ca.pem")
    assert at == Address(address="tls://h:1", ca_file=str(tmp_path / "ca.pem"))
    for text, message in (
        ("kind: moon", "must say `kind`, one of local, address, slurm, pbs, sge, lsf, mpi; found 'moon'"),
        (
            "kind: slurm\ncores: 4",
            "Unknown key `cores`. Known keys: kind, jobs, most_jobs, wait, tls, options",
        ),
        ("kind: slurm\njobs: 0", "`jobs` should be greater than or equal to 1, found 0"),
        ("kind: address", "`address` is missing"),
        (
            "kind: address\naddress: h:1",
            "`address` should be an address such as tls://host:8786, found 'h:1'",
        ),
        ("- 1", "must say `kind`"),
        ("kind: slurm\noptions: {cores: 1000000}", "`cores` .* less than or equal to 4096"),
        ("kind: pbs\noptions: {cores: many}", "`cores` .* valid integer"),
        ("kind: sge\noptions: {processes: 0}", "`processes` .* greater than or equal to 1"),
        ("kind: lsf\noptions: {memory: 9999 PB}", "`memory` .* from 1 byte to 1 PiB"),
        ("kind: slurm\noptions: {memory: -1}", "`memory` .* from 1 byte to 1 PiB"),
    ):
        with pytest.raises(InputError, match=message):
            read(text)


@pytest.mark.parametrize(
    "name", sorted(path.name for path in (ROOT / "cluster").glob("*.yaml") if path.name != "kubernetes.yaml")
)
def test_the_files_in_the_repository_are_valid(name):
    assert read_cluster(ROOT / "cluster" / name)


def test_missing_programs_are_reported(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="submits jobs with qsub, which is not on this machine's PATH"):
        jobqueue._cluster(Batch(kind="sge"))
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(InputError, match=r"needs dask-jobqueue, which is not installed.*\[hpc\]"):
        jobqueue._cluster(Batch(kind="slurm"))
