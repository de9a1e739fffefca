"""A regression job as people run it: the whole folder, the plan, report, merge and refusals."""

import csv
import json
import re

import jsonschema
import numpy as np
import pytest
import xarray as xr
import yaml
import zarr
from click.testing import CliRunner
from matplotlib import colormaps
from matplotlib.colors import Normalize
from matplotlib.image import imread

import dask_uncert as du
from dask_uncert.cli import main
from dask_uncert.errors import InputError
from dask_uncert.io.output_folder import write_record
from dask_uncert.io.summary_store import load
from dask_uncert.jobs import run
from dask_uncert.jobs.load import read_job
from dask_uncert.jobs.schema import job_schema
from dask_uncert.reports.results.regression import regression_results
from dask_uncert.reports.results.scene import to_json
from dask_uncert.reports.results.schema import regression_schema
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.regression import RegressionEvaluation, regression_area


@pytest.fixture
def job(tmp_path):
    """A small regression on a store of its own; its file is written by `ask`."""
    rng = np.random.default_rng(0)
    shape = (12, 10)
    mean = rng.normal(size=(*shape, 2)).astype("float32")
    variance = rng.gamma(3, size=(*shape, 2)).astype("float32") + 0.1
    reference = (mean + np.sqrt(variance) * rng.normal(size=mean.shape)).astype("float32")
    reference[0, :3] = np.nan
    group = zarr.open_group(str(tmp_path / "scene.zarr"), mode="w")
    for name, values in {"mean": mean, "variance": variance, "reference": reference}.items():
        group.create_array(name, data=values, chunks=(4, 5, 2), dimension_names=("y", "x", "output"))
    group.create_array("x", data=np.arange(10) * 20.0, dimension_names=("x",), attributes={"units": "m"})
    inputs = {name: {"store": "scene.zarr", "array": name} for name in ("mean", "variance", "reference")}
    maps = ["nssr", "predicted_probability"]
    return {"version": 1, "kind": "regression", "inputs": inputs, "maps": maps, "output": "out"}


def ask(job, folder, **changes):
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump({**job, **changes}))
    return path


def test_a_job_from_run_to_merge(job, tmp_path):
    path, out = ask(job, tmp_path), tmp_path / "out"
    done = CliRunner().invoke(main.cli, ["run", str(path)], standalone_mode=False)
    assert "117 pixels counted, 3 left out: " in done.stdout
    assert "how sure  Area under the calibration curve" in done.stdout
    found = load(out)
    assert isinstance(found, RegressionEvaluation)
    written = sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.suffix and ".zarr" not in str(p))
    figures = ("calibration_curve.svg", "map_nssr.png", "map_predicted_probability.png")
    assert written == sorted(
        ["results.json", "run.json", "report.html", "tables/curve.csv", "tables/coverage.csv"]
        + [f"figures/{name}" for name in figures]
    )
    numbers = json.loads((out / "results.json").read_text())
    jsonschema.validate(numbers, regression_schema())
    assert numbers["regression"]["area"] == regression_area(found)
    assert numbers.pop("without_checksum") == ["mean", "reference", "variance"]
    assert numbers == json.loads(to_json(regression_results(found)))
    rows = list(csv.reader((out / "tables" / "coverage.csv").read_text().splitlines()))
    assert [float(row[2]) for row in rows[1:]] == [c["observed"] for c in numbers["regression"]["coverage"]]
    assert len((out / "tables" / "curve.csv").read_text().splitlines()) == 1003
    maps = xr.open_zarr(out / "maps.zarr", consolidated=False)
    assert int(maps["nssr"].notnull().sum()) == 117
    assert maps["x"].attrs["units"] == "m"
    record = json.loads((out / "run.json").read_text())
    assert record["counted"] == 117
    assert record["bytes_read"] == 3 * 12 * 10 * 2 * 4
    page = (out / "report.html").read_text()
    assert "squared distance" in page.lower()
    assert "http://" not in page.replace("http://www.w3.org", "")
    # Finished: not run again; another job is refused.
    before = (out / "run.json").stat().st_mtime_ns
    assert du.run(path) == found
    assert (out / "run.json").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="finished evaluation of another job"):
        du.run(ask(job, tmp_path, maps=[]))
    # The same files again, from the Summaries and maps.
    (out / "results.json").unlink()
    (out / "figures" / "calibration_curve.svg").unlink()
    assert du.report(out) == found
    again = json.loads((out / "results.json").read_text())
    assert again == {**numbers, "without_checksum": ["mean", "reference", "variance"]}
    assert (out / "figures" / "calibration_curve.svg").exists()
    (tmp_path / "part").mkdir()
    write_record(tmp_path / "part", {"fingerprint": "other"})
    du.save(found, tmp_path / "part" / "summary.zarr")
    assert du.merge(tmp_path / "both", [out, tmp_path / "part"]) == load(tmp_path / "both") == found + found


