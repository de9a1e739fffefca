"""Predictions that are class codes: everything that decisions give, and nothing that needs probabilities."""

import json

import jsonschema
import nibabel as nib
import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.metrics.scalars import scalars
from dask_uncert.reports.results.schema import results_schema
from dask_uncert.reports.write import write_all

CODES = {3: "soil", 0: "tree", 9: "sea"}
NEEDS_PROBABILITIES = (
    du.brier, du.expected_calibration_error, du.reliability, du.corp, du.roc_auc, lambda e: du.roc_curve(e, "sea"),
    lambda e: du.windows_curve(e, "sea", [0.5]), lambda e: du.prediction_sets(e, [0.5]),
)  # fmt: skip


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    index = rng.integers(0, 3, (2, 24, 30))
    index[1] = np.where(rng.random(index[1].shape) < 0.7, index[0], index[1])
    codes = np.array([*CODES], "u1")[index]
    u = (rng.random(codes[0].shape) * (1 + (codes[0] != codes[1]))).astype("f4")
    return {"reference": codes[0], "prediction": codes[1], "uncertainty": u, "hot": np.eye(3, dtype="f4")[index[1]]}


def test_decisions_are_those_of_one_hot_probabilities(data, tmp_path):
    options = {"classes": CODES, "confidence": {"size": 8, "replicates": 50}, "weight": np.full((24, 30), 2.5)}
    shared = {"reference": data["reference"], "uncertainty": data["uncertainty"], **options}
    maps = {"maps": ["correct", "predicted", "uncertainty"], "block": (7, 30)}
    found = du.evaluate(
        prediction=data["prediction"], measures="uncertainty", maps_store=tmp_path / "m.zarr", **maps, **shared
    )
    wanted = du.evaluate(data["hot"], measures="uncertainty", **shared)
    assert found == du.evaluate(prediction=data["prediction"], **shared)  # the input is the measure by default
    numbers, others = scalars(found), scalars(wanted)
    assert {name.split("/")[0] for name in others.keys() - numbers.keys()} == {"calibration", "ranking"}
    assert all(np.array_equal(numbers[name], others[name], equal_nan=True) for name in numbers)
    intervals = du.intervals(wanted)
    assert du.intervals(found) == {name: interval for name, interval in intervals.items() if name in numbers}
    for reading in NEEDS_PROBABILITIES:
        with pytest.raises(du.InputError, match="prediction was class codes"):
            reading(found)


def test_what_needs_probabilities_is_refused_by_name(data):
    both = {"prediction": data["prediction"], "reference": data["reference"], "classes": CODES}
    for options, problem in (
        ({"measures": ["uncertainty", "gini"]}, "measures: gini: `prediction` holds class codes"),
        ({"measures": "uncertainty"}, "`uncertainty` needs an input"),
        ({"soft_confusion": {"class": "sea"}}, "soft_confusion: `prediction` holds"),
        ({"calibration": {"bins": 5}}, "calibration: `prediction` holds"),
        ({"maps": "confused_classes"}, "maps: confused_classes: `prediction` holds"),
        ({"probabilities": data["hot"]}, "two predictions"),
        ({"classes": None}, "do not say how many classes"),
        ({"classes": {3: "soil", 0: "tree", 9: "sea", 5: "x"}, "prediction": data["prediction"] + (data["prediction"] == 9)},
         r"prediction: .* of no class at counted pixels: 10 \(\d+ pixels\)\. The class table has 3, 0, 9, 5\..*nodata"),
    ):  # fmt: skip
        with pytest.raises(du.InputError, match=problem):
            du.evaluate(**{**both, **options})
    with pytest.raises(du.InputError, match="class codes are the input `prediction`"):
        du.evaluate(data["prediction"], data["reference"], axis=None, classes=["no", "yes"])


def test_codes_without_a_decision_are_left_out(data):
    floats = np.where(data["prediction"] == 9, np.nan, data["prediction"].astype("f4"))
    lost = int((data["prediction"] == 9).sum())
    for prediction, reason in (
        (floats, "prediction_nan"),
        (np.ma.masked_equal(data["prediction"], 9), "prediction_nodata"),
        (du.Input(data["prediction"], nodata=9), "prediction_nodata"),
    ):
        found = du.evaluate(prediction=prediction, reference=data["reference"], classes=CODES)
        assert found.ledger.reasons()[reason] == lost
        assert du.confusion_matrix(found).sel(predicted="sea").sum() == 0


@pytest.mark.slow
def test_jobs_from_files_with_flipped_axes(data, tmp_path, shared_client, without_pictures):
    affine, flipped = np.diag([2.0, 3, 1, 1]), np.array([[-2.0, 0, 0, 46], [0, 3, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    for name, values in (("reference", data["reference"]), ("uncertainty", data["uncertainty"])):
        nib.save(nib.Nifti1Image(values[..., np.newaxis], affine), tmp_path / f"{name}.nii.gz")
    nib.save(nib.Nifti1Image(data["prediction"][::-1, :, np.newaxis], flipped), tmp_path / "prediction.nii.gz")
    wanted = du.evaluate(**{name: data[name] for name in ("prediction", "reference", "uncertainty")}, classes=CODES)
    paths = {name: str(tmp_path / f"{name}.nii.gz") for name in ("prediction", "reference", "uncertainty")}
    common = {"version": 1, "classes": CODES}
    scene = {**common, "kind": "scene", "inputs": paths, "output": str(tmp_path / "scene"), "maps": "predicted"}
    assert du.run(scene, cluster=shared_client).decisions == wanted.decisions
    (tmp_path / "cases.csv").write_text("\n".join([
        "patient,prediction,reference,uncertainty", *(f"P{i},{','.join(paths.values())}" for i in range(2))
    ]))  # fmt: skip
    cohort = {
        **common, "kind": "cohort", "manifest": str(tmp_path / "cases.csv"), "inputs": {name: {} for name in paths},
        "output": str(tmp_path / "cohort"),
    }  # fmt: skip
    total = du.run(cohort, cluster=shared_client)
    assert total.decisions == wanted.decisions + wanted.decisions
    for name in ("scene", "cohort"):
        results = json.loads((tmp_path / name / "results.json").read_text())
        jsonschema.validate(results, results_schema())
        assert not {"calibration", "ranking", "by_confused_classes", "by_second_best"} & results.keys()
        assert results["selective"]["uncertainty"]["error_auroc"] > 0.6
        tables = {path.stem for path in (tmp_path / name / "tables").iterdir()}
        assert not {"calibration", "ranking", "by_second_best"} & tables


@pytest.mark.parametrize("measured", [True, False])
def test_the_page_has_no_calibration(data, measured, tmp_path):
    inputs = ("prediction", "reference", *(["uncertainty"] if measured else []))
    write_all(du.evaluate(**{name: data[name] for name in inputs}, classes=CODES), tmp_path)
    page = (tmp_path / "report.html").read_text()
    assert 'id="confusion"' in page
    assert ('id="explorer"' in page) == measured
    assert 'id="calibration"' not in page
    assert 'id="bins"' not in page
