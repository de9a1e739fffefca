"""The data of the benchmarks: made once, the same everywhere, and kept in the user's cache folder."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

CLASSES, CHUNK, PATCH = 16, 256, 512
CODECS: dict[str, Any] = {
    "zstd": "auto",  # what zarr takes by default
    "lz4": zarr.codecs.BloscCodec(cname="lz4", shuffle=zarr.codecs.BloscShuffle.shuffle),
}
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dask-uncert-benchmarks"


def smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return noise with patches as in an image: coarse noise enlarged, and fine noise on top."""
    coarse = rng.normal(size=(shape[0] // 16, shape[1] // 16, *shape[2:])).astype("f4")
    return coarse.repeat(16, 0).repeat(16, 1) + 0.5 * rng.normal(size=shape).astype("f4")


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return probabilities along the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), "f4")


def classes_patch(seed: int) -> dict[str, NDArray[Any]]:
    """Return probabilities of 16 classes and a reference drawn from somewhat flatter ones, so that errors are frequent."""
    rng = np.random.default_rng(seed)
    logits = 2.5 * smooth(rng, (PATCH, PATCH, CLASSES))
    drawn = softmax(0.8 * logits).cumsum(axis=-1) < rng.random((PATCH, PATCH, 1), dtype="f4")
    return {"p": softmax(logits), "y": np.minimum(drawn.sum(axis=-1), CLASSES - 1).astype("u1")}


def binary_patch(seed: int) -> dict[str, NDArray[Any]]:
    """Return a probability, a reference and an uncertainty that is larger where the probability is near a half."""
    rng = np.random.default_rng(seed)
    logit = 3 * smooth(rng, (PATCH, PATCH))
    p = 1 / (1 + np.exp(-logit))
    u = 4 * p * (1 - p) * rng.random(p.shape, dtype="f4")
    c = rng.random(p.shape, dtype="f4") < 1 / (1 + np.exp(-0.8 * logit))
    return {"p": p.astype("f4"), "u": u.astype("f4"), "y": c.astype("u1")}


def half_patch(seed: int) -> dict[str, NDArray[Any]]:
    """Return what `binary_patch` does, in half precision."""
    return {name: values if name == "y" else values.astype("f2") for name, values in binary_patch(seed).items()}


PATCHES = {"classes": classes_patch, "binary": binary_patch, "half": half_patch}


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of the cache; `make` fills it the first time."""
    folder = CACHE / name
    if not folder.exists():
        working = CACHE / f"{name}.{uuid.uuid4().hex}"
        working.mkdir(parents=True)
        try:
            make(working)
            working.rename(folder)
        finally:
            shutil.rmtree(working, ignore_errors=True)
    return folder


def cube(kind: str, side: int, codec: str = "zstd", chunk: int = CHUNK) -> Path:
    """Return a store of side x side pixels of a kind, one of PATCHES, made of eight patches in turn."""

    def make(folder: Path) -> None:
        group, patches = zarr.open_group(folder / "s.zarr", mode="w"), [PATCHES[kind](seed) for seed in range(8)]
        for name, values in patches[0].items():
            array = group.create_array(
                name, shape=(side, side, *values.shape[2:]), chunks=(chunk, chunk, *values.shape[2:]),
                dtype=values.dtype, compressors=CODECS[codec], dimension_names=("y", "x", "class")[: values.ndim],
            )  # fmt: skip
            step = min(PATCH, side)
            for number, (y, x) in enumerate(np.ndindex(side // step, side // step)):
                turned = np.rot90(patches[number % 8][name], number // 8)[:step, :step]
                array[y * step : (y + 1) * step, x * step : (x + 1) * step] = turned

    return kept(f"{kind}-{side}-{codec}-{chunk}", make) / "s.zarr"


def many_chunks(side: int, chunk: int = 64) -> Path:
    """Return a binary store in many chunks; its files are a few, each under many names."""

    def make(folder: Path) -> None:
        values = {name: patch[:chunk, :chunk] for name, patch in binary_patch(0).items() if name != "u"}
        group = zarr.open_group(folder / "s.zarr", mode="w")
        for name, patch in values.items():
            group.create_array(name, shape=(side, side), chunks=(chunk, chunk), dtype=patch.dtype)[:chunk, :chunk] = (
                patch
            )
            first = folder / "s.zarr" / name / "c" / "0" / "0"
            for y in range(side // chunk):
                first.parent.parent.joinpath(str(y)).mkdir(exist_ok=True)
                own = first.parent.parent / str(y) / "0"
                if y:
                    shutil.copy(first, own)
                for x in range(1, side // chunk):
                    os.link(own, own.with_name(str(x)))

    return kept(f"many-{side}-{chunk}", make) / "s.zarr"


def empty(folder: Path, side: int, chunk: int, classes: int) -> str:
    """Write a store whose chunks are all missing, to plan with; return its path."""
    group = zarr.open_group(folder, mode="w")
    group.create_array("p", shape=(side, side, classes), chunks=(chunk, chunk, classes), dtype="f4")
    group.create_array("y", shape=(side, side), chunks=(chunk, chunk), dtype="u1")
    return str(folder)


def cohort(cases: int, side: int = 32) -> Path:
    """Return a folder with a manifest of small cases as NumPy files, and `job.yaml`."""

    def make(folder: Path) -> None:
        patch, lines = binary_patch(1), ["case,patient,probabilities,reference"]
        for number in range(cases):
            y, x = divmod(number % 200, 14)
            for name, column in (("p", "probabilities"), ("y", "reference")):
                part = patch[name][side * y : side * (y + 1), side * x : side * (x + 1)]
                np.save(folder / f"{number}-{column}.npy", part)
            lines.append(f"C{number},P{number},{number}-probabilities.npy,{number}-reference.npy")
        (folder / "cases.csv").write_text("\n".join(lines) + "\n")

    return kept(f"cohort-{cases}-{side}", make)
