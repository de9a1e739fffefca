"""A cohort's job, checked before a case is evaluated; and what it would read and write."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import class_distances_of
from dask_uncert.io.paths import AnyPath
from dask_uncert.io.summary_cache import CaseFolder
from dask_uncert.jobs.cohort.case import CasePass, Column
from dask_uncert.jobs.cohort.manifest import ManifestRow, read_manifest
from dask_uncert.jobs.cohort_schema import CohortJob
from dask_uncert.jobs.load import class_distances_from, given_as, request_from, resolve

FILES = ".cases"  # ends the name of the folder beside the output that holds what finished cases left


@dataclass(frozen=True)
class CohortPlan:
    """A cohort's job, checked: its cases, and what each is asked; nothing is opened yet."""

    words: CohortJob
    lines: tuple[ManifestRow, ...]
    cases: CasePass

    def at(self, output: AnyPath, room: float | None) -> CasePass:
        """What is sent to the cluster."""
        about = {"Conventions": "CF-1.11", "source": "dask-uncert " + version("dask-uncert")}
        return replace(self.cases, folder=str(files_of(output).place), room=room, about_maps=about)


def files_of(output: AnyPath) -> CaseFolder:
    """The folder of case files that belongs to an output folder."""
    return CaseFolder(output.with_name(output.name + FILES))


def asked(words: CohortJob, folder: Path) -> CohortPlan:
    """Everything that can be checked before a case is opened, checked; InputError."""
    scene = words.as_scene()
    request = request_from(scene)
    distances = class_distances_from(words, folder)
    if distances and "metric" in distances:
        raise InputError(
            "class_distances: a metric would give every case distances of its own, which do not add up to one "
            "cohort; give a `table` of distances, for example that of `results.json` of one job."
        )
    request, _ = class_distances_of(request, distances, has_features=False)
    columns = []
    for column, (name, one) in words.columns().items():
        # Raters are told apart by their columns.
        columns.append(Column(column, name, given_as(column if name == "reference" else name, one, "", "")))
        if "/" in column or column.startswith("."):
            raise InputError(f"inputs: the column {column!r} becomes a folder; name it without slash or dot.")
    reference = words.inputs.reference
    raters = scene.inputs.reference.raters
    weigh = words.inputs.weight == "geometry"
    said = [
        asdict(request),
        weigh,
        [[column.column, column.name, asdict(column.words)] for column in columns],
        raters,
        reference.per_rater,
        reference.fuzzy,
        version("dask-uncert"),
    ]
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    run = uuid.uuid4().hex
    cases = CasePass(
        request, tuple(columns), raters, reference.per_rater, reference.fuzzy, "", digest, run, weigh=weigh
    )
    inputs = list(words.columns())
    lines = read_manifest(resolve(words.manifest, folder), inputs, words.visits, words.groups)
    return CohortPlan(words, tuple(lines), cases)


def forecast(job: CohortPlan, room: float | None = None) -> dict[str, Any]:
    """What the job would read, in how many tasks, with how much memory, as plain data; opens every case.

    room: bytes that a task may use; None for no limit. unusable: why, by case, of those that can be refused without reading a voxel.
    """
    read: dict[str, int] = {}
    unusable: dict[str, str] = {}
    memory = large = tasks = 0
    cases = replace(job.cases, room=room)
    for line in job.lines:
        try:
            found = cases.forecast(line)
        except InputError as error:
            unusable[line.case.name] = str(error)
            continue
        for name, nbytes in found.nbytes.items():
            read[name] = read.get(name, 0) + nbytes
        memory, large, tasks = max(memory, found.memory), large + found.large, tasks + found.tasks
    return {
        "cases": len(job.lines),
        "patients": len({line.case.patient for line in job.lines}),
        "tasks": tasks,
        "large_cases": large,
        "bytes_read": read,
        "block_memory_bytes": memory,
        "maps": list(job.cases.request.layers),
        "unusable": unusable,
    }
