"""The commands as people use them: real runs, real output folders, one paragraph where something is wrong."""

import json
import os
import re
import shlex
import shutil
import time

import numpy as np
import pytest
import xarray as xr
import yaml
import zarr

import dask_uncert as du
from dask_uncert.clusters import connect
from dask_uncert.errors import InputError
from dask_uncert.io.output_folder import read_record, write_record
from dask_uncert.jobs import run
from dask_uncert.jobs.load import plan_job, read_job
from dask_uncert.reports.results.scene import scene_results, to_json
from tests.support import ROOT
from tests.support.command import command

SCENE = ROOT / "workflows" / "hyperspectral_scene.yaml"
NUMBERS = {"results.json", "summary.zarr", "maps.zarr", "tables", "run.json"}


@pytest.fixture
def job(tmp_path):
    """A small job on a store of its own, as a mapping; its file is written by `write`."""
    rng = np.random.default_rng(0)
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    shape = (12, 10)
    arrays = {
        "posterior": rng.dirichlet([0.5] * 3, shape).astype("float32"),
        "labels": rng.integers(0, 4, shape).astype("uint8"),
    }
    for name, values in arrays.items():
        dims = ("y", "x", "class")[: values.ndim]
        group.create_array(name, data=values, chunks=(4, 5, *values.shape[2:]), dimension_names=dims)
    for name, n in zip(("y", "x"), shape, strict=True):
        about = {"units": "m", "standard_name": f"projection_{name}_coordinate"}
        group.create_array(name, data=np.arange(n) * 20.0, dimension_names=(name,), attributes=about)
    return {
        "version": 1, "kind": "scene", "output": "out", "classes": {1: "soil", 2: "tree", 3: "water"}, "ignore": [0],
        "measures": ["gini", "entropy"], "maps": ["gini", "correct"],
        "inputs": {
            "probabilities": {"store": "scene.zarr", "array": "posterior"},
            "reference": {"store": "scene.zarr", "array": "labels", "dims": ["y", "x"]},
        },
    }  # fmt: skip


def write(job, folder, **changes):
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump({**job, **changes}))
    return path


def refused(message, job, folder, **changes):
    """Run the changed job, which is refused with this message and leaves nothing new in the folder."""
    path = write(job, folder, **changes)
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        du.run(path)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


def test_run_writes_numbers_maps_and_what_it_did(job, tmp_path, dask_uncert_command):
    status, said, problem = dask_uncert_command("run", write(job, tmp_path))
    assert status == 0, problem
    out = tmp_path / "out"
    assert {p.name for p in out.iterdir()} == NUMBERS
    assert "pixels counted" in said
    record = json.loads((out / "run.json").read_text())
    assert record["counted"] + sum(record["excluded"].values()) == 120
    assert record["bytes_read"] == 12 * 10 * (3 * 4 + 1)
    assert record["versions"]["dask-uncert"]
    named = {"without_checksum": ["probabilities", "reference"]}
    assert (out / "results.json").read_text() == to_json({**scene_results(du.load(out)), **named})
    maps = xr.open_zarr(out / "maps.zarr", consolidated=False)
    assert maps["gini"].dims == ("y", "x")
    assert maps["x"].values.tolist() == [20.0 * i for i in range(10)]
    assert maps["x"].attrs["units"] == "m"
    assert int(maps["correct"].notnull().sum()) == record["counted"]


@pytest.mark.usefixtures("dask_uncert_command")
def test_a_finished_evaluation_is_not_run_again(job, tmp_path):
    path, out = write(job, tmp_path), tmp_path / "out"
    first = du.run(path)
    before = (out / "run.json").stat().st_mtime_ns
    assert du.run(path) == first
    refused("finished evaluation of another job", job, tmp_path, measures=["gini"])
    labels = zarr.open_group(str(tmp_path / "scene.zarr"), mode="r+")["labels"]
    labels[0, 0] = 1 if labels[0, 0] != 1 else 2
    refused("other inputs", job, tmp_path)
    assert (out / "run.json").stat().st_mtime_ns == before
    again = du.run(path, fresh=True)
    assert again == du.load(out) != first


