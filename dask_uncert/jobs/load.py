"""A job file read, its inputs opened, its pass planned; the schema of job files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import Field, TypeAdapter, ValidationError

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import prepare
from dask_uncert.execution.evaluate_regression import prepare_regression
from dask_uncert.execution.plan import Plan
from dask_uncert.inputs.cube import CLASS, Cube
from dask_uncert.inputs.open import InputSpec, open_input
from dask_uncert.inputs.overlap import over_the_reference
from dask_uncert.inputs.pixel_area import pixel_sizes
from dask_uncert.io.decoding import Role
from dask_uncert.jobs.cohort_schema import CaseInput, CaseProbabilities, CaseReference, CaseWeight, CohortJob
from dask_uncert.jobs.schema import JOBS as SINGLE
from dask_uncert.jobs.schema import (
    AnyJob,
    Input,
    Job,
    Probabilities,
    Questions,
    Reference,
    RegressionJob,
    Weight,
)
from dask_uncert.spec.parse import request_of
from dask_uncert.spec.request import Request

JOBS: dict[str, type[AnyJob] | type[CohortJob]] = {**SINGLE, "cohort": CohortJob}
"""By the word `kind`."""


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a word given twice is an error, not the last one's."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for i, key in enumerate(keys) if key in keys[:i]]
        if twice:
            raise yaml.MarkedYAMLError(problem=f"{twice[0]!r} is given twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def read_job(
    job: str | Path | Mapping[str, Any], sets: Mapping[str, Any] | None = None
) -> tuple[AnyJob | CohortJob, Path]:
    """A job from its file or mapping, and the folder its paths are relative to.

    sets: dotted words and their values, put in place of the file's. Raises InputError.
    """
    if isinstance(job, Mapping):
        words, folder, where = dict(job), Path.cwd(), "the job"
    else:
        path = Path(job)
        folder, where = path.resolve().parent, str(path)
        try:
            words = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        except FileNotFoundError:
            raise InputError(f"there is no job file at {path}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the job file {path} cannot be read: {error}.") from None
        except yaml.YAMLError as error:
            raise InputError(f"{path} is no valid YAML: {' '.join(str(error).split())}.") from None
        if not isinstance(words, dict):
            raise InputError(f"{path} holds no job: a mapping of words such as `version`, `kind`, `inputs`.")
    for dotted, value in (sets or {}).items():
        words = _with(words, dotted.split("."), value)
    kind = words.get("kind", "scene")
    if not isinstance(kind, str) or kind not in JOBS:
        raise InputError(f"{where}: `kind` must be one of {', '.join(JOBS)}, found {kind!r}.")
    try:
        return JOBS[kind].model_validate(words), folder
    except ValidationError as error:
        raise InputError(f"{where}: {_say(error)}") from None


def _with(words: Any, keys: list[str], value: Any) -> Any:
    first, *rest = keys
    inner = dict(words) if isinstance(words, Mapping) else {}
    inner[first] = _with(inner.get(first), rest, value) if rest else value
    return inner


def _say(error: ValidationError) -> str:
    found = []
    for one in error.errors()[:5]:
        place = ".".join(str(part) for part in one["loc"])
        given = one.get("input")
        shown = f", found {given!r}" if isinstance(given, str | int | float | None) else ""
        message = {"extra_forbidden": "is not a word of the job file", "missing": "is missing"}.get(
            one["type"], one["msg"][0].lower() + one["msg"][1:] + shown
        )
        found.append(f"`{place}` {message}")
    more = f"; and {error.error_count() - 5} more" if error.error_count() > 5 else ""
    return "; ".join(found) + more + ". `dask-uncert schema` lists every word."


def resolve(place: str, folder: Path) -> str:
    """A path of the job file, made absolute; a URL as it is."""
    return place if "://" in place else os.path.realpath(folder / place)


def cluster_of(job: AnyJob | CohortJob, folder: Path) -> str:
    """What a job's word `cluster` stands for; a file is relative to the job's."""
    found = job.cluster
    return found if found == "local" or "://" in found else resolve(found, folder)


def open_inputs(job: AnyJob, folder: Path) -> dict[str, Cube]:
    """The job's inputs, opened and not read; InputError naming the input that cannot be."""
    cubes: dict[str, Cube] = {}
    given: dict[str, Input | list[Probabilities] | str | None] = dict(job.inputs)
    apart = given.get("samples")
    if isinstance(apart, list):
        given.update({"samples": None, **{f"samples_{number}": one for number, one in enumerate(apart)}})
    for name, words in given.items():
        if not isinstance(words, Input):
            continue
        kind = "samples" if isinstance(words, Probabilities) and name != "probabilities" else name
        cubes |= open_input(given_as(name, kind, words, resolve(words.store, folder), words.store))
    if given.get("weight") == "geometry":
        cubes["weight"] = pixel_sizes(cubes)
    return over_the_reference(cubes) if isinstance(job, Job) and job.overlap else cubes


