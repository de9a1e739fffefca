"""Maps as files of other formats: read back by those formats' libraries, the same values in the same place."""

from __future__ import annotations

import json
import shutil
import sys

import nibabel
import numpy as np
import pytest
import rasterio
import xarray as xr
import yaml
import zarr
from matplotlib.image import imread
from rasterio.transform import Affine

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored

RASTER = Affine(20, 0, 500_000, 0, -20, 4_480_000)
VOLUME = np.array([[0, -2, 0, 5], [1.5, 0, 0, -7], [0, 0, 3, 11], [0, 0, 0, 1.0]])


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory, shared_client):
    """A raster of 40 x 50 pixels, evaluated, with maps."""
    folder = tmp_path_factory.mktemp("evaluated")
    rng = np.random.default_rng(0)
    profile = {"driver": "GTiff", "height": 40, "width": 50, "crs": "EPSG:32616", "transform": RASTER}
    p = rng.dirichlet(np.ones(3), (40, 50)).astype("f4")
    p[:5, :7] = np.nan
    with rasterio.open(folder / "p.tif", "w", count=3, dtype="float32", **profile) as file:
        file.write(np.moveaxis(p, -1, 0))
    with rasterio.open(folder / "y.tif", "w", count=1, dtype="uint8", **profile) as file:
        file.write(rng.integers(0, 3, (40, 50)).astype("u1"), 1)
    job = {
        "version": 1, "kind": "scene", "output": "out", "classes": {0: "a", 1: "b", 2: "c"}, "measures": ["gini"],
        "inputs": {"probabilities": {"store": "p.tif", "dims": ["class", "y", "x"]}, "reference": {"store": "y.tif"}},
        "maps": ["gini", "correct", "predicted"],
        "prediction_sets": {"maps": 0.4, "members": True},
        "soft_confusion": [{"class": "b", "sigmas": [0.1], "maps": True, "sweep": False}],
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dask_uncert.reports.write.figures_and_page", lambda *arguments: {})
        du.run(folder / "job.yaml", cluster=shared_client)
    return folder


@pytest.fixture
def scene(evaluated, tmp_path):
    """The output folder of the raster, copied with the raster."""
    shutil.copytree(evaluated, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


def stored(folder, name):
    return zarr.open_group(folder / "maps.zarr", mode="r")[name][...]


def test_maps_open_in_xarray_with_place_and_reference_system(scene):
    found = xr.open_zarr(scene / "maps.zarr")
    assert np.array_equal(found["x"], 500_010 + 20.0 * np.arange(50))
    assert np.array_equal(found["y"], 4_479_990 - 20.0 * np.arange(40))
    assert found["y"].attrs["standard_name"] == "projection_y_coordinate"
    assert found["gini"].attrs["grid_mapping"] == "spatial_ref"
    assert found["spatial_ref"].attrs["crs_wkt"] == "EPSG:32616"
    assert np.isnan(found["gini"].values[:5, :7]).all()
    assert np.isnan(found["correct"].values[:5, :7]).all()
    assert found["gini"].attrs["units"] == "1"


@pytest.mark.parametrize("name", ["gini", "correct", "set_size_0.4", "soft_b", "soft_TP_b"])
def test_geotiff(scene, tmp_path, name):
    du.export(scene, name, tmp_path / "a.tif")
    with rasterio.open(tmp_path / "a.tif") as file:
        assert file.crs == rasterio.CRS.from_epsg(32616)
        assert file.transform.almost_equals(RASTER)
        values = file.read()
        nodata = file.nodata
    wanted = stored(scene, name)
    wanted = np.moveaxis(wanted, -1, 0) if wanted.ndim == 3 else wanted[None]
    assert np.array_equal(values, wanted, equal_nan=True)
    if name == "correct":
        assert nodata == 255
    again = open_stored(str(tmp_path / "a.tif"), "", "p")  # we read what we wrote
    assert again.geometry(["y", "x"]) == open_stored(str(tmp_path / "p.tif"), "", "p").geometry(["c", "y", "x"])


@pytest.mark.parametrize("name", ["gini", "predicted"])
def test_netcdf(scene, tmp_path, name):
    du.export(scene, name, tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        wanted = xr.open_zarr(scene / "maps.zarr")[name]
        assert np.array_equal(found[name].values, wanted.values, equal_nan=True)
        assert np.array_equal(found["x"], wanted["x"])
        assert found["spatial_ref"].attrs["crs_wkt"] == "EPSG:32616"
        assert found.attrs["Conventions"] == "CF-1.11"
    again = open_stored(str(tmp_path / "a.nc"), name, "p")
    assert again.crs == "EPSG:32616"
    assert list(again.coordinates(again.dims)) == ["y", "x"]


@pytest.mark.parametrize("name", ["gini", "in_set_0.4_b", "predicted", "soft_b"])
def test_png_has_the_colours_of_the_report(scene, tmp_path, name):
    du.export(scene, name, tmp_path / "a.png")
    picture = imread(tmp_path / "a.png")
    assert picture.shape[:2] == (40, 50)
    if name != "soft_b":
        assert len(np.unique(picture[:5, :7].reshape(-1, picture.shape[2]), axis=0)) == 1  # undefined
        assert len(np.unique(picture[5:].reshape(-1, picture.shape[2]), axis=0)) > 1
    else:
        assert np.array_equal(np.rint(picture[..., :3] * 255), stored(scene, name))


@pytest.mark.parametrize(("name", "labels"), [("gini", False), ("predicted", True)])
def test_ome_zarr_levels(scene, tmp_path, monkeypatch, name, labels):
    monkeypatch.setattr("dask_uncert.io.writers.ome_zarr.SMALLEST", 16)
    du.export(scene, name, tmp_path / "a.ome.zarr")
    group = zarr.open_group(tmp_path / "a.ome.zarr", mode="r")
    (image,) = group.attrs["ome"]["multiscales"]
    assert [axis["name"] for axis in image["axes"]] == ["y", "x"]
    assert [group[d["path"]].shape for d in image["datasets"]] == [(40, 50), (20, 25), (10, 13)]
    full, half = group["0"][...], group["1"][...]
    assert np.array_equal(full, stored(scene, name), equal_nan=True)
    if labels:
        assert np.array_equal(half, full[::2, ::2])
        assert "image-label" in group.attrs["ome"]
    else:
        with np.errstate(invalid="ignore"), pytest.warns(RuntimeWarning, match="Mean of empty slice"):
            means = np.nanmean(full.reshape(20, 2, 25, 2).astype("f8"), axis=(1, 3))
        assert np.allclose(half, means, rtol=1e-6, equal_nan=True)
    first = open_stored(str(tmp_path / "a.ome.zarr"), "", "p")
    second = open_stored(str(tmp_path / "a.ome.zarr"), "1", "p")
    assert first.geometry(first.dims).spacing == (20_000, 20_000)  # mm
    assert second.geometry(second.dims).spacing == (40_000, 40_000)
    assert second.geometry(second.dims).origin == ((0, 0, 0) if labels else (10_000, 10_000, 0))


def test_nifti_and_slices_of_volumes(tmp_path, dask_uncert_command):
    rng = np.random.default_rng(1)
    shape = (6, 5, 4)
    nibabel.save(nibabel.Nifti1Image(rng.random(shape).astype("f4"), VOLUME), tmp_path / "p.nii.gz")
    nibabel.save(nibabel.Nifti1Image(rng.integers(0, 2, shape).astype("u1"), VOLUME), tmp_path / "y.nii.gz")
    job = {
        "version": 1, "kind": "scene", "output": "out", "classes": {0: "a", 1: "b"}, "measures": ["gini"],
        "inputs": {"probabilities": {"store": "p.nii.gz"}, "reference": {"store": "y.nii.gz"}}, "maps": ["gini", "correct"],
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    assert dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")[0] == 0
    out = tmp_path / "out"
    for name in ("gini", "correct"):
        du.export(out, name, tmp_path / f"{name}.nii.gz")
        found = nibabel.load(tmp_path / f"{name}.nii.gz")
        assert np.array_equal(np.asarray(found.dataobj), stored(out, name))
        assert np.allclose(found.affine, VOLUME)
    with pytest.raises(InputError, match=r"has 3 dimensions .* Name a slice, such as --slice z=0"):
        du.export(out, "gini", tmp_path / "a.png")
    status, _, _ = dask_uncert_command("export", out, tmp_path / "z.nii", "--map", "gini", "--slice", "z=2")
    assert status == 0
    flat = nibabel.load(tmp_path / "z.nii")
    assert np.array_equal(np.asarray(flat.dataobj)[..., 0], stored(out, "gini")[:, :, 2])
    assert np.allclose(flat.affine[:3, 3], VOLUME[:3] @ [0, 0, 2, 1])
    assert np.allclose(flat.affine[:3, :2], VOLUME[:3, :2])
    du.export(out, "correct", tmp_path / "z.png", at={"z": 2})
    with pytest.raises(InputError, match="z = 4 is outside the map gini, which has size 4 along z"):
        du.export(out, "gini", tmp_path / "b.png", at={"z": 4})
    with pytest.raises(InputError, match="has no dimension 't'"):
        du.export(out, "gini", tmp_path / "b.png", at={"t": 4})
    with pytest.raises(InputError, match="plane is tilted or upright"):
        du.export(out, "gini", tmp_path / "y.tif", at={"x": 1})


def test_what_cannot_be_is_said(scene, tmp_path, dask_uncert_command, monkeypatch):
    with pytest.raises(InputError, match=r"holds no map 'nothing'; it holds gini, correct, predicted, soft_TP_b"):
        du.export(scene, "nothing", tmp_path / "a.tif")
    with pytest.raises(InputError, match=r"the ending gives the format; known are \.tif"):
        du.export(scene, "gini", tmp_path / "a.jpg")
    (tmp_path / "a.tif").write_text("precious")
    status, _, said = dask_uncert_command("export", scene, tmp_path / "a.tif", "--map", "gini")
    assert status == 2
    assert "exists" in said
    assert (tmp_path / "a.tif").read_text() == "precious"
    with pytest.raises(InputError, match="cannot be written"):
        du.export(scene, "gini", tmp_path / "nowhere" / "a.png")
    monkeypatch.setitem(sys.modules, "rasterio", None)
    monkeypatch.delitem(sys.modules, "dask_uncert.io.writers.geotiff", raising=False)
    with pytest.raises(InputError, match=r"needs rasterio, which is not installed"):
        du.export(scene, "gini", tmp_path / "b.tif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tif", "job.yaml", "out", "p.tif", "y.tif"]
    assert json.loads((scene / "run.json").read_text())["maps"][0] == "gini"
