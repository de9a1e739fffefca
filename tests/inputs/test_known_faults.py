"""Known ways to get inputs wrong, through the command: labels, bins, stores and formats, with their right values."""

from __future__ import annotations

import json
import shutil

import nibabel
import numpy as np
import pytest
import rasterio
import xarray as xr
import yaml
import zarr

from dask_uncert.jobs.load import plan_job, read_job
from dask_uncert.reports.results.scene import scene_results, to_json

GRID = {1: ["x"], 2: ["y", "x"], 3: ["z", "y", "x"]}


@pytest.fixture
def ask(tmp_path, dask_uncert_command):
    """Compute a job on arrays (saved as .npy) or inputs in words; gives its results.

    status: not 0 where the command refuses the job; gives what it says. said: run the command; gives what it says, too.
    """

    def run(p, y, status=0, where="out", said=False, **words):
        inputs = dict(words.pop("inputs", {}))
        for name, given in (("probabilities", p), ("reference", y)):
            if isinstance(given, dict):
                inputs[name] = given
                continue
            values = np.asarray(given)
            np.save(tmp_path / f"{name}.npy", values)
            dims = GRID[np.ndim(y) if not isinstance(y, dict) else values.ndim - 1]
            dims = [*dims, "class"] if name == "probabilities" and values.ndim > len(dims) else dims
            inputs[name] = {"store": f"{name}.npy", "dims": dims, **inputs.get(name, {})}
        job = {
            "version": 1,
            "kind": "scene",
            "inputs": inputs,
            "measures": ["entropy"],
            "output": where,
            **words,
        }
        (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
        if not (status or said):
            results = json.loads(to_json(scene_results(plan_job(*read_job(tmp_path / "job.yaml")).compute())))
        else:
            shutil.rmtree(tmp_path / where, ignore_errors=True)
            found, _, message = dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")
            assert found == status, message
            if status:
                assert len(message.strip().splitlines()) == 1
                assert not (tmp_path / where).exists()
                return message
            assert message
            results = json.loads((tmp_path / where / "results.json").read_text())
        assert results["counted"] + sum(results["excluded"].values()) == results["counted"] + sum(
            sum(row.values()) for row in results["excluded_by_class"].values()
        )
        return (results, message) if said else results

    return run


def vectors(index, classes):
    return np.eye(classes)[np.asarray(index)]


# Labels and masks


@pytest.mark.slow
def test_empty_masks(tmp_path, dask_uncert_command):
    rows = ["patient,probabilities,reference"]
    for name, cells in {"A": (0, 0), "B": (1, 0), "C": (0, 1)}.items():
        for kind, n in zip(("p", "y"), cells, strict=True):
            values = np.zeros((3, 3))
            values.flat[:n] = 1
            np.save(tmp_path / f"{name}{kind}.npy", values if kind == "p" else values.astype("u1"))
        rows.append(f"{name},{name}p.npy,{name}y.npy")
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    job = {
        "version": 1, "kind": "cohort", "manifest": "cases.csv", "output": "out", "classes": {0: "out", 1: "in"},
        "inputs": {"probabilities": {"dims": ["y", "x"]}, "reference": {"dims": ["y", "x"]}},
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    status, _, message = dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")
    assert status == 0, message
    dice = json.loads((tmp_path / "out" / "results.json").read_text())["cohort"]["metrics"]["classes/in/f1"]
    assert (dice["mean"], dice["n"], dice["undefined"]) == (0, 2, 1)


def test_ignore_code(ask):
    p = vectors([[0, 1], [1, 0]], 2)
    found = ask(p, np.array([[0, 1], [255, 1]], "u1"), classes={0: "a", 1: "b"}, ignore=[255])
    assert (found["counted"], found["excluded"]["ignored"]) == (3, 1)
    assert found["overall"]["accuracy"] == pytest.approx(2 / 3)
    assert [one["recall"] for one in found["classes"]] == [1, 0.5]


def test_index_arithmetic(ask):
    pairs = np.array([(i, j) for i in range(20) for j in range(20)], "u1")
    found = ask(vectors(pairs[:, 1], 20).astype("f4"), pairs[:, 0], classes={i: str(i) for i in range(20)})
    assert found["confusion"] == np.ones((20, 20)).tolist()


def test_codes_that_are_no_indices(ask):
    p, table = vectors([0, 1, 2, 1], 3), {1: "a", 2: "b", 5: "c"}
    for dtype in ("u1", "f4", "i8"):
        found = ask(p, np.array([1, 2, 5, 5], dtype), classes=table)
        assert found["confusion"] == [[1, 0, 0], [0, 1, 0], [0, 1, 1]]
        assert found["overall"]["accuracy"] == 0.75
    assert "7 (1 pixel)" in ask(p, np.array([1, 2, 7, 5]), 2, classes=table)
    assert "5.4 (1 pixel)" in ask(p, np.array([1, 2, 5.4, 5]), 2, classes=table)


def test_unlabelled_is_no_class(ask):
    p = vectors(np.array([[1, 2, 1], [2, 1, 1]]) - 1, 2)
    found = ask(p, np.array([[0, 0, 1], [2, 2, 1]]), classes={1: "a", 2: "b"}, ignore=[0])
    assert (found["counted"], found["overall"]["accuracy"]) == (4, 0.75)


# Bins


def test_confidences_of_exactly_one_and_zero(ask):
    table = {0: "a", 1: "b"}
    found = ask(np.array([[0.92, 0.08], [1.0, 0.0]]), np.array([0, 1]), classes=table, calibration={"bins": 10})
    assert found["calibration"]["ece"] == pytest.approx(0.46)
    assert [one["n"] for one in found["calibration"]["bins"]] == [0] * 9 + [2]


def test_empty_bins_stay(ask):
    p, y = np.array([0.9, 0.8, 0.2]), np.array([1, 1, 0])
    found = ask(p, y, classes={0: "a", 1: "b"}, calibration={"bins": 3})
    second = found["calibration"]["classes"][1]
    assert second["ece"] == pytest.approx(1 / 6)
    assert [one["n"] for one in second["bins"]] == [1, 0, 2]


def test_logits_are_declared_never_guessed(ask):
    z, y = np.array([[-1.2, 2.0], [0.3, 0.4]]), np.array([[0, 1], [1, 1]])
    soft = [{"class": "b", "thresholds": [0.5]}]
    words = {"classes": {0: "a", 1: "b"}, "soft_confusion": soft}
    found = ask(z, y, inputs={"probabilities": {"logits": True}}, **words)
    assert [found["soft_confusion"][0][cell] for cell in ("TP", "TN", "FP", "FN")] == [3, 1, 0, 0]
    both = np.stack([np.zeros_like(z), z], axis=-1)
    assert ask(both, y, inputs={"probabilities": {"logits": True}}, **words)["soft_confusion"][0]["TP"] == 3
    message = ask(z, y, 2, **words)
    assert "holds 2 counted pixels whose values are not probabilities" in message
    assert "from -1.2 to 2" in message


def test_sums(ask):
    table = {i: str(i) for i in range(3)}
    assert ask(np.full((2, 3), 1 / 3).astype("f2"), np.array([0, 1]), classes=table)["counted"] == 2
    found = ask(np.array([[1.0000001, -1e-7]], "f4"), np.array([0]), classes={0: "a", 1: "b"})
    assert sum(found["repaired"].values()) == 1
    assert "not probabilities" in ask(np.array([[0.2, 0.3]]), np.array([0]), 2, classes={0: "a", 1: "b"})
    packed = np.full((1, 3), 85, "u1")
    assert "declared `scale`" in ask(packed, np.array([0]), 2, classes=table)
    assert ask(packed, np.array([0]), classes=table, inputs={"probabilities": {"scale": 1 / 255}})["counted"] == 1


def test_on_the_threshold(ask):
    found = ask(
        np.array([0.7], "f4"),
        np.array([1]),
        classes={0: "a", 1: "b"},
        soft_confusion=[{"class": "b", "thresholds": [0.7]}],
    )
    assert found["soft_confusion"][0]["TP"] == 1


# Zarr and xarray


def stored(place, name, values, version=3, dims=("y", "x"), chunks=None, **words):
    group = zarr.open_group(place, mode="a", zarr_format=version)
    extra = {"dimension_names": dims} if version == 3 else {}
    array = group.create_array(
        name, shape=values.shape, dtype=values.dtype, chunks=chunks or values.shape,
        config={"write_empty_chunks": True}, **extra, **words,
    )  # fmt: skip
    if version == 2:
        array.attrs["_ARRAY_DIMENSIONS"] = list(dims)
    array[...] = values
    return array


@pytest.mark.parametrize("version", [2, 3])
def test_a_chunk_that_is_not_there(ask, tmp_path, version):
    ones = np.ones((4, 4), "u1")
    stored(tmp_path / "a.zarr", "y", ones, version, chunks=(2, 2), fill_value=0)
    stored(tmp_path / "a.zarr", "p", np.ones((4, 4), "f4"), version, fill_value=0)
    (tmp_path / "a.zarr" / "y" / ("0.1" if version == 2 else "c/0/1")).unlink()
    p, y = {"store": "a.zarr", "array": "p"}, {"store": "a.zarr", "array": "y"}
    words = {"classes": {0: "out", 1: "in"}}
    message = ask(p, y, 2, **words)
    assert "chunk (0, 1) of a.zarr:y is not in the store" in message
    found, said = ask(p, {**y, "missing_chunks": "leave_out"}, said=True, **words)
    assert (found["counted"], found["excluded"]["reference_missing_chunk"]) == (12, 4)
    assert found["classes"][1]["recall"] == 1
    assert "(4 of 16 pixels) is not in the store, and left out as missing" in said
    filled, said = ask(p, {**y, "missing_chunks": "fill"}, said=True, **words)
    assert (filled["counted"], filled["classes"][1]["support"]) == (16, 12)
    assert "(4 of 16 pixels) is not in the store, and read as the fill value 0" in said
    # of a prediction
    message = ask({**p, "array": "y", "scale": 1}, {**y, "array": "p"}, 2, **words)
    assert message.startswith("error: probabilities: chunk (0, 1)")
    found, _ = ask(
        {**p, "array": "y", "scale": 1, "missing_chunks": "leave_out"}, {**y, "array": "p"}, said=True, **words
    )
    assert found["excluded_by_class"] == {"probabilities_missing_chunk": {"in": 4}}
    assert found["overall"]["accuracy_bounds"] == [0.75, 1]


@pytest.mark.parametrize("version", [2, 3])
def test_a_fill_value_is_a_value(ask, tmp_path, version):
    stored(tmp_path / "a.zarr", "y", np.array([[0, 1, 2, 0]], "i2"), version, fill_value=0)
    p = np.array([[[0, 0.25, 0.75], [0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]]])
    stored(tmp_path / "a.zarr", "p", p, version, ("y", "x", "class"), fill_value=0)
    found = ask({"store": "a.zarr", "array": "p"}, {"store": "a.zarr", "array": "y"}, classes={0: "a", 1: "b", 2: "c"})
    assert found["counted"] == 4
    assert [one["support"] for one in found["classes"]] == [2, 1, 1]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("by", ["attributes", "xarray", "job"])
def test_packed_probabilities(ask, tmp_path, version, by):
    packed = np.array([[0, 127, 128, 255]], "u1")
    p = {"store": "a.zarr", "array": "p"}
    words = {"classes": {0: "a", 1: "b"}, "soft_confusion": [{"class": "b", "thresholds": [0.5]}]}
    stored(tmp_path / "y.zarr", "y", np.array([[0, 0, 1, 1]], "u1"))
    y = {"store": "y.zarr", "array": "y"}

    def pack(missing):
        shutil.rmtree(tmp_path / "a.zarr", ignore_errors=True)
        if by == "xarray":
            values = packed / 255.0
            encoding = {"dtype": "uint8", "scale_factor": 1 / 255, "_FillValue": 255 if missing else None}
            ds = xr.Dataset({"p": (("y", "x"), np.where((packed == 255) & missing, np.nan, values))})
            ds.to_zarr(tmp_path / "a.zarr", zarr_format=version, encoding={"p": encoding}, consolidated=False)
            return
        array = stored(tmp_path / "a.zarr", "p", packed, version)
        if by == "attributes":
            array.attrs.update({"scale_factor": 1 / 255, **({"_FillValue": 255} if missing else {})})
        else:
            p.update({"scale": 1 / 255, **({"nodata": 255} if missing else {})})

    pack(missing=False)
    found = ask({**p, "missing_chunks": "fill"}, y, **words)
    assert [found["soft_confusion"][0][cell] for cell in ("TP", "TN", "FP", "FN")] == [2, 2, 0, 0]
    pack(missing=True)
    found, message = ask({**p, "missing_chunks": "fill"}, y, said=True, **words)
    assert (found["counted"], found["excluded"]["probabilities_nodata"]) == (3, 1)
    assert (
        "warning: probabilities: in a.zarr:p 255 means no data, but a probability of 1 is stored as the same number"
        in message
    )


def test_coordinates_equal_to_the_eye(ask, tmp_path):
    x = np.arange(11) / 10
    for name, at in {"p": x, "same": x.astype("f4"), "near": x + 1e-7, "off": x + 0.05}.items():
        values = np.where(x < 0.45, 0.1, 0.9) if name == "p" else (x > 0.45).astype("u1")
        xr.Dataset({"v": ("x", values)}, coords={"x": at}).to_zarr(tmp_path / f"{name}.zarr", consolidated=False)
        xr.Dataset({"v": ("x", values)}, coords={"x": at}).to_netcdf(tmp_path / f"{name}.nc", engine="h5netcdf")
    for end in ("zarr", "nc"):
        p = {"store": f"p.{end}", "array": "v", "missing_chunks": "fill"}
        for name in ("same", "near"):
            y = {"store": f"{name}.{end}", "array": "v", "missing_chunks": "fill"}
            found = ask(p, y, classes={0: "a", 1: "b"})
            assert (found["counted"], found["overall"]["accuracy"]) == (11, 1)
        message = ask(p, {"store": f"off.{end}", "array": "v", "missing_chunks": "fill"}, 2, classes={0: "a", 1: "b"})
        assert "differ from those in" in message
        assert "by up to 0.05" in message


# Formats


def test_labels_through_nifti_scaling(ask, tmp_path):
    labels = np.arange(6.0).reshape(6, 1, 1)
    header = nibabel.Nifti1Header()
    header.set_data_dtype("u2")
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4), header), tmp_path / "y.nii.gz")
    np.save(tmp_path / "p.npy", vectors(np.arange(6), 6).reshape(6, 1, 1, 6))
    p = {"store": "p.npy", "dims": ["x", "y", "z", "class"]}
    found = ask(p, {"store": "y.nii.gz"}, classes={i: str(i) for i in range(6)})
    assert found["confusion"] == np.eye(6).tolist()
    labels[2] = 2.5
    nibabel.save(nibabel.Nifti1Image(labels, np.eye(4), header), tmp_path / "y.nii.gz")
    assert "are not whole numbers" in ask(p, {"store": "y.nii.gz"}, 2, classes={i: str(i) for i in range(6)})


