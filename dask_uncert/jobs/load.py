"""Read a job file, open its inputs and plan its pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError, suggestion
from dask_uncert.execution.evaluate import prepare
from dask_uncert.execution.evaluate_regression import prepare_regression
from dask_uncert.execution.plan import Plan
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.open import open_cubes
from dask_uncert.inputs.pixel_area import pixel_sizes
from dask_uncert.io.paths import named_path
from dask_uncert.io.validation import validated
from dask_uncert.io.yaml_file import read_yaml
from dask_uncert.jobs.schema import JOBS, AnyJob, CohortJob, Input, Job, Probabilities, RegressionJob
from dask_uncert.spec.inputs import input_spec
from dask_uncert.spec.resolve import check_inputs, with_distance_table_read


def read_job(
    job: str | Path | Mapping[str, Any], sets: Mapping[str, Any] | None = None
) -> tuple[AnyJob | CohortJob, Path]:
    """Return a job from its file or mapping, and the folder that its paths are relative to.

    sets: values by dotted key, instead of the file's. Raises InputError.
    """
    if isinstance(job, Mapping):
        keys, folder, where = dict(job), Path.cwd(), "the job"
    else:
        path = Path(job)
        folder, where = Path(named_path(path)).parent, str(path)
        keys = read_yaml(path, "job file")
        if not isinstance(keys, dict):
            raise InputError(f"{path} does not hold a job: a mapping with keys such as `version`, `kind`, `inputs`.")
    for dotted, value in (sets or {}).items():
        keys = _with(keys, dotted.split("."), value)
    kind = keys.get("kind", "scene")
    if not isinstance(kind, str) or kind not in JOBS:
        raise InputError(f"{where}: `kind` must be one of {', '.join(JOBS)}, found {kind!r}. {suggestion(kind, JOBS)}")
    return validated(JOBS[kind], keys, f"{where}: ", " `dask-uncert schema` lists every key."), folder


def _with(values: Any, keys: list[str], value: Any) -> Any:
    first, *rest = keys
    inner = dict(values) if isinstance(values, Mapping) else {}
    inner[first] = _with(inner.get(first), rest, value) if rest else value
    return inner


def resolve(path: str, folder: Path) -> str:
    """Return a path of a job file as an absolute path; a URL is unchanged."""
    return named_path(path, folder)


def cluster_of(job: AnyJob | CohortJob, folder: Path) -> str:
    """Return the cluster of a job: local, a URL, or the absolute path of a cluster file."""
    return job.cluster if job.cluster == "local" else resolve(job.cluster, folder)


def files_of(job: AnyJob | CohortJob, folder: Path, job_file: Any, cluster: Any) -> dict[str, str]:
    """Return the files that a job reads beside its inputs, by what a message calls them."""
    files = {} if isinstance(job_file, Mapping) else {"the job file": str(job_file)}
    if isinstance(cluster, str | Path) and str(cluster) != "local" and "://" not in str(cluster):
        files["the cluster file"] = str(cluster)
    if isinstance(job, CohortJob):
        files["the manifest"] = resolve(job.manifest, folder)
    distances = getattr(job, "class_distances", None)
    if distances is not None and isinstance(distances.table, str):
        files["class_distances"] = resolve(distances.table, folder)
    return files


def open_inputs(job: AnyJob, folder: Path) -> dict[str, Cube]:
    """Return the job's inputs, open but not read; InputError names an input that cannot be opened."""
    cubes: dict[str, Cube] = {}
    inputs = dict(job.inputs)
    ignore, classes = (job.ignore, len(job.table)) if isinstance(job, Job) else ((), 0)
    samples = inputs.get("samples")
    if isinstance(samples, list):
        inputs.update({"samples": None, **{f"samples_{i}": sample for i, sample in enumerate(samples)}})
    for name, options in inputs.items():
        if isinstance(options, Input):
            kind = "samples" if isinstance(options, Probabilities) and name != "probabilities" else name
            path = resolve(options.store, folder)
            spec = input_spec(name, kind, options, path, options.store, ignore, classes)
            cubes |= open_cubes(spec if spec.like is None else replace(spec, like=resolve(spec.like, folder)))
    if inputs.get("weight") == "geometry":
        cubes["weight"] = pixel_sizes(cubes)
    return cubes


def plan_job(job: AnyJob, folder: Path) -> Plan:
    """Return the job's pass, checked and cut into blocks; only metadata is read."""
    if isinstance(job, RegressionJob):
        return prepare_regression(job, open_inputs(job, folder))
    check_inputs(job, [name for name, options in job.inputs if options is not None])
    options = with_distance_table_read(job, folder)
    return prepare(options, open_inputs(job, folder))
