"""Inputs are aligned by coordinates, from either end, and with affines; other positions are refused."""

from __future__ import annotations

import numpy as np
import pytest
import rasterio
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.inputs.alignment import align_axes
from dask_uncert.inputs.cube import Cube
from dask_uncert.io.geometry import geometry_of, same_reference_system

X = np.arange(11) / 10


def evaluated(x, y=X, **words):
    """Eleven pixels, their prediction along coordinates x, their reference along y."""
    p = xr.DataArray(np.stack([X, 1 - X], axis=-1), dims=("x", "class"), coords={"x": x})
    truth = xr.DataArray((X < 0.45).astype(int), dims="x", coords={"x": y})
    return du.evaluate(p, truth, **words)


@pytest.mark.parametrize("x", [X.astype("f4"), X + 1e-7, X])
def test_coordinates_equal_within_a_hundredth_of_a_step_are_the_same(x):
    found = evaluated(x)
    assert int(found.ledger.counted) == found.ledger.pixels == 11
    assert du.accuracy(found) == 1.0


def test_half_a_pixel_is_refused():
    message = r"probabilities: the coordinates of x .* by up to 0.05; 0.001 is allowed"
    with pytest.raises(InputError, match=message):
        evaluated(X + 0.05)


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 9), st.integers(2, 9), st.lists(st.booleans(), min_size=2, max_size=2), st.integers(0, 99))
def test_axes_are_reversed_as_their_coordinates_require(height, width, flips, seed):
    rng = np.random.default_rng(seed)
    steps = {"lat": np.cumsum(rng.uniform(0.5, 2, height)), "lon": np.cumsum(rng.uniform(0.5, 2, width))}
    p = xr.DataArray(rng.dirichlet(np.ones(3), (height, width)), dims=("lat", "lon", "class"), coords=steps)
    y = xr.DataArray(rng.integers(0, 3, (height, width)), dims=("lat", "lon"), coords=steps)
    cut = tuple(slice(None, None, -1 if flip else 1) for flip in flips)
    assert du.evaluate(p[cut], y) == du.evaluate(p, y)
    assert du.evaluate(p, y[cut]) == du.evaluate(p[cut], y[cut])


