"""300 files and stores damaged at random, by seed: one paragraph that names the file, or the right numbers.

Right is what the format's own library reads from the damaged file: formats without checksums hold other numbers then,
and nobody can tell. Never a traceback, a hang, a crash or a number that nothing says.
"""

from __future__ import annotations

import json
import shutil
import warnings

import h5py
import nibabel
import numpy as np
import pytest
import rasterio
import scipy.io
import spectral.io.envi as envi
import yaml
import zarr

import dask_uncert as du

SEEDS = 300
SHAPE = (13, 11, 3)
CLASSES = {0: "a", 1: "b", 2: "c"}


def truth():
    p = np.random.default_rng(7).dirichlet(np.ones(3), SHAPE[:2]).astype("f4")
    return p, np.random.default_rng(8).integers(0, 3, SHAPE[:2]).astype("u1")


def write_envi(place, p):
    envi.save_image(str(place / "p.hdr"), p, interleave="bil", byteorder=1, dtype=np.float32, force=True, ext="img")
    return "p.hdr", {"dims": ["y", "x", "class"]}


def read_envi(place):
    return np.array(envi.open(str(place / "p.hdr"), str(place / "p.img")).open_memmap())


def write_tif(place, p):
    profile = {"driver": "GTiff", "count": 3, "height": SHAPE[0], "width": SHAPE[1], "dtype": "float32"}
    with rasterio.open(
        place / "p.tif", "w", compress="deflate", tiled=True, blockxsize=16, blockysize=16, **profile
    ) as f:
        f.write(np.moveaxis(p, -1, 0))
    return "p.tif", {"dims": ["class", "y", "x"]}


def read_tif(place):
    with rasterio.open(place / "p.tif") as file:
        return np.moveaxis(file.read(), 0, -1)


def write_hdf(place, p):
    with h5py.File(place / "p.h5", "w") as file:
        file.create_dataset("p", data=p, chunks=(5, 5, 3), compression="gzip", fletcher32=True)
    return "p.h5", {"array": "p", "dims": ["y", "x", "class"]}


def read_hdf(place):
    with h5py.File(place / "p.h5") as file:
        return file["p"][...]


def write_nifti(place, p, name="p.nii"):
    nibabel.save(nibabel.Nifti1Image(p[:, :, None], np.eye(4)), place / name)
    return name, {"dims": ["a", "b", "class"]}


def read_nifti(place, name="p.nii"):
    return np.asarray(nibabel.load(place / name).dataobj)[:, :, 0]


def write_npy(place, p):
    np.save(place / "p.npy", p)
    return "p.npy", {"dims": ["y", "x", "class"]}


def write_npz(place, p):
    np.savez_compressed(place / "p.npz", p=p)
    return "p.npz", {"array": "p", "dims": ["y", "x", "class"]}


def write_mat(place, p):
    scipy.io.savemat(place / "p.mat", {"p": p}, do_compression=True)
    return "p.mat", {"array": "p", "dims": ["y", "x", "class"]}


def write_zarr(place, p, version=3, shards=None):
    extra = {"dimension_names": ("y", "x", "class")} if version == 3 else {}
    group = zarr.open_group(place / "p.zarr", mode="w", zarr_format=version)
    array = group.create_array("p", shape=p.shape, dtype=p.dtype, chunks=(5, 5, 3), shards=shards, **extra)
    array[...] = p
    return "p.zarr", {"array": "p", "dims": ["y", "x", "class"]}


def read_zarr(place):
    return zarr.open_group(place / "p.zarr", mode="r")["p"][...]


FORMATS = {
    "envi": (write_envi, read_envi),
    "tif": (write_tif, read_tif),
    "hdf": (write_hdf, read_hdf),
    "nii": (write_nifti, read_nifti),
    "nii.gz": (
        lambda place, p: write_nifti(place, p, "p.nii.gz"),
        lambda place: read_nifti(place, "p.nii.gz"),
    ),
    "npy": (write_npy, lambda place: np.load(place / "p.npy")),
    "npz": (write_npz, lambda place: np.load(place / "p.npz")["p"]),
    "mat": (write_mat, lambda place: scipy.io.loadmat(place / "p.mat")["p"]),
    "zarr2": (lambda place, p: write_zarr(place, p, 2), read_zarr),
    "zarr3": (write_zarr, read_zarr),
    "sharded": (lambda place, p: write_zarr(place, p, 3, (10, 10, 3)), read_zarr),
}
VALUES = [
    None, -1, 0, 1 << 62, 1e308, "", "nothing", [], {}, [1], True, "\u0000", [[1, 2], [3, 4]], {"name": "x"},
]  # fmt: skip


