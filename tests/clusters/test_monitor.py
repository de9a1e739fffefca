"""Nothing waits for ever: a scheduler that is gone, or workers that never come back, end a scene's run with words."""

from __future__ import annotations

import os
import signal
import threading
import time

import dask
import pytest

import dask_uncert as du
from dask_uncert.clusters.monitor import keep_logs_of_failure, watchdog
from dask_uncert.clusters.task_pool import map_items
from dask_uncert.errors import ClusterError, InputError
from dask_uncert.execution.tasks import EvaluateBlock
from tests.support import cohorts, scenes, schedulers


@pytest.fixture
def job(tmp_path):
    """A scene of many blocks."""
    return scenes.Scene(tmp_path).job


@pytest.fixture
def cluster(tmp_path):
    """Address, scheduler and worker without a nanny, whose kernels are cold: a block takes a while."""
    with schedulers.scheduler(tmp_path, workers=1, threads=1, nanny=False) as (address, processes):
        yield address, *processes


@pytest.mark.slow
@pytest.mark.parametrize(("which", "said"), [(1, "no worker for"), (0, "scheduler was lost|no worker for")])
def test_a_cluster_that_is_lost_ends_the_run_in_time(job, cluster, which, said):
    address, *processes = cluster
    over = threading.Event()

    def kill():
        """Once a block is done."""
        while not over.is_set() and not scenes.finished(job.parent / "out.blocks"):
            time.sleep(0.002)
        processes[which].send_signal(signal.SIGKILL)

    start = time.monotonic()
    threading.Thread(target=kill, daemon=True).start()
    with (
        dask.config.set({"dask-uncert.patience": 6}),
        pytest.raises(ClusterError, match=f"({said}).* [Ff]inished work is kept"),
    ):
        du.run(job, cluster=address)
    over.set()
    assert time.monotonic() - start < 100
    assert not (job.parent / "out").exists()
    assert scenes.finished(job.parent / "out.blocks")
    du.run(job)
    assert (job.parent / "out" / "run.json").exists()


@pytest.mark.slow
def test_a_failed_run_leaves_the_workers_warnings(tmp_path):
    with (
        schedulers.scheduler(tmp_path, workers=1, threads=1) as (address, _),
        du.connect(address) as client,
    ):
        (process,) = client.run(os.getpid).values()
        os.kill(process, signal.SIGKILL)
        while client.run(os.getpid, on_error="ignore").values() in ([], [process]):
            time.sleep(0.1)
        client.wait_for_workers(1, timeout=30)
        with pytest.raises(ZeroDivisionError), keep_logs_of_failure(client, tmp_path / "kept"):
            _ = 1 / 0
        said = (tmp_path / "kept" / "workers.log").read_text()
        with pytest.raises(InputError), keep_logs_of_failure(client, tmp_path / "refused"):
            raise InputError("a wrong request")
    assert "=== nanny tcp://127.0.0.1:" in said
    assert "Restarting worker" in said
    assert not (tmp_path / "refused").exists()


@pytest.fixture
def pause_soon():
    """A local cluster of two workers, and a function that takes the memory of one, so that dask pauses it."""
    with du.connect(workers=2, threads=1) as client, dask.config.set({"dask-uncert.paused": 1}):

        def pause(number):
            worker = client.cluster.workers[number]
            worker.memory_manager.memory_limit = 1 << 20
            while worker.status.name != "paused":
                time.sleep(0.01)
            return worker.address

        yield client, pause


PAUSE = r"nothing has moved for 1 s: dask has paused inproc://.* which uses \d+ of .* memory or fewer threads"


@pytest.mark.slow
def test_a_run_whose_workers_are_all_paused_ends_in_time(job, pause_soon, monkeypatch):
    client, pause = pause_soon
    whole = EvaluateBlock.__call__

    def evaluate(self, arrays, offset):
        """Pause both workers during the last task that they begin."""
        for number in range(2):
            pause(number)
        return whole(self, arrays, offset)

    monkeypatch.setattr(EvaluateBlock, "__call__", evaluate)
    with pytest.raises(ClusterError, match=PAUSE + ".* Finished work is kept"):
        du.run(job, cluster=client)


