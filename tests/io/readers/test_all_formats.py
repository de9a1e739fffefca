"""Each format gives the same results for the same predictions; a lossless format gives the same bits."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.jobs.load import plan_job, read_job
from tests.support import DATA

CROSS_FORMAT = DATA / "cross_format"
YXC = ["y", "x", "class"]
CYX = ["class", "y", "x"]
GAP = 35  # pixels without data
EXACT = {
    "proba_bil_be.hdr": {"dims": YXC},
    "proba_bip_le.img": {"dims": YXC},
    "proba_bsq_be.hdr": {"dims": YXC},
    "proba_tiled_deflate_pixel.tif": {"dims": CYX},
    "proba_strip_band.tif": {"dims": CYX},
    "proba_packed.nc": {"array": "proba_class_first"},
    "proba_xyzc_f32_nan.nii.gz": {"dims": ["x", "y", "class"], "by_position": True},
    "proba_v2.zarr": {"dims": YXC},
    "proba_v3_sharded.zarr": {},
    "proba_ome_0.4.zarr": {"dims": CYX},
    "proba_ome_0.5.zarr": {"dims": CYX},
    "proba.h5": {"array": "proba", "dims": YXC},
}
"""What a job says of each file that holds the posterior as it is; by which fault its gap is known."""
NAN = (
    "proba_xyzc_f32_nan.nii.gz",
    "proba_v2.zarr",
    "proba_v3_sharded.zarr",
    "proba_ome_0.4.zarr",
    "proba_ome_0.5.zarr",
)
REFERENCES = {
    "gt_envi.hdr": {},
    "gt.tif": {},
    "gt_be_int16.nii": {"dims": ["x", "y"], "by_position": True},
    "proba_packed.nc": {"array": "gt"},
    "proba.h5": {"array": "gt", "dims": ["y", "x"]},
    "proba.mat": {"array": "gt", "dims": ["y", "x"]},
}


TRUTH = {name: np.load(CROSS_FORMAT / "truth.npz")[name] for name in ("proba", "gt")}
OPTIONS = {"classes": {i: f"class {i}" for i in range(1, 17)}, "ignore": [0], "measures": ["entropy", "gini"]}


@pytest.fixture(scope="module")
def truth():
    return du.evaluate(TRUTH["proba"], TRUTH["gt"], **OPTIONS)


@pytest.fixture
def job(tmp_path):
    """Make a job of inputs as a mapping; what it lacks is the posterior or the labels as arrays."""
    for name, values in TRUTH.items():
        np.save(tmp_path / f"{name}.npy", values)

    def make(probabilities=None, reference=None):
        inputs = {
            "probabilities": probabilities or {"store": str(tmp_path / "proba.npy"), "dims": YXC},
            "reference": reference or {"store": str(tmp_path / "gt.npy"), "dims": ["y", "x"]},
        }
        return {"version": 1, "kind": "scene", "inputs": inputs, **OPTIONS, "output": str(tmp_path / "out")}

    return make


@pytest.fixture
def computed(job):
    """Compute a job of these inputs; its Evaluation."""
    return lambda *inputs: plan_job(*read_job(job(*inputs))).compute()


def parts(evaluation):
    return evaluation.decisions, evaluation.distributions, evaluation.calibration


@pytest.mark.parametrize("name", EXACT)
def test_lossless_formats_give_the_same_bits(computed, truth, name):
    found = computed({"store": str(CROSS_FORMAT / name), **EXACT[name]})
    assert parts(found) == parts(truth)
    assert found.ledger.counted == truth.ledger.counted
    reason = "probabilities_nan" if name in NAN else "probabilities_nodata"
    labelled = int((TRUTH["gt"][3:8, 10:17] > 0).sum())
    assert found.ledger.reasons()[reason] == labelled
    assert found.ledger.pixels == 64 * 64


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_references_in_any_format_are_the_same(computed, truth, name):
    found = computed(None, {"store": str(CROSS_FORMAT / name), **REFERENCES[name]})
    assert parts(found) == parts(truth)
    assert found.ledger.reasons() == truth.ledger.reasons()


@pytest.mark.slow
def test_rasters_and_volumes_on_one_grid(computed, truth):
    tif = {"store": str(CROSS_FORMAT / "proba_strip_band.tif"), "dims": CYX}
    assert parts(computed(tif, {"store": str(CROSS_FORMAT / "gt.tif")})) == parts(truth)
    volume = {"store": str(CROSS_FORMAT / "proba_xyzc_f32_nan.nii.gz"), "dims": ["x", "y", "class"]}
    codes = {"store": str(CROSS_FORMAT / "gt_be_int16.nii"), "dims": ["x", "y"]}
    assert parts(computed(volume, codes)) == parts(truth)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words", "step"),
    [
        ("proba_scaled_uint16.tif", {"dims": CYX}, 1e-4),
        ("proba_packed.nc", {"array": "proba"}, 1e-4),
        (
            "proba_xyzc_uint8_slope.nii.gz",
            {"dims": ["x", "y", "class"], "out_of_tolerance": "leave_out", "by_position": True},
            1 / 255,
        ),
    ],
)
def test_packed_formats_differ_by_less_than_their_step(computed, truth, name, words, step):
    found = computed({"store": str(CROSS_FORMAT / name), **words})
    assert found.ledger.counted == truth.ledger.counted
    moved = np.abs(found.decisions.confusion - truth.decisions.confusion).sum() / 2
    p = np.sort(TRUTH["proba"].reshape(-1, 16), axis=1)
    assert moved <= np.count_nonzero(p[:, -1] - p[:, -2] <= 1.001 * step)  # decisions within a step may turn
    assert du.moments(found, "gini")["mean"] == pytest.approx(du.moments(truth, "gini")["mean"], abs=3 * step)
    assert du.expected_calibration_error(found) == pytest.approx(du.expected_calibration_error(truth), abs=3 * step)


def test_matlab_holds_float64(computed, truth):
    found = computed({"store": str(CROSS_FORMAT / "proba.mat"), "array": "proba", "dims": YXC})
    assert found.decisions == truth.decisions
    assert found.ledger.reasons() == truth.ledger.reasons()
    assert du.moments(found, "entropy")["mean"] == pytest.approx(du.moments(truth, "entropy")["mean"], abs=1e-7)


def test_the_results_account_for_every_pixel(job, tmp_path, dask_uncert_command):
    words = job({"store": str(CROSS_FORMAT / "proba_packed.nc"), "array": "proba"})
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(words))
    status, _, message = dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")
    assert status == 0, message
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["counted"] + sum(found["excluded"].values()) == 64 * 64
    lost = found["excluded_by_class"]["probabilities_nodata"]
    assert sum(lost.values()) == found["excluded"]["probabilities_nodata"]
    low, high = found["overall"]["accuracy_bounds"]
    assert low <= found["overall"]["accuracy"] <= high
