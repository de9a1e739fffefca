"""A job of a thousand blocks: few tasks, and a scheduler whose memory stays flat."""

from __future__ import annotations

import threading

import pytest

import dask_uncert as du
from dask_uncert.execution import chunking
from tests.support import scenes, schedulers

MIB = 1 << 20


def resident(dask_scheduler):
    """Return the scheduler's memory; runs there, where this module is not, so it imports what it needs."""
    import gc

    import psutil

    gc.collect()
    return psutil.Process().memory_info().rss


resident.__module__ = "__main__"  # pickled whole


@pytest.mark.slow
def test_a_thousand_blocks_leave_the_schedulers_memory_flat(tmp_path, monkeypatch, without_pictures):
    monkeypatch.setattr(chunking, "MIN_BLOCKS", 10**4)
    jobs = []
    for rows in (100, 1000):
        (tmp_path / f"{rows}").mkdir()
        soft = [{"class": "3", "sigmas": [0.1]}]
        scene = scenes.Scene(tmp_path / f"{rows}", shape=(rows, 100), chunk=10, soft_confusion=soft, maps=["correct"])
        jobs.append(scene.job)
    few, many = jobs
    with schedulers.scheduler(tmp_path, threads=1) as (address, _), du.connect(address) as client:

        def memory():
            return client.run_on_scheduler(resident) / MIB

        def run(path):
            """Return the most memory that the scheduler held during a run, and what it holds after it."""
            over, seen = threading.Event(), []

            def look():
                while not over.wait(0.1):
                    seen.append(memory())

            thread = threading.Thread(target=look)
            thread.start()
            try:
                du.run(path, cluster=client, fresh=True)
            finally:
                over.set()
                thread.join()
            return max(seen), memory()

        run(few)
        before = memory()
        least = run(few)
        # Measured: 262 MiB before, 263 with 100 blocks; 267, 269, 270, 270 in four runs of 1000.
        most = [run(many) for _ in range(3)]
        assert max(least) < before + 10
        assert all(peak < before + 20 for peak, _ in most)
        assert most[2][1] < most[0][1] + 8
    record = scenes.record(many.parent / "out")
    assert record["blocks"] == 1000
    assert record["tasks"] < 5000  # 1133