@pytest.mark.usefixtures("dask_uncert_command")
@pytest.mark.parametrize("maps_are_gone", [False, True])
def test_a_run_that_was_stopped_goes_on(job, tmp_path, monkeypatch, maps_are_gone):
    """Stopped while its output is written: groups that are whole and have maps stay, others are computed again."""
    path, out = ask(job, tmp_path), tmp_path / "out"
    whole = du.run(path, out=tmp_path / "whole")

    def stop(*given, **more):
        raise RuntimeError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_run" if maps_are_gone else "write_all", stop)
        with pytest.raises(RuntimeError, match="stopped"):
            du.run(path)
    groups = sorted(tmp_path.glob("out.blocks/*.case"))
    blocks = json.loads((tmp_path / "whole" / "run.json").read_text())["blocks"]
    assert len(groups) == blocks == 6
    for damaged in (0, 4):
        groups[damaged].write_bytes(groups[damaged].read_bytes()[:-1])
    assert du.run(path) == load(out) == whole
    assert json.loads((out / "run.json").read_text())["blocks_computed"] == (6 if maps_are_gone else 2)
    for name in job["maps"]:
        one, other = (zarr.open_group(str(tmp_path / at / "maps.zarr"), mode="r")[name][...] for at in ("out", "whole"))
        assert np.array_equal(one, other, equal_nan=True)
    assert not (tmp_path / "out.blocks").exists()


def test_plan_runs_nothing(job, tmp_path):
    found = du.plan(ask(job, tmp_path))
    assert found["grid"] == {"y": 12, "x": 10}
    assert found["bytes_read"] == {"mean": 960, "reference": 960, "variance": 960}
    assert found["maps"] == ["nssr", "predicted_probability"]
    assert not (tmp_path / "out").exists()


def test_a_wrong_request_is_one_paragraph(job, tmp_path):
    inputs = job["inputs"]
    both = {**inputs, "covariance": inputs["variance"]}
    cases = {
        "`kind` must be one of scene, regression, cohort, found 'regresion'": {"kind": "regresion"},
        "found both": {"inputs": both},
        "found neither": {"inputs": {k: v for k, v in inputs.items() if k != "variance"}},
        "Unknown key `classes`. Known keys: version": {"classes": {0: "a"}},
        "`maps.0`": {"maps": ["gini"]},
        "`inputs.mean` is missing": {"inputs": {k: v for k, v in inputs.items() if k != "mean"}},
        "expected output, output2": {
            "inputs": {
                **{k: v for k, v in inputs.items() if k != "variance"},
                "covariance": inputs["variance"],
            }
        },
        "contradict": {"inputs": {**inputs, "mean": {**inputs["mean"], "dims": ["x", "y", "output"]}}},
    }
    for message, changes in cases.items():
        with pytest.raises(InputError, match=re.escape(message)):
            du.run(ask(job, tmp_path, **changes))
    assert not (tmp_path / "out").exists()


def test_an_unusable_variance_leaves_nothing_behind(job, tmp_path):
    zarr.open_group(str(tmp_path / "scene.zarr"), mode="r+")["variance"][6, 3, 1] = 0
    message = "1 counted pixel whose variance is not positive: the least value is 0; the first at y = 6, x = 3"
    with pytest.raises(InputError, match=message):
        du.run(ask(job, tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["job.yaml", "scene.zarr"]


def test_the_schema_knows_both_kinds(job, tmp_path):
    described = json.loads(job_schema())
    words, _ = read_job(ask(job, tmp_path))
    jsonschema.validate(words.model_dump(mode="json", exclude_none=True), described)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**job, "maps": ["gini"]}, described)


def test_the_report_of_nothing(tmp_path):
    """Without a counted pixel everything is undefined and nothing fails; the same bytes twice."""
    zero = RegressionEvaluation.zero(2)
    written = write_all(zero, tmp_path / "a", about={"title": "<none>"})
    write_all(zero, tmp_path / "b", about={"title": "<none>"})
    for name in written:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    numbers = json.loads((tmp_path / "a" / "results.json").read_text())
    jsonschema.validate(numbers, regression_schema())
    assert numbers["regression"]["side"] is None
    assert "&lt;none&gt;" in (tmp_path / "a" / "report.html").read_text()


def test_maps_as_pictures(job, tmp_path, shared_client, without_pictures):
    du.run(ask(job, tmp_path), cluster=shared_client)
    for name in job["maps"]:
        values = xr.open_zarr(tmp_path / "out" / "maps.zarr")[name].values
        picture = imread(du.export(tmp_path / "out", name, tmp_path / f"{name}.png"))[..., :3]
        assert picture.shape == (12, 10, 3)
        undefined = np.isnan(values)
        highest = 1.0 if name == "predicted_probability" else np.percentile(values[~undefined], 99)
        expected = colormaps["viridis"](Normalize(0, highest)(values[~undefined]))[:, :3]
        assert np.allclose(picture[~undefined], expected, atol=1 / 255)
        assert len(np.unique(picture[undefined], axis=0)) == 1
