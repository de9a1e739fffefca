"""The provenance of results: the record of a run (`run.json`), fingerprints, and facts about the cluster."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import yaml

from dask_uncert.clusters.monitor import LOG
from dask_uncert.errors import InputError, without_secrets
from dask_uncert.formulas.own_measures import source_digest
from dask_uncert.io.integrity import damaged, digest_of
from dask_uncert.io.output_folder import RESULTS, peak_memory, read_record, versions, write_record
from dask_uncert.io.paths import AnyPath
from dask_uncert.io.readers.stored_array import StoredArray
from dask_uncert.io.retries import retry_count
from dask_uncert.summaries.registry import AnyEvaluation

if TYPE_CHECKING:
    from distributed import Client

    from dask_uncert.execution.plan import Plan
    from dask_uncert.jobs.schema import AnyJob, CohortJob

ABOUT_MAPS = {"Conventions": "CF-1.11", "source": "dask-uncert " + version("dask-uncert")}
"""Attributes of `maps.zarr`."""
WHERE = ("version", "kind", "inputs", "manifest", "columns", "output", "cluster")
"""Keys of a job that say where things are, not how they are evaluated."""


class RunRecord(TypedDict, total=False):
    """Keys of `run.json`, besides `versions`, `counted` and `excluded`; those that do not apply are left out.

    `fingerprint` identifies the result; it is null if an input cannot show whether it changed.
    """

    # of a job
    job: Mapping[str, Any]
    started: str
    seconds: dict[str, float]
    workers: Any
    peak_memory_bytes: int
    maps: list[str]
    remarks: list[str]
    without_checksum: list[str]
    # of a scene
    inputs: dict[str, Any]
    blocks: int
    blocks_computed: int
    blocks_computed_again: int
    tasks: int
    bytes_read: int
    reads_tried_again: int
    # of a cohort
    about: dict[str, str]
    asked: str
    cases: dict[str, Any]
    failed: dict[str, str]
    # of a merge
    merged: list[str]
    scenes: list[str]
    left_out: list[str]
    # of all
    fingerprint: str | None
    unit: str  # what is counted: pixel, or voxel where the grid has three dimensions


def write_run(
    folder: Path,
    evaluation: AnyEvaluation,
    record: RunRecord,
    seconds: Mapping[str, float] | None = None,
    log: str = "",
) -> None:
    """Write `run.json`, which completes an output folder. seconds: by part of a job; log: warnings of its workers."""
    if log:
        (folder / LOG).write_text(log, encoding="utf-8")
    if seconds is not None:
        record = {**record, "seconds": {name: round(value, 3) for name, value in seconds.items()}}
    counts = {"counted": int(evaluation.ledger.counted), "excluded": evaluation.ledger.reasons()}
    write_record(folder, {**record, "versions": versions(), **counts})


def read_results(folder: AnyPath) -> str:
    """Return the `results.json` of a finished folder; raise InputError if it is not as it was written."""
    content = (folder / RESULTS).read_bytes()
    if digest_of(content) != read_record(folder).get("results"):
        raise damaged(folder / RESULTS)
    return content.decode()


def job_record(job: AnyJob | CohortJob, started: datetime) -> RunRecord:
    """Return the keys of a job and when it started."""
    keys = job.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"job": without_secrets(keys), "started": started.isoformat(timespec="seconds")}


def counted_unit(dimensions: int) -> str:
    """Return what a grid of so many dimensions is made of: "pixel" or "voxel"."""
    return "voxel" if dimensions == 3 else "pixel"


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


def digest(*values: Any) -> str:
    """Return the SHA-256 of plain data; equal for equal data."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def fingerprint(job: AnyJob, plan: Plan, stored: Mapping[str, str | None]) -> str | None:
    """Return a digest of the job, its inputs as stored and the package version; None if an input has no fingerprint."""
    if any(mark is None for mark in stored.values()):
        return None
    keys = job.model_dump(mode="json", by_alias=True, exclude={"output", "cluster"})
    return digest(keys, asdict(plan.request), stored, own_sources(plan.request), version("dask-uncert"))


def own_sources(request: Any) -> list[str]:
    """Return digests of the source files of a user's own measures; request: what has `measures`."""
    return [source_digest(measure.function) for measure in getattr(request, "measures", ()) if measure.function]


def read_retries(client: Client) -> dict[str, int]:
    """Return the number of reads that were tried again, by process: the workers and this one."""
    return dict([retry_count(), *client.run(retry_count, on_error="ignore").values()])


def cluster_record(client: Client, retries_before: Mapping[str, int]) -> RunRecord:
    """Return facts about the cluster after a pass; none if the cluster is gone, as the result no longer needs it."""
    from dask_uncert.clusters import connect

    with suppress(Exception):
        retries = read_retries(client).items()
        return {
            "workers": connect.describe(client),
            "peak_memory_bytes": max(client.run(peak_memory, on_error="ignore").values(), default=0),
            "reads_tried_again": sum(n - retries_before.get(process, 0) for process, n in retries),
        }
    return {}


def input_record(stored: StoredArray, mark: str | None) -> dict[str, Any]:
    """Return the store, array, shape, type and fingerprint of an input as plain data."""
    return {
        "store": without_secrets(stored.store),
        "array": stored.array,
        "shape": list(stored.shape),
        "dtype": str(stored.dtype),
        "fingerprint": mark,
    }


def about(plan: Plan, record: RunRecord) -> dict[str, str]:
    """Return what the report says of a run: inputs, when it was started, version and settings; record: of the job."""
    inputs = {
        f"input {name}": f"{cube.where}, {cube.data.shape} {cube.data.dtype}"
        for name, cube in plan.scene.cubes.items()
        if cube.gap is None
    }
    return {**inputs, **about_run(record)}


def about_run(record: RunRecord) -> dict[str, str]:
    """Return when a job was started, the version, and its settings, which name neither inputs nor folders."""
    settings = {key: value for key, value in record["job"].items() if key not in WHERE}
    text = yaml.safe_dump(settings, default_flow_style=None, sort_keys=False, allow_unicode=True, width=100)
    return {"started": record["started"], "dask-uncert": version("dask-uncert"), "settings": text.strip()}


def check_unchanged(read: Mapping[str, StoredArray], stored: Mapping[str, str | None]) -> None:
    """Raise InputError if an input changed while it was read."""
    for name, array in read.items():
        if array.fingerprint() != stored[name]:
            raise InputError(
                f"{name}: {array} changed while it was read, so the result would mix both versions. Run again when it "
                f"is complete; nothing was written."
            )
