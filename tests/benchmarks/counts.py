"""Numbers that do not depend on the machine: tasks, reads, requests and bytes of small and of large stores."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
import numpy as np
import zarr

import dask_uncert as du
from dask_uncert.execution.evaluate import prepare
from dask_uncert.execution.plan import Plan
from dask_uncert.io.missing_chunks import StrictStore
from dask_uncert.io.readers.zarr import ZarrArray
from dask_uncert.io.validation import validated
from dask_uncert.spec.inputs import open_arrays
from dask_uncert.spec.options import SceneOptions
from tests.benchmarks.cubes import empty
from tests.benchmarks.simulated_cluster import simulate

Row = tuple[str, float, str, float]
"""What is counted, how many there are, how that compares with the limit, and the limit."""


def plan_of(store: str, missing_chunks: str | None = None) -> Plan:
    """Return the pass over the arrays p and y of a store, with a joint histogram."""
    dims = {"p": ["y", "x", "class"], "y": ["y", "x"]}
    more = {} if missing_chunks is None else {"missing_chunks": missing_chunks}
    inputs = {
        name: du.Input(store, array=a, dims=dims[a], **more) for name, a in (("probabilities", "p"), ("reference", "y"))
    }
    options = validated(SceneOptions, {"measures": ["entropy"], "soft_confusion": [{"class": "1"}]})
    return prepare(options, open_arrays(inputs, -1, 0, -1, []))


def small_store(folder: Path, side: int = 512, chunk: int = 64) -> None:
    """Write a store of three classes in chunks."""
    rng, group = np.random.default_rng(0), zarr.open_group(folder, mode="w")
    p = rng.dirichlet(np.ones(3), (side, side)).astype("f4")
    for name, values in (("p", p), ("y", p.argmax(axis=-1).astype("u1"))):
        chunks = (chunk, chunk, *values.shape[2:])
        group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype)[...] = values


def reads(folder: Path) -> list[Row]:
    """Every chunk is read once, and decoded once, whatever is asked."""
    found: Counter[str] = Counter()
    get, slicing = StrictStore.get, ZarrArray.__getitem__

    async def counted_get(self: Any, key: str, *args: Any, **kwargs: Any) -> Any:
        value = await get(self, key, *args, **kwargs)
        if "/c/" in key and value is not None:
            found["chunks"] += 1
            found["stored"] += len(value)
        return value

    def counted_slice(self: Any, region: Any) -> Any:
        values = slicing(self, region)
        found["decoded"] += values.nbytes
        found["reads"] += 1
        return values

    files = [path for path in folder.rglob("*") if path.is_file()]
    memory = fsspec.filesystem("memory")
    for path in files:
        memory.pipe_file(f"/benchmark/{path.relative_to(folder)}", path.read_bytes())
    plan = plan_of("memory://benchmark")
    with mock.patch.object(StrictStore, "get", counted_get), mock.patch.object(ZarrArray, "__getitem__", counted_slice):
        plan.compute()
    stored = sum(path.stat().st_size for path in files if "/c/" in str(path))
    return [
        ("chunks requested, as planned", found["chunks"], "=", plan.chunk_reads()),
        ("chunks requested, each once", found["chunks"], "=", sum("/c/" in str(path) for path in files)),
        ("bytes requested", found["stored"], "=", stored),
        ("bytes decoded", found["decoded"], "=", sum(plan.nbytes().values())),
        ("reads, of a block of each input", found["reads"], "=", 2 * plan.grid.blocks),
        (
            "tasks that add, four parts each",
            plan.tasks() - plan.grid.blocks,
            "=",
            math.ceil((plan.grid.blocks - 1) / 3),
        ),
    ]


def large(folder: Path) -> list[Row]:
    """A store of a million chunks is cut into few tasks, and planned without looking at its chunks."""
    plan = plan_of(empty(folder, 64 * 1000, 64, 2), "fill")
    return [
        ("chunks of the large store", plan.chunk_reads(), "=", 2 * 10**6),
        ("tasks for them", plan.tasks(), "at most", 2000),
        ("MiB of a block", max(1, plan.block_memory() >> 20), "at most", 1024),
    ]


def cluster(folder: Path) -> list[Row]:
    """A store of a million chunks of 256 x 256 pixels: its tasks are few, and its scheduler keeps up with its workers."""
    found = simulate(plan_of(empty(folder, 256 * 1000, 256, 16), "fill").reduction(), 256)
    return [
        ("tasks on a cluster", found.tasks, "at most", 2000),
        ("% of time 256 simulated workers idle", round(100 * (1 - found.busy)), "at most", 15),
    ]


def main() -> None:
    """Print every count with its limit; fail if one is not kept."""
    with tempfile.TemporaryDirectory() as name:
        small_store(Path(name, "small"))
        rows = [*reads(Path(name, "small")), *large(Path(name, "large")), *cluster(Path(name, "cluster"))]
    for what, number, relation, limit in rows:
        print(f"{what:36} {number:>12,}  {relation} {limit:,}")
    broken = [what for what, n, relation, limit in rows if (n != limit if relation == "=" else n > limit)]
    if broken:
        raise SystemExit(f"not kept: {', '.join(broken)}")
