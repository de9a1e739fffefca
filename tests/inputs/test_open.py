"""Inputs as a caller or a job describes them."""

from __future__ import annotations

import hashlib

import dask.array as da
import nibabel
import numpy as np
import pytest
import rasterio
import scipy.io
import scipy.special
import xarray as xr
import yaml
import zarr

import dask_uncert as du
from dask_uncert.clusters.config import read_cluster
from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import Cube, declare
from dask_uncert.inputs.open import InputSpec, open_cubes
from dask_uncert.io.yaml_file import parse_yaml
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


def annexed(path, store):
    """Move a file or folder to a store that names it by its content, as git-annex does; a link takes its place."""
    content = b"".join(p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()) or path.read_bytes()
    (store / "objects").mkdir(parents=True, exist_ok=True)
    key = store / "objects" / f"MD5-s{len(content)}--{hashlib.md5(content).hexdigest()}"
    path.rename(key)
    path.symlink_to(key)


def test_links_into_a_store_that_names_files_by_content(tmp_path, shared_client):
    user, store = tmp_path / "user", tmp_path / "store"
    user.mkdir()
    y = np.arange(4, dtype="u1").reshape(2, 2) % 2
    for name in ("a.npy", "b.npy"):
        np.save(user / name, (y + (name == "b.npy")).astype("u1"))
    nibabel.save(nibabel.Nifti1Image(y, np.eye(4)), user / "y.nii.gz")
    with rasterio.open(user / "y.tif", "w", "GTiff", 2, 2, 1, dtype="uint8") as file:
        file.write(y, 1)
    xr.Dataset({"v": (("y", "x"), y)}).to_netcdf(user / "y.nc", engine="h5netcdf")
    scipy.io.savemat(user / "y.mat", {"v": y})
    (user / "y.img").write_bytes((y + 2).tobytes())
    (user / "y.hdr").write_text(
        "ENVI\nsamples = 2\nlines = 2\nbands = 1\ndata type = 1\ninterleave = bsq\nheader offset = 0\nbyte order = 0\n"
    )
    zarr.create_array(user / "y.zarr", data=y, chunks=(2, 2), dimension_names=("y", "x"))
    two = {"dims": ["y", "x"]}
    job = {"version": 1, "classes": {0: "a", 1: "b"}, "output": "out", "measures": ["homophily"]}
    job["class_distances"] = {"table": "H.csv"}
    inputs = {"probabilities": {"dims": ["x", "y"], "scale": 0.25}, "reference": {}}
    (user / "cases.csv").write_text("patient,probabilities,reference\nA,a.npy,y.nii.gz\n")
    cohort = {**job, "kind": "cohort", "manifest": "cases.csv", "inputs": inputs}
    (user / "cohort.yaml").write_text(yaml.safe_dump(cohort))
    (user / "H.csv").write_text("0,1\n1,0\n")
    scenes = []
    for name, options in {
        "a.npy": two, "y.nii.gz": {"dims": ["x", "y"]}, "y.tif": {}, "y.nc": {"array": "v"}, "y.mat": {"array": "v", **two},
        "y.img": {"nodata": 2}, "y.zarr": {},
    }.items():  # fmt: skip
        dims = ["x", "y"] if name.endswith(".gz") else ["y", "x"]
        inputs = {
            "probabilities": {"store": "b.npy", "dims": dims, "scale": 0.25},
            "reference": {"store": name, **options},
        }
        path = user / f"{name}.yaml"
        path.write_text(yaml.safe_dump({**job, "kind": "scene", "inputs": inputs}))
        scenes.append(path)
    for path in sorted(user.iterdir()):
        annexed(path, store)
    for path in scenes:
        assert plan_job(*read_job(path)).scene.shape == (2, 2), path
    assert du.plan(user / "cohort.yaml")["unusable"] == {}
    evaluation = du.evaluate(du.Input(user / "b.npy", scale=0.25, **two), du.Input(user / "y.nc", array="v"), axis=None)
    assert int(evaluation.ledger.counted) == 4
    assert du.convert(user / "y.nii.gz", tmp_path / "copy.zarr", cluster=shared_client).is_dir()
    (user / "a.npy").resolve().unlink()
    with pytest.raises(InputError, match=r"probabilities: .*a\.npy is a link to .*, which is not there\. Fetch it"):
        du.evaluate(user / "a.npy", y)
    (user / "y.zarr").resolve().rename(store / "gone")
    with pytest.raises(InputError, match=r"reference: .*y\.zarr is a link to .*, which is not there\. Fetch it"):
        du.evaluate(np.eye(2)[y], user / "y.zarr")


