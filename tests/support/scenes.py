"""A small scene to test with: its store, its job file, and the command that runs it without figures and page."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import yaml
import zarr

import dask_uncert as du

QUIET = (
    "from dask_uncert.reports import drawing, write; write.figures_and_page = lambda *a: {}; "
    "drawing.load_ahead = lambda: None; "
    "from dask_uncert.cli.main import main; main()"
)
"""The command without figures and page, which are most of a small run."""
SHAPE, CLASSES, CHUNK = (1200, 1000), 6, 100


class Scene:
    """A folder with a job file and a store of two arrays in square chunks."""

    def __init__(self, folder: Path, shape=SHAPE, chunk=CHUNK, **changes) -> None:
        rng = np.random.default_rng(0)
        p = rng.random((*shape, CLASSES), dtype="f4")
        self.p = p / p.sum(axis=-1, keepdims=True)
        self.y = rng.integers(0, CLASSES, shape).astype("u1")
        group = zarr.open_group(folder / "s.zarr", mode="w")
        for name, values, dims in (("p", self.p, ("y", "x", "class")), ("y", self.y, ("y", "x"))):
            chunks = (chunk, chunk, *values.shape[2:])
            words = {"shape": values.shape, "chunks": chunks, "dtype": values.dtype}
            group.create_array(name, **words, dimension_names=dims)[...] = values
        self.folder, self.job = folder, folder / "job.yaml"
        self.words = {
            "version": 1, "kind": "scene", "classes": {i: str(i) for i in range(CLASSES)}, "output": "out",
            "measures": ["entropy", "gini"],
            "inputs": {"probabilities": {"store": "s.zarr", "array": "p"}, "reference": {"store": "s.zarr", "array": "y"}},
            **changes,
        }  # fmt: skip
        self.job.write_text(yaml.safe_dump(self.words))

    def wanted(self):
        """The evaluation of the arrays in this process."""
        names = [str(i) for i in range(CLASSES)]
        return du.evaluate(self.p, self.y, classes=names, measures=self.words["measures"])


def command(job, out, *words, many=None) -> list[str]:
    """The words that run a job; many: cut it into at least so many blocks, where its chunks allow."""
    cut = f"from dask_uncert.execution import chunking; chunking.MIN_BLOCKS, chunking.LEAST_PIXELS = {many}, 1; "
    script = QUIET if many is None else cut + QUIET
    return [sys.executable, "-c", script, "run", str(job), "--out", str(out), "--quiet", *map(str, words)]


def record(out: Path) -> dict:
    """What `run.json` says."""
    return json.loads((out / "run.json").read_text())


def finished(blocks: Path) -> list[str]:
    """Return the files of finished groups in a `.blocks` folder, which a run that ends removes at any moment."""
    with suppress(FileNotFoundError):
        return [name for name in os.listdir(blocks) if name.endswith(".case") and "unfinished" not in name]
    return []
