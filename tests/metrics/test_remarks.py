"""What is said about a reference whose codes or unlabelled pixels may not mean what the numbers take them for."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import rasterio
import yaml

import dask_uncert as du
from tests.support.pages import Page, write_page

NAMES = [f"class {i}" for i in range(1, 17)]
LABELS = np.repeat(np.arange(1, 17, dtype="u1"), 25).reshape(20, 20)
RIGHT = np.eye(16)[LABELS - 1] * 0.84 + 0.01


def written(folder, **words):
    np.save(folder / "p.npy", RIGHT)
    np.save(folder / "y.npy", LABELS)
    inputs = {"probabilities": {"dims": ["y", "x", "class"]}, "reference": {"dims": ["y", "x"]}}
    if words.get("kind") == "cohort":
        (folder / "cases.csv").write_text("patient,probabilities,reference\nA,p.npy,y.npy\n")
        words["manifest"] = "cases.csv"
    else:
        for name, letter in (("probabilities", "p"), ("reference", "y")):
            inputs[name]["store"] = f"{letter}.npy"
    job = {"version": 1, "kind": "scene", "output": "out", "inputs": inputs, **words}
    job["confidence"] = {"replicates": 20}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return folder / "job.yaml"


def test_labels_that_count_from_one():
    """All classes are one off, and the one that would tell is ignored."""
    with pytest.warns(
        du.InputWarning, match=r"^classes: no pixel of the reference has code 0 \(class 1\), and 25 pixels"
    ):
        e = du.evaluate(RIGHT, LABELS, classes=NAMES, ignore=[16])
    assert du.accuracy(e) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert du.accuracy(du.evaluate(RIGHT, LABELS, classes=dict(enumerate(NAMES, 1)))) == 1
        # 0 occurs, if only where a mask leaves it out; or the code after the last is not ignored, or does not occur
        du.evaluate(RIGHT, LABELS - 1, classes=NAMES, ignore=[16])
        du.evaluate(
            RIGHT, np.where(np.arange(400).reshape(20, 20) == 0, 0, LABELS), classes=NAMES, ignore=[16], mask=LABELS > 1
        )
        du.evaluate(RIGHT, np.where(LABELS == 16, 255, LABELS), classes=NAMES, ignore=[255])
    with pytest.raises(du.InputError, match=r"16 \(25 pixels\)"):
        du.evaluate(RIGHT, LABELS, classes=NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scene", "cohort"])
def test_labels_that_count_from_one_in_a_job(tmp_path, dask_uncert_command, kind):
    status, _, said = dask_uncert_command("run", written(tmp_path, kind=kind, classes=NAMES, ignore=[16]))
    assert status == 0, said
    assert said.strip().splitlines()[-1].startswith("warning: classes: no pixel of the reference has code 0 (class 1)")
    assert "give `classes: {1: class 1, ..., 16: class 16}`" in said
    (remark,) = json.loads((tmp_path / "out" / "run.json").read_text())["remarks"]
    assert remark in said
    # a finished result says it again
    assert remark in dask_uncert_command("run", tmp_path / "job.yaml")[2]


@pytest.mark.slow
def test_unlabelled_pixels_of_a_geotiff(tmp_path, dask_uncert_command):
    """37 right, 10 wrong, 53 unlabelled: bounds [.37, .90] until 0 is ignored."""
    y = np.repeat(np.array([1, 2, 0], "u1"), [27, 20, 53]).reshape(10, 10)
    predicted = np.where(np.arange(100).reshape(10, 10) < 37, 1, 2)
    p = np.where(predicted[..., None] == [1, 2], 0.9, 0.1)
    words = {"driver": "GTiff", "height": 10, "width": 10, "count": 1, "dtype": "uint8", "nodata": 0}
    with rasterio.open(tmp_path / "y.tif", "w", transform=rasterio.Affine(1, 0, 0, 0, -1, 0), **words) as file:
        file.write(y, 1)
    np.save(tmp_path / "p.npy", p)
    inputs = {"probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.tif"}}
    job = {"version": 1, "kind": "scene", "output": "out", "inputs": inputs, "classes": {1: "a", 2: "b"}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml", "--fresh")
    assert status == 0, said
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["overall"]["accuracy_bounds"] == [0.37, 0.9]
    (remark,) = results["remarks"]
    assert remark.startswith("reference: 53 pixels are unlabelled")
    assert "as `ignore`" in remark
    assert said.strip().endswith(f"warning: {remark}")
    write_page(du.load(tmp_path / "out"), tmp_path / "page.html", results=results)
    page = "".join(Page(tmp_path / "page.html").text)
    assert remark in page
    assert "unlabelled: the reference has its no-data value" in page
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml", "--fresh", "--set", "ignore=[0]")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (results["remarks"], results["excluded"]) == ([], {"masked": 0, "ignored": 53})
    assert "accuracy_bounds" not in results["overall"]
    assert "unlabelled" not in said
