"""What a person sees while a command runs and when it ends."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.cli import console
from dask_uncert.cli.main import cli
from dask_uncert.jobs.submission import Submission
from dask_uncert.reports import write


@pytest.fixture
def volume(tmp_path):
    return write_volume(tmp_path)


def write_volume(folder):
    """The file of a job on a small volume, with intervals."""
    rng = np.random.default_rng(0)
    np.save(folder / "p.npy", rng.dirichlet(np.ones(2), (4, 8, 8)))
    np.save(folder / "y.npy", rng.integers(0, 3, (4, 8, 8)))
    job = {
        "version": 1, "kind": "scene", "output": "out", "classes": {1: "healthy", 2: "lesion"}, "ignore": [0],
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["z", "y", "x", "class"]},
            "reference": {"store": "y.npy", "dims": ["z", "y", "x"]},
        },
        "measures": ["gini"], "confidence": {"unit": "tile", "size": 2, "replicates": 30}, "maps": ["gini"],
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return folder / "job.yaml"


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
    known = re.sub(r" \(.+minute\)", "", progress)  # of the first use on a machine
    stages = list(dict.fromkeys(re.findall(r"^(.+): \d+ of \d+", known, re.MULTILINE)))
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


JSON = {  # words of a command by its name; what it answers has these keys
    "run": ("{job}", "--out", "{new}", ["counted", "overall"]),
    "plan": ("{job}", "--no-probe", ["output", "blocks"]),
    "merge": ("{new}", "{out}", ["counted", "overall"]),
    "report": ("{out}", ["counted", "overall"]),
    "compare": ("{out}", "{other}", "--permutations", "20", "--replicates", "20", ["first", "metrics"]),
    "sweep": ("{out}", []),
    "choose": ("{out}", "--on", "zone=0", "--class", "lesion", "--replicates", "20", ["threshold", "reported_on"]),
    "schema": ("ignore", ["key", "explanation"]),
    "demo": ("{new}", ["job", "data"]),
    "init": ("{folder}/p.npy", "{folder}/y.npy", "--out", "{new}", ["job", "guesses"]),
    "convert": ("{folder}/y.npy", "{new}.zarr", "--dims", "z,y,x", ["output"]),
    "export": ("{out}", "{new}.nii", "--map", "gini", ["output"]),
    "status": ("{out}", ["output", "status", "message"]),
    "wait": ("{out}", ["output", "status", "message"]),
    "cancel": ("{out}", ["output", "status", "message"]),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a job that has two results, one of them as if it had been submitted."""
    folder = tmp_path_factory.mktemp("finished")
    zones, soft = np.arange(4 * 8 * 8).reshape(4, 8, 8) % 2, {"class": "lesion"}
    np.save(folder / "zones.npy", zones)
    job = yaml.safe_load(write_volume(folder).read_text())
    job["inputs"]["zones"] = {"store": "zones.npy", "dims": ["z", "y", "x"]}
    (folder / "job.yaml").write_text(yaml.safe_dump({**job, "soft_confusion": [soft]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write, "figures_and_page", lambda *arguments: {})
        du.run(folder / "job.yaml")
        du.run(folder / "job.yaml", out=folder / "other")
    Submission("j", str(folder / "out"), "tcp://127.0.0.1:1", "scheduler", "k").create()
    Submission.read(str(folder / "out")).end("done", "x")
    return folder


@pytest.mark.parametrize("name", [*cli.commands])
def test_every_command_prints_one_json_document(name, finished, tmp_path, dask_uncert_command):
    assert any(option.name == "as_json" for option in cli.commands[name].params)
    if name == "submit":  # tests/jobs/test_submit.py runs it, with a cluster
        return
    *words, keys = JSON[name]
    places = {"job": finished / "job.yaml", "out": finished / "out", "other": finished / "other"}
    places |= {"folder": finished, "new": tmp_path / "new"}
    status, said, problem = dask_uncert_command(name, *(word.format(**places) for word in words), "--json")
    assert (status, problem) == (0, "")
    answer = json.loads(said)
    assert {*keys} <= ({*answer} if isinstance(answer, dict) else {*answer[0]})
    if name in ("run", "merge"):
        assert answer == json.loads((tmp_path / "new" / "results.json").read_text())
    elif name == "report":
        assert answer == json.loads((finished / "out" / "results.json").read_text())
    elif name in ("status", "wait", "cancel"):
        assert answer == {"output": str(finished / "out"), "status": "done", "message": "x"}
    elif name == "plan":
        assert answer["output"] == str(finished / "out")
    elif name == "export":
        assert answer == {"output": str(tmp_path / "new.nii")}


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