@pytest.mark.slow
def test_items_of_paused_workers_end_in_time(pause_soon):
    client, pause = pause_soon
    pause(0)
    pause(1)
    with pytest.raises(ClusterError, match=PAUSE + ".* Finished cases are kept"):
        list(map_items(client, str, range(3), "item", poll_seconds=0.1))


@pytest.mark.slow
def test_a_paused_worker_ends_nothing_while_others_work(pause_soon):
    client, pause = pause_soon
    address = pause(0)
    other = client.cluster.workers[1].address
    stuck = client.submit(str, workers=[address])
    busy = [client.submit(time.sleep, seconds, workers=[other]) for seconds in (0.1, 0.2, 2.5)]
    start = time.monotonic()
    with pytest.raises(ClusterError, match=PAUSE), watchdog(client, poll_seconds=0.1):
        client.gather([*busy, stuck])
    assert time.monotonic() - start > 2.5 + 1  # also a task that takes longer than the limit ends


HANGING = """
import threading
from dask_uncert.execution import tasks as block_tasks


def dask_setup(worker):
    whole = block_tasks.EvaluateBlock.__call__

    def hangs(self, arrays, offset):
        if tuple(offset) == (200, 400):
            threading.Event().wait()
        return whole(self, arrays, offset)

    block_tasks.EvaluateBlock.__call__ = hangs
"""
"""What a worker loads first: a read that never comes back, as of a file server that is gone."""


@pytest.mark.slow
def test_a_read_that_hangs_ends_the_run_in_time(job, tmp_path):
    (tmp_path / "hanging.py").write_text(HANGING)
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__PRELOAD": str(tmp_path / "hanging.py")}
    with schedulers.scheduler(tmp_path, workers=1, environment=environment) as (address, _):
        start = time.monotonic()
        with (
            dask.config.set({"dask-uncert.stall": 6}),
            pytest.raises(
                ClusterError,
                match=r"nothing has moved for 6 s \(the block y 200:400, x 400:600 on tcp://127.0.0.1:.* a read may hang.*"
                r"Finished work is kept",
            ),
        ):
            du.run(job, cluster=address)
        assert 6 < time.monotonic() - start < 60
    assert len(scenes.finished(job.parent / "out.blocks")) > 10  # all others
    du.run(job)


@pytest.mark.slow
def test_a_case_that_hangs_ends_a_cohort_in_time(tmp_path):
    (tmp_path / "hanging.py").write_text(
        HANGING.replace("block_tasks.EvaluateBlock.__call__", "cohorts.EvaluateCase.evaluate_small")
        .replace(
            "from dask_uncert.execution import tasks as block_tasks",
            "from dask_uncert.jobs.cohort import case as cohorts",
        )
        .replace("arrays, offset", "row, finished")
        .replace("tuple(offset) == (200, 400)", "row.case.name == 'B'")
    )
    cohort = cohorts.Cohort(tmp_path, ["A", "B", "C"])
    du.run(cohort.job(), out=tmp_path / "before")  # what is compiled now does not look like a stall
    environment = {**os.environ, "DASK_DISTRIBUTED__WORKER__PRELOAD": str(tmp_path / "hanging.py")}
    with (
        schedulers.scheduler(tmp_path, workers=1, environment=environment) as (address, _),
        dask.config.set({"dask-uncert.stall": 6}),
        pytest.raises(ClusterError, match=r"nothing has moved for 6 s \(B.* on tcp://.*Finished cases are kept"),
    ):
        du.run(cohort.job(), cluster=address)
    du.run(cohort.job())
    assert du.load_cases(cohort.out).names == ("A", "B", "C")
