"""What is known of a run of a scene or a regression: who it is, what it read, what the cluster says of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dask_uncert.clusters import connect
from dask_uncert.execution.plan import Plan
from dask_uncert.inputs.names import gap_of
from dask_uncert.io.output_folder import peak_memory, versions
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.retries import retry_count
from dask_uncert.jobs.schema import AnyJob

if TYPE_CHECKING:
    from distributed import Client


def tried(client: Client) -> dict[str, int]:
    """How many reads each process has tried again: the workers, and this one."""
    return dict([retry_count(), *client.run(retry_count, on_error="ignore").values()])


def facts_of(client: Client, before: Mapping[str, int]) -> dict[str, Any]:
    """What the cluster says of the pass; nothing where it has gone meanwhile, for the result is here."""
    with suppress(Exception):
        return {
            "reads_tried_again": sum(n - before.get(process, 0) for process, n in tried(client).items()),
            "workers": connect.describe(client),
            "peak_memory_bytes": max(client.run(peak_memory, on_error="ignore").values(), default=0),
        }
    return {}


def fingerprint(job: AnyJob, plan: Plan, stored: Mapping[str, str | None]) -> str | None:
    """Return a digest of the job, its inputs as stored and the package version; None if an input has no fingerprint."""
    if any(mark is None for mark in stored.values()):
        return None
    words = job.model_dump(mode="json", by_alias=True, exclude={"output", "cluster"})
    text = json.dumps([words, asdict(plan.request), stored, version("dask-uncert")], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def remarks_of(plan: Plan) -> list[str]:
    """What is odd about the inputs, a sentence each."""
    return [remark for cube in plan.scene.cubes.values() for remark in cube.remarks]


def input_of(stored: StoredArray) -> dict[str, Any]:
    """Which array an input is, as plain data."""
    return {
        "store": stored.store,
        "array": stored.array,
        "shape": list(stored.shape),
        "dtype": str(stored.dtype),
    }


def about(plan: Plan) -> dict[str, str]:
    """What the report says of where its numbers come from; nothing that changes from run to run."""
    said = {
        f"input {name}": f"{cube.where}, {cube.data.shape} {cube.data.dtype}"
        for name, cube in plan.scene.cubes.items()
        if gap_of(name) is None
    }
    return {**said, **{name: value for name, value in versions().items() if name == "dask-uncert"}}
