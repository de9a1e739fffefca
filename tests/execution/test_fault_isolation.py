"""A block that ends the process of its worker is found and named, whoever shared that worker; all others are finished."""

from __future__ import annotations

import os

import pytest

import dask_uncert as du
from dask_uncert.errors import ClusterError
from dask_uncert.execution import chunking, fault_isolation
from tests.support import scenes, schedulers

ALLOWED = 2  # deaths after which this scheduler gives a task up
POISON = """
import os, time
from pathlib import Path


def deadly(function, folder):
    def evaluated(self, arrays, offset):
        poison = folder / f"poison {offset}"
        if poison.exists():
            time.sleep(0.1)  # its neighbours are under way
            with (folder / "deaths").open("a") as file:
                file.write(f"{offset}\\n")
            if poison.read_text() == "once":
                poison.unlink()
            os._exit(1)
        time.sleep(0.05)
        with (folder / "done").open("a") as file:
            file.write(f"{offset}\\n")
        return function(self, arrays, offset)

    return evaluated


if "POISON" in os.environ:
    from dask_uncert.execution.tasks import EvaluateBlock

    EvaluateBlock.__call__ = deadly(EvaluateBlock.__call__, Path(os.environ["POISON"]))
"""
"""What workers import when they start: blocks for which there is a file end the process, as a decoder may."""

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers of two threads under nannies, whose processes look for poison in a folder; both."""
    folder, poison = tmp_path_factory.mktemp("cluster"), tmp_path_factory.mktemp("poison")
    (folder / "sitecustomize.py").write_text(POISON)
    environment = {**os.environ, "PYTHONPATH": str(folder), "POISON": str(poison)}
    environment["DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES"] = str(ALLOWED - 1)
    with schedulers.scheduler(folder, environment=environment) as (address, _):
        yield address, poison


@pytest.fixture
def many(monkeypatch):
    """Scenes are cut into a block a chunk."""
    monkeypatch.setattr(chunking, "MIN_BLOCKS", 120)


def lines(file):
    return file.read_text().splitlines() if file.exists() else []


def poisoned(folder, *offsets, word="always"):
    for file in folder.iterdir():
        file.unlink()
    for offset in offsets:
        (folder / f"poison {offset}").write_text(word)


@pytest.mark.slow
def test_the_block_is_named_and_all_others_are_kept(tmp_path, cluster, many):
    """120 blocks in 64 groups: one block kills, and its group of two is all that is left."""
    address, folder = cluster
    scene = scenes.Scene(tmp_path)
    poisoned(folder, (200, 300))
    with pytest.raises(ClusterError) as caught:
        du.run(scene.job, cluster=address)
    said = str(caught.value)
    assert "a block ended the worker's process every time" in said
    assert f"no other task beside it: y 200:300, x 300:400 (it ended its worker process {ALLOWED} times)." in said
    assert "Inputs: probabilities: s.zarr:p, reference: s.zarr:y." in said
    assert "All other groups of blocks are finished; what was finished is kept." in said
    assert "\n" not in said
    assert set(lines(folder / "deaths")) == {"(200, 300)"}
    assert len(lines(folder / "deaths")) <= 3 * ALLOWED
    assert len(list(tmp_path.glob("out.blocks/*.case"))) == 63
    assert not (tmp_path / "out").exists()
    poisoned(folder)
    assert du.run(scene.job, cluster=address) == scene.wanted()
    assert scenes.record(tmp_path / "out")["blocks_computed"] == 2
    assert len(lines(folder / "done")) == 2


@pytest.mark.slow
def test_several_blocks_are_named_and_then_it_is_enough(tmp_path, cluster, many):
    address, folder = cluster
    scene = scenes.Scene(tmp_path, shape=(400, 300))
    poisoned(folder, *((y, x) for y in range(0, 400, 100) for x in (0, 200)))
    with pytest.raises(ClusterError, match=r"these blocks ended .*; .*; .*Other blocks were not tried;"):
        du.run(scene.job, cluster=address)
    assert len(lines(folder / "deaths")) <= ALLOWED * (1 + 8 + fault_isolation.MOST_NAMED)


@pytest.mark.slow
def test_what_was_the_others_fault_ends_well(tmp_path, cluster, many, monkeypatch):
    """Each of these blocks kills a process once: enough to be given up together, and none does so alone."""
    address, folder = cluster
    scene, tried = scenes.Scene(tmp_path, shape=(300, 200)), []
    by_groups = fault_isolation._compute_by_groups
    monkeypatch.setattr(fault_isolation, "_compute_by_groups", lambda *given: tried.append(1) or by_groups(*given))
    poisoned(folder, *((y, x) for y in range(0, 300, 100) for x in range(0, 200, 100)), word="once")
    assert du.run(scene.job, cluster=address) == scene.wanted()
    assert len(tried) == 1
    assert len(set(lines(folder / "deaths"))) == 6
    assert not list(tmp_path.glob("out.blocks"))
