"""A job of a thousand blocks: few tasks, and a scheduler whose memory stays flat."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import yaml
import zarr

import dask_uncert as du
from dask_uncert.execution import chunking
from tests.support import schedulers

MIB = 1 << 20


def job(folder, blocks):
    """A scene in chunks of 10 x 10 pixels, `blocks` of them."""
    rng = np.random.default_rng(0)
    shape, place = (10 * blocks // 10, 100), folder / f"{blocks}.zarr"
    group = zarr.open_group(place, mode="w")
    p = rng.dirichlet(np.ones(9), shape).astype("f4")
    for name, values in (("p", p), ("y", rng.integers(0, 9, shape).astype("u1"))):
        dims = ("y", "x", "class")[: values.ndim]
        group.create_array(name, data=values, chunks=(10, 10, *values.shape[2:]), dimension_names=dims)
    words = {
        "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(9)}, "output": f"out{blocks}",
        "soft_confusion": [{"class": "3", "sigmas": [0.1]}], "maps": ["correct"],
        "inputs": {"probabilities": {"store": str(place), "array": "p"}, "reference": {"store": str(place), "array": "y"}},
    }  # fmt: skip
    path = folder / f"{blocks}.yaml"
    path.write_text(yaml.safe_dump(words))
    return path


@pytest.mark.slow
def test_a_thousand_blocks_leave_the_schedulers_memory_flat(tmp_path, monkeypatch, without_pictures):
    cut = chunking.plan_grid
    monkeypatch.setattr(
        chunking, "plan_grid", lambda *given, **words: cut(*given, **{**words, "min_blocks": 10**4})
    )
    few, many = job(tmp_path, 100), job(tmp_path, 1000)
    with schedulers.scheduler(tmp_path, threads=1) as (address, _), du.connect(address) as client:

        def resident(
            dask_scheduler,
        ):  # in here, or it would be looked for in a module that the scheduler lacks
            import gc

            import psutil

            gc.collect()
            return psutil.Process().memory_info().rss

        def memory():
            return client.run_on_scheduler(resident) / MIB

        def run(path):
            """What the scheduler held at most while it ran, and after."""
            over, found = threading.Event(), []

            def look():
                while not over.wait(0.1):
                    found.append(memory())

            thread = threading.Thread(target=look)
            thread.start()
            try:
                du.run(path, cluster=client, fresh=True)
            finally:
                over.set()
                thread.join()
            return max(found), memory()

        run(few)
        before = memory()
        least = run(few)
        # Measured: 262 MiB before, 263 with 100 blocks; 267, 269, 270, 270 in four runs of 1000.
        most = [run(many) for _ in range(3)]
        assert max(least) < before + 10
        assert all(peak < before + 20 for peak, _ in most)
        assert most[2][1] < most[0][1] + 8
    record = yaml.safe_load((tmp_path / "out1000" / "run.json").read_text())
    assert record["blocks"] == 1000
    assert record["tasks"] < 5000  # 1133
