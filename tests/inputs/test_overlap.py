"""Inputs that cover other parts of one grid: the part in common counts, the rest is known to be outside."""

from __future__ import annotations

import json

import numpy as np
import pytest
import rasterio
import xarray as xr
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import prepare
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.overlap import OutsideMask, Window, over_the_reference
from dask_uncert.spec.options import SceneOptions


@settings(max_examples=20)
@given(st.data())
def test_a_window_is_a_padded_array(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    offset = [data.draw(st.integers(-5, 5)) for _ in shape]
    new = [data.draw(st.integers(1, 8)) for _ in shape]
    values = np.arange(1, np.prod(shape) + 1).reshape(shape)
    expected, inside = np.zeros(new, int), np.zeros(new, bool)
    for at in np.ndindex(*shape):
        place = tuple(a + o for a, o in zip(at, offset, strict=True))
        if all(0 <= p < n for p, n in zip(place, new, strict=True)):
            expected[place], inside[place] = values[at], True
    region = tuple(slice(*sorted(data.draw(st.tuples(st.integers(0, 8), st.integers(0, 8))))) for _ in shape)
    assert np.array_equal(Window(values, offset, new)[region], expected[region])
    box = [(o, o + n) for o, n in zip(offset, shape, strict=True)]
    assert np.array_equal(OutsideMask(new, box)[region], ~inside[region])
    assert np.array_equal(Window(values, offset, new)[...], expected)


@settings(max_examples=12)
@given(*[st.integers(-6, 6)] * 2, st.booleans(), st.integers(0, 99), st.sampled_from([(8, 9), (3, 4)]))
def test_shared_pixels_count(down, right, upward, seed, block):
    rng = np.random.default_rng(seed)
    p, y = rng.dirichlet(np.ones(3), (7, 8)), rng.integers(0, 3, (8, 9))
    at = {"y": 100 - 2.0 * (np.arange(7) + down), "x": 5 + 3.0 * (np.arange(8) + right)}
    grid = {"y": 100 - 2.0 * np.arange(8), "x": 5 + 3.0 * np.arange(9)}
    cut = slice(None, None, -1 if upward else 1)
    at["y"], words = at["y"][cut], {"classes": list("abc"), "measures": ["gini"]}
    prediction = Cube("probabilities", p[cut], ("y", "x", "class"), coordinates=at)
    reference = Cube("reference", y, ("y", "x"), coordinates=grid)
    cubes = over_the_reference({"probabilities": prediction, "reference": reference})
    found = prepare(SceneOptions(**words), cubes, block=block).compute_here()
    inside = np.zeros((8, 9), bool)
    ys, xs = np.arange(7) + down, np.arange(8) + right
    ys, xs = ys[(ys >= 0) & (ys < 8)], xs[(xs >= 0) & (xs < 9)]
    inside[np.ix_(ys, xs)] = True
    same = du.evaluate(p[np.ix_(ys - down, xs - right)], y[np.ix_(ys, xs)], **words)
    assert found.decisions == same.decisions
    assert found.distributions == same.distributions
    assert found.ledger.reasons().get("probabilities_outside", 0) == (~inside).sum()
    assert found.ledger.pixels == 72


def test_disjoint_or_shifted_grids_are_refused():
    def cube(name, at):
        known = {} if at is None else {"y": at, "x": at}
        return Cube(name, np.ones((4, 4), "u1"), ("y", "x"), coordinates=known)

    at = np.arange(4.0)
    for own, message in (
        (at + 9, "shares no pixel"),
        (at + 0.5, "are up to 0.5 away"),
        (at * 2, "are up to"),
        (None, "has no positions along y, which `overlap` needs"),
    ):
        with pytest.raises(InputError, match=f"mask: .*{message}"):
            over_the_reference({"reference": cube("reference", at), "mask": cube("mask", own)})


def test_rasters_and_tables_by_a_job(tmp_path, dask_uncert_command):
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(2), (20, 20)).astype("f4"), rng.integers(0, 2, (30, 30)).astype("u1")
    place = {"crs": "EPSG:32616", "transform": rasterio.Affine(10, 0, 1100, 0, -10, 4900)}
    with rasterio.open(tmp_path / "p.tif", "w", "GTiff", 20, 20, 2, dtype="float32", **place) as file:
        file.write(np.moveaxis(p, -1, 0))
    known = {"y": 4995 - 10.0 * np.arange(30), "x": 1005 + 10.0 * np.arange(30)}
    xr.Dataset({"y_": (("y", "x"), y)}, coords=known).to_netcdf(tmp_path / "y.nc", engine="h5netcdf")
    job = {
        "version": 1, "kind": "scene", "classes": {0: "a", 1: "b"}, "output": "out", "overlap": True,
        "inputs": {
            "probabilities": {"store": "p.tif", "dims": ["class", "y", "x"]}, "reference": {"store": "y.nc", "array": "y_"},
        },
        "maps": ["gini", "correct"],
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")
    assert status == 0, said
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert (found["counted"], found["excluded"]["probabilities_outside"]) == (400, 500)
    assert found["confusion"] == du.confusion_matrix(du.evaluate(p, y[10:, 10:])).values.tolist()
    shown = xr.open_zarr(tmp_path / "out" / "maps.zarr")["gini"]
    assert np.isnan(shown.values[:10]).all()
    assert not np.isnan(shown.values[10:, 10:]).any()
    assert np.array_equal(shown["x"], known["x"])
    status, _, said = dask_uncert_command(
        "run", tmp_path / "job.yaml", "--set", "overlap=false", "--out", tmp_path / "no"
    )
    assert status == 2
    assert "has y = 20, but" in said or "has y = 30, but" in said
