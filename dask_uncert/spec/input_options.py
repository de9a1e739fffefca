"""The options of one input as models: how its array is found and what its numbers mean."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, model_validator

from dask_uncert.inputs.missing_chunks import MissingChunks
from dask_uncert.io.validation import AboveZero, Counting, Finite, NameList, StrictModel
from dask_uncert.spec.types import Code, different


class Like(StrictModel):
    """Where the position of an array comes from."""

    like: str


class InputOptions(StrictModel):
    """How the array of an input is found and what its numbers mean."""

    array: str = Field("", description="Name of the array in the store; empty where the store is the array")
    dims: NameList | None = Field(
        None,
        description="Names of the dimensions in the array's order, as a list or `class,y,x`; class, sample, band and rater "
        "are reserved",
    )
    scale: Finite | None = Field(
        None,
        description="Values are stored numbers times this (plus the offset), where the file does not say so itself",
    )
    offset: Finite | None = Field(
        None, description="Added to stored numbers times the scale, where the file does not say so itself"
    )
    nodata: float | list[float] | None = Field(
        None,
        description="Stored numbers that mean that there is no value, in addition to those that the file declares",
    )
    missing_chunks: MissingChunks | None = Field(
        None,
        description="Chunks that a store does not hold: an error; or their pixels are left out and counted; or they are "
        "all the fill value, as in stores written without empty chunks. By default the fill value where that leaves "
        "pixels out (an ignored or no-data code, false in a mask, NaN), else an error",
    )
    by_position: StrictBool = Field(
        False,
        description="Read index by index like the other inputs; an affine or coordinates of its own are not used",
    )

    geometry: Like | None = Field(
        None,
        description="Position of an array whose file holds none, such as an `.npz`: `{like: FILE}`, another file of the same "
        "pixels with an affine or coordinates, whose names of dimensions `dims` uses. In a cohort, the column of these files",
    )

    @model_validator(mode="after")
    def _one_position(self) -> Self:
        if self.geometry is not None and self.by_position:
            raise ValueError("`by_position` uses no position; leave out `geometry`")
        return self


class PredictionOptions(InputOptions):
    """The prediction, or samples of it: a probability for each class, or for the second of two."""

    scale: AboveZero | None = Field(None, description="Factor of integer probabilities, such as 1/255")
    logits: StrictBool = Field(
        False,
        description="Holds logits: of each class (softmax), or without a class dimension of the second of two (sigmoid)",
    )
    out_of_tolerance: Literal["refuse", "leave_out"] = Field(
        "refuse",
        description="Pixels whose values are not probabilities within the tolerance: an error, or left out and counted",
    )
    tolerance: AboveZero | None = Field(
        None, lt=1, description="How far values and sums may be off before they are refused; by dtype"
    )

    @model_validator(mode="after")
    def _scale_to_probabilities(self) -> Self:
        if self.scale is not None and not self.logits and not 1e-30 <= self.scale <= 1:
            raise ValueError(
                f"`scale` makes probabilities of what is stored and should be from 1e-30 to 1, found {self.scale:g}; "
                "only `logits` may have a larger one"
            )
        return self


class ReferenceOptions(InputOptions):
    """The reference: class codes, or shares in [0, 1]."""

    fuzzy: StrictBool = Field(
        False,
        description="Holds the share of the second of two classes; one with a dimension class, of each class, is "
        "fuzzy anyway",
    )
    complete: StrictBool = Field(
        False, description="The shares of a pixel must sum to 1; by default the rest of a smaller sum is unlabelled"
    )
    tolerance: AboveZero | None = Field(
        None, lt=1, description="How far shares and sums may be off before they are refused; by dtype"
    )
    raters: Counting | None = Field(
        None, description="All shares of a fuzzy reference are multiples of one over this number"
    )


class WeightOptions(InputOptions):
    """The weight of each pixel, 0 or above; NaN leaves it out."""

    unit: str = Field("1", description="Unit of the weights, for reports")


class ZoneOptions(InputOptions):
    """The zone of each pixel, by code: pixels without one are left out and counted."""

    names: Annotated[dict[Code, str], Field(min_length=1), AfterValidator(different)] | None = Field(
        None, description="Code: name of every zone; by default all codes are zones, called by their codes"
    )


MODELS: dict[str, type[InputOptions]] = {
    "probabilities": PredictionOptions,
    "samples": PredictionOptions,
    "reference": ReferenceOptions,
    "weight": WeightOptions,
    "zones": ZoneOptions,
}
"""The options of an input by its name; InputOptions for others."""
