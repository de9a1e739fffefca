"""The same posterior in every format: the same results through the command, to the bit where a format loses nothing."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import yaml

import dask_uncert as du
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


@pytest.fixture
def command(tmp_path, dask_uncert_command):
    """Run a job by the command; its Evaluation."""
    np.save(tmp_path / "truth.npy", np.load(CROSS_FORMAT / "truth.npz")["proba"])
    np.save(tmp_path / "gt.npy", np.load(CROSS_FORMAT / "truth.npz")["gt"])

    def run(probabilities, reference=None):
        job = {
            "version": 1,
            "kind": "scene",
            "inputs": {
                "probabilities": probabilities or {"store": "truth.npy", "dims": YXC},
                "reference": reference or {"store": "gt.npy", "dims": ["y", "x"]},
            },
            "classes": {i: f"class {i}" for i in range(1, 17)},
            "ignore": [0],
            "measures": ["entropy", "gini"],
            "output": "out",
        }
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        status, _, message = dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")
        assert status == 0, message
        return du.load(tmp_path / "out")

    return run


def parts(evaluation):
    return evaluation.decisions, evaluation.distributions, evaluation.calibration


@pytest.mark.parametrize("name", EXACT)
def test_lossless_formats_give_the_same_bits(command, name):
    truth = command({})
    found = command({"store": str(CROSS_FORMAT / name), **EXACT[name]})
    assert parts(found) == parts(truth)
    assert found.ledger.counted == truth.ledger.counted
    reason = "probabilities_nan" if name in NAN else "probabilities_nodata"
    labelled = int((np.load(CROSS_FORMAT / "truth.npz")["gt"][3:8, 10:17] > 0).sum())
    assert found.ledger.reasons()[reason] == labelled
    assert found.ledger.pixels == 64 * 64


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_references_in_any_format_are_the_same(command, name):
    found = command({}, {"store": str(CROSS_FORMAT / name), **REFERENCES[name]})
    truth = command({})
    assert parts(found) == parts(truth)
    assert found.ledger.reasons() == truth.ledger.reasons()


@pytest.mark.slow
def test_rasters_and_volumes_on_one_grid(command):
    tif = {"store": str(CROSS_FORMAT / "proba_strip_band.tif"), "dims": CYX}
    assert parts(command(tif, {"store": str(CROSS_FORMAT / "gt.tif")})) == parts(command({}))
    volume = {"store": str(CROSS_FORMAT / "proba_xyzc_f32_nan.nii.gz"), "dims": ["x", "y", "class"]}
    codes = {"store": str(CROSS_FORMAT / "gt_be_int16.nii"), "dims": ["x", "y"]}
    assert parts(command(volume, codes)) == parts(command({}))


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
def test_packed_formats_differ_by_less_than_their_step(command, name, words, step):
    truth, found = command({}), command({"store": str(CROSS_FORMAT / name), **words})
    assert found.ledger.counted == truth.ledger.counted
    moved = np.abs(found.decisions.confusion - truth.decisions.confusion).sum() / 2
    p = np.sort(np.load(CROSS_FORMAT / "truth.npz")["proba"].reshape(-1, 16), axis=1)
    assert moved <= np.count_nonzero(p[:, -1] - p[:, -2] <= 1.001 * step)  # decisions within a step may turn
    assert du.moments(found, "gini")["mean"] == pytest.approx(du.moments(truth, "gini")["mean"], abs=3 * step)
    assert du.expected_calibration_error(found) == pytest.approx(du.expected_calibration_error(truth), abs=3 * step)


def test_matlab_holds_float64(command):
    truth, found = (
        command({}),
        command({"store": str(CROSS_FORMAT / "proba.mat"), "array": "proba", "dims": YXC}),
    )
    assert found.decisions == truth.decisions
    assert found.ledger.reasons() == truth.ledger.reasons()
    assert du.moments(found, "entropy")["mean"] == pytest.approx(du.moments(truth, "entropy")["mean"], abs=1e-7)


def test_the_results_account_for_every_pixel(command, tmp_path):
    command({"store": str(CROSS_FORMAT / "proba_packed.nc"), "array": "proba"})
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["counted"] + sum(found["excluded"].values()) == 64 * 64
    lost = found["excluded_by_class"]["probabilities_nodata"]
    assert sum(lost.values()) == found["excluded"]["probabilities_nodata"]
    low, high = found["overall"]["accuracy_bounds"]
    assert low <= found["overall"]["accuracy"] <= high
