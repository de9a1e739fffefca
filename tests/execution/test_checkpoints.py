"""A scene that was stopped goes on: the same bits and maps, nothing that was finished computed again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.execution import checkpoints, chunking, graph
from dask_uncert.execution.checkpoints import GROUPS, Checkpoints, open_checkpoints
from dask_uncert.execution.evaluate import prepare
from dask_uncert.inputs.cube import Cube
from dask_uncert.io import summary_cache
from dask_uncert.spec.options import SceneOptions
from tests.support import scenes
from tests.support.unreadable import Stored


def plan_of(seed, block, shape=(12, 10), **words):
    rng = np.random.default_rng(seed)
    cubes = {
        "probabilities": Cube("probabilities", rng.dirichlet(np.ones(3), shape), ("y", "x", "class")),
        "reference": Cube("reference", rng.integers(0, 3, shape), ("y", "x")),
    }
    soft = [{"class": "b", "sigmas": [0.1], "sweep": {"memory": 1e5}}]
    return prepare(
        SceneOptions(classes=list("abc"), measures=["gini"], soft_confusion=soft, **words), cubes, block=block
    )


def test_equal_frames_are_put_into_words_once_and_others_are_kept_apart(tmp_path, monkeypatch):
    texts = []
    monkeypatch.setattr(
        summary_cache, "json", SimpleNamespace(dumps=lambda x: texts.append(x) or json.dumps(x), loads=json.loads)
    )
    first, other = (du.evaluate([[0.2, 0.8]], [1], measures=[name]) for name in ("gini", "entropy"))
    groups = [first, first, other, other, first]
    for number, evaluation in enumerate(groups):
        Checkpoints(str(tmp_path), "key").save(evaluation, number)
    assert len([text for text in texts if "frame" in text]) == 3
    assert [Checkpoints(str(tmp_path), "key").load(number) for number in range(5)] == groups


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 99), st.sets(st.integers(0, 23)), st.booleans())
def test_any_finished_groups_give_the_same_bits(tmp_path_factory, seed, lost, tiles):
    words = {"confidence": {"unit": "tile", "size": 4}} if tiles else {}
    plan = plan_of(seed, (2, 3), **words)
    out = tmp_path_factory.mktemp("c") / "out"
    kept = open_checkpoints(out, "key", fresh=False)
    whole = replace(plan, checkpoints=kept).compute()
    assert whole == plan.compute()
    files = sorted(Path(kept.folder).glob("*.case"))
    assert len(files) == 24
    for i in lost:
        files[i].write_bytes(files[i].read_bytes()[:-1] if i % 2 else b"")
    again = replace(plan, checkpoints=open_checkpoints(out, "key", fresh=False))
    assert again.unfinished_blocks() == len(lost)
    assert again.compute() == whole
    assert again.unfinished_blocks() == 0


def test_tasks_of_several_blocks_keep_the_same_groups(tmp_path, monkeypatch):
    plan = plan_of(0, (1, 1))
    cubes = {name: replace(cube, data=Stored(cube.data)) for name, cube in plan.scene.cubes.items()}
    whole = plan.compute_here()
    monkeypatch.setattr(graph, "MOST_TASKS", 90)
    kept = open_checkpoints(tmp_path / "out", "key", fresh=False)
    stored = replace(plan, scene=replace(plan.scene, cubes=cubes), checkpoints=kept)
    assert 0 < len(stored.reduction().sizes()) < 64
    assert stored.compute() == whole
    lost = sorted(Path(kept.folder).glob("*.case"))[::3]
    for file in lost:
        file.unlink()
    assert len(lost) < stored.unfinished_blocks() < 120
    assert stored.compute() == whole


@given(st.integers(1, 5000), st.integers(1, 100))
def test_groups_are_few_even_and_hold_every_block_once(blocks, most):
    groups = chunking.cut_in_groups(blocks, most)
    assert [number for part in groups for number in part] == list(range(blocks))
    assert len(groups) == min(blocks, most)
    sizes = [len(part) for part in groups]
    assert max(sizes) - min(sizes) <= 1


def test_what_is_of_something_else_is_removed(tmp_path, monkeypatch):
    def opened(key="one", fresh=False):
        return open_checkpoints(tmp_path / "out", key, fresh)

    plan = plan_of(0, (12, 10))
    replace(plan, checkpoints=opened()).compute()
    assert opened().has(0)
    assert not opened("two").has(0)
    assert not Checkpoints(opened("two").folder, "one").has(0)
    replace(plan, checkpoints=opened()).compute()
    assert not opened(fresh=True).has(0)
    replace(plan, checkpoints=opened()).compute()
    monkeypatch.setattr(checkpoints, "FORMAT", 0)
    assert not opened().has(0)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A scene of 16 blocks or more with maps, and its output from a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("job")
    scenes.Scene(folder, measures=["entropy", "gini", "fisher_rao"], maps=["entropy", "correct"])
    assert start(folder, "whole").wait() == 0
    return folder


def start(folder, out):
    command = scenes.command(folder / "job.yaml", folder / out)
    return subprocess.Popen(command, start_new_session=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_was_killed_goes_on(job, seed):
    out, rng = f"out{seed}", random.Random(seed)
    files, many = job / f"{out}.blocks", rng.randint(1, 12)
    process = start(job, out)
    while len(scenes.finished(files)) < many and process.poll() is None:
        time.sleep(0.005)
    time.sleep(rng.random() * 0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(scenes.finished(files))
    assert start(job, out).wait() == 0
    assert du.load(job / out) == du.load(job / "whole")
    for name in ("entropy", "correct"):
        maps = [zarr.open_group(job / run / "maps.zarr", mode="r")[name][...] for run in (out, "whole")]
        assert np.array_equal(*maps, equal_nan=True)
    record = json.loads((job / out / "run.json").read_text())
    if done < record["blocks"]:  # else it was quicker than its killer
        assert record["blocks_computed"] == record["blocks"] - done
    assert not files.exists()
    assert not list(job.glob(f"{out}*unfinished*"))


@pytest.mark.slow
def test_a_thousand_blocks_stay_few_tasks(tmp_path):
    kept = open_checkpoints(tmp_path / "out", "key", fresh=False)
    plan = replace(plan_of(0, (10, 1), (100, 100)), checkpoints=kept)
    assert plan.grid.blocks == 1000
    assert plan.tasks() < 5000
    whole = plan.compute()
    assert len(list(Path(kept.folder).glob("*.case"))) == GROUPS
    assert whole == replace(plan, checkpoints=None).in_one_task().compute()
    assert plan.tasks() < 200  # all is read back
