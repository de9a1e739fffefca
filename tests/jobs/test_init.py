"""The first try: a scene made from a seed, and a job written for a user's own files."""

import csv
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.jobs.init import MARK, guesses
from dask_uncert.jobs.load import plan_job, read_job
from tests.support.command import command


@pytest.fixture
def model():
    """Probabilities (4, 5, 3) of a model and the codes 1, 2, 3 of a reference with unlabelled pixels (0)."""
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), (4, 5)).astype("f4")
    reference = np.resize(np.arange(4), (4, 5)).astype("u1")
    return SimpleNamespace(probabilities=probabilities, reference=reference)


def evaluate(job):
    return plan_job(*read_job(job)).compute()


def test_demo_is_a_scene_that_can_be_evaluated(tmp_path):
    job = du.demo(tmp_path / "d")
    evaluation = evaluate(job)
    assert 0.7 < du.accuracy(evaluation) < 0.9
    assert 0.03 < du.expected_calibration_error(evaluation) < 0.15
    assert evaluation.ledger.excluded.sum() > 0
    before = job.read_text()
    with pytest.raises(InputError, match="not an empty folder"):
        du.demo(tmp_path / "d")
    assert job.read_text() == before


@pytest.mark.slow
def test_commands_say_what_comes_next(tmp_path):
    said = command("demo", "my demo", cwd=tmp_path, check=0).stdout
    assert "cd 'my demo' && dask-uncert run job.yaml" in said
    said = command("init", "scene.zarr", "--out", "own.yaml", cwd=tmp_path / "my demo", check=0).stdout
    assert len(re.findall(MARK, said)) == len(guesses(tmp_path / "my demo" / "own.yaml")) > 3
    assert "dask-uncert run own.yaml" in said
    again = command("init", "scene.zarr", "--out", "b.yaml", "--json", cwd=tmp_path / "my demo", check=0).stdout
    assert json.loads(again) == {"job": "b.yaml", "guesses": guesses(tmp_path / "my demo" / "b.yaml")}
    written = json.loads(command("demo", "c", "--json", cwd=tmp_path, check=0).stdout)
    assert all((tmp_path / path).exists() for path in written.values())
    refused = command("init", "scene.zarr", cwd=tmp_path / "my demo", check=2)
    assert "job.yaml exists" in refused.stderr


def test_init_of_the_demo_gives_its_numbers(tmp_path):
    job = du.demo(tmp_path / "d")
    own = du.init(tmp_path / "d" / "scene.zarr", out=tmp_path / "own.yaml")
    keys, as_shipped = yaml.safe_load(own.read_text()), yaml.safe_load(job.read_text())
    assert (keys["classes"], keys["ignore"]) == (as_shipped["classes"], [0])
    assert {*keys["inputs"]} == {"probabilities", "reference", "mask"}
    assert np.array_equal(evaluate(own).decisions.confusion, evaluate(job).decisions.confusion)


def test_init_of_arrays_without_names(tmp_path, model):
    rng = np.random.default_rng(1)
    np.savez(
        tmp_path / "case.npz",
        softmax=np.moveaxis(model.probabilities, -1, 0),
        gt=model.reference,
        bands=rng.normal(size=(4, 5, 7)),
        entropy=rng.uniform(size=(4, 5)),
        held_out=np.ones((4, 5), bool),
    )
    keys = yaml.safe_load(du.init(tmp_path / "case.npz", out=tmp_path / "job.yaml").read_text())
    assert {role: about["array"] for role, about in keys["inputs"].items()} == {
        "probabilities": "softmax", "reference": "gt", "mask": "held_out", "features": "bands", "uncertainty": "entropy",
    }  # fmt: skip
    assert keys["inputs"]["probabilities"]["dims"] == ["class", "y", "x"]
    assert keys["inputs"]["features"]["dims"] == ["y", "x", "band"]
    assert ([*keys["classes"]], keys["ignore"]) == ([1, 2, 3], [0])
    expected = du.evaluate(model.probabilities, model.reference, classes=keys["classes"], ignore=[0])
    assert np.array_equal(evaluate(tmp_path / "job.yaml").decisions.confusion, expected.decisions.confusion)


def test_init_of_geotiffs(tmp_path, model):
    rasterio = pytest.importorskip("rasterio")
    bands = np.moveaxis(model.probabilities, -1, 0)
    profile = {"driver": "GTiff", "height": 4, "width": 5, "transform": rasterio.Affine(10, 0, 0, 0, -10, 0)}
    for name, values in (("posterior.tif", bands), ("map.tif", model.reference[None])):
        with rasterio.open(tmp_path / name, "w", count=len(values), dtype=values.dtype, **profile) as file:
            file.write(values)
            if len(values) > 1:
                file.descriptions = ("water", "forest", "town")
    job = du.init(tmp_path / "map.tif", tmp_path / "posterior.tif", out=tmp_path / "job.yaml")
    keys = yaml.safe_load(job.read_text())
    assert keys["inputs"] == {
        "probabilities": {"store": "posterior.tif", "dims": ["class", "y", "x"]},
        "reference": {"store": "map.tif"},
    }
    assert keys["classes"] == {1: "water", 2: "forest", 3: "town"}
    assert int(evaluate(job).ledger.counted) == 15


def test_init_of_folders_is_a_cohort(tmp_path):
    rng = np.random.default_rng(0)
    nibabel = pytest.importorskip("nibabel")
    for folder in ("predictions", "labels"):
        (tmp_path / folder).mkdir()
    for case in ("01", "02", "11"):
        for name, values in (
            (f"predictions/case_{case}_prob.nii.gz", rng.uniform(size=(4, 3, 2)).astype("f4")),
            (f"labels/case_{case}.nii.gz", rng.integers(0, 2, (4, 3, 2)).astype("u1")),
        ):
            nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / name)
    (tmp_path / "labels" / "notes.txt").touch()
    job = du.init(tmp_path / "predictions", tmp_path / "labels", out=tmp_path / "job.yaml")
    with (tmp_path / "manifest.csv").open() as file:
        rows = [*csv.DictReader(file)]
    assert [row["patient"] for row in rows] == ["01", "02", "11"]
    assert rows[0]["probabilities"] == "predictions/case_01_prob.nii.gz"
    keys = yaml.safe_load(job.read_text())
    assert (keys["kind"], [*keys["inputs"]], [*keys["classes"]]) == ("cohort", ["probabilities", "reference"], [0, 1])
    assert keys["output"] == "results"
    assert "2 classes; the reference holds the codes 0, 1" in job.read_text()
    assert du.plan(job)["patients"] == 3
    assert "unusable" not in du.plan(job) or not du.plan(job)["unusable"]


@pytest.mark.parametrize(
    ("files", "message"),
    [(["p.npy"], "looks like a reference"), (["r.npy"], "no prediction"), (["folder", "r.npy"], "one file")],
)
def test_init_refuses_what_it_cannot_place(tmp_path, model, files, message):
    np.save(tmp_path / "p.npy", model.probabilities)
    np.save(tmp_path / "r.npy", model.reference)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message):
        du.init(*(tmp_path / file for file in files), out=tmp_path / "job.yaml")
    assert not (tmp_path / "job.yaml").exists()
