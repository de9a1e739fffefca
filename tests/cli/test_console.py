"""What a person sees while a command runs and when it ends."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.cli import console
from dask_uncert.jobs.submission import Submission
from dask_uncert.reports import write


@pytest.fixture
def volume(tmp_path):
    """The file of a job on a small volume, with intervals."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "p.npy", rng.dirichlet(np.ones(2), (4, 8, 8)))
    np.save(tmp_path / "y.npy", rng.integers(0, 3, (4, 8, 8)))
    job = {
        "version": 1, "kind": "scene", "output": "out", "classes": {1: "healthy", 2: "lesion"}, "ignore": [0],
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["z", "y", "x", "class"]},
            "reference": {"store": "y.npy", "dims": ["z", "y", "x"]},
        },
        "measures": ["gini"], "confidence": {"unit": "tile", "size": 2, "replicates": 30}, "maps": ["gini"],
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    return tmp_path / "job.yaml"


def test_the_summary_says_how_good_how_sure_what_was_left_out_and_where(volume, tmp_path, dask_uncert_command):
    status, said, progress = dask_uncert_command("run", volume)
    assert status == 0, progress
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    low, high = results["overall"]["accuracy_interval"]
    ignored = results["excluded"]["ignored"]
    assert f"accuracy {results['overall']['accuracy']:.4f} ({low:.4f} to {high:.4f})" in said
    assert f"calibration error (ECE) {results['calibration']['ece']:.4f}" in said
    assert f"error AUROC of gini {results['selective']['gini']['error_auroc']:.4f}" in said
    assert f"{results['counted']} voxels counted, {ignored} left out: {ignored} ignored" in said
    assert f"in brackets: 95 % intervals from {results['confidence']['units']} tiles" in said
    assert f"{tmp_path / 'out'}: results.json (every number), tables (tables), maps.zarr (maps)" in said
    stages = list(dict.fromkeys(re.findall(r"^(.+): \d+ of \d+", progress, re.MULTILINE)))
    assert stages == [
        "start the cluster", "evaluate: compile, read the first block", "evaluate", "report: numbers"
    ]  # fmt: skip


def test_a_stage_says_its_rate_and_the_time_left(capsys, monkeypatch):
    clock = iter([100.0, 102.0, 108.0])
    monkeypatch.setattr(console, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # not that of the cluster
    with console.progress(silent=False) as progress:
        for done in (0, 4, 16):
            progress("cases", done, 16)
    assert capsys.readouterr().err.splitlines() == [
        "cases: 0 of 16", "cases: 4 of 16, 2/s, 6 s left", "cases: 16 of 16, 2/s, in 8 s"
    ]  # fmt: skip


def test_voxels_are_called_voxels(volume, tmp_path, dask_uncert_command):
    dask_uncert_command("run", volume)
    out = tmp_path / "out"
    assert json.loads((out / "run.json").read_text())["unit"] == "voxel"
    assert "8 x 8" not in repr(du.load(out))
    assert "voxels counted" in repr(du.load(out))
    before = {path.name: path.read_text() for path in (out / "tables").iterdir()}
    text = "".join(before.values())
    assert "n (voxels)" in text
    assert "pixel" not in text
    dask_uncert_command("report", out)
    assert {path.name: path.read_text() for path in (out / "tables").iterdir()} == before
    dask_uncert_command("merge", tmp_path / "sum", out)
    assert json.loads((tmp_path / "sum" / "run.json").read_text())["unit"] == "voxel"


def test_a_run_keeps_its_date_version_and_settings_for_the_page(volume, tmp_path, dask_uncert_command, monkeypatch):
    pages = []
    monkeypatch.setattr(
        write, "figures_and_page", lambda evaluation, results, maps, about, *rest: pages.append(about) or {}
    )
    dask_uncert_command("run", volume)
    dask_uncert_command("report", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert pages[0] == pages[1]
    assert record["about"].items() <= pages[0].items()
    assert pages[0]["started"] == record["started"]
    assert pages[0]["dask-uncert"] == du.__version__
    settings = yaml.safe_load(pages[0]["settings"])
    assert settings["confidence"]["size"] == 2
    assert settings["ignore"] == [0]
    assert not {"inputs", "output", "cluster"} & {*settings}


def test_every_command_speaks_json(volume, tmp_path, dask_uncert_command):
    def answer(*words):
        status, said, problem = dask_uncert_command(*words, "--json")
        assert status == 0, problem
        assert problem == ""
        return json.loads(said)

    out = tmp_path / "out"
    results = answer("run", volume)
    assert results == json.loads((out / "results.json").read_text()) == answer("report", out)
    assert answer("merge", tmp_path / "sum", out)["counted"] == results["counted"]
    assert answer("plan", volume)["output"] == str(out)
    target = tmp_path / "gini.nii"
    assert answer("export", out, target, "--map", "gini") == {"output": str(target)}
    target = tmp_path / "y.zarr"
    assert answer("convert", tmp_path / "y.npy", target, "--dims", "z,y,x") == {"output": str(target)}
    Submission("j", str(out), "tcp://127.0.0.1:1", "scheduler", "k").create()
    waiting = answer("status", out)
    assert (waiting["output"], waiting["status"]) == (str(out), "waiting")
    assert answer("status")[-1] == waiting
    Submission.read(out).end("done", "x")
    ended = {"output": str(out), "status": "done", "message": "x"}
    assert answer("wait", out) == answer("cancel", out) == answer("status")[-1] == ended


def test_status_without_an_id_lists_the_jobs(tmp_path, monkeypatch, dask_uncert_command):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "no job was submitted" in dask_uncert_command("status")[1]
    jobs = [Submission("j", str(tmp_path / name), "tcp://127.0.0.1:1", "scheduler", "k") for name in "ab"]
    for job in (*jobs, jobs[0]):
        if job is jobs[0] and (tmp_path / "a.job").exists():
            Submission.read(job.output).end("failed", "no such file")
        job.create()
    jobs[1].end("done", "the result is there")
    lines = dask_uncert_command("status")[1].splitlines()
    assert [line.split("  ")[0] for line in lines] == [str(tmp_path / "b"), str(tmp_path / "a")]
    assert lines[0].endswith("done: the result is there")
    assert "waiting: sent to tcp://127.0.0.1:1" in lines[1]
    assert [*du.submissions()] == [str(tmp_path / "b"), str(tmp_path / "a")]
    (tmp_path / "a.job" / "progress.json").write_text("{}")  # one that cannot be read hides no other
    found = [*du.submissions().values()]
    assert [one.status for one in found] == ["done", "lost"]
    assert "progress.json is not as dask-uncert writes it" in found[1].message
