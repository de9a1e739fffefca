"""Inputs as a caller or a job describes them."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import Cube, declare
from dask_uncert.inputs.open import InputSpec, open_cubes
from dask_uncert.jobs.load import plan_job, read_job

ZERO = r"scale`? (must be a finite number other than 0|should be greater than 0), found 0"


def test_a_scale_of_0_is_refused_by_every_way_in(tmp_path):
    p, y = np.array([[1, 0], [0, 1]], "u1"), np.array([0, 1], "u1")
    for inputs in (
        {"probabilities": du.Input(p, scale=0)},
        {"probabilities": p, "mask": du.Input(y, scale=0)},
    ):
        with pytest.raises(InputError, match=ZERO):
            du.evaluate(reference=y, **inputs)
    for name, values in (("p", p), ("y", y)):
        np.save(tmp_path / f"{name}.npy", values)
    for name in ("probabilities", "reference", "mask"):
        inputs = {
            "probabilities": {"store": str(tmp_path / "p.npy"), "dims": ["x", "class"], "scale": 1},
            **{key: {"store": str(tmp_path / "y.npy"), "dims": ["x"]} for key in ("reference", "mask")},
        }
        inputs[name]["scale"] = 0
        job = {"version": 1, "kind": "scene", "inputs": inputs, "classes": {0: "a", 1: "b"}, "output": "out"}
        with pytest.raises(InputError, match=f"{name}.*({ZERO})"):
            plan_job(*read_job(job))
    with rasterio.open(tmp_path / "u.tif", "w", "GTiff", 2, 2, 1, dtype="uint8") as file:
        file.scales = (0.0,)
    with pytest.raises(InputError, match=f"uncertainty: u.tif: {ZERO}"):
        open_cubes(InputSpec("uncertainty", str(tmp_path / "u.tif"), "u.tif"))


def test_only_integer_probabilities_stay_as_stored():
    p = Cube("probabilities", np.zeros((2, 2), "u1"), ("x", "class"), role="probabilities")
    assert (declare(p, 0.25).dtype, declare(p, 0.25).precision.scale) == (np.uint8, 0.25)
    assert (declare(p, 0.25, 1).dtype, declare(p, 0.25, 1).precision.scale) == (np.float64, None)
    values = Cube("uncertainty", p.data, ("x", "y"))
    assert (declare(values, 0.25).dtype, declare(values, 0.25).decoding.scale) == (np.float64, 0.25)
    with pytest.raises(InputError, match="offset must be a finite number, found nan"):
        declare(values, offset=np.nan)
