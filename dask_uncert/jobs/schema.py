"""Keys of a job file: the options of an evaluation, with its inputs, a cluster and an output."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, TypeAdapter

from dask_uncert.io.validation import Counting, StrictModel
from dask_uncert.jobs.explain import explain
from dask_uncert.spec.input_options import InputOptions, PredictionOptions, ReferenceOptions, WeightOptions, ZoneOptions
from dask_uncert.spec.options import (
    ClassificationOptions,
    PatientConfidence,
    RegressionOptions,
    SceneOptions,
)
from dask_uncert.spec.types import Classes, Strings

GEOMETRY = "geometry"
WEIGHT = (
    "Weight of each pixel, for a second confusion matrix: an array, or `geometry`, the pixel's area or volume from its "
    "affine, projection or latitude"
)
UNCERTAINTY = "A predicted uncertainty, 0 or above; NaN where there is none"
PROBABILITIES = "By default the mean of the samples"
PREDICTION = "Instead of probabilities, predicted class codes: decisions; what needs probabilities is then absent"
MASK = "True counts"


class Input(InputOptions):
    """One array of one store, with the names of its dimensions if the store has none."""

    store: str = Field(
        description="A Zarr store, or a file of another format by its ending: a path relative to the job file, or a URL"
    )


def _as_store(value: Any) -> Any:
    """Return a bare path as the input in the store there; anything else unchanged."""
    return {"store": str(value)} if isinstance(value, str | Path) and value != GEOMETRY else value


class Probabilities(PredictionOptions, Input):
    """The prediction: a probability for each class, or for the second of two."""


class Reference(ReferenceOptions, Input):
    """The reference: class codes, or shares in [0, 1]."""


class Weight(WeightOptions, Input):
    """The weight of each pixel: 0 or above; NaN leaves it out."""


class Zones(ZoneOptions, Input):
    """The zone of each pixel, by code: pixels without one are left out and counted."""


AnyInput = Annotated[Input, BeforeValidator(_as_store, json_schema_input_type=str | Input)]
AnyPrediction = Annotated[Probabilities, BeforeValidator(_as_store, json_schema_input_type=str | Probabilities)]
AnyReference = Annotated[Reference, BeforeValidator(_as_store, json_schema_input_type=str | Reference)]
AnyWeight = Annotated[Weight, BeforeValidator(_as_store, json_schema_input_type=str | Weight)]
AnyZones = Annotated[Zones, BeforeValidator(_as_store, json_schema_input_type=str | Zones)]
"""Inputs for which a bare path may stand."""

Samples = Annotated[
    Annotated[AnyPrediction, Tag("stacked")] | Annotated[list[AnyPrediction], Tag("apart"), Field(min_length=1)],
    Discriminator(lambda samples: "apart" if isinstance(samples, list) else "stacked"),
]


class Inputs(StrictModel):
    """Inputs of a scene: probabilities, samples of them, or both; and a reference."""

    probabilities: AnyPrediction | None = Field(None, description=PROBABILITIES)
    samples: Samples | None = Field(
        None, description="Several predictions along a dimension sample, or a list of inputs without it"
    )
    prediction: AnyInput | None = Field(None, description=PREDICTION)
    reference: AnyReference
    mask: AnyInput | None = Field(None, description=MASK)
    features: AnyInput | None = Field(None, description="Bands that class distances are measured on")
    uncertainty: AnyInput | None = Field(None, description=UNCERTAINTY)
    weight: Literal["geometry"] | AnyWeight | None = Field(None, description=WEIGHT)
    zones: AnyZones | None = Field(
        None,
        description="Code of the zone of each pixel, such as a region, a fold or a slope class; each zone is also evaluated by "
        "itself. Pixels without a zone are left out",
    )


class AnyKind(StrictModel):
    """Keys of every kind of job."""

    version: Literal[1]
    cluster: str = Field("local", description="local, a file of cluster/, or a tcp:// or tls:// address")
    output: str = Field(description="Folder for the results, relative to the job file")


class Job(SceneOptions, AnyKind):
    """A job on one scene: its inputs, options and output."""

    kind: Literal["scene"]
    inputs: Inputs


class RegressionInputs(StrictModel):
    """Inputs of a regression, with either a variance or a covariance."""

    mean: AnyInput = Field(description="The prediction; several outputs are along the dimension `output`")
    reference: AnyInput = Field(description="The observed values, with the dimensions of the mean")
    variance: AnyInput | None = Field(None, description="Of each output, with the dimensions of the mean")
    covariance: AnyInput | None = Field(None, description="Of the outputs, along `output` and `output2`")
    mask: AnyInput | None = Field(None, description=MASK)


class RegressionJob(RegressionOptions, AnyKind):
    """A job on the calibration of a regression: its inputs, options and output."""

    kind: Literal["regression"]
    inputs: RegressionInputs


class CaseSamples(PredictionOptions):
    """Several predictions, along a dimension `sample` or in one column each."""

    members: Strings | None = Field(
        None, min_length=1, description="Columns that hold one sample each, instead of the column `samples`"
    )


class CaseReference(ReferenceOptions):
    """The reference: class codes, or shares in [0, 1]; the mean of several raters is a fuzzy reference."""

    raters: list[str] | Counting | None = Field(  # type: ignore[assignment]
        None,
        description="Columns that hold one rater each, instead of the column `reference`; or the number of raters, if "
        "the reference is fuzzy or has a dimension `rater`",
    )
    per_rater: bool = Field(False, description="Evaluate against each rater as well, into `raters/`")

    @property
    def number(self) -> int | None:
        """Number of raters, if the job gives it."""
        return len(self.raters) if isinstance(self.raters, list) else self.raters


class CaseInputs(StrictModel):
    """Inputs of each case: probabilities, samples of them, or both; columns of the manifest have the paths."""

    probabilities: PredictionOptions | None = Field(None, description=PROBABILITIES)
    samples: CaseSamples | None = None
    prediction: InputOptions | None = Field(None, description=PREDICTION)
    reference: CaseReference
    mask: InputOptions | None = Field(None, description=MASK)
    uncertainty: InputOptions | None = Field(None, description=UNCERTAINTY)
    weight: Literal["geometry"] | WeightOptions | None = Field(None, description=WEIGHT)


class CohortJob(ClassificationOptions, AnyKind):
    """A job on many cases: the inputs of each, options and output."""

    kind: Literal["cohort"]
    classes: Classes = Field(
        description="Reference code: name, in the order of the class axis; or the names; or `from_file`, the table in each "
        "reference's file"
    )
    manifest: str = Field(
        description="CSV or Parquet file with one row per case: a column `patient`, a column for each input, and any "
        "others; paths in it are relative to it"
    )
    visits: str | None = Field(None, description="The column that tells several visits of a patient apart")
    groups: Strings = Field([], description="Columns that cases are grouped by, such as site")
    inputs: CaseInputs
    confidence: PatientConfidence = PatientConfidence()

    def columns(self) -> dict[str, tuple[str, InputOptions]]:
        """Return, by column of the manifest, the input's name and its options; samples in columns are `samples_0`, ..."""
        columns: dict[str, tuple[str, InputOptions]] = {}
        for name, options in self.inputs:
            if isinstance(options, CaseSamples) and options.members:
                for number, column in enumerate(options.members):
                    columns[column] = (f"samples_{number}", options)
            elif isinstance(options, CaseReference) and isinstance(options.raters, list):
                columns.update(dict.fromkeys(options.raters, ("reference", options)))
            elif isinstance(options, InputOptions):
                columns[name] = (name, options)
        return columns

    def geometries(self) -> list[str]:
        """Return the columns of the manifest that hold positions of inputs, and no input."""
        columns = self.columns()
        likes = [options.geometry.like for _, options in columns.values() if options.geometry is not None]
        return [column for column in dict.fromkeys(likes) if column not in columns]

    def options(self) -> SceneOptions:
        """Return the options of each case."""
        stated = self.model_fields_set & set(ClassificationOptions.model_fields)
        return SceneOptions(**{name: getattr(self, name) for name in stated})