def test_an_input_without_coordinates_allows_no_reversal():
    y = xr.DataArray(np.arange(3) % 2, dims="x", coords={"x": [3.0, 2.0, 1.0]})
    p = xr.DataArray(np.full((3, 2), 0.5), dims=("x", "class"), coords={"x": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match=r"runs the other way along x .* \(mask\) does not say how it runs"):
        du.evaluate(p, y, mask=xr.DataArray(np.ones(3, bool), dims="x"))


@pytest.mark.parametrize("x", [[1.0, 3.0, 2.0], [1.0, np.nan, 3.0], [1.0, 1.0, 2.0]])
def test_coordinates_that_are_not_monotonic_are_refused(x):
    y = xr.DataArray(np.arange(3) % 2, dims="x", coords={"x": x})
    p = xr.DataArray(np.full((3, 2), 0.5), dims=("x", "class"), coords={"x": [1.0, 2.0, 3.0]})
    with pytest.raises(InputError, match=r"reference: the coordinates of x .* neither rise nor fall"):
        du.evaluate(p, y)


def raster(crs="EPSG:32616", step=-20.0):
    affine = np.zeros((3, 3))
    affine[1, 0], affine[0, 1], affine[:2, 2] = step, 20.0, (500_010, 4_479_990 if step < 0 else 4_479_950)
    return geometry_of(affine, ("y", "x"), crs, "m")


def test_an_affine_and_coordinates_of_the_same_grid():
    values = np.arange(12.0).reshape(3, 4)
    image = Cube("reference", values, ("y", "x"), geometry=raster())
    known = {"y": 4_479_990 - 20.0 * np.arange(3), "x": 500_010 + 20.0 * np.arange(4)}
    table = Cube("mask", values, ("y", "x"), coordinates=known, crs="EPSG:32616")
    assert align_axes({"mask": table, "reference": image})["mask"] is table
    upward = Cube("mask", values[::-1], ("y", "x"), coordinates={**known, "y": known["y"][::-1]})
    assert np.array_equal(align_axes({"mask": upward, "reference": image})["mask"].data[...], values)
    other = Cube("mask", values, ("y", "x"), coordinates=known, crs="EPSG:4326")
    with pytest.raises(InputError, match=r"has the reference system EPSG:4326, but .* has EPSG:32616"):
        align_axes({"mask": other, "reference": image})


def test_rasters_with_y_up_and_down():
    p = np.array([[0.9, 0.2], [0.1, 0.4], [0.8, 0.7]])
    down = Cube("reference", (p > 0.5).astype("u1"), ("y", "x"), geometry=raster())
    up = Cube("probabilities", p[::-1], ("y", "x"), geometry=raster(step=20.0))
    found = align_axes({"probabilities": up, "reference": down})
    assert np.array_equal(found["probabilities"].data[...], p)
    with pytest.raises(InputError, match=r"has the reference system EPSG:4326, but .* has EPSG:32616"):
        align_axes({"p": Cube("p", p, ("y", "x"), geometry=raster("EPSG:4326")), "reference": down})


def test_an_oblique_affine_is_refused_next_to_coordinates():
    values, known = np.zeros((3, 4)), {"y": 1.0 * np.arange(3), "x": 1.0 * np.arange(4)}
    table = Cube("mask", values, ("y", "x"), coordinates=known)
    turned = geometry_of([[0.6, 0.8, 0], [0.8, -0.6, 0], [0, 0, 0]], ("y", "x"), None, "m")
    with pytest.raises(InputError, match=r"reference: .* is oblique along y, by its affine, and .* \(mask\)"):
        align_axes({"reference": Cube("reference", values, ("y", "x"), geometry=turned), "mask": table})
    nearly = geometry_of([[0, 1, 0], [1, 1e-12, 0], [0, 0, 0]], ("y", "x"), None, "m")
    straight = Cube("reference", values, ("y", "x"), geometry=nearly)
    assert align_axes({"reference": straight, "mask": table})["mask"] is table
    off = Cube("mask", values, ("y", "x"), coordinates={**known, "x": known["x"] + 0.5})
    with pytest.raises(InputError, match=r"by up to 0\.5"):
        align_axes({"reference": straight, "mask": off})


ESRI = (
    'PROJCS["WGS_1984_UTM_Zone_16N",GEOGCS["GCS_WGS_1984",DATUM["D_WGS_1984",SPHEROID["WGS_1984",6378137.0,298.257223563]],'
    'PRIMEM["Greenwich",0.0],UNIT["Degree",0.0174532925199433]],PROJECTION["Transverse_Mercator"],'
    'PARAMETER["False_Easting",500000.0],PARAMETER["False_Northing",0.0],PARAMETER["Central_Meridian",-87.0],'
    'PARAMETER["Scale_Factor",0.9996],PARAMETER["Latitude_Of_Origin",0.0],UNIT["Meter",1.0]]'
)
TRUTH = np.array([[0, 1, 1], [1, 0, 0]], "u1")


@pytest.fixture
def spelled(tmp_path):
    """Writes TRUTH as a reference with a reference system as text: a GeoTIFF, an ENVI raster and a NetCDF file."""

    def write(text):
        paths = [tmp_path / "y.tif", tmp_path / "y.hdr", tmp_path / "y.nc"]
        place = {"crs": text, "transform": rasterio.Affine(20, 0, 500_000, 0, -20, 4_480_000)}
        with rasterio.open(paths[0], "w", "GTiff", 3, 2, 1, dtype="uint8", **place) as file:
            file.write(TRUTH, 1)
        (tmp_path / "y.img").write_bytes(TRUTH.tobytes())
        paths[1].write_text(
            "ENVI\nsamples = 3\nlines = 2\nbands = 1\ndata type = 1\ninterleave = bsq\n"
            "map info = {UTM, 1, 1, 500000, 4480000, 20, 20, 16, North, WGS-84}\n"
            f"coordinate system string = {{{text}}}\n"
        )
        known = {"y": 4_479_990 - 20.0 * np.arange(2), "x": 500_010 + 20.0 * np.arange(3)}
        y = xr.DataArray(TRUTH, dims=("y", "x"), coords=known, name="v", attrs={"grid_mapping": "utm"})
        xr.Dataset({"v": y, "utm": ((), 0, {"crs_wkt": text})}).to_netcdf(paths[2], engine="h5netcdf")
        return [paths[0], paths[1], du.Input(paths[2], array="v")]

    return write


def test_one_reference_system_in_two_spellings(tmp_path, spelled):
    with rasterio.open(
        tmp_path / "p.tif", "w", "GTiff", 3, 2, 2, dtype="float32",
        crs="EPSG:32616", transform=rasterio.Affine(20, 0, 500_000, 0, -20, 4_480_000),
    ) as file:  # fmt: skip
        file.write(np.stack([1 - TRUTH, TRUTH]).astype("f4"))
    p = du.Input(tmp_path / "p.tif", dims=["class", "y", "x"])
    for reference in spelled(ESRI):
        assert du.accuracy(du.evaluate(p, reference)) == 1
    for reference in spelled(ESRI.replace("-87.0", "-81.0")):  # the next zone
        with pytest.raises(InputError, match=r"has the reference system .*, but .* Project one to the other's"):
            du.evaluate(p, reference)


def test_spellings_differ_in_meaning_or_not():
    geographic = ESRI[ESRI.index("GEOGCS") : ESRI.index(",PROJECTION")]
    assert same_reference_system("EPSG:32616", ESRI)
    assert same_reference_system("EPSG:4326", geographic)  # the axes are in another order
    for text in ("EPSG:32617", "EPSG:26916", "EPSG:4326", 'LOCAL_CS["mine"]', "no such system"):
        assert not same_reference_system(text, ESRI)
