"""Inputs are aligned by coordinates, from either end, and with affines; other positions are refused."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import nibabel
import numpy as np
import pytest
import rasterio
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.inputs.alignment import align_axes
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.open import InputSpec, open_cubes
from dask_uncert.inputs.raters import raters_of
from dask_uncert.io.geometry import geometry_of
from dask_uncert.io.reference_systems import same_reference_system
from dask_uncert.jobs.cohort.plan import plan_cohort
from dask_uncert.jobs.load import plan_job, read_job

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


@pytest.mark.slow
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


def volume(path, values, affine=None):
    """A NIfTI volume; without an affine, its header has none."""
    nibabel.save(nibabel.Nifti1Image(values, affine), path)
    return path


FLIPPED = np.array([[-1.0, 0, 0, 6], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def test_a_plane_with_classes_on_the_third_axis(tmp_path):
    p = np.random.default_rng(0).dirichlet(np.ones(3), (7, 5))
    truth = p.argmax(axis=-1).astype("u1")
    volume(tmp_path / "p.nii", p, np.eye(4))
    volume(tmp_path / "y.nii", truth[::-1], FLIPPED)
    inputs = {
        "probabilities": {"store": str(tmp_path / "p.nii"), "dims": ["x", "y", "class"]},
        "reference": {"store": str(tmp_path / "y.nii"), "dims": ["x", "y"]},
    }
    job = {"version": 1, "kind": "scene", "inputs": inputs, "classes": ["a", "b", "c"], "output": "out"}
    assert du.accuracy(plan_job(*read_job(job)).compute_here()) == 1
    cube = open_cubes(InputSpec("reference", str(tmp_path / "p.nii"), "p.nii", "", ("x", "y", "rater")))["reference"]
    assert [rater.geometry.dims for rater in raters_of(cube).values()] == [("x", "y")] * 3
    volume(tmp_path / "mean.nii", p[..., :2], np.eye(4))
    volume(tmp_path / "observed.nii", p[::-1, :, :2], FLIPPED)
    mean, observed = (du.Input(tmp_path / f"{n}.nii", dims=["x", "y", "output"]) for n in ("mean", "observed"))
    spread = du.Input(tmp_path / "mean.nii", dims=["x", "y", "output"], offset=1.0)
    found = du.evaluate_regression(mean, observed, variance=spread, maps=["nssr"], maps_store=tmp_path / "m.zarr")
    assert int(found.ledger.counted) == 35
    assert not zarr.open_array(tmp_path / "m.zarr" / "nssr")[...].any()  # every residual is 0


def test_an_axis_of_classes_before_those_of_space_leaves_no_affine(tmp_path):
    volume(tmp_path / "p.nii", np.zeros((2, 4, 3), "f4"), FLIPPED)
    spec = InputSpec("probabilities", str(tmp_path / "p.nii"), "p.nii", "", ("class", "row", "column"))
    assert open_cubes(spec)["probabilities"].geometry is None


@pytest.fixture
def turned(tmp_path):
    """Truth without a position in four formats, and a perfect prediction whose affine runs against them."""
    truth = (np.random.default_rng(1).random((4, 3, 5)) < 0.5).astype("u1")
    volume(tmp_path / "p.nii", truth.astype("f4"), FLIPPED)
    np.save(tmp_path / "y.npy", truth)
    np.savez(tmp_path / "y.npz", v=truth)
    group = zarr.open_group(tmp_path / "y.zarr", mode="w")
    group.create_array("v", data=truth, dimension_names=("x", "y", "z"))
    volume(tmp_path / "y.nii", truth)
    dims = ["x", "y", "z"]
    references = [
        {"store": "y.npy", "dims": dims}, {"store": "y.npz", "dims": dims}, {"store": "y.zarr", "array": "v"},
        {"store": "y.nii"},
    ]  # fmt: skip
    return tmp_path, truth, references


NO_POSITION = (
    r"probabilities: the affine of .*p\.nii turns its axis x, but .*\(reference\) does not say how .*by_position"
)


def test_an_affine_that_turns_an_axis_next_to_no_position(turned):
    folder, truth, references = turned
    prediction = folder / "p.nii"
    for options in references:
        inputs = {"probabilities": {"store": "p.nii"}, "reference": options}
        job = {"version": 1, "kind": "scene", "inputs": inputs, "classes": ["out", "in"], "output": "out"}
        keys, _ = read_job(job)
        with pytest.raises(InputError, match=NO_POSITION):
            plan_job(keys, folder)
        options["by_position"] = True
        keys, _ = read_job(job)
        assert du.accuracy(plan_job(keys, folder).compute_here()) == 1
    for array in (truth, xr.DataArray(truth, dims=("x", "y", "z"))):
        with pytest.raises(InputError, match=NO_POSITION):
            du.evaluate(prediction, array)
        assert du.accuracy(du.evaluate(prediction, du.Input(array, by_position=True))) == 1
    with pytest.raises(InputError, match=r"mean: the affine of .* turns its axis x"):
        du.evaluate_regression(prediction, truth.astype("f4"), variance=np.ones(truth.shape))
    # The same where the reference is turned, and where it is a mask that has no position.
    wrong = volume(folder / "turned.nii", truth, FLIPPED)
    with pytest.raises(InputError, match=r"reference: the affine of .* turns its axis x, but .*\(probabilities\)"):
        du.evaluate(du.Input(truth.astype("f4"), dims=["x", "y", "z"]), wrong)
    with pytest.raises(InputError, match=r"turns its axis x, but .*\(mask\)"):
        du.evaluate(prediction, wrong, mask=truth)
    # An affine that is wrong is not used.
    against = du.Input(volume(folder / "other.nii", truth, np.eye(4)), by_position=True)
    assert du.accuracy(du.evaluate(prediction, against)) == 1


def test_a_case_whose_affine_turns_an_axis_next_to_no_position(turned):
    folder, _, _ = turned
    (folder / "cases.csv").write_text("patient,probabilities,reference\nA,p.nii,y.npy\n")
    for by_position, refused in ((False, True), (True, False)):
        job, _ = read_job({
            "version": 1, "kind": "cohort", "manifest": "cases.csv", "classes": ["out", "in"], "output": "out",
            "inputs": {"probabilities": {}, "reference": {"dims": ["x", "y", "z"], "by_position": by_position}},
        })  # fmt: skip
        plan = plan_cohort(job, folder)
        (row,) = plan.rows
        with pytest.raises(InputError, match=NO_POSITION) if refused else nullcontext():
            assert plan.evaluate.cost(row).nbytes["reference"] == 60


@pytest.mark.parametrize(
    ("affine", "unit", "crs", "dims", "turned"),
    [
        (np.eye(4), "mm", None, "xyz", ""),
        (np.diag([-1, -1, 1, 1]), "mm", None, "xyz", "xy"),
        (np.eye(4)[:, [1, 0, 2, 3]], "mm", None, "xyz", "xy"),
        (np.eye(4)[:, [2, 1, 0, 3]], "mm", None, "zyx", ""),
        (np.eye(4)[:, [2, 1, 0, 3]], "mm", None, "ijk", "ik"),
        ([[0, 1, 0], [-1, 0, 9], [0, 0, 0]], "m", "EPSG:32616", "yx", ""),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], "m", "EPSG:32616", "yx", "y"),
        ([[0, -1, 0], [-1, 0, 9], [0, 0, 0]], "degree", "EPSG:4326", "rc", "c"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 0]], "1", None, "yx", ""),
    ],
)
def test_axes_that_an_affine_turns(affine, unit, crs, dims, turned):
    assert geometry_of(affine, tuple(dims), crs, unit).turned == tuple(turned)


SCALE = {"z": 2.0, "y": 0.5, "x": 0.5}


def ome(path, values, axes, scale=SCALE, unit="micrometer", **units):
    """An OME-Zarr image; units: of single axes, instead of the one of all."""
    kinds = {"t": "time", "c": "channel"}
    axes_said = [{"name": n, "type": kinds.get(n, "space")} for n in axes]
    for axis in axes_said:
        if axis["type"] == "space" and units.get(axis["name"], unit) is not None:
            axis["unit"] = units.get(axis["name"], unit)
    steps = [{"type": "scale", "scale": [scale.get(n, 1.0) for n in axes]}]
    image = {"axes": axes_said, "datasets": [{"path": "0", "coordinateTransformations": steps}]}
    group = zarr.open_group(path, mode="w", attributes={"ome": {"version": "0.5", "multiscales": [image]}})
    group.create_array("0", data=values, chunks=(1,) * (values.ndim - 1) + values.shape[-1:])
    return path


VOXELS = (np.random.default_rng(2).random((3, 4, 5)) < 0.5).astype("u1")


@pytest.mark.parametrize(
    ("labels", "dims"),
    [(VOXELS, "zyx"), (VOXELS[None, None], "tczyx"), (VOXELS[None], "tzyx"), (VOXELS[:, None], "zcyx")],
)
def test_labels_of_one_time_and_channel(tmp_path, labels, dims):
    p = ome(tmp_path / "p.zarr", np.stack([1.0 - VOXELS, VOXELS])[None], "tczyx")
    y = ome(tmp_path / "y.zarr", labels, dims)
    for declared in (["t", "class", "z", "y", "x"], ["class", "z", "y", "x"]):
        found = du.evaluate(du.Input(p, dims=declared), y, weight="geometry")
        assert (int(found.ledger.counted), du.accuracy(found)) == (60, 1)
        assert float(found.weighted[0].confusion.sum()) == pytest.approx(60 * 2 * 0.5 * 0.5 * 1e-9)
    named = du.Input(y, dims=["z", "y", "x"])
    (lost,) = tmp_path.glob(f"y.zarr/0/c{'/0' * labels.ndim}")
    chunk = lost.rename(tmp_path / "chunk")
    for options in ({}, {"dims": ["z", "y", "x"]}):
        with pytest.warns(du.InputWarning, match=r"\(5 of 60 pixels\) is not in the store, and left out as missing"):
            found = du.evaluate(du.Input(p, dims=declared), du.Input(y, missing_chunks="leave_out", **options))
        assert found.ledger.reasons()["reference_missing_chunk"] == 60 - int(found.ledger.counted) == 5
    chunk.rename(lost)
    volume(tmp_path / "y.nii", VOXELS.transpose(2, 1, 0), np.diag([0.0005, 0.0005, 0.002, 1]))
    for mask in (named, y, tmp_path / "y.nii"):
        assert int(du.evaluate(du.Input(p, dims=declared), named, mask=mask).ledger.counted) == VOXELS.sum()


@pytest.mark.parametrize("missing", [{"unit": None}, {"z": None}, {"y": None, "x": None}])
def test_a_unit_that_labels_lack_is_that_of_the_image_with_the_same_numbers(tmp_path, missing):
    p = du.Input(ome(tmp_path / "p.zarr", np.stack([1.0 - VOXELS, VOXELS]), "czyx"), dims=["class", "z", "y", "x"])
    y = ome(tmp_path / "y.zarr", VOXELS, "zyx", **missing)
    said = r"reference: .*y\.zarr does not say the unit .* taken from .*p\.zarr \(probabilities\)"
    with pytest.warns(du.InputWarning, match=said):
        found = du.evaluate(p, y, weight="geometry")
    assert du.accuracy(found) == 1
    assert found.weighted[0].unit == "mm³"
    assert float(found.weighted[0].confusion.sum()) == pytest.approx(60 * 0.5e-9)
    with pytest.warns(du.InputWarning, match=said.replace("reference", "mask")):
        assert int(du.evaluate(p, np.asarray(VOXELS), mask=y).ledger.counted) == VOXELS.sum()
    du.convert(y, tmp_path / "copy.zarr", name="labels")
    with pytest.warns(du.InputWarning, match=r"copy.zarr:labels does not say the unit"):
        assert du.accuracy(du.evaluate(p, du.Input(tmp_path / "copy.zarr", array="labels"))) == 1
    # 0.0005 mm, and no unit: the same length, but not the same numbers
    for scale in ({n: v * 1e-3 for n, v in SCALE.items()}, {**SCALE, "z": 2.1, "x": 0.6}):
        with pytest.raises(InputError, match=r"y.zarr does not say the unit .*, and its numbers are not those of"):
            du.evaluate(p, ome(tmp_path / "y.zarr", VOXELS, "zyx", scale, **missing))


def test_a_unit_taken_from_an_image_is_said_of_a_case(tmp_path):
    ome(tmp_path / "p.zarr", 1.0 * VOXELS, "zyx")
    ome(tmp_path / "y.zarr", VOXELS, "zyx", unit=None)
    (tmp_path / "cases.csv").write_text("patient,probabilities,reference\nA,p.zarr,y.zarr\n")
    job, _ = read_job({
        "version": 1, "kind": "cohort", "manifest": "cases.csv", "classes": ["out", "in"], "output": "out",
        "inputs": {"probabilities": {}, "reference": {}},
    })  # fmt: skip
    plan = plan_cohort(job, tmp_path)
    outcome = replace(plan.evaluate, folder=str(tmp_path / "cache"))((plan.rows[0], ""))
    assert "does not say the unit of its scale; it is taken from" in outcome.facts["remarks"][0]


def test_one_time_in_netcdf_zarr_and_xarray(tmp_path):
    at = {"lat": [48.0, 47.0], "lon": [9.0, 10.0, 11.0]}
    y = xr.DataArray(TRUTH, dims=("lat", "lon"), coords=at)
    p = xr.DataArray(np.stack([1.0 - TRUTH, TRUTH], axis=-1), dims=("lat", "lon", "class"), coords=at)
    once = {"time": [3]}
    whole = du.evaluate(p, y, weight="geometry")
    dated_y, dated_p = y.expand_dims(once).rename("y"), p.expand_dims(once, axis=1).rename("p")
    for a, b in ((p, dated_y), (dated_p, y), (dated_p, dated_y), (dated_p.chunk(), dated_y.chunk())):
        assert du.evaluate(a, b, weight="geometry").weighted == whole.weighted
    assert du.evaluate(dated_p, y, overlap=True).decisions == whole.decisions
    assert du.evaluate(du.Input(dated_p, dims=["lat", "lon", "class"]), y).decisions == whole.decisions
    paths = [tmp_path / name for name in ("a.nc", "b.nc", "c.zarr")]
    dated = xr.Dataset({"p": dated_p, "y": dated_y.astype("i2")})
    dated.to_netcdf(paths[0], engine="h5netcdf")
    dated.to_netcdf(paths[1], engine="scipy")
    dated.to_zarr(paths[2], consolidated=False)
    for path in paths:
        stored = du.Input(path, array="y")
        assert du.evaluate(p, stored).decisions == whole.decisions
        assert du.evaluate(du.Input(path, array="p"), stored).decisions == whole.decisions
        named = du.Input(path, array="y", dims=["lat", "lon"])
        assert du.evaluate(p, named, mask=stored).decisions == du.evaluate(p, y, mask=y).decisions
    with pytest.raises(InputError, match=r"name 1 dimensions, but .* has 3"):
        du.evaluate(p, du.Input(paths[0], array="y", dims=["lat"]))
    with pytest.raises(InputError, match="must name the same dimensions"):
        du.evaluate(p, xr.concat([dated_y, dated_y.assign_coords(time=[4])], "time"))
    found = du.evaluate_regression(dated_p[..., 0], y.astype("f4"), variance=xr.ones_like(y, "f4"))
    assert int(found.ledger.counted) == 6