AnyJob = Job | RegressionJob
JOBS: dict[str, type[AnyJob | CohortJob]] = {"scene": Job, "regression": RegressionJob, "cohort": CohortJob}
"""Models of jobs by the key `kind`."""


@lru_cache(maxsize=1)
def _schemas() -> dict[str, dict[str, Any]]:
    return {kind: model.model_json_schema() for kind, model in JOBS.items()}


def job_schema(key: str | None = None) -> str:
    """Return the JSON Schema of job files of every kind, or three lines that explain one key.

    Parameters
    ----------
    key : str, optional
        A key of a job file, such as ``"ignore"``, or its dotted path, such as ``"confidence.size"``.

    Returns
    -------
    str
        JSON, for editors and validators; ``dask-uncert schema`` prints it. Of a key, plain text.

    Raises
    ------
    InputError
        If no job has such a key; it names the nearest one.

    Examples
    --------
    >>> import json, dask_uncert as du
    >>> sorted(json.loads(du.job_schema())["discriminator"]["mapping"])
    ['cohort', 'regression', 'scene']
    >>> print(du.job_schema("overlap").splitlines()[0])
    overlap (kind: scene): true or false; default false
    """
    if key is not None:
        return explain(key, _schemas())
    every: TypeAdapter[AnyJob | CohortJob] = TypeAdapter(Annotated[AnyJob | CohortJob, Field(discriminator="kind")])
    return json.dumps(every.json_schema(), indent=2) + "\n"