def given_as(name: str, kind: str, words: Input | CaseInput, place: str, where: str) -> InputSpec:
    """An input's words, with the place that they or a manifest name; where: as it is written there."""
    prediction = words if isinstance(words, Probabilities | CaseProbabilities) else None
    nodata = words.nodata
    codes = None if nodata is None else tuple(nodata if isinstance(nodata, list) else [nodata])
    return InputSpec(
        name,
        place,
        where,
        words.array,
        None if words.dims is None else tuple(words.dims),
        role_of(name, words),
        words.scale,
        words.offset,
        codes,
        words.missing_chunks,
        words.unit if isinstance(words, Weight | CaseWeight) else "1",
        prediction is not None and prediction.logits,
        kind,
        None if prediction is None else prediction.tolerance,
    )


def role_of(name: str, words: Input | CaseInput) -> Role:
    """What an input holds, by its name and words."""
    if isinstance(words, Probabilities | CaseProbabilities):
        return "probabilities"
    codes = (
        isinstance(words, Reference | CaseReference) and not words.fuzzy and CLASS not in (words.dims or ())
    )
    return "labels" if codes or name == "mask" else "values"


def request_from(job: Job) -> Request:
    """The job's words as a Request."""
    thresholds = job.uncertainty_confusion.model_dump(exclude_none=True)
    probabilities, samples = job.inputs.probabilities, job.inputs.samples
    members = samples if isinstance(samples, list) else [samples] if samples else []
    return request_of(
        classes=job.classes,
        ignore=job.ignore,
        measures=job.measures,
        soft_confusion=[one.model_dump(by_alias=True, exclude_none=True) for one in job.soft_confusion],
        uncertainty_confusion=thresholds,
        calibration=job.calibration.model_dump(),
        maps=job.maps,
        has_uncertainty=job.inputs.uncertainty is not None,
        has_samples=bool(members),
        fuzzy=job.inputs.reference.fuzzy,
        raters=job.inputs.reference.raters,
        confidence=None if job.confidence is None else job.confidence.model_dump(exclude_none=True),
        leave_out_off=any(one.out_of_tolerance == "leave_out" for one in (*members, probabilities) if one),
    )


def plan_job(job: AnyJob, folder: Path) -> Plan:
    """The job's pass, checked and cut into blocks; nothing is read but the stores' metadata."""
    if isinstance(job, RegressionJob):
        return prepare_regression(open_inputs(job, folder), job.maps)
    distances = class_distances_from(job, folder)
    return prepare(request_from(job), open_inputs(job, folder), class_distances=distances)


def class_distances_from(job: Questions, folder: Path) -> dict[str, Any] | None:
    """The job's words on class distances, with the table read where they name its file."""
    if job.class_distances is None:
        return None
    distances = job.class_distances.model_dump(exclude_none=True)
    if isinstance(distances.get("table"), str):
        distances["table"] = _read_table(resolve(distances["table"], folder))
    return distances


def _read_table(path: str) -> Any:
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except OSError:
        raise InputError(f"class_distances: there is no table at {path}.") from None
    except ValueError as error:
        raise InputError(f"class_distances: {path} is no table of numbers: {error}.") from None


def job_schema() -> str:
    """Return the JSON Schema of job files of every kind.

    Returns
    -------
    str
        JSON, for editors and validators. The same as ``dask-uncert schema``.

    Examples
    --------
    >>> import json, dask_uncert as du
    >>> sorted(json.loads(du.job_schema())["discriminator"]["mapping"])
    ['cohort', 'regression', 'scene']
    """
    every: TypeAdapter[AnyJob | CohortJob] = TypeAdapter(
        Annotated[AnyJob | CohortJob, Field(discriminator="kind")]
    )
    return json.dumps(every.json_schema(), indent=2) + "\n"