SCALINGS = {
    "u1": ((0.99999997, 0.0), (1 / 255, 0.0), (0.0125, -0.1)),
    "i2": ((1 / 32767, 0.0), (3.0518e-05, 0.5), (0.99999997, -40.0)),
    "f4": ((1 / 3, 0.0), (0.99999997, 0.0), (7.0, -0.1), (0.01, 40.0)),
    "f8": ((1 / 3, 1e-9), (0.99999997, 0.0), (7.0, -0.1)),
}


@pytest.mark.parametrize(("dtype", "scaling"), [(dtype, pair) for dtype, pairs in SCALINGS.items() for pair in pairs])
def test_a_scaled_mask_is_true_and_false_within_rounding(dtype, scaling):
    mask, (scale, offset) = np.array([0, 1, 1, 0]), scaling
    stored = (mask - offset) / scale
    stored = np.rint(stored) if np.dtype(dtype).kind in "iu" else stored
    scaled = du.Input(stored.astype(dtype), scale=scale, offset=offset)
    evaluation = du.evaluate(np.eye(2)[mask], mask, mask=scaled, engine="reference")
    assert int(evaluation.ledger.counted) == 2
    assert du.accuracy(evaluation) == 1
    real = du.evaluate_regression(np.ones(4), np.ones(4), variance=np.ones(4), mask=scaled)
    assert int(real.ledger.counted) == 2


def test_a_mask_of_fractions_is_refused():
    y = np.array([0, 1])
    nan = du.Input(np.array([np.nan, 1]), scale=0.99999997, nodata=np.nan)
    assert int(du.evaluate(np.eye(2)[y], y, mask=nan, engine="reference").ledger.counted) == 1
    for values, scale in (([0, 7], 0.1), ([np.nan, 1], 2.0), ([0, 0.999], 1.0001)):
        mask = du.Input(np.array(values), scale=scale)
        with pytest.raises(InputError, match=r"mask: .* holds numbers that are not whole, or NaN"):
            du.evaluate(np.eye(2)[y], y, mask=mask, engine="reference")
        with pytest.raises(InputError, match=r"mask: .* holds numbers that are not whole, or NaN"):
            du.evaluate_regression(np.ones(2), np.ones(2), variance=np.ones(2), mask=mask)


def test_dask_arrays_of_unknown_sizes_are_named(shared_client):
    p = da.from_array(np.eye(2)[[0, 1, 1]], chunks=(2, 2))
    chosen, y = p[da.from_array(np.array([True, True, False]), chunks=2)], np.array([0, 1])
    unknown = {
        "p": chosen,
        "xarray": xr.DataArray(chosen, dims=("x", "class")),
        "dims": du.Input(chosen, dims=["x", "class"]),
    }
    for values in unknown.values():
        with pytest.raises(InputError, match=r"probabilities: .* unknown sizes.*compute_chunk_sizes"):
            du.evaluate(values, y)
    with pytest.raises(InputError, match=r"reference: .* unknown sizes"):
        du.evaluate(np.eye(2), chosen[:, 0])
    with pytest.raises(InputError, match=r"variance: .* unknown sizes"):
        du.evaluate_regression(y, y, variance=chosen[:, 1])
    with pytest.raises(ValueError, match=r"reference is a dask array whose chunks have unknown sizes"):
        du.soft_weights(y, chosen[:, 0], 0.5)