def write_job(place, store, words, **options):
    """Write the reference, and a job of these probabilities; the job file."""
    np.save(place / "y.npy", truth()[1])
    inputs = {
        "probabilities": {"store": store, **words},
        "reference": {"store": "y.npy", "dims": [dim for dim in words["dims"] if dim != "class"]},
    }
    job = {"version": 1, "kind": "scene", "classes": CLASSES, "output": "out", "inputs": inputs, **options}
    (place / "job.yaml").write_text(yaml.safe_dump(job))
    return place / "job.yaml"


def damage(files, rng):
    """Do one bad thing to one file."""
    file = files[rng.integers(len(files))]
    content = bytearray(file.read_bytes())
    metadata = [f for f in files if f.name in ("zarr.json", ".zarray", ".zattrs", ".zgroup")]
    kinds = ["flip", "flip", "start", "cut", "longer", "zeros", "gone", "folder", "empty", "noise"]
    kind = rng.choice([*kinds, *(["json"] * 6 if metadata else [])])
    if kind == "json":
        file = metadata[rng.integers(len(metadata))]
        words = json.loads(file.read_text())
        inner, keys = words, [words]
        while isinstance(inner, dict) and inner and rng.random() < 0.6:
            inner = inner[list(inner)[rng.integers(len(inner))]]
            keys.append(inner)
        last = next(one for one in reversed(keys) if isinstance(one, dict)) if words else words
        if last:
            last[list(last)[rng.integers(len(last))]] = VALUES[rng.integers(len(VALUES))]
        file.write_text(json.dumps(words))
    elif kind in ("flip", "start"):
        most = min(len(content), 400) if kind == "start" else len(content)
        for at in rng.integers(0, max(most, 1), rng.integers(1, 4)):
            if content:
                content[at] ^= 1 << int(rng.integers(8))
        file.write_bytes(content)
    elif kind == "cut":
        file.write_bytes(content[: int(rng.integers(len(content) + 1))])
    elif kind == "longer":
        file.write_bytes(content + rng.bytes(int(rng.integers(1, 100))))
    elif kind == "zeros" and content:
        at = int(rng.integers(len(content)))
        content[at : at + 64] = bytes(len(content[at : at + 64]))
        file.write_bytes(content)
    elif kind == "noise":
        file.write_bytes(rng.bytes(len(content)))
    elif kind == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()
        if kind == "folder":
            file.mkdir()
    return kind, file.name


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(i, SEEDS, 10) for i in range(10)], ids=lambda seeds: f"from_{seeds[0]}")
def test_damage_is_reported_or_harmless(tmp_path, dask_uncert_command, seeds):
    p, y = truth()
    seen = {"said": 0, "right": 0}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        name = list(FORMATS)[seed % len(FORMATS)]
        write, read = FORMATS[name]
        place = tmp_path / f"{seed}"
        place.mkdir()
        store, words = write(place, p)
        files = sorted(one for one in place.rglob("*") if one.is_file())
        did = damage(files, rng)
        status, out, said = dask_uncert_command("run", write_job(place, store, words, measures=["gini"]), "--quiet")
        where = f"seed {seed}: {name}, {did}: {said}"
        assert out == "", where
        if status:
            assert status == 2, where
            assert said.startswith("error: probabilities: "), where
            assert store.split(".")[0] + "." in said, where
            assert len(said.strip().splitlines()) == 1, where
            assert "Traceback" not in said, where
            assert not (place / "out").exists(), where
            seen["said"] += 1
            continue
        found = du.load(place / "out")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                expected = du.evaluate(read(place), y, classes=CLASSES, measures=["gini"])
            except Exception:  # the library does not read what we do, for example through other metadata
                expected = du.evaluate(p, y, classes=CLASSES, measures=["gini"])
        assert found.decisions == expected.decisions, where
        assert found.distributions == expected.distributions, where
        assert found.ledger.counted == expected.ledger.counted, where
        seen["right"] += 1
        shutil.rmtree(place)
    assert seen["said"] > seen["right"] / 4


def test_names_that_lead_nowhere(tmp_path, dask_uncert_command):
    for name, (write, _) in FORMATS.items():
        place = tmp_path / name
        place.mkdir()
        store, words = write(place, truth()[0])
        target = place / store
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.symlink_to(target)
        status, _, said = dask_uncert_command("run", write_job(place, store, words))
        assert status == 2, said
        assert said.startswith("error: probabilities: "), said
        assert len(said.strip().splitlines()) == 1, said
