"""The words of a job file: what may be said, and what each word means."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from dask_uncert.inputs.open import MissingChunks
from dask_uncert.spec.parse import UNCERTAINTY_THRESHOLDS
from dask_uncert.summaries.tiles import MOST, TILE

Above0 = Annotated[float, Field(gt=0)]


class StrictModel(BaseModel):
    """A part of a job file: unknown words are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


SCALE = "Values are stored numbers times this (plus the offset), where the file does not say so itself"
OFFSET = "Added to stored numbers times the scale, where the file does not say so itself"
NODATA = "Stored numbers that mean that there is no value, beside those that the file declares"
MISSING_CHUNKS = (
    "Chunks that a store does not hold: an error; or their pixels are left out and counted; or they are all the fill "
    "value, as in stores written without empty chunks"
)
OUT_OF_TOLERANCE = "Pixels that are no probabilities within the tolerance: an error, or left out and counted"
WEIGHT = (
    "What each pixel weighs, for a second confusion matrix: an array, or `geometry`, the pixels' own area or volume by "
    "their affine, projection or latitude"
)
LOGITS = "Holds logits: of each class (softmax), or without a class dimension of the second of two (sigmoid)"
OutOfTolerance = Literal["refuse", "leave_out"]


class Input(StrictModel):
    """One array of one store, with the names of its dimensions where the store does not say them."""

    store: str = Field(
        description="A Zarr store, or a file of another format by its ending: a path relative to the job file, or a URL"
    )
    array: str = Field("", description="Name of the array in the store; empty where the store is the array")
    dims: list[str] | None = Field(
        None, description="Names of the dimensions in the array's order; class, sample and band are reserved"
    )
    scale: float | None = Field(None, description=SCALE)
    offset: float | None = Field(None, description=OFFSET)
    nodata: float | list[float] | None = Field(None, description=NODATA)
    missing_chunks: MissingChunks = Field("refuse", description=MISSING_CHUNKS)


class Probabilities(Input):
    """The prediction: a probability for each class, or for the second of two."""

    scale: float | None = Field(None, gt=0, description="Factor of integer probabilities, such as 1/255")
    logits: bool = Field(False, description=LOGITS)
    out_of_tolerance: OutOfTolerance = Field("refuse", description=OUT_OF_TOLERANCE)
    tolerance: float | None = Field(
        None, gt=0, description="How far values and sums may be off before the run refuses; by dtype"
    )


class Reference(Input):
    """What is true: class codes, or shares in [0, 1]."""

    fuzzy: bool = Field(
        False,
        description="Holds the share of the second of two classes; one with a dimension class, of each class, is "
        "fuzzy anyway",
    )
    raters: int | None = Field(
        None, ge=1, description="All shares of a fuzzy reference are multiples of one over this number"
    )


Samples = Annotated[
    Annotated[Probabilities, Tag("stacked")]
    | Annotated[list[Probabilities], Tag("apart"), Field(min_length=1)],
    Discriminator(lambda words: "apart" if isinstance(words, list) else "stacked"),
]


class Weight(Input):
    """What each pixel weighs: 0 or above; NaN leaves it out."""

    unit: str = Field("1", description="Of the weights, for reports")


class Inputs(StrictModel):
    """What is read: probabilities, samples of them, or both."""

    probabilities: Probabilities | None = Field(None, description="By default the mean of the samples")
    samples: Samples | None = Field(
        None, description="Several predictions along a dimension sample, or a list of inputs without it"
    )
    reference: Reference
    mask: Input | None = Field(None, description="True counts")
    features: Input | None = Field(None, description="What class distances are measured in: bands")
    uncertainty: Input | None = Field(
        None, description="A predicted uncertainty, 0 or above; NaN where there is none"
    )
    weight: Literal["geometry"] | Weight | None = Field(None, description=WEIGHT)


class ClassDistances(StrictModel):
    """How far apart classes are, for the measure `homophily`: a metric over features, or a table."""

    metric: Literal["energy", "wasserstein", "mean", "infinity"] | None = None
    table: str | list[list[float]] | None = Field(None, description="A CSV file of numbers, or the rows")


