"""Check a cohort's job before any case is evaluated; plan what it would read and write."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.execution.checkpoints import ENDING as BLOCKS
from dask_uncert.execution.estimate import estimated
from dask_uncert.formulas.own_measures import source_digest
from dask_uncert.inputs.open import open_cubes
from dask_uncert.io.paths import AnyPath
from dask_uncert.io.summary_cache import CaseFolder
from dask_uncert.jobs.cohort.case import EvaluateCase, ManifestColumn
from dask_uncert.jobs.cohort.manifest import ManifestRow, read_manifest
from dask_uncert.jobs.load import resolve
from dask_uncert.jobs.provenance import digest
from dask_uncert.jobs.schema import CaseSamples, CohortJob
from dask_uncert.spec.inputs import input_spec
from dask_uncert.spec.options import SceneOptions
from dask_uncert.spec.resolve import check_inputs, with_classes, with_distance_table_read
from dask_uncert.spec.types import FROM_FILE

CACHE = ".cases"  # suffix of the folder next to the output that caches the summaries of finished cases


@dataclass(frozen=True)
class CohortPlan:
    """A checked cohort's job: its cases, and how each is evaluated; no input is open yet."""

    rows: tuple[ManifestRow, ...]
    evaluate: EvaluateCase

    @property
    def maps(self) -> list[str]:
        """Names of the maps."""
        return list(self.evaluate.options.layers)

    def cost(self, memory: float | None = None, threads: tuple[int, int | None] | None = None) -> dict[str, Any]:
        """Return what the job would read, its tasks and their memory, as plain data; opens every case.

        unusable: the reason, by case, of those that cannot be evaluated. threads: of a worker and of the cluster, to
        estimate the time from one case of middle size; None for no estimate.
        """
        read: dict[str, int] = {}
        unusable: dict[str, str] = {}
        without_checksum: set[str] = set()
        block_memory = large = tasks = 0
        evaluate = replace(self.evaluate, memory=memory)
        usable: list[tuple[int, ManifestRow]] = []
        for row in self.rows:
            try:
                cost = evaluate.cost(row)
            except InputError as error:
                unusable[row.case.name] = str(error)
                continue
            usable.append((sum(cost.nbytes.values()), row))
            for name, nbytes in cost.nbytes.items():
                read[name] = read.get(name, 0) + nbytes
            without_checksum |= {*cost.without_checksum}
            block_memory = max(block_memory, cost.memory)
            large, tasks = large + cost.large, tasks + cost.tasks
        estimate = {}
        if threads is not None and usable:
            case = sorted(usable, key=lambda found: found[0])[len(usable) // 2][1]
            total = sum(nbytes for nbytes, _ in usable)
            estimate["estimate"] = estimated(lambda: evaluate.probe(case, len(usable), total), threads[1])
        return {
            "cases": len(self.rows),
            "patients": len({row.case.patient for row in self.rows}),
            "tasks": tasks,
            "large_cases": large,
            "bytes_read": read,
            "without_checksum": sorted(without_checksum),
            "block_memory_bytes": block_memory,
            "maps": self.maps,
            "unusable": unusable,
            **estimate,
        }


def cache_of(output: AnyPath) -> CaseFolder:
    """Return the cache that belongs to an output folder."""
    return CaseFolder(output.with_name(output.name + CACHE))


def folders_of(output: AnyPath) -> list[AnyPath]:
    """Return the folders that a run of any kind writes: the output, and those beside it."""
    return [output, *(output.with_name(output.name + ending) for ending in (BLOCKS, CACHE))]


def plan_cohort(job: CohortJob, folder: Path) -> CohortPlan:
    """Return the plan of a cohort's job; InputError for all that can be checked before a case is opened.

    folder: the one that the job's paths are relative to.
    """
    rows = read_manifest(resolve(job.manifest, folder), [*job.columns(), *job.geometries()], job.visits, job.groups)
    options, table = job.options(), None
    if options.classes == FROM_FILE:
        options = _with_table_of(rows[0], job, options)
        table = tuple((label.code, label.name) for label in options.table)
    options = with_distance_table_read(options, folder)
    if options.class_distances is not None and options.class_distances.metric is not None:
        raise InputError(
            "class_distances: with a metric every case would have different distances, so cases could not be added. Give "
            "a `table` of distances, for example that of `results.json` of one job."
        )
    check_inputs(options, [name for name, input_options in job.inputs if input_options is not None])
    columns = []
    for column, (name, input_options) in job.columns().items():
        # Raters are told apart by their columns.
        kind = "samples" if isinstance(input_options, CaseSamples) else name
        spec = input_spec(
            column if name == "reference" else name,
            kind,
            input_options,
            ignore=options.ignore,
            classes=len(options.table),
        )
        spec = replace(spec, table=table if name == "reference" else None)
        columns.append(ManifestColumn(column, name, spec))
        if "/" in column or column.startswith("."):
            raise InputError(f"inputs: the column {column!r} becomes a folder; name it without slash or dot.")
    reference = job.inputs.reference
    settings = digest(
        options.model_dump(mode="json"),
        [source_digest(measure.function) for measure in options.records if measure.function],
        job.inputs.weight == "geometry",
        [[column, name, asdict(spec)] for column, name, spec in columns],
        reference.number,
        reference.per_rater,
        reference.fuzzy,
        version("dask-uncert"),
    )
    evaluate = EvaluateCase(options, job.inputs, tuple(columns), settings, uuid.uuid4().hex)
    return CohortPlan(tuple(rows), evaluate)


def _with_table_of(row: ManifestRow, job: CohortJob, options: SceneOptions) -> SceneOptions:
    """Return the options with the class table in the reference's file of a case."""
    column, (name, given) = next(entry for entry in job.columns().items() if entry[1][0] == "reference")
    path = row.paths[column]
    spec = input_spec(name, name, given, path, path, options.ignore)
    spec = replace(spec, like=None if spec.like is None else row.paths[spec.like])
    return with_classes(options, open_cubes(spec))
