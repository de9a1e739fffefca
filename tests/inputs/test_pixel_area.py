"""Pixels that weigh: sums of weights against plain numpy, for any cut; areas against what geodesy says."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.formulas.areas import AXIS, FLATTENING, latitude_areas
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.pixel_area import pixel_sizes
from dask_uncert.io.geometry import geometry_of
from dask_uncert.reports.results.scene import scene_results


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(7, 9), (2, 9), (3, 4), (1, 1)]),
    st.sampled_from([1e-3, 1.0, 3e5, 1e12]),
)
def test_weighted_numbers_are_those_of_numpy_for_any_cut(seed, block, size):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), (7, 9))
    y = rng.integers(0, 3, (7, 9))
    w = rng.random((7, 9)) * size
    w[rng.random((7, 9)) < 0.1] = np.nan
    found = du.evaluate(p, y, weight=w, measures=["gini"], block=block)
    assert found == du.evaluate(p, y, weight=w, measures=["gini"])
    assert found.ledger.reasons().get("weight_nan", 0) == np.isnan(w).sum()
    expected = [[Fraction(0)] * 3 for _ in range(3)]
    for truth, predicted, weight in zip(y.ravel(), p.argmax(axis=-1).ravel(), w.ravel(), strict=True):
        if not np.isnan(weight):
            expected[truth][predicted] += Fraction(round(Fraction(weight) * 2**44), 2**44)
    matrix = np.array([[float(cell) for cell in row] for row in expected])
    assert np.allclose(found.weighted[0].confusion, matrix, rtol=1e-15, atol=0)
    numbers = scene_results(found)["weighted"]
    assert numbers["accuracy"] == pytest.approx(np.trace(matrix) / matrix.sum(), rel=1e-12)
    assert numbers["classes"][1]["reference"] == pytest.approx(matrix[1].sum())
    assert numbers["classes"][1]["recall"] == pytest.approx(matrix[1, 1] / matrix[1].sum())


def test_equal_weights_give_the_numbers_of_counts_and_summaries_add():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(4), 500), rng.integers(0, 4, 500)
    found = du.evaluate(p, y, weight=np.full(500, 0.25))
    numbers = scene_results(found)
    assert numbers["weighted"]["kappa"] == pytest.approx(numbers["overall"]["kappa"], rel=1e-12)
    assert numbers["weighted"]["total"] == 125
    halves = [du.evaluate(p[i : i + 250], y[i : i + 250], weight=np.full(250, 0.25)) for i in (0, 250)]
    assert halves[0] + halves[1] == found


@pytest.mark.parametrize("bad", [-1.0, np.inf, 1e17])
def test_impossible_weights_are_refused(bad):
    with pytest.raises(InputError, match=r"weight: .* holds 1 counted pixel outside"):
        du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1], weight=np.array([1.0, bad]))


def test_areas_of_parallels_are_those_of_the_ellipsoid():
    # integral of the radii of curvature, M N cos(lat), in 20 000 steps
    ecc2 = FLATTENING * (2 - FLATTENING)
    edges = np.array([10.0, 11, 30, 89, 90])
    found = latitude_areas(edges, 2.0)
    for low, high, area in zip(edges[:-1], edges[1:], found, strict=True):
        lat = np.radians(np.linspace(low, high, 20_001))
        density = AXIS**2 * (1 - ecc2) * np.cos(lat) / (1 - ecc2 * np.sin(lat) ** 2) ** 2
        step = lat[1] - lat[0]
        simpson = step / 3 * (density[0] + density[-1] + 4 * density[1::2].sum() + 2 * density[2:-1:2].sum())
        assert area == pytest.approx(simpson * np.radians(2.0), rel=1e-9)
    assert np.array_equal(latitude_areas(edges[::-1], -2.0), found[::-1])


def test_sizes_come_from_affines_and_from_coordinates():
    y, dims = np.zeros((4, 5, 6), "u1"), ("z", "y", "x")
    geometry = geometry_of([[0, 2, 0, 1], [3, 0, 0, 1], [0, 0, 4, 1]], dims)
    volume = pixel_sizes({"reference": Cube("reference", y, dims, geometry=geometry)})
    assert volume.unit == "mm³"
    assert np.array_equal(volume.data[1:3, :, 2:4], np.full((2, 5, 2), 24.0))
    lat, lon = np.array([50.0, 49.5, 49.0]), np.arange(10.0, 12.0, 0.5)
    flat = Cube("reference", np.zeros((4, 3), "u1"), ("lon", "lat"), coordinates={"lat": lat, "lon": lon})
    area = pixel_sizes({"reference": flat})
    assert area.unit == "m²"
    assert area.data[...].shape == (4, 3)
    assert np.array_equal(area.data[1], latitude_areas([50.25, 49.75, 49.25, 48.75], 0.5))
    with pytest.raises(InputError, match="no input says how large its pixels are"):
        pixel_sizes({"reference": Cube("reference", y, dims)})


@pytest.mark.slow
def test_a_job_weighs_by_geometry(tmp_path):
    rng = np.random.default_rng(1)
    p, y = rng.random((4, 5, 6)).astype("f4"), rng.integers(0, 2, (4, 5, 6)).astype("u1")
    affine = [[2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 1]]
    inputs = {"weight": "geometry"}
    for name, values in (("probabilities", p), ("reference", y)):
        inputs[name] = {"store": str(tmp_path / f"{name}.zarr")}
        attributes = {"affine": affine, "affine_dims": ["x", "y", "z"]}
        zarr.create_array(**inputs[name], data=values, dimension_names=("z", "y", "x"), attributes=attributes)
    job = {"version": 1, "kind": "scene", "inputs": inputs, "classes": {0: "out", 1: "in"}}
    du.run({**job, "output": str(tmp_path / "out")})
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["weighted"]["unit"] == "mm³"
    assert found["weighted"]["total"] == 3 * y.size
    assert found["weighted"]["classes"][1]["reference"] == 3 * y.sum()
    assert (tmp_path / "out" / "tables" / "weighted.csv").read_text().startswith("code,class,reference (mm³)")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Metrics by class, weighted" in page
    assert "<small>mm³</small>" in page