def test_the_same_object_on_a_flipped_axis(ask, tmp_path):
    flipped = np.diag([-1.0, 1, 1, 1])
    flipped[0, 3] = 3
    nibabel.save(nibabel.Nifti1Image(np.array([1, 0, 0, 0], "u1").reshape(4, 1, 1), flipped), tmp_path / "y.nii")
    nibabel.save(nibabel.Nifti1Image(np.array([0, 0, 0, 1], "f4").reshape(4, 1, 1), np.eye(4)), tmp_path / "p.nii")
    words = {"classes": {0: "out", 1: "in"}}
    assert ask({"store": "p.nii"}, {"store": "y.nii"}, **words)["classes"][1]["f1"] == 1
    profile = {"driver": "GTiff", "height": 3, "width": 2, "count": 1, "crs": "EPSG:32616"}
    cells = np.array([[1, 0], [1, 0], [0, 0]])
    for name, values, step, top in (("down", cells, -10.0, 30.0), ("up", cells[::-1], 10.0, 0.0)):
        for kind, dtype in (("p", "float32"), ("y", "uint8")):
            lies = rasterio.Affine(10, 0, 0, 0, step, top)
            with rasterio.open(tmp_path / f"{name}_{kind}.tif", "w", dtype=dtype, transform=lies, **profile) as file:
                file.write(values.astype(dtype), 1)
    found = ask({"store": "up_p.tif"}, {"store": "down_y.tif"}, **words)
    assert (found["classes"][1]["f1"], found["classes"][1]["support"]) == (1, 2)
    with rasterio.open(tmp_path / "down_y.tif", "r+") as file:
        file.transform = rasterio.Affine(10, 0, 3, 0, -10, 30)
    assert "have different grids" in ask({"store": "up_p.tif"}, {"store": "down_y.tif"}, 2, **words)


