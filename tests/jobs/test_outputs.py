"""What every command that writes an output says of one that cannot be made, or that another run is writing."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import yaml
import zarr

import dask_uncert as du
from dask_uncert.cli.console import plan_text
from dask_uncert.errors import InputError
from dask_uncert.io.output_lock import reserved
from tests.support import cohorts

NOWHERE = "tcp://127.0.0.1:1"  # nothing may be asked of a cluster


@pytest.fixture(scope="module")
def studies(tmp_path_factory, shared_client):
    """A folder with a scene, a regression and a cohort, and finished results of two of them."""
    base = tmp_path_factory.mktemp("studies")
    np.save(base / "p.npy", np.random.default_rng(0).dirichlet(np.ones(2), (6, 5)))
    np.save(base / "y.npy", np.ones((6, 5), "u1"))
    grid = {"store": "y.npy", "dims": ["y", "x"]}
    scene = {"probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": grid}
    words = {"version": 1, "output": "out"}
    jobs = {
        "scene": {"classes": {0: "a", 1: "b"}, "measures": ["gini"], "maps": ["gini"], "inputs": scene},
        "regression": {"inputs": {"mean": grid, "reference": grid, "variance": grid}},
    }
    for kind, job in jobs.items():
        (base / f"{kind}.yaml").write_text(yaml.safe_dump({**words, "kind": kind, **job}))
    cohorts.Cohort(base, ["A", "B"], measures=["gini"]).job().rename(base / "cohort.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dask_uncert.reports.write.figures_and_page", lambda *arguments: {})
        for kind in ("scene", "cohort"):
            du.run(base / f"{kind}.yaml", out=base / f"{kind}s", cluster=shared_client)
    return base


COMMANDS = {
    **{
        kind: lambda base, out, kind=kind: du.run(base / f"{kind}.yaml", out=out, cluster=NOWHERE)
        for kind in ("scene", "regression", "cohort")
    },
    "merge": lambda base, out: du.merge(out, [base / "scenes"]),
    "merge of cohorts": lambda base, out: du.merge(out, [base / "cohorts"], leave_out=["A"]),
    "convert": lambda base, out: du.convert(base / "y.npy", f"{out}.zarr", dims=["y", "x"], cluster=NOWHERE),
}


def tree(base):
    return {path: path.is_file() and path.read_bytes() for path in base.rglob("*")}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_second_of_two_runs_is_told_at_its_start(studies, command):
    out = studies / ("out.zarr" if command == "convert" else "out")
    before = tree(studies)
    with reserved(out), pytest.raises(InputError, match=f"another run is writing to {out} "):
        COMMANDS[command](studies, studies / "out")
    assert tree(studies) == before


def test_a_report_of_what_is_being_written_is_refused(studies):
    before = tree(studies)
    with reserved(studies / "scenes"), pytest.raises(InputError, match="another run is writing"):
        du.report(studies / "scenes")
    assert tree(studies) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("out", ["p.npy/out", "/proc/nothing/out", "n" * 300, "n" * 170])
def test_an_output_that_cannot_be_made_is_refused_before_anything_runs(studies, command, out):
    before = tree(studies)
    with pytest.raises(InputError, match=r"cannot be (created|reached)") as error:
        COMMANDS[command](studies, studies / out)
    assert "\n" not in str(error.value)
    assert tree(studies) == before


@pytest.mark.parametrize("out", ["p.npy/out", "/proc/nothing/out", "n" * 300])
def test_a_job_is_not_submitted_for_an_output_that_cannot_be_made(studies, out, monkeypatch):
    (studies / "slurm.yaml").write_text("kind: slurm\n")
    monkeypatch.setenv("PATH", "/nowhere")
    before = tree(studies)
    with pytest.raises(InputError, match=r"cannot be (created|reached)"):
        du.submit(studies / "scene.yaml", cluster=str(studies / "slurm.yaml"), out=studies / out)
    assert tree(studies) == before


@pytest.mark.parametrize("name", ["p.npy/gini.nc", "nowhere/gini.png", f"{'n' * 240}.nc"])
def test_a_map_is_not_read_for_a_file_that_cannot_be_written(studies, name, monkeypatch):
    monkeypatch.setattr("dask_uncert.jobs.export._open", None)  # nothing is opened
    with pytest.raises(InputError, match="cannot be written"):
        du.export(studies / "scenes", "gini", studies / name)


def test_python_writes_maps_and_evaluations_where_it_can_or_says_so(studies):
    p, y = np.load(studies / "p.npy"), np.load(studies / "y.npy")
    evaluation = du.load(studies / "scenes")
    for path in (studies / "p.npy" / "maps.zarr", "/proc/nothing/maps.zarr"):
        with pytest.raises(InputError, match="cannot be written"):
            du.evaluate(p, y, maps=["gini"], maps_store=path, measures=["gini"], engine="reference")
        with pytest.raises(InputError, match="cannot be written"):
            du.save(evaluation, path)


def test_maps_replace_earlier_maps_and_nothing_else(studies, tmp_path):
    p, y = np.load(studies / "p.npy"), np.load(studies / "y.npy")
    words = {"maps": ["gini"], "measures": ["gini"], "engine": "reference", "maps_store": tmp_path / "maps.zarr"}
    for _ in range(2):
        du.evaluate(p, y, **words)
    zarr.create_array(tmp_path / "maps.zarr" / "mine", data=y)
    before = tree(tmp_path)
    with pytest.raises(InputError, match=r"holds mine/.*, which dask-uncert did not write"):
        du.evaluate(p, y, **words)
    with pytest.raises(InputError, match="not ours to replace"):
        du.evaluate(p, y, **words | {"maps_store": studies / "A.zarr"})
    assert tree(tmp_path) == before


def test_inputs_without_a_checksum_are_named(studies, tmp_path, monkeypatch, shared_client):
    seen = []
    monkeypatch.setattr(
        "dask_uncert.reports.write.figures_and_page", lambda *arguments, **words: seen.append(arguments[3]) or {}
    )
    shutil.copytree(studies / "scenes", tmp_path / "scene")
    shutil.copytree(studies / "cohorts", tmp_path / "cohort")
    du.report(tmp_path / "scene")
    du.report(tmp_path / "cohort")
    du.merge(tmp_path / "merged", [tmp_path / "scene"])
    both = ["probabilities", "reference"]
    for name in ("scene", "cohort", "merged"):
        for file in ("results.json", "run.json"):
            assert json.loads((tmp_path / name / file).read_text())["without_checksum"] == both, (name, file)
    assert [about["inputs without a checksum"] for about in seen] == [", ".join(both)] * 3
    assert [du.plan(studies / f"{name}.yaml")["without_checksum"] for name in ("scene", "cohort")] == [both, both]
    assert "none in the chunks of probabilities, reference:" in plan_text(du.plan(studies / "scene.yaml"))
    du.convert(studies / "p.npy", tmp_path / "p.zarr", dims=["y", "x", "class"], cluster=shared_client)
    job = yaml.safe_load((studies / "scene.yaml").read_text())
    job["inputs"] = {
        "probabilities": {"store": str(tmp_path / "p.zarr"), "array": "data"},
        "reference": {"store": str(studies / "y.npy"), "dims": ["y", "x"]},
    }
    assert du.plan(job)["without_checksum"] == ["reference"]
