"""The example cohorts: their data is what its notices say, its scripts rebuild it, and both workflows run on it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
import yaml
import zarr
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec

from dask_uncert.io.geometry import geometry_in
from dask_uncert.io.open import open_stored
from dask_uncert.jobs import run
from dask_uncert.metrics import classification
from tests.support import ROOT

NODULES, CT = (ROOT / "examples" / "data" / name for name in ("lidc_nodules", "ct_ensemble"))


def manifest(folder: Path) -> list[dict[str, str]]:
    with (folder / "manifest.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def voxels(path: Path) -> NDArray[Any]:
    return np.asarray(nibabel.load(path).dataobj)


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, next((ROOT / "examples" / "data").rglob(f"{name}.py")))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("folder", "most"), [(NODULES, 200_000), (CT, 6 << 20)])
def test_the_data_is_small_and_says_where_it_comes_from(folder: Path, most: int) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < most
    source = (folder / "SOURCE.md").read_text(encoding="utf-8")
    assert {"## Origin and licence", "## Rebuilding"} <= set(source.splitlines())
    assert "doi:10." in source
    wanted = {"CC BY 3.0"} if folder == NODULES else {"Apache License 2.0"}
    assert all(name in source for name in wanted)
    named = {row[column] for row in manifest(folder) for column in row if row[column].endswith((".gz", ".zarr"))}
    assert named == {path.name for path in folder.iterdir() if path.name.endswith((".gz", ".zarr"))}


def test_every_radiologist_is_once_the_reference() -> None:
    rows = manifest(NODULES)
    assert len(rows) == 96
    assert len({row["patient"] for row in rows}) == 23
    assert len({row["visit"] for row in rows}) == 96
    by_nodule: dict[str, set[frozenset[str]]] = {}
    for row in rows:
        others = [row[f"other_{i}"] for i in (1, 2, 3)]
        assert len({row["reference"], *others}) == 4
        by_nodule.setdefault(row["nodule"], set()).add(frozenset({row["reference"], *others}))
        stored = [open_stored(str(NODULES / name), "", "mask") for name in (row["reference"], *others)]
        assert len({one.geometry("xyz") for one in stored}) == 1
        assert {str(one.dtype) for one in stored} == {"uint8"}
        assert stored[0].attributes["orientation"] == "LPS"
    assert len(by_nodule) == 24
    assert all(len(files) == 1 for files in by_nodule.values())


def test_the_slabs_lie_where_they_were_in_the_scan() -> None:
    rows = manifest(CT)
    assert [row["slices"] for row in rows] == ["3 to 8", "12 to 17", "21 to 26"]
    origins = []
    for row in rows:
        samples = zarr.open_array(CT / row["samples"], mode="r")
        labels = open_stored(str(CT / row["reference"]), "", "reference")
        assert samples.shape == (6, 122, 101, 6, 9)
        assert labels.shape == (122, 101, 6)
        placed, own = geometry_in(dict(samples.attrs), ["x", "y", "z"]), labels.geometry(["x", "y", "z"])
        assert placed is not None
        assert own is not None
        assert np.allclose(placed.affine, own.affine, atol=1e-4)
        origins.append(own.origin)
        total = samples[...].sum(axis=-1, dtype=np.float64)
        assert 0.9996 < total.min() <= total.max() < 1.0005
    assert np.allclose(np.diff(origins, axis=0), [0, 0, 9 * 3])


@pytest.mark.slow
def test_the_nodules_can_be_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = manifest(NODULES)
    meta, packed = [], {}
    for first in rows[::4]:
        files = [row["reference"] for row in rows if row["nodule"] == first["nodule"]]
        masks = np.stack([voxels(NODULES / name).T for name in files])
        affine = nibabel.load(NODULES / files[0]).affine
        side = float(-affine[0, 0])
        packed[first["nodule"]] = np.packbits(masks.reshape(-1))
        about = {"key": first["nodule"], "patient": first["patient"], "shape_rater_z_y_x": list(masks.shape)}
        about |= {"slice_spacing_mm": float(affine[2, 2]), "pixel_spacing_mm": side}
        about["origin_z_y_x"] = [
            float(affine[2, 3]),
            round(-affine[1, 3] / side),
            round(-affine[0, 3] / side),
        ]
        rating = 4 if first["malignancy"] == "above 3" else 3
        meta.append({**about, "subtlety_texture_margin_malignancy": [[0, 0, 0, rating]] * 4})
    np.savez(tmp_path / "lidc_4rater_masks_packed.npz", **packed)
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    refused = subprocess.run(
        [sys.executable, str(NODULES / "build_lidc_nodules.py"), str(tmp_path), str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 1
    assert "another version of the data" in refused.stderr
    assert not (tmp_path / "out").exists()
    build = script("build_lidc_nodules")
    for name in build.SHA256:
        monkeypatch.setitem(build.SHA256, name, hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    build.build(tmp_path, tmp_path / "out")
    assert (tmp_path / "out" / "manifest.csv").read_bytes() == (NODULES / "manifest.csv").read_bytes()
    made = sorted((tmp_path / "out").glob("*.gz"))
    assert len(made) == 96
    for path in made:
        assert np.array_equal(voxels(path), voxels(NODULES / path.name))
        affines = [nibabel.load(folder / path.name).affine for folder in (tmp_path / "out", NODULES)]
        assert np.allclose(*affines, rtol=1e-6)  # read back from float32


@pytest.mark.slow
def test_the_ensemble_can_be_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = manifest(CT)
    trained = np.ones(30, bool)
    samples, labels = np.zeros((6, 122, 101, 30, 9), np.float16), np.zeros((122, 101, 30), np.uint8)
    for row in rows:
        start, stop = (int(n) for n in re.findall(r"\d+", row["slices"]))
        trained[start : stop + 1] = False
        samples[:, :, :, start : stop + 1] = zarr.open_array(CT / row["samples"], mode="r")[...]
        labels[:, :, start : stop + 1] = voxels(CT / row["reference"])
    affine = np.array(zarr.open_array(CT / rows[0]["samples"], mode="r").attrs["affine"])
    affine[:3, 3] -= 3 * affine[:3, 2]
    np.savez(tmp_path / "rf_ensemble_f16.npz", samples=samples)
    np.savez(tmp_path / "labels.npz", gt=labels, train_slice_mask=trained, affine=affine)
    build = script("build_ct_ensemble")
    with pytest.raises(SystemExit, match="another version of the data"):
        build.build(tmp_path, tmp_path / "out")
    for name, (file, key, _) in build.ARRAYS.items():
        with np.load(tmp_path / file) as raw:
            monkeypatch.setitem(build.ARRAYS, name, (file, key, build.digest(raw[key])))
    monkeypatch.setattr(build, "VOTES", ZstdCodec(level=1))  # quicker, and the values are the same
    build.build(tmp_path, tmp_path / "out")
    assert (tmp_path / "out" / "manifest.csv").read_bytes() == (CT / "manifest.csv").read_bytes()
    for row in rows:
        one, other = (zarr.open_array(folder / row["samples"], mode="r") for folder in (tmp_path / "out", CT))
        about = [json.loads((Path(str(a.store.root)) / "zarr.json").read_text()) for a in (one, other)]
        for words in about:
            del words["codecs"]
        assert about[0] == about[1]
        assert np.array_equal(one[...], other[...])
        files = [gzip.decompress((folder / row["reference"]).read_bytes()) for folder in (tmp_path / "out", CT)]
        assert files[0] == files[1]


@pytest.mark.slow
def test_the_ct_workflow_gives_the_figures_of_its_notice(tmp_path: Path) -> None:
    path = ROOT / "workflows" / "ct_ensemble.yaml"
    found: Any = run.run(path, out=tmp_path / "out")
    assert round(float(classification.accuracy(found)), 4) == 0.9379
    assert round(float(classification.kappa(found)), 4) == 0.8635
    names = yaml.safe_load(path.read_text(encoding="utf-8"))["classes"].values()
    dice = dict(zip(names, classification.f1(found).round(3), strict=True))
    wanted = {"liver": 0.937, "kidneys": 0.916, "spleen": 0.894, "stomach and bowel": 0.779, "lungs": 0.76}
    wanted |= {"bone": 0.817, "muscle": 0.93, "vessels": 0.674}
    assert {name: dice[name] for name in wanted} == wanted
    # The same, by plain numpy over the files.
    cells = np.zeros((9, 9), np.int64)
    for row in manifest(CT):
        members = zarr.open_array(CT / row["samples"], mode="r")[...].astype(np.float64)
        mean = (members / members.sum(axis=-1, keepdims=True)).mean(axis=0)
        np.add.at(cells, (voxels(CT / row["reference"]), mean.argmax(axis=-1)), 1)
    assert np.array_equal(found.decisions.confusion, cells)


@pytest.mark.slow
def test_the_nodule_workflow_gives_what_a_loop_over_the_files_gives(tmp_path: Path) -> None:
    path = ROOT / "workflows" / "patient_cohort.yaml"
    found: Any = run.run(path, out=tmp_path / "out")
    cells = np.zeros((2, 2), np.int64)  # reference, decision
    unsure = np.zeros((2, 2), np.int64)  # wrong or right, certain or uncertain
    for row in manifest(NODULES):
        votes = np.sum([voxels(NODULES / row[f"other_{i}"]) for i in (1, 2, 3)], axis=0)
        reference, decided = voxels(NODULES / row["reference"]), (votes >= 2).astype(int)
        np.add.at(cells, (reference, decided), 1)
        np.add.at(unsure, ((reference == decided).astype(int), ((votes > 0) & (votes < 3)).astype(int)), 1)
    assert np.array_equal(found.decisions.confusion, cells)
    dice = 2 * cells[1, 1] / (2 * cells[1, 1] + cells[0, 1] + cells[1, 0])
    assert float(classification.f1(found)[1]) == dice
    written = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert written["classes"][1]["f1"] == dice
    (two,) = written["uncertainty_confusion"]["entropy"]
    assert [two[name] for name in ("FC", "TU", "TC", "FU")] == unsure.ravel().tolist()
    assert (written["cohort"]["cases"], written["cohort"]["patients"]) == (96, 23)
