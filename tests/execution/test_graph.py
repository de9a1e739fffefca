"""Blocks to a graph: how a scene is cut, how many tasks that makes, and that the tree sums everything."""

import math
from dataclasses import replace
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.execution import chunking, graph
from dask_uncert.execution.checkpoints import open_checkpoints
from dask_uncert.execution.evaluate import prepare
from dask_uncert.inputs.cube import Cube
from dask_uncert.spec.options import SceneOptions
from tests.support.unreadable import Stored, Unreadable


def cube(shape, chunks, dims=("y", "x", "class"), dtype="float32", name="probabilities"):
    return Cube(name, Unreadable(shape, dtype), dims, chunks)


def test_a_task_is_many_chunks():
    """4096 chunks of 64 x 64 pixels become 16 tasks of 16 x 16 chunks, and their merge; the names of tasks tell."""
    sources = {"probabilities": cube((4096, 4096, 16), (64, 64, 16))}
    grid = chunking.plan_grid(sources, ("y", "x"))
    assert grid.block == (1024, 1024)
    lazy = graph.Reduction(lambda arrays, offset: 0, sources, grid).delayed()
    assert graph.count_tasks(lazy) <= 60
    names = {str(key[0] if isinstance(key, tuple) else key) for key in lazy.__dask_graph__()}
    assert any(name.startswith("evaluate-block") for name in names)
    assert any(name.startswith("merge-summaries") for name in names)


@pytest.mark.parametrize(("chunks", "times"), [((16, 16, 16), 1), (None, 6)], ids=["chunks", "memory"])
def test_blocks_of_a_small_scene_take_longer_to_evaluate_than_to_hand_out(monkeypatch, chunks, times):
    monkeypatch.setattr(chunking, "LEAST_PIXELS", 1 << 12)
    monkeypatch.setattr(chunking, "LEAST_IN_MEMORY", 1 << 17)
    sources = {"probabilities": cube((145 * times, 145 * times, 16), chunks)}
    assert 4 <= chunking.plan_grid(sources, ("y", "x")).blocks <= 12
    assert chunking.plan_grid(sources, ("y", "x"), min_blocks=40).blocks >= 40
    assert chunking.plan_grid({"probabilities": cube((40, 40, 16), chunks)}, ("y", "x")).blocks == 1


@given(st.integers(1, 50_000), st.integers(1, 2000))
def test_tasks_are_few_hold_every_block_once_and_get_shorter(blocks, most):
    parts = chunking.cut_for_tasks(blocks, most)
    assert [number for part in parts for number in part] == list(range(blocks))
    sizes = [len(part) for part in parts]
    assert len(sizes) <= most
    assert all(after <= size + 1 for size, after in pairwise(sizes))
    assert max(sizes) <= 1.5 * blocks / most + 1


@pytest.mark.parametrize("kept", [True, False])
def test_a_store_of_a_million_large_chunks_is_few_tasks_that_start_in_order(kept, tmp_path):
    sources = {"probabilities": cube((256_000, 256_000, 16), (256, 256, 16))}
    grid = chunking.plan_grid(sources, ("y", "x"))
    checkpoints = open_checkpoints(tmp_path / "out", "key", fresh=False) if kept else None
    reduction = graph.Reduction(lambda arrays, offset: 0, sources, grid, checkpoints=checkpoints)
    lazy = reduction.delayed()
    assert graph.count_tasks(lazy) <= 2000
    assert sum(reduction.sizes().values()) <= grid.blocks == 62_500
    larger = replace(grid, shape=(1_000_000, 1_000_000))
    assert max(replace(reduction, grid=larger).sizes().values()) < 300
    layers = [(key, layer.annotations) for layer in lazy.dask.layers.values() for key in layer]
    place = {key[1:]: notes["priority"] for key, notes in layers if isinstance(key, tuple)}
    assert sorted(place, key=place.get, reverse=True) == [grid.index(blocks.start) for blocks in reduction.ranges()]


