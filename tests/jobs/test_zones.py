"""Zones through the job file and the commands: run, plan, merge, report."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import zarr

import dask_uncert as du
from tests.support.scenes import Scene


def test_zones_of_a_job_run_merge_and_plan(tmp_path, dask_uncert_command):
    scene = Scene(tmp_path, shape=(60, 50), chunk=20)
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 3, (60, 50), dtype="u1")
    group = zarr.open_group(tmp_path / "s.zarr", mode="a")
    group.create_array("zones", shape=codes.shape, chunks=(20, 20), dtype="u1", dimension_names=("y", "x"))[...] = codes
    names = {1: "train", 2: "test"}
    zones = {"store": "s.zarr", "array": "zones", "names": names, "nodata": 0}
    joint = {"joint_distributions": scene.words["measures"]}
    words = {**scene.words, "inputs": {**scene.words["inputs"], "zones": zones}, **joint}
    scene.job.write_text(json.dumps(words))
    plan = du.plan(scene.job, probe=False)
    assert "zones" in json.dumps(plan)
    assert dask_uncert_command("run", scene.job)[0] == 0
    found = du.load(tmp_path / "out")
    wanted = du.evaluate(
        scene.p, scene.y, zones=du.Input(codes, names=names, nodata=0), classes=[str(i) for i in range(6)],
        measures=scene.words["measures"], **joint,
    )  # fmt: skip
    assert found == wanted
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results["excluded"]["zones_nodata"] == (codes == 0).sum()
    assert results["zones"]["test"]["counted"] == (codes == 2).sum()
    # A second scene with a zone more: the same names are needed, and counts of a zone add.
    second = {**words, "output": "second", "inputs": {**words["inputs"], "mask": {"store": "s.zarr", "array": "zones"}}}
    (tmp_path / "second.yaml").write_text(json.dumps(second))
    assert dask_uncert_command("run", tmp_path / "second.yaml")[0] == 0
    both = du.merge(tmp_path / "both", [tmp_path / "out", tmp_path / "second"])
    assert both.zone("train") == found.zone("train") + du.load(tmp_path / "second").zone("train")
    joints = [du.joint_distribution(both, name) for name in joint["joint_distributions"]]
    assert joints
    assert all(pixels.sum() == both.ledger.counted for pixels in joints)
    assert replace(both, zones=None).ledger.pixels == 2 * codes.size