@pytest.mark.parametrize("name", ["a.nrrd", "a.mha", "a.png", "a.vrt", "a", "folder"])
def test_an_unreadable_format_is_named_beside_the_readable_ones(tmp_path, name):
    path = tmp_path / name
    path.mkdir() if name == "folder" else path.write_bytes(b"NRRD0004\n")
    formats = (
        r"is neither a Zarr store nor .* NIfTI \(\.nii, \.nii\.gz\), GeoTIFF \(\.tif, \.tiff\), .* MATLAB \(\.mat\)\."
    )
    for door in (
        lambda: du.evaluate(np.eye(2), path),
        lambda: du.convert(path, tmp_path / "out.zarr"),
        lambda: du.evaluate(np.eye(2), f"memory://nowhere/{name}"),
    ):
        with pytest.raises(InputError, match=formats) as error:
            door()
        assert name in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        {"scale": 0.1},
        pytest.param({"scale": 0.1, "offset": 0.0}, marks=pytest.mark.slow),
        pytest.param("file", marks=pytest.mark.slow),
    ],
)
def test_quantised_logits_through_every_door(tmp_path, given, shared_client, without_pictures):
    rng, classes = np.random.default_rng(0), 19
    q = np.clip(np.rint(rng.normal(0, 3, (9, 8, classes)) / 0.1), -128, 127).astype("i1")
    p = scipy.special.softmax(0.1 * q, axis=-1)
    y = (p.cumsum(-1) < rng.random((9, 8, 1))).sum(-1).astype("u1")
    wanted = du.negative_log_likelihood(du.evaluate(p, y, engine="reference"))["value"]
    options = {"logits": True, "dims": ["y", "x", "class"]}
    np.save(tmp_path / "y.npy", y)
    if given == "file":
        packed = xr.Dataset({"q": (("y", "x", "class"), q, {"scale_factor": 0.1})})
        packed.to_zarr(tmp_path / "q.zarr", consolidated=False)
        store, options["array"], arrays = "q.zarr", "q", [tmp_path / "q.zarr"]
    else:
        np.save(tmp_path / "q.npy", q)
        store, arrays = "q.npy", [tmp_path / "q.npy", q]
        options |= given
    found = []
    for data in arrays:
        evaluation = du.evaluate(du.Input(data, **options), du.Input(y, dims=["y", "x"]), engine="reference")
        found.append(du.negative_log_likelihood(evaluation)["value"])
    job = {"version": 1, "classes": [str(i) for i in range(classes)], "output": str(tmp_path / "out"), "measures": []}
    reference = {"dims": ["y", "x"]}
    inputs = {
        "probabilities": {**options, "store": str(tmp_path / store)},
        "reference": {**reference, "store": str(tmp_path / "y.npy")},
    }
    scene = plan_job(*read_job({**job, "kind": "scene", "inputs": inputs})).compute()
    found.append(du.negative_log_likelihood(scene)["value"])
    (tmp_path / "cases.csv").write_text(f"patient,probabilities,reference\nA,{store},y.npy\n")
    inputs = {"probabilities": options, "reference": reference}
    words = {**job, "kind": "cohort", "manifest": str(tmp_path / "cases.csv"), "inputs": inputs}
    words["confidence"] = {"replicates": 2}
    cohort = du.run(words, cluster=shared_client, out=tmp_path / "cohort")
    found.append(du.negative_log_likelihood(cohort)["value"])
    assert found == pytest.approx([wanted] * len(found), abs=1e-6)
    assert 0.5 < wanted < 3


def test_codes_written_with_a_leading_0_through_every_door(tmp_path):
    np.save(tmp_path / "p.npy", np.eye(2)[[[0, 1]]])
    np.save(tmp_path / "y.npy", np.array([[10, 20]]))
    store = {
        "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]},
        "reference": {"store": "y.npy", "dims": ["y", "x"]},
    }
    text = "version: 1\noutput: out\nmeasures: []\nclasses: {010: water, 020: forest}\n"
    scene = tmp_path / "scene.yaml"
    scene.write_text(f"{text}kind: scene\n{yaml.safe_dump({'inputs': store})}")
    job, _ = read_job(scene)
    assert job.classes == {10: "water", 20: "forest"}
    assert read_job(scene, {"ignore": parse_yaml("[030]")})[0].ignore == [30]
    manifest = {"inputs": {"probabilities": {}, "reference": {}}, "manifest": "cases.csv"}
    scene.write_text(f"{text}kind: cohort\n{yaml.safe_dump(manifest)}")
    assert read_job(scene)[0].classes == {10: "water", 20: "forest"}
    (tmp_path / "cluster.yaml").write_text("kind: local\nworkers: 010\n")
    assert read_cluster(tmp_path / "cluster.yaml").workers == 10
