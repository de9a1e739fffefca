"""The example data is what ``examples/data/SOURCE.md`` says, and its script rebuilds it."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
import zarr

from tests.support import ROOT

EXAMPLES = ROOT / "examples"
STORE = EXAMPLES / "data" / "indian_pines.zarr"
ARRAYS = {  # name: shape, dtype, dimensions, SHA-256 of the values
    "reflectance": ((145, 145, 200), "uint16", ("y", "x", "band"),
        "36468dd7336c8bd37a80cced54362ea426f226703f3797ba494556fd8134e77f"),
    "labels": ((145, 145), "uint8", ("y", "x"),
        "ebf20cfe0bce98f01885f0ab4fd1857925db3ef0a1f1624bbee3ffcb92425103"),
    "held_out": ((145, 145), "bool", ("y", "x"),
        "91b3e5ac7359869252d8c48b7e12ad92d6620247417ea2dd480ee6d62fc28e60"),
    "random_forest": ((145, 145, 16), "float32", ("y", "x", "class"),
        "51a65b111fa49d4f907f6c1d54880836af633cbfae5ad24855b43897fc5dfe0c"),
    "forest_samples": ((10, 145, 145, 16), "float32", ("sample", "y", "x", "class"),
        "7d4924c4a67297fbdc4be5eb04a9972a7d7ec4fbddbddc850f3ee8230fe3736a"),
}  # fmt: skip


def array(name: str) -> Any:
    return zarr.open_array(STORE, path=name, mode="r")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_as_recorded(name: str) -> None:
    shape, dtype, dims, digest = ARRAYS[name]
    found = array(name)
    assert found.shape == shape
    assert found.dtype == dtype
    assert found.metadata.zarr_format == 3
    assert found.metadata.dimension_names == dims
    assert {"units", "long_name"} <= set(found.attrs)
    sizes = dict(zip(dims, found.chunks, strict=True))
    assert (sizes["y"], sizes["x"]) == (37, 37)
    assert all(sizes[dim] == size for dim, size in zip(dims, shape, strict=True) if dim not in ("y", "x"))
    blocks = [path for path in (STORE / name / "c").rglob("*") if path.is_file()]
    assert len(blocks) == 16
    values = found[...]
    assert hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest() == digest


def test_the_counts_that_results_rest_on() -> None:
    labels, held_out = array("labels")[...], array("held_out")[...]
    assert held_out.sum() == 9203
    assert (labels > 0).sum() == 10249
    assert not (held_out & (labels == 0)).any()
    assert np.array_equal(np.unique(labels), np.arange(17))
    for name, axes in (("random_forest", -1), ("forest_samples", -1)):
        total = array(name)[...].sum(axis=axes, dtype=np.float64)
        assert np.abs(total - 1).max() < 1e-5
    winner = array("random_forest")[...].argmax(axis=-1) + 1
    assert round(float((winner == labels)[held_out].mean()), 4) == 0.7527


def test_classes_are_named_as_in_the_job_file() -> None:
    attributes = array("labels").attrs
    names = attributes["flag_meanings"].split()
    assert dict(zip(map(str, attributes["flag_values"]), names, strict=True)) == {
        "0": "unlabelled",
        **attributes["classes"],
    }
    assert array("random_forest").attrs["class_names"] == names[1:]
    job = yaml.safe_load((EXAMPLES.parent / "workflows" / "hyperspectral_scene.yaml").read_text())
    assert {str(code): name for code, name in job["classes"].items()} == attributes["classes"]


def test_the_store_is_small_and_says_where_it_comes_from() -> None:
    assert sum(len(data) for data in contents(STORE).values()) < 12 * 2**20
    assert json.loads((STORE / "zarr.json").read_text())["attributes"]["license"] == "CC BY 3.0"
    source = (EXAMPLES / "data" / "SOURCE.md").read_text()
    assert "doi:10.4231/R7RX991C" in source
    assert len(set(re.findall(r"\b[0-9a-f]{64}\b", source))) == 6


@pytest.mark.slow
def test_building_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    raw = {name: array(name)[...] for name in ARRAYS}
    np.savez(tmp_path / "indian_pines.npz", cube=raw["reflectance"], gt=raw["labels"])
    np.savez(tmp_path / "labels_and_masks.npz", test_mask=raw["held_out"])
    np.savez(tmp_path / "rf_proba.npz", proba=raw["random_forest"])
    np.savez(tmp_path / "rf_ensemble_proba.npz", samples=raw["forest_samples"])
    script = [sys.executable, str(EXAMPLES / "data" / "build_indian_pines.py"), str(tmp_path)]
    built = tmp_path / "built.zarr"
    seen = []
    for _ in range(2):  # the second one replaces the first
        subprocess.run([*script, str(built)], check=True, capture_output=True)
        seen.append(contents(built))
    assert seen[0] == seen[1]
    assert set(seen[0]) == set(contents(STORE))

    np.savez(tmp_path / "rf_proba.npz", proba=raw["random_forest"][::-1])
    refused = subprocess.run([*script, str(built)], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "another version of the data" in refused.stderr
    assert contents(built) == seen[0]
