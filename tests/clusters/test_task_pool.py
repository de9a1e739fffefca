"""Streams of tasks: each item once, few on the scheduler at a time, killers found out, losses said in time."""

import os
import time

import pytest
from distributed import Client, LocalCluster

from dask_uncert.clusters.connect import connect
from dask_uncert.clusters.task_pool import MAX_ITEMS, TASKS_PER_THREAD, KilledError, map_items
from dask_uncert.errors import ClusterError


@pytest.fixture(scope="module")
def client():
    with connect("local", threads=2) as client:
        yield client


def test_thousands_of_items_and_few_on_the_scheduler(client):
    most = []

    def square(n):
        return n * n

    found = {}
    for n, value in map_items(client, square, range(2000), "square"):
        found[n] = value
        if n % 100 == 0:
            most.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))
    assert found == {n: n * n for n in range(2000)}
    assert max(most) <= 2 * TASKS_PER_THREAD * 2  # with those that are done and not yet let go
    left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    end = time.monotonic() + 5
    while left and time.monotonic() < end:
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    assert left == 0


def test_items_are_taken_as_they_are_needed(client):
    taken = []

    def items():
        for n in range(1000):
            taken.append(n)
            yield n

    for done, _ in enumerate(map_items(client, abs, items(), "abs")):
        assert len(taken) <= done + 1 + (2 * TASKS_PER_THREAD + 2) * MAX_ITEMS


def test_an_exception_is_the_result_of_its_item_alone(client):
    found = dict(map_items(client, lambda n: 6 // n, [1, 2, 0, 3], "divide"))
    assert isinstance(found.pop(0), ZeroDivisionError)
    assert found == {1: 6, 2: 3, 3: 2}


def test_an_abandoned_stream_leaves_no_tasks(client):
    for _ in map_items(client, time.sleep, [0.01] * 100, "sleep"):
        break
    end = time.monotonic() + 10
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) and time.monotonic() < end:
        time.sleep(0.01)
    assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0


def test_a_cluster_without_workers_is_given_up_in_time():
    quiet = {"dashboard_address": None, "processes": False, "protocol": "inproc://"}
    with LocalCluster(n_workers=0, **quiet) as cluster, Client(cluster, set_as_default=False) as client:
        begin = time.perf_counter()
        with pytest.raises(ClusterError, match=r"no worker for .* s. Start workers, then run again"):
            list(map_items(client, abs, [1, 2], "abs", poll_seconds=0.1, patience=0.5))
        assert time.perf_counter() - begin < 20


@pytest.mark.slow
def test_only_the_item_that_kills_its_process_is_blamed():
    def work(n):
        if n == 7:
            os._exit(1)
        time.sleep(0.02)
        return n

    with connect(processes=True, workers=2, threads=1) as client:
        begin = time.perf_counter()
        found = list(map_items(client, work, range(12), "work"))
        seconds = time.perf_counter() - begin
    assert len(found) == 12
    results = dict(found)
    assert isinstance(results.pop(7), KilledError)
    assert results == {n: n for n in range(12) if n != 7}
    assert seconds < 120


@pytest.mark.slow
def test_items_that_shared_a_worker_with_it_are_not_blamed():
    """All in one process: each death takes the others' tasks with it."""

    def work(n):
        if n == 0:
            time.sleep(0.05)
            os._exit(1)
        time.sleep(0.3)
        return n

    with connect(processes=True, workers=1, threads=4) as client:
        found = dict(map_items(client, work, range(4), "work"))
    assert isinstance(found.pop(0), KilledError)
    assert found == {1: 1, 2: 2, 3: 3}
