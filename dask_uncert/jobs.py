"""The job file: its schema, and a job run from inputs to output folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dask_uncert.cubes import Cube, make_cube
from dask_uncert.errors import InputError
from dask_uncert.evaluate import prepare
from dask_uncert.plan import Plan
from dask_uncert.regression_plan import RegressionPlan, prepare_regression
from dask_uncert.request import Request
from dask_uncert.stores.zarr import StoredArray
from dask_uncert.words import UNCERTAINTY_THRESHOLDS, request_of

Share = Annotated[float, Field(gt=0, le=1)]


class Words(BaseModel):
    """A part of a job file: unknown words are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Input(Words):
    """One array of one store, with the names of its dimensions where the store does not say them."""

    store: str = Field(description="Path relative to the job file, or a URL")
    array: str = Field("", description="Name of the array in the store; empty where the store is the array")
    dims: list[str] | None = Field(
        None, description="Names of the dimensions in the array's order; class, sample and band are reserved"
    )


class Probabilities(Input):
    """The prediction: a probability for each class, or for the second of two."""

    scale: float | None = Field(None, gt=0, description="Factor of integer probabilities, such as 1/255")
    tolerance: float | None = Field(
        None, gt=0, description="How far values and sums may be off before the run refuses; by dtype"
    )


class Inputs(Words):
    """What is read."""

    probabilities: Probabilities
    reference: Input = Field(description="Class codes")
    mask: Input | None = Field(None, description="True counts")
    features: Input | None = Field(None, description="What class distances are measured in: bands")
    uncertainty: Input | None = Field(None, description="A predicted uncertainty in [0, 1]")


class ClassDistances(Words):
    """How far apart classes are, for the measure `homophily`: a metric over features, or a table."""

    metric: Literal["energy", "wasserstein", "mean", "infinity"] | None = None
    table: str | list[list[float]] | None = Field(None, description="A CSV file of numbers, or the rows")


class SoftConfusion(Words):
    """Soft confusion of one class, several or (left out) all, one against the rest, at every combination."""

    classes: str | list[str] | None = Field(None, alias="class")
    thresholds: list[float] = [0.5]
    sigmas: list[float] = [0.0]
    dampings: list[float] = [0.0]
    uncertainty: str | None = Field(None, description="The measure that damps")
    distribution: str = "gaussian"
    df: float | None = Field(None, gt=0, description="Degrees of freedom of student-t")
    damping_form: str = "exponential"
    reference_threshold: float | None = None
    reference_certainty: Literal["paper", "none"] = "paper"


class UncertaintyConfusion(Words):
    """Right or wrong against certain or uncertain, for these measures (by default all) at these thresholds."""

    measures: list[str] | None = None
    thresholds: list[Share] = list(UNCERTAINTY_THRESHOLDS)


class Calibration(Words):
    """Reliability over equally wide bins of the winning class's confidence."""

    bins: int = Field(15, ge=1)


class Job(Words):
    """A job: what is read, what is asked, where the answers go."""

    version: Literal[1]
    kind: Literal["scene"]
    inputs: Inputs
    classes: dict[int, str] = Field(description="Reference code: name, in the order of the class axis")
    ignore: list[int] = Field([], description="Reference codes of pixels that do not count")
    measures: list[str | dict[str, dict[str, Any] | None]] = ["gini", "entropy", "fisher_rao"]
    class_distances: ClassDistances | None = None
    soft_confusion: list[SoftConfusion] = []
    uncertainty_confusion: UncertaintyConfusion = UncertaintyConfusion()
    calibration: Calibration = Calibration()
    maps: list[str] = Field([], description="Measures, or correct, predicted, confused_classes")
    cluster: str = Field("local", description="local, a file of cluster/, or a tcp:// or tls:// address")
    output: str = Field(description="Folder for the results, relative to the job file")


class RegressionInputs(Words):
    """What is read: either a variance or a covariance."""

    mean: Input = Field(description="The prediction; several outputs lie along the dimension `output`")
    reference: Input = Field(description="What was observed, with the dimensions of the mean")
    variance: Input | None = Field(None, description="Of each output, with the dimensions of the mean")
    covariance: Input | None = Field(None, description="Of the outputs, along `output` and `output2`")
    mask: Input | None = Field(None, description="True counts")


class RegressionJob(Words):
    """A job on the calibration of a regression: what is read, where the answers go."""

    version: Literal[1]
    kind: Literal["regression"]
    inputs: RegressionInputs
    maps: list[Literal["nssr", "predicted_probability"]] = []
    cluster: str = Field("local", description="local, a file of cluster/, or a tcp:// or tls:// address")
    output: str = Field(description="Folder for the results, relative to the job file")


AnyJob = Job | RegressionJob
JOBS: dict[str, type[Job] | type[RegressionJob]] = {"scene": Job, "regression": RegressionJob}
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
) -> tuple[AnyJob, Path]:
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
    return place if "://" in place else str((folder / place).resolve())


def open_inputs(job: AnyJob, folder: Path) -> dict[str, Cube]:
    """The job's inputs, opened and not read; InputError naming the input that cannot be."""
    cubes = {}
    for name in type(job.inputs).model_fields:
        words: Input | None = getattr(job.inputs, name)
        if words is None:
            continue
        stored = StoredArray(resolve(words.store, folder), words.array, name)
        where = f"{words.store}:{words.array}" if words.array else words.store
        cubes[name] = make_cube(name, stored, words.dims, stored.dims, stored.chunks, where)
    return cubes


def request_from(job: Job) -> Request:
    """The job's words as a Request."""
    thresholds = job.uncertainty_confusion.model_dump(exclude_none=True)
    return request_of(
        classes=job.classes,
        ignore=job.ignore,
        measures=job.measures,
        soft_confusion=[one.model_dump(by_alias=True, exclude_none=True) for one in job.soft_confusion],
        uncertainty_confusion=thresholds,
        calibration=job.calibration.model_dump(),
        maps=job.maps,
        has_uncertainty=job.inputs.uncertainty is not None,
        scale=job.inputs.probabilities.scale,
        tolerance=job.inputs.probabilities.tolerance,
    )


def plan_job(job: AnyJob, folder: Path) -> Plan | RegressionPlan:
    """The job's pass, checked and cut into blocks; nothing is read but the stores' metadata."""
    if isinstance(job, RegressionJob):
        return prepare_regression(open_inputs(job, folder), job.maps)
    distances = None
    if job.class_distances is not None:
        distances = job.class_distances.model_dump(exclude_none=True)
        if isinstance(distances.get("table"), str):
            distances["table"] = _read_table(resolve(distances["table"], folder))
    return prepare(request_from(job), open_inputs(job, folder), class_distances=distances)


def _read_table(path: str) -> Any:
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except OSError:
        raise InputError(f"class_distances: there is no table at {path}.") from None
    except ValueError as error:
        raise InputError(f"class_distances: {path} is no table of numbers: {error}.") from None


def schema() -> str:
    """The JSON Schema of job files of every kind, as text."""
    every: TypeAdapter[AnyJob] = TypeAdapter(Annotated[AnyJob, Field(discriminator="kind")])
    return json.dumps(every.json_schema(), indent=2) + "\n"
