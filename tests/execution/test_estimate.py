"""What a plan says of time, reads and bytes, by blocks whose cost is known."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.execution import estimate
from dask_uncert.execution.chunking import Grid, chunk_reads
from dask_uncert.execution.estimate import Estimate, probe
from dask_uncert.execution.evaluate import prepare
from dask_uncert.execution.tasks import EvaluateBlock
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.readers.zarr import ZarrArray
from dask_uncert.spec.options import SceneOptions
from tests.support.cohorts import Cohort
from tests.support.scenes import Scene

BLOCK, PIXEL = 0.01, 2e-6  # seconds that a block costs here


@pytest.fixture
def slow(monkeypatch):
    """Blocks are only waited for, a known time; return the pixels of each."""
    seen = []

    def sleeping(self, arrays, offset):
        found, pixels = self.request.zero(), arrays["reference"].size
        found.ledger.counted[...] = pixels
        time.sleep(BLOCK + PIXEL * pixels)
        seen.append(pixels)
        return found

    monkeypatch.setattr(EvaluateBlock, "__call__", sleeping)
    return seen


def lazy(shape, block):
    """A plan over arrays that take no memory."""
    p = Cube("probabilities", np.broadcast_to(np.float32(0.5), (*shape, 2)), ("y", "x", "class"), chunks=(100, 100, 2))
    y = Cube("reference", np.broadcast_to(np.uint8(1), shape), ("y", "x"), chunks=(100, 100))
    options = SceneOptions.model_validate({"measures": ["gini"]})
    return prepare(options, {"probabilities": p, "reference": y}, block=block)


@pytest.mark.parametrize("block", [(100, 500), (4000, 4000)])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_time_is_that_of_all_blocks(slow, block, threads):
    plan = lazy((40_000, 40_000), block)
    begin = time.perf_counter()
    found = probe(plan, threads, budget=0.3)
    assert time.perf_counter() - begin < 10
    blocks = 1.6e9 / np.prod(block)
    assert found.thread_seconds == pytest.approx(blocks * BLOCK + 1.6e9 * PIXEL, rel=0.5)
    assert max(slow) <= np.prod(block)
    assert max(slow) * PIXEL < 0.6  # no block much longer than the budget


def test_threads_that_have_no_block_do_not_help():
    few = Estimate(thread_seconds=30.0, blocks=3)
    assert [few.seconds(n) for n in (1, 2, 3, 100)] == [30, 20, 10, 10]
    assert Estimate(thread_seconds=0.1, blocks=1000).seconds(1000) == 1  # the scheduler's
    assert 1 < Estimate(thread_seconds=0.1, blocks=10**6).seconds(1000) <= 2  # whose tasks then hold many blocks


def test_a_plan_says_how_long(tmp_path, slow):
    scene = Scene(
        tmp_path, shape=(600, 500), class_distances={"metric": "energy"}, measures=["homophily", "gini"], maps=["gini"]
    )
    inputs = scene.words["inputs"]
    inputs["features"] = {**inputs["probabilities"], "dims": ["y", "x", "band"]}
    facts = du.plan({**scene.words, "inputs": {n: {**i, "store": str(tmp_path / "s.zarr")} for n, i in inputs.items()}})
    found = facts["estimate"]
    assert found["core_hours"] * 3600 > facts["blocks"] * BLOCK + 3e5 * PIXEL
    assert found["seconds"] * found["threads"] >= found["core_hours"] * 3600 * (1 - 1e-12)  # but for rounding
    assert facts["chunk_reads"] == 30 * 4  # for the pass and for the distances
    files = [path for path in (tmp_path / "s.zarr" / "p" / "c").rglob("*") if path.is_file()]
    assert facts["bytes_stored"]["probabilities"] == pytest.approx(sum(f.stat().st_size for f in files), rel=0.05)
    assert {path.name for path in tmp_path.iterdir()} == {"s.zarr", "job.yaml"}


def test_no_probe_reads_nothing(tmp_path, monkeypatch):
    scene = Scene(tmp_path, shape=(100, 100))
    monkeypatch.setattr(ZarrArray, "__getitem__", lambda *_: pytest.fail("it was read"))
    assert "estimate" not in du.plan(scene.job, probe=False)


def test_a_block_that_cannot_be_evaluated_leaves_the_rest_of_the_plan(tmp_path):
    scene = Scene(tmp_path, shape=(100, 100))
    words = {**scene.words, "classes": {i: str(i) for i in range(10, 16)}}
    words["inputs"] = {n: {**i, "store": str(tmp_path / "s.zarr")} for n, i in words["inputs"].items()}
    assert du.plan(words)["estimate"] == {"reason": "a block that was probed cannot be evaluated; a run says why."}


def test_a_cohort_is_priced_by_one_case(tmp_path, slow, monkeypatch):
    monkeypatch.setattr(estimate, "BUDGET", 0.1)
    cohort = Cohort(tmp_path, [f"P{i}" for i in range(12)])
    job = cohort.job()
    found = du.plan(job)["estimate"]
    assert found["core_hours"] * 3600 > 12 * BLOCK
    assert len(slow) <= 12  # of one case, again and again
    assert not cohort.out.exists()
    assert "estimate" not in du.plan(job, probe=False)


def test_a_cluster_whose_size_is_not_known_has_a_price_but_no_time(tmp_path, slow):
    scene = Scene(tmp_path, shape=(100, 100))
    found = du.plan(scene.job, cluster="tcp://nobody:1")["estimate"]
    assert (found["seconds"], found["threads"]) == (None, None)
    assert found["core_hours"] > 0


@given(st.lists(st.tuples(*[st.integers(1, 9)] * 3), min_size=2, max_size=2), st.integers(1, 9))
@settings(max_examples=20, deadline=None)
def test_chunk_reads_are_those_of_every_block(sides, bands):
    shape, block, chunk = zip(*sides, strict=True)
    block = tuple(min(b, n) for b, n in zip(block, shape, strict=True))
    stored = object()
    grid = Grid(("y", "x"), shape, block)
    full = Cube("p", np.empty((*shape, bands)), ("y", "x", "class"), (*chunk, 2), stored=stored)
    row = Cube("w", np.empty(shape[1:]), ("x",), chunk[1:], stored=stored)
    expected = 0
    for index in itertools.product(*map(range, grid.numblocks)):
        region = grid.region(index)
        touched = {
            d: {i // c for i in range(region[d].start, region[d].stop)} for d, c in zip("yx", chunk, strict=True)
        }
        expected += len(touched["y"]) * len(touched["x"]) * -(-bands // 2) + len(touched["x"])
    assert chunk_reads({"p": full, "w": row}, grid) == expected
