"""Chunks that a store never held: read as the fill value by default only where that leaves pixels out, and always said."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import rasterio
import yaml
import zarr

import dask_uncert as du
from dask_uncert.io.lazy_array import MissingChunkMask

NAMES = {1: "corn", 2: "soy"}
Y = np.zeros((6, 5), "u1")
Y[:2, :4], Y[3, 1] = [[1, 2, 1, 1], [2, 2, 1, 2]], 1  # the last four chunks hold nothing but 0
P = np.where(np.isin(Y, 2)[..., None], [0.2, 0.8], [0.9, 0.1])


def sparse_store(place, values, fill=0, **words):
    """A store as zarr writes it by default: no chunk that is all fill value."""
    array = zarr.create_array(
        place, shape=values.shape, dtype=values.dtype, chunks=(2, 2, *values.shape[2:]), fill_value=fill,
        dimension_names=("y", "x", "class" if values.shape[-1] == 2 else "band")[: values.ndim], config={"write_empty_chunks": False}, **words,
    )  # fmt: skip
    array[...] = values
    return array


def asked(du_command, folder, inputs, status=0, **words):
    job = {"version": 1, "kind": "scene", "classes": NAMES, "output": "out", "inputs": inputs, **words}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    found, printed, said = du_command("run", folder / "job.yaml", "--fresh")
    assert found == status, said
    return (json.loads((folder / "out" / "results.json").read_text()) if status == 0 else None), printed + said


@pytest.mark.slow
def test_a_default_label_store(tmp_path, dask_uncert_command):
    """Background that is ignored is never written: right by default, and said."""
    np.save(tmp_path / "p.npy", P)
    sparse_store(tmp_path / "y.zarr", Y)
    inputs = {"probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.zarr"}}
    results, said = asked(dask_uncert_command, tmp_path, inputs, ignore=[0])
    assert (results["counted"], results["excluded"]) == (9, {"masked": 0, "ignored": 21})
    assert results["overall"]["accuracy"] == 1
    remark = "reference: 6 chunks of y.zarr (18 of 30 pixels) are not in the store, and read as the fill value 0, a code that is ignored."
    assert said.strip().endswith(f"warning: {remark}")
    assert json.loads((tmp_path / "out" / "run.json").read_text())["remarks"] == [remark]
    # where 0 is a class, a chunk may as well be lost
    words = {"classes": {0: "none", **NAMES}}
    np.save(tmp_path / "p.npy", np.concatenate([np.zeros((6, 5, 1)), P], axis=-1))
    _, said = asked(dask_uncert_command, tmp_path, inputs, 2, **words)
    assert "with 18 pixels" in said
    assert "Here the fill value 0 would count." in said
    assert "`missing_chunks: fill`" in said
    for rule, counted in (("fill", 30), ("leave_out", 12)):
        reference = {**inputs["reference"], "missing_chunks": rule}
        results, said = asked(dask_uncert_command, tmp_path, {**inputs, "reference": reference}, **words)
        assert results["counted"] == counted
        assert f"(18 of 30 pixels) are not in the store, and {'read' if rule == 'fill' else 'left out'}" in said
    # asked to refuse, it refuses
    reference = {**inputs["reference"], "missing_chunks": "refuse"}
    _, said = asked(dask_uncert_command, tmp_path, {**inputs, "reference": reference}, 2, ignore=[0])
    assert "chunk (0, 2) and 5 more" in said


def test_every_kind_of_input_by_what_its_fill_value_means(tmp_path):
    """Left out: false in a mask, NaN, a no-data code. Refused: 0 elsewhere."""
    held = np.zeros((6, 5), bool)
    held[:2] = True
    nan = np.where(held[..., None], P, np.nan)
    y, named = np.where(Y == 0, 1, Y), du.Input(P, dims=["y", "x", "class"])
    mask = sparse_store(tmp_path / "m.zarr", held.astype("u1"))
    p = sparse_store(tmp_path / "p.zarr", nan, np.nan)
    codes = sparse_store(tmp_path / "c.zarr", np.where(held, y, 255).astype("u1"), 255)
    weight = sparse_store(tmp_path / "w.zarr", np.where(held, 1.0, np.nan), np.nan)
    u = sparse_store(tmp_path / "u.zarr", np.where(held, 0.5, np.nan), np.nan)
    for inputs, reason in (
        ({"mask": mask}, "masked"),
        ({"probabilities": p}, "probabilities_nan"),
        ({"samples": p, "probabilities": None}, None),
        ({"reference": du.Input(codes, nodata=255)}, "reference_nodata"),
        ({"weight": weight}, "weight_nan"),
        ({"uncertainty": u}, "uncertainty_nan"),
    ):
        given = {"probabilities": named, "reference": y, **inputs}
        if reason is None:
            given["samples"] = [named, p]
            reason = "samples_nan"
        with pytest.warns(du.InputWarning, match=r"6 chunks of .* \(20 of 30 pixels\) are not in the store"):
            e = du.evaluate(**given, classes=NAMES)
        assert e.ledger.reasons() == {"masked": 0, "ignored": 0} | {reason: 20}, inputs
    zeros = {
        "uncertainty": np.where(held, 0.5, 0),
        "weight": held * 1.0,
        "probabilities": np.where(held[..., None], P, 0),
    }
    for name, values in zeros.items():
        array = sparse_store(tmp_path / f"{name}_0.zarr", values)
        for source in (array, str(tmp_path / f"{name}_0.zarr")):
            with pytest.raises(du.InputError, match=f"^{name}: chunk .* would count"):
                du.evaluate(**{"probabilities": named, "reference": y, name: source}, classes=NAMES)


def test_features_that_are_left_out_decide_no_class_distance(tmp_path):
    y = np.where(Y == 0, 1, Y)
    f = np.random.default_rng(0).normal(size=(6, 5, 3)) + y[..., None]
    held = f.copy()
    held[2:4, :2] = 0
    words = {"classes": NAMES, "measures": ["homophily"], "class_distances": {"metric": "energy"}}
    array = sparse_store(tmp_path / "f.zarr", held)
    with pytest.raises(du.InputError, match=r"^features: chunk \(1, 0, 0\)"):
        du.evaluate(P, y, features=array, **words)
    with pytest.warns(
        du.InputWarning, match=r"features: 1 chunk .* \(4 of 30 pixels\) is not in the store, and left out"
    ):
        found = du.evaluate(
            P, y, features=du.Input(array, missing_chunks="leave_out", dims=["dim_0", "dim_1", "band"]), **words
        )
    less = y.copy()
    less[2:4, :2] = 9
    wanted = du.evaluate(P, less, features=f, ignore=[9], **words)
    assert found.measures["homophily"].measure == wanted.measures["homophily"].measure
    assert found.ledger.counted == 30


@pytest.mark.parametrize("kind", ["folder", "memory", "zip"])
def test_an_array_of_a_store_counts_as_in_a_job(tmp_path, kind):
    places = {"folder": tmp_path / "y.zarr", "memory": zarr.storage.MemoryStore()}
    place = places.get(kind) or zarr.storage.ZipStore(tmp_path / "y.zarr.zip", mode="w")
    y = np.where(Y == 0, 1, Y)
    array = zarr.create_array(
        place, shape=y.shape, dtype="u1", chunks=(2, 2), fill_value=0, config={"write_empty_chunks": True}
    )
    array[:2], array[2:, :4] = y[:2], y[2:, :4]  # two chunks are lost
    if kind == "zip":
        place.close()
        array = zarr.open_array(zarr.storage.ZipStore(tmp_path / "y.zarr.zip", mode="r"))
    with pytest.raises(
        du.InputError, match=r"^reference: chunk \(1, 2\) and 1 more .* are not in the store, with 4 pixels"
    ):
        du.evaluate(P, array, classes=NAMES)
    with pytest.warns(du.InputWarning, match="left out as missing"):
        e = du.evaluate(P, du.Input(array, missing_chunks="leave_out"), classes=NAMES)
    assert (int(e.ledger.counted), e.ledger.reasons()["reference_missing_chunk"]) == (26, 4)
    filled = du.evaluate(P, du.Input(array, missing_chunks="fill"), classes=NAMES, ignore=[0])
    with pytest.warns(du.InputWarning, match="a code that is ignored"):
        assert du.evaluate(P, array, classes=NAMES, ignore=[0]) == filled


def test_other_formats(tmp_path):
    """Tiles that a sparse GeoTIFF never held, and chunks of HDF5."""
    y = np.zeros((64, 48), "u1")
    y[:16, :16] = 1
    words = {
        "driver": "GTiff",
        "height": 64,
        "width": 48,
        "count": 1,
        "dtype": "uint8",
        "tiled": True,
        "blockxsize": 16,
        "blockysize": 16,
    }
    with rasterio.open(
        tmp_path / "y.tif", "w", sparse_ok=True, transform=rasterio.Affine(1, 0, 0, 0, -1, 0), **words
    ) as file:
        file.write(y[:16, :16], 1, window=rasterio.windows.Window(0, 0, 16, 16))
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file.create_dataset("y", y.shape, "u1", chunks=(16, 16), fillvalue=0)[:16, :16] = 1
    p = np.full((*y.shape, 2), 0.5)
    for reference in (tmp_path / "y.tif", du.Input(tmp_path / "y.h5", array="y", dims=["dim_0", "dim_1"])):
        if isinstance(reference, du.Input):
            given = du.Input(p, dims=["dim_0", "dim_1", "class"])
        else:
            given = du.Input(p, dims=["y", "x", "class"])
        with pytest.warns(du.InputWarning, match=r"11 chunks .* \(2816 of 3072 pixels\) .* a code that is ignored"):
            e = du.evaluate(given, reference, classes=NAMES, ignore=[0])
        assert e.ledger.reasons() == {"masked": 0, "ignored": 2816}
        with pytest.raises(du.InputError, match="would count"):
            du.evaluate(given, reference, classes=["a", "b"])


@pytest.mark.slow
def test_a_cohort(tmp_path, dask_uncert_command):
    rows = ["patient,probabilities,reference"]
    for name in "AB":
        np.save(tmp_path / f"{name}.npy", P)
        sparse_store(tmp_path / f"{name}.zarr", Y)
        rows.append(f"{name},{name}.npy,{name}.zarr")
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    inputs = {"probabilities": {"dims": ["y", "x", "class"]}, "reference": {}}
    words = {"kind": "cohort", "manifest": "cases.csv"}
    results, said = asked(dask_uncert_command, tmp_path, inputs, ignore=[0], **words)
    assert (results["counted"], results["excluded"]["ignored"]) == (18, 42)
    assert said.count("(18 of 30 pixels) are not in the store") == 2
    _, again, _ = dask_uncert_command("run", tmp_path / "job.yaml")
    assert "18 pixels counted" in again


def test_pixels_of_missing_chunks_are_counted_exactly():
    rng = np.random.default_rng(0)
    for shape, chunks in (((7, 5), (3, 2)), ((4, 3, 9), (4, 2, 5)), ((1,), (1,))):
        sides = [-(-n // c) for n, c in zip(shape, chunks, strict=True)]
        absent = [index for index in np.ndindex(*sides) if rng.random() < 0.4]
        mask = MissingChunkMask(shape, chunks, absent, range(len(shape)))
        assert mask.missing == np.count_nonzero(mask[...])