@given(
    shape=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    chunks=st.tuples(st.integers(1, 600), st.integers(1, 600)),
    others=st.tuples(st.integers(1, 600), st.integers(1, 600)),
    classes=st.integers(2, 64),
)
def test_blocks_are_whole_chunks_within_the_target(shape, chunks, others, classes):
    sources = {
        "probabilities": cube((*shape, classes), (*chunks, classes)),
        "reference": cube(shape, others, ("y", "x"), "uint8"),
    }
    grid = chunking.plan_grid(sources, ("y", "x"))
    for n, block, chunk in zip(shape, grid.block, chunks, strict=True):
        assert block == n or block % min(chunk, n) == 0
    pixel = 4 * classes + 1
    least = math.prod(min(n, c) for n, c in zip(shape, chunks, strict=True))
    assert math.prod(grid.block) * pixel <= max(chunking.TARGET_BYTES, least * pixel)
    assert grid.blocks == math.prod(math.ceil(n / b) for n, b in zip(shape, grid.block, strict=True))


def test_chunks_of_all_inputs_are_kept_whole_where_that_fits():
    sources = {
        "probabilities": cube((600, 600, 4), (20, 30, 4)),
        "reference": cube((600, 600), (50, 20), ("y", "x"), "uint8"),
    }
    grid = chunking.plan_grid(sources, ("y", "x"))
    assert grid.block[0] % 100 == 0
    assert grid.block[1] % 60 == 0


@given(
    shape=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    block=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    split_every=st.integers(2, 9),
    most=st.integers(8, 40),
    stored=st.booleans(),
)
def test_every_element_is_summed_once(shape, block, split_every, most, stored):
    values = np.arange(math.prod(shape)).reshape(shape)
    sources = {
        "probabilities": Cube("probabilities", np.zeros((*shape, 2)), ("y", "x", "class")),
        "reference": Cube("reference", values.T, ("x", "y")),
    }
    grid = chunking.plan_grid(sources, ("y", "x"), block)

    def add(arrays, offset):
        part = arrays["reference"].T
        assert part[0, 0] == values[offset]
        return int(part.sum())

    if stored:
        sources = {name: replace(cube, data=Stored(cube.data)) for name, cube in sources.items()}
    with mock.patch.object(graph, "MOST_TASKS", most):
        lazy = graph.Reduction(add, sources, grid).delayed(split_every)
    assert not stored or sum(isinstance(key, tuple) for key in lazy.__dask_graph__()) < most
    assert lazy.compute(scheduler="synchronous") == values.sum()


def test_a_scene_of_sixteen_times_the_blocks_holds_hardly_more_sums():
    """33 instead of 18 where every merge adds 16: 65 MB more for 16 classes."""
    held = []

    class Sum:
        now = 0

        def __init__(self):
            Sum.now += 1
            held.append(Sum.now)

        def __del__(self):
            Sum.now -= 1

        def plus_all(self, others):
            return Sum()

    def most(blocks):
        held.clear()
        grid = chunking.Grid(("y",), (blocks,), (1,))
        graph.Reduction(lambda arrays, offset: Sum(), {}, grid).delayed().compute(scheduler="synchronous")
        return max(held)

    assert most(512) <= most(32) + 7


@pytest.mark.parametrize("side", [4096, 11264])
def test_class_distances_keep_the_graph_small(side):
    """Features of a whole large scene: 128 and then 968 blocks, with their pieces under 5000 tasks."""
    cubes = {
        "probabilities": cube((side, side, 16), (64, 64, 16)),
        "reference": cube((side, side), (64, 64), ("y", "x"), "uint8", "reference"),
        "features": cube((side, side, 200), (64, 64, 200), ("y", "x", "band"), "uint16", "features"),
    }
    plan = prepare(SceneOptions(measures=["homophily"], class_distances={"metric": "energy"}), cubes)
    assert plan.distances.grid.blocks in (128, 968)
    assert plan.tasks() < 5000