def test_files_of_others_are_not_touched(job, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("do not lose me")
    with pytest.raises(InputError, match="not ours to replace"):
        du.run(write(job, tmp_path), fresh=True)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def with_input(job, name, **changes):
    return {**job["inputs"], name: {**job["inputs"].get(name, {"store": "scene.zarr"}), **changes}}


def test_a_wrong_request_is_one_paragraph(job, tmp_path, dask_uncert_command):
    cases = {
        "no store at": {"inputs": with_input(job, "probabilities", store="other.zarr")},
        "has no array 'posteriors'; it has: labels, posterior": {
            "inputs": with_input(job, "probabilities", array="posteriors")
        },
        "name 2 dimensions, but": {"inputs": with_input(job, "probabilities", dims=["y", "x"])},
        "contradict": {"inputs": with_input(job, "probabilities", dims=["x", "y", "class"])},
        "class table has 2": {"classes": {1: "soil", 2: "tree"}},
        "unknown measure 'ginny'": {"measures": ["ginny"]},
        "Unknown key `clases`. Did you mean `classes`?": {"clases": {}},
        "`version` ": {"version": 2},
        "`inputs.mask.store` is missing": {"inputs": {**job["inputs"], "mask": {"array": "labels"}}},
        "`soft_confusion.0.distribution` should be 'gaussian'": {"soft_confusion": [{"distribution": "normal"}]},
        "there is no table at": {
            "measures": ["homophily"],
            "maps": [],
            "class_distances": {"table": "H.csv"},
        },
    }
    for message, changes in cases.items():
        refused(message, job, tmp_path, **changes)
    path = write(job, tmp_path)
    path.write_text(path.read_text() + "kind: scene\n")
    with pytest.raises(InputError, match="'kind' is given twice"):
        du.plan(path)
    path.write_text("!!python/object/apply:os.system ['touch here']")
    with pytest.raises(InputError, match="is not valid YAML"):
        du.plan(path)
    status, out, said = dask_uncert_command("run", tmp_path / "none.yaml")
    assert (status, out, said.count("\n")) == (2, "", 1)
    assert said.startswith("error: there is no job file at")
    for words, message in (
        (["--set", "measures"], "expected KEY=VALUE, found 'measures'"),
        (["--set", "measures=["], "'[' is not valid YAML"),
    ):
        status, out, said = dask_uncert_command("run", path, *words)
        assert (status, out) == (2, "")
        assert message in said


@pytest.mark.usefixtures("dask_uncert_command")
def test_unusable_input_leaves_nothing_behind(job, tmp_path):
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="r+")
    group["labels"][3, 4:7] = 9
    with pytest.raises(InputError, match=r"scene\.zarr:labels .*9 \(3 pixels\)"):
        du.run(write(job, tmp_path))
    group["labels"][...] = 1
    group["posterior"][2, 2] = 0.2
    with pytest.raises(InputError, match=r"1 counted pixel .* y = 2, x = 2"):
        du.run(write(job, tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["job.yaml", "scene.zarr"]


def test_plan_runs_nothing(job, tmp_path, dask_uncert_command):
    found = du.plan(write(job, tmp_path), probe=False)
    assert found["grid"] == {"y": 12, "x": 10}
    assert found["blocks"] == 6
    assert found["bytes_read"] == {"probabilities": 1440, "reference": 120}
    assert json.loads(dask_uncert_command("plan", tmp_path / "job.yaml", "--json", "--no-probe")[1]) == found
    text = dask_uncert_command("plan", tmp_path / "job.yaml")[1]
    assert "blocks  6 of y 4 x x 5" in text
    assert "12 chunk reads" in text
    assert re.search(r"time  about \S+ s on \d+ threads \(\S+ s of a core\), without start and report\n", text)
    assert not (tmp_path / "out").exists()


def test_merge_adds_without_reading(job, tmp_path, dask_uncert_command):
    first = du.run(write(job, tmp_path), out=tmp_path / "a")
    group = zarr.open_group(tmp_path / "scene.zarr", mode="r+")
    group.create_array("others", data=group["labels"][...][::-1], chunks=(4, 5), dimension_names=("y", "x"))
    second = du.run(write(job, tmp_path), out=tmp_path / "b", overrides={"inputs.reference.array": "others"})
    du.run(write(job, tmp_path), out=tmp_path / "again")
    shutil.copytree(tmp_path / "b", tmp_path / "copy")
    (tmp_path / "scene.zarr").rename(tmp_path / "gone.zarr")
    status, out, said = dask_uncert_command("merge", tmp_path / "both", tmp_path / "a", tmp_path / "b")
    assert status == 0, said
    assert "pixels counted" in out
    assert du.load(tmp_path / "both") == first + second
    with pytest.raises(InputError, match="given twice"):
        du.merge(tmp_path / "c", [tmp_path / "a", tmp_path / "a"])
    for one, other in (("a", "again"), ("b", "copy"), ("both", "copy")):
        with pytest.raises(InputError, match=f"{one} and .*{other} hold the same scene; it would count twice"):
            du.merge(tmp_path / "c", [tmp_path / one, tmp_path / other])
    with pytest.raises(InputError, match=r"both is in .*both, which this run would replace"):
        du.merge(tmp_path / "both", [tmp_path / "both", tmp_path / "b"], fresh=True)
    with pytest.raises(InputError, match="no folder"):
        du.merge(tmp_path / "c", [tmp_path / "a", tmp_path / "z"])
    write_record(tmp_path / "a", {**read_record(tmp_path / "a"), "fingerprint": None})
    with pytest.raises(InputError, match="--fresh"):
        du.merge(tmp_path / "both", [tmp_path / "a", tmp_path / "b"])
    before = (tmp_path / "a" / "results.json").read_bytes()
    (tmp_path / "a" / "results.json").unlink()
    assert dask_uncert_command("report", tmp_path / "a")[0] == 0
    assert (tmp_path / "a" / "results.json").read_bytes() == before


def test_sweep_answers_from_the_folder_alone(job, tmp_path, dask_uncert_command):
    soft = [{"class": "tree", "thresholds": [0.4], "sigmas": [0.1], "dampings": [0.5], "uncertainty": "entropy"}]
    du.run(write(job, tmp_path, soft_confusion=soft))
    (tmp_path / "scene.zarr").rename(tmp_path / "away.zarr")
    (direct,) = json.loads((tmp_path / "out" / "results.json").read_text())["soft_confusion"]

    def sweep(*words, folder="out"):
        grid = ("--threshold", ".4", "--sigma", "0,.1", "--damping", "0,.5")
        return dask_uncert_command("sweep", tmp_path / folder, *grid, *words)

    rows = json.loads(sweep("--json")[1])
    assert [(row["sigma"], row["damping"]) for row in rows] == [(0, 0), (0, 0.5), (0.1, 0), (0.1, 0.5)]
    for name in ("TP", "TN", "FP", "FN", "f1", "kappa"):
        assert abs(rows[3][name] - direct[name]) <= rows[3][f"{name}_bound"] < 1e-2
    table = sweep("--class", "tree")[1].splitlines()
    assert len(table) == 5
    assert table[0].split()[:5] == ["threshold", "sigma", "damping", "share", "TP"]
    assert sweep("--csv", tmp_path / "sweep.csv")[0] == 0
    lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert lines[0].startswith("class,uncertainty,threshold,sigma,damping,share,TP,TP_bound")
    assert float(lines[4].split(",")[6]) == rows[3]["TP"]
    for message, words, folder in (
        ("sweep.csv exists; name another file", ("--csv", tmp_path / "sweep.csv"), "out"),
        ("there are: tree (entropy)", ("--class", "rock"), "out"),
        ("expected numbers separated by commas, found 'a'", ("--sigma", "a"), "out"),
        ("there is no summary", (), "nothing"),
    ):
        status, out, said = sweep(*words, folder=folder)
        assert (status, out) == (2, "")
        assert message in said


def test_the_schema_describes_the_shipped_jobs(dask_uncert_command):
    schema = json.loads(dask_uncert_command("schema")[1])
    assert set(schema["discriminator"]["mapping"]) >= {"scene", "regression"}
    for path in (ROOT / "workflows").glob("*.yaml"):
        read_job(path)


GOLDEN = {
    "gini": ((0.4602618970, -0.2368420003), (0.7006694960, -1.8125401442)),
    "entropy": ((0.3145579140, None), (0.4741330620, None)),
    "fisher_rao": ((0.3029686699, None), (0.4206508491, None)),
    "homophily": ((0.0459991371, None), (0.0724639538, None)),
}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """The README's job, run by its command."""
    out = tmp_path_factory.mktemp("shipped") / "out"
    command("run", SCENE, "--out", out, "--quiet", check=0)
    return out


@pytest.mark.slow
def test_the_scene_of_the_readme(shipped):
    assert {p.name for p in shipped.iterdir()} == NUMBERS | {"figures", "report.html"}
    found = json.loads((shipped / "results.json").read_text())
    assert found["counted"] == 9203
    assert found["overall"]["accuracy"] == pytest.approx(0.7526893404, abs=1e-10)
    assert found["overall"]["kappa"] == pytest.approx(0.7141997182, abs=1e-10)
    assert found["calibration"]["ece"] == pytest.approx(0.1170553084, abs=1e-9)
    for name, outcomes in GOLDEN.items():
        for outcome, (mean, skewness) in zip(("correct", "wrong"), outcomes, strict=True):
            assert found["measures"][name][outcome]["mean"] == pytest.approx(mean, abs=1e-7)
            if skewness is not None:
                assert found["measures"][name][outcome]["skewness"] == pytest.approx(skewness, abs=1e-7)
    at = next(row for row in found["uncertainty_confusion"]["entropy"] if row["threshold"] == 0.3)
    assert [at[k] for k in ("TC", "FU", "FC", "TU")] == [3112, 3815, 170, 2106]
    assert found["class_distances"]["maximum"] == pytest.approx(0.5011543355, abs=1e-9)
    assert found["class_distances"]["certificate"]["kind"] == "exact"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "threads", "processes"), [(1, 1, False), (1, 4, False), (2, 1, True), (4, 1, True)]
)
def test_same_bits_on_every_cluster(shipped, tmp_path, workers, threads, processes):
    plan = plan_job(*read_job(SCENE, {"maps": []}))
    with connect.connect("local", workers=workers, threads=threads, processes=processes):
        found = plan.compute()
    assert found == du.load(shipped)
    written = json.loads((shipped / "results.json").read_text())
    of_the_inputs = {"without_checksum": written["without_checksum"]}
    assert json.loads(to_json(scene_results(found) | of_the_inputs)) == written
    du.save(found, tmp_path / "summary.zarr")
    assert files(tmp_path / "summary.zarr") == files(shipped / "summary.zarr")


def files(folder):
    """Every file below a folder, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_help_is_quick():
    times = []
    for _ in range(3):
        clock = time.perf_counter()
        command("--help", check=0)
        times.append(time.perf_counter() - clock)
    assert min(times) < 1.0


def test_an_interrupted_run_says_so(job, tmp_path, monkeypatch, dask_uncert_command):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "_with_distances", stop)
    status, _, said = dask_uncert_command("run", write(job, tmp_path))
    said = said.strip().splitlines()[-1]
    job_file = shlex.quote(str(tmp_path / "job.yaml"))
    assert (status, said) == (130, f"stopped. What is finished is kept. To go on, type: dask-uncert run {job_file}")
    assert sorted(os.listdir(tmp_path)) == ["job.yaml", "scene.zarr"]