class Sweep(StrictModel):
    """How fine the joint histogram is off which `dask-uncert sweep` reads any other setting."""

    error: float = Field(5e-5, gt=0, description="Wanted of TP, TN, FP and FN, as a share of their pixels")
    memory: float = Field(8e6, gt=0, description="Bytes of counts a class at most")


class SoftConfusion(StrictModel):
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
    maps: bool = Field(
        False,
        description="Write the four weights and the picture they make, soft_TP_<class> to soft_<class>, at the "
        "first threshold, sigma and damping",
    )
    sweep: bool | Sweep = Field(True, description="Keep what `dask-uncert sweep` needs for any other setting")


class UncertaintyConfusion(StrictModel):
    """Right or wrong against certain or uncertain, for these measures (by default all) at these thresholds."""

    measures: list[str] | None = None
    thresholds: list[Above0] = list(UNCERTAINTY_THRESHOLDS)


class Calibration(StrictModel):
    """Reliability over equally wide bins of the winning class's confidence."""

    bins: int = Field(15, ge=1)


class TileConfidence(StrictModel):
    """Confidence intervals by drawing square tiles of the scene with replacement."""

    unit: Literal["tile"] = "tile"
    size: int | None = Field(
        None,
        ge=1,
        description=f"Pixels a side; by default {TILE}, doubled until the scene has at most {MOST} tiles",
    )
    replicates: int = Field(1000, ge=1, description="How often the tiles are drawn")
    level: float = Field(0.95, gt=0, lt=1, description="Of the intervals")
    seed: int = Field(0, ge=0, description="The same seed draws the same tiles")
    method: Literal["bca", "percentile"] = Field(
        "bca", description="Bias-corrected and accelerated, or plain percentiles of the replicates"
    )


class Questions(StrictModel):
    """What is asked of a classification."""

    classes: dict[int, str] = Field(description="Reference code: name, in the order of the class axis")
    ignore: list[int] = Field([], description="Reference codes of pixels that do not count")
    measures: list[str | dict[str, dict[str, Any] | None]] = ["gini", "entropy", "fisher_rao"]
    class_distances: ClassDistances | None = None
    soft_confusion: list[SoftConfusion] = []
    uncertainty_confusion: UncertaintyConfusion = UncertaintyConfusion()
    calibration: Calibration = Calibration()
    maps: list[str] = Field(
        [],
        description="Measures, or correct, predicted, confused_classes; soft_confusion has maps of its own",
    )


class Job(Questions):
    """A job on one scene: what is read, what is asked, where the answers go."""

    version: Literal[1]
    kind: Literal["scene"]
    inputs: Inputs
    overlap: bool = Field(
        False,
        description="Inputs may cover other parts of the reference's grid; where one does not reach, pixels are left out",
    )
    confidence: TileConfidence | None = Field(None, description="By default no intervals")
    cluster: str = Field("local", description="local, a file of cluster/, or a tcp:// or tls:// address")
    output: str = Field(description="Folder for the results, relative to the job file")


class RegressionInputs(StrictModel):
    """What is read: either a variance or a covariance."""

    mean: Input = Field(description="The prediction; several outputs lie along the dimension `output`")
    reference: Input = Field(description="What was observed, with the dimensions of the mean")
    variance: Input | None = Field(None, description="Of each output, with the dimensions of the mean")
    covariance: Input | None = Field(None, description="Of the outputs, along `output` and `output2`")
    mask: Input | None = Field(None, description="True counts")


class RegressionJob(StrictModel):
    """A job on the calibration of a regression: what is read, where the answers go."""

    version: Literal[1]
    kind: Literal["regression"]
    inputs: RegressionInputs
    maps: list[Literal["nssr", "predicted_probability"]] = []
    cluster: str = Field("local", description="local, a file of cluster/, or a tcp:// or tls:// address")
    output: str = Field(description="Folder for the results, relative to the job file")


AnyJob = Job | RegressionJob
JOBS: dict[str, type[Job] | type[RegressionJob]] = {"scene": Job, "regression": RegressionJob}
"""By the word `kind`, those on one evaluation."""
