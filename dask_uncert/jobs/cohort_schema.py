"""The words of a cohort's job file: those of a scene's, with a manifest instead of stores."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dask_uncert.inputs.open import MissingChunks
from dask_uncert.jobs.schema import (
    LOGITS,
    MISSING_CHUNKS,
    NODATA,
    OFFSET,
    OUT_OF_TOLERANCE,
    SCALE,
    WEIGHT,
    Inputs,
    Job,
    OutOfTolerance,
    Questions,
    StrictModel,
)


class CaseInput(StrictModel):
    """One array of each case; the manifest's column of the same name says where it lies."""

    array: str = Field("", description="Name of the array in each store; empty where the store is the array")
    dims: list[str] | None = Field(
        None, description="Names of the dimensions in the array's order; class, sample and rater are reserved"
    )
    scale: float | None = Field(None, description=SCALE)
    offset: float | None = Field(None, description=OFFSET)
    nodata: float | list[float] | None = Field(None, description=NODATA)
    missing_chunks: MissingChunks = Field("refuse", description=MISSING_CHUNKS)


class CaseProbabilities(CaseInput):
    """The prediction: a probability for each class, or for the second of two."""

    scale: float | None = Field(None, gt=0, description="Factor of integer probabilities, such as 1/255")
    tolerance: float | None = Field(
        None, gt=0, description="How far values and sums may be off before a case is refused; by dtype"
    )
    logits: bool = Field(False, description=LOGITS)
    out_of_tolerance: OutOfTolerance = Field("refuse", description=OUT_OF_TOLERANCE)


class CaseSamples(CaseProbabilities):
    """Several predictions, along a dimension `sample` or in columns of their own."""

    members: list[str] | None = Field(
        None, min_length=1, description="Columns that hold one sample each, instead of the column `samples`"
    )


class CaseReference(CaseInput):
    """What is true: class codes, or shares in [0, 1]; the mean of several raters is a fuzzy reference."""

    fuzzy: bool = Field(
        False,
        description="Holds the share of the second of two classes; one with a dimension class, of each class, is "
        "fuzzy anyway",
    )
    raters: list[str] | int | None = Field(
        None,
        description="Columns that hold one rater each, instead of the column `reference`; or, of a fuzzy reference "
        "or one with a dimension `rater`, how many raters there are",
    )
    per_rater: bool = Field(False, description="Evaluate against each rater as well, into `raters/`")


class CaseWeight(CaseInput):
    """What each pixel weighs: 0 or above; NaN leaves it out."""

    unit: str = Field("1", description="Of the weights, for reports")


class CaseInputs(StrictModel):
    """What is read of each case: probabilities, samples of them, or both."""

    probabilities: CaseProbabilities | None = Field(None, description="By default the mean of the samples")
    samples: CaseSamples | None = None
    reference: CaseReference
    mask: CaseInput | None = Field(None, description="True counts")
    uncertainty: CaseInput | None = Field(
        None, description="A predicted uncertainty, 0 or above; NaN where there is none"
    )
    weight: Literal["geometry"] | CaseWeight | None = Field(None, description=WEIGHT)


class Confidence(StrictModel):
    """Confidence intervals by drawing patients with replacement."""

    unit: Literal["patient"] = "patient"
    replicates: int = Field(1000, ge=1, description="How often the patients are drawn")
    level: float = Field(0.95, gt=0, lt=1, description="Of the intervals")
    seed: int = Field(0, ge=0, description="The same seed draws the same patients")


class CohortJob(Questions):
    """A job on many cases: what is read of each, what is asked, where the answers go."""

    version: Literal[1]
    kind: Literal["cohort"]
    manifest: str = Field(
        description="CSV or Parquet file with a row a case: columns `patient`, one for each input, and free ones; "
        "paths in it are relative to it"
    )
    visits: str | None = Field(None, description="The column that tells several visits of a patient apart")
    groups: list[str] = Field([], description="Columns that cases are grouped by, such as site")
    inputs: CaseInputs
    confidence: Confidence = Confidence()
    cluster: str = Field("local", description="local, a file of cluster/, or a tcp:// or tls:// address")
    output: str = Field(description="Folder for the results, relative to the job file")

    def columns(self) -> dict[str, tuple[str, CaseInput]]:
        """By column of the manifest, the input it is of and its words; samples apart are `samples_0`, ..."""
        found: dict[str, tuple[str, CaseInput]] = {}
        for name in ("probabilities", "samples", "reference", "mask", "uncertainty", "weight"):
            words = getattr(self.inputs, name)
            if isinstance(words, str):
                continue
            if isinstance(words, CaseSamples) and words.members:
                for number, column in enumerate(words.members):
                    found[column] = (f"samples_{number}", words)
            elif isinstance(words, CaseReference) and isinstance(words.raters, list):
                found.update(dict.fromkeys(words.raters, ("reference", words)))
            elif words is not None:
                found[name] = (name, words)
        return found

    def as_scene(self) -> Job:
        """What each case is asked, in the words of a scene, but for several raters."""
        inputs: dict[str, Any] = {}
        for name, words in self.inputs:
            if words is None or isinstance(words, str):
                inputs[name] = words
                continue
            own = words.model_dump(exclude={"members", "per_rater", "raters"}) | {"store": self.manifest}
            inputs[name] = [own] * len(words.members) if getattr(words, "members", None) else own
        raters = self.inputs.reference.raters
        inputs["reference"]["raters"] = len(raters) if isinstance(raters, list) else raters
        asked = {name: getattr(self, name) for name in Questions.model_fields}
        return Job(version=1, kind="scene", inputs=Inputs(**inputs), output=self.output, **asked)