def test_nothing_is_broadcast(ask, tmp_path):
    words = {"classes": {0: "out", 1: "in"}}
    p, y = np.full((2, 2, 2), 0.7), np.ones((2, 2, 2, 1), "u1")
    nibabel.save(nibabel.Nifti1Image(p, np.eye(4)), tmp_path / "p.nii")
    nibabel.save(nibabel.Nifti1Image(y, np.eye(4)), tmp_path / "y.nii")
    assert ask({"store": "p.nii"}, {"store": "y.nii"}, **words)["counted"] == 8
    np.save(tmp_path / "y2.npy", np.ones((2, 2), "u1"))
    np.save(tmp_path / "p2.npy", np.full((2, 2), 0.7))
    one = {"store": "p2.npy", "dims": ["y", "x"]}
    assert "must name the same dimensions" in ask(one, {"store": "y2.npy", "dims": ["lat", "lon"]}, 2, **words)
    np.save(tmp_path / "p3.npy", np.moveaxis(vectors([[0, 1], [1, 0]], 2), -1, 0) * 0.6 + 0.1)
    wrong = {"store": "p3.npy", "dims": ["y", "x", "class"]}
    assert "not probabilities" in ask(wrong, {"store": "y2.npy", "dims": ["y", "x"]}, 2, **words)
