"""Killed at a random moment and run again: the same bits, and nothing computed twice that was finished."""

import logging
import multiprocessing
import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster, WorkerPlugin

from dask_uncert.errors import ClusterError
from dask_uncert.io.summary_store import load
from dask_uncert.jobs import run as run_job
from dask_uncert.jobs.cohort import run
from tests.support import cohorts, schedulers

Cohort = cohorts.Cohort
CASES = [f"P{i:02d}" for i in range(12)]
PRELOADED = [
    "dask_uncert.jobs.run",
    "dask_uncert.jobs.cohort.case",
    "dask_uncert.blocks.kernels.compiled",
    "distributed",
]


@pytest.fixture(scope="module")
def processes():
    """Starts processes that have imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context.Process


@pytest.fixture(scope="module")
def client():
    """Two workers in processes of their own, which nannies start again; open to other processes of these tests."""
    words = {
        "distributed.scheduler.allowed-failures": 1,  # a task that ended two processes is given up
        "distributed.deploy.lost-worker-timeout": "1 day",
    }
    quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with (
        dask.config.set(words),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **quiet) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def wanted(tmp_path_factory, client):
    """The bits of a run that nobody disturbs; pictures are no part of them."""
    cohort = Cohort(tmp_path_factory.mktemp("wanted"), CASES)
    run_job.run(cohort.job(), cluster=client)
    return cohort.bits()


@pytest.fixture
def cohort(tmp_path, monkeypatch, without_pictures):
    """A cohort whose case files stay when it is finished, so that it can be seen whether they were written again."""
    monkeypatch.setattr(run, "remove_owned", lambda path: None)
    return Cohort(tmp_path, CASES)


def finished(cohort):
    """The case files that are there, and which files they are."""
    files = {path.name: path.stat() for path in cohort.files.glob("*.case")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in files.items()}


def wait_for(cohort, cases, process=None):
    """Until so many cases are finished, the output is, or the process has ended by itself."""
    end = time.monotonic() + 120
    while len(finished(cohort)) < cases and not cohort.out.exists() and time.monotonic() < end:
        assert process is None or process.is_alive()
        time.sleep(0.001)


@contextmanager
def killing(cohort, rng, kill):
    """Call `kill` at some moment of a run inside of the `with`."""
    cases, seconds = int(rng.integers(0, len(CASES))), rng.exponential(0.01)

    def wait_and_kill():
        wait_for(cohort, cases)
        time.sleep(seconds)
        kill()

    killer = threading.Thread(target=wait_and_kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()


def check(cohort, before, wanted):
    """After all: every case is there once, what was finished stays as it was, and the bits are those wanted."""
    after = finished(cohort)
    assert len(after) == len(CASES)
    assert before.items() <= after.items()
    assert cohort.bits() == wanted
    shutil.rmtree(cohort.files)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_client_is_killed(cohort, client, processes, wanted, seed):
    rng = np.random.default_rng(seed)
    words = {"job": str(cohort.job()), "cluster": client.scheduler.address}
    process = processes(target=run_job.run, kwargs=words)
    process.start()
    wait_for(cohort, int(rng.integers(0, len(CASES) + 1)), process)
    time.sleep(rng.exponential(0.05))
    process.kill()
    process.join()
    time.sleep(0.05)  # a task that was running may still leave its file
    before = finished(cohort)
    was_whole = cohort.out.exists()
    run_job.run(cohort.job(), cluster=client)
    if was_whole:
        assert cohort.bits() == wanted
        return
    kept = [name for name, status in cohort.statuses().items() if status == "kept"]
    assert len(kept) >= len(before)
    check(cohort, before, wanted)
    assert not list(cohort.folder.glob("*unfinished*"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_worker_is_killed(cohort, client, wanted, seed):
    rng = np.random.default_rng(seed)
    worker = rng.choice(list(client.run(os.getpid).values()))
    before = {}

    def kill():
        os.kill(worker, signal.SIGKILL)
        before.update(finished(cohort))

    with killing(cohort, rng, kill):
        run_job.run(cohort.job(), cluster=client)
    assert cohort.record()["failed"] == {}
    check(cohort, before, wanted)
    client.wait_for_workers(2, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_scheduler_is_killed(cohort, client, wanted, seed):
    begin = time.perf_counter()
    with (
        schedulers.scheduler(cohort.folder, workers=1, nanny=False) as (address, (scheduler, _)),
        killing(cohort, np.random.default_rng(seed), scheduler.kill),
        pytest.raises(ClusterError, match="finished cases are kept"),
    ):
        run_job.run(cohort.job(), cluster=address)
    assert time.perf_counter() - begin < 120
    before = finished(cohort)
    assert not cohort.out.exists()
    run_job.run(cohort.job(), cluster=client)
    check(cohort, before, wanted)


@pytest.mark.slow
def test_a_patient_that_kills_its_process_is_named(cohort, client):
    """Ten patients, number 7 kills its process every time: nine results, one named failure."""

    class Poison(WorkerPlugin):
        """What a decoder may do to the process it runs in, whichever worker it is."""

        name = "poison"

        def setup(self, worker):
            from dask_uncert.jobs.cohort import case

            opened = case.open_cubes

            def deadly(spec):
                if "P07" in spec.store:
                    os._exit(1)
                return opened(spec)

            case.open_cubes = deadly
            worker.restore = lambda: setattr(case, "open_cubes", opened)

        def teardown(self, worker):
            worker.restore()

    for name in CASES[10:]:
        del cohort.rows[name]
    client.register_plugin(Poison())
    try:
        with pytest.warns(run_job.FailedCasesWarning, match="1 case failed .* P07: its worker process ended every"):
            pooled = run_job.run(cohort.job(), cluster=client)
    finally:
        client.unregister_worker_plugin("poison")
    assert list(cohort.record()["failed"]) == ["P07"]
    assert sum(status in ("computed", "kept") for status in cohort.statuses().values()) == 9
    assert int(pooled.ledger.counted) == 9 * 20 == int(load(cohort.out).ledger.counted)
