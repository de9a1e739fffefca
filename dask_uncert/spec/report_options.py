"""Options that say what is read from the counts, and which sets are drawn: they change no count."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, model_validator

from dask_uncert.errors import InputError, suggestion
from dask_uncert.io.validation import StrictModel, one_or_more
from dask_uncert.spec.map_names import set_size_map, soft_labels
from dask_uncert.spec.request import SetMaps
from dask_uncert.spec.types import Inside, once
from dask_uncert.summaries.evaluation import Class
from dask_uncert.summaries.report_options import MissedShare, ReportOptions

COVERAGES = (0.9, 0.95)
Package = Literal["torchmetrics", "scikit-learn", "monai", "metrics-reloaded"]


class PredictionSets(StrictModel):
    """Sets of all classes above a threshold of probability, chosen to hold the true class at wanted rates."""

    coverages: Annotated[tuple[Inside, ...], one_or_more(float)] = Field(
        COVERAGES, description="Wanted shares of pixels whose set holds the true class"
    )
    missed: dict[str, Inside] = Field(
        {},
        description="Class: mean share of it that sets may miss in a new patient, or tile of a scene; the threshold is "
        "chosen by case",
    )
    maps: Annotated[tuple[Inside, ...], one_or_more(float)] = Field(
        (),
        description="Thresholds, such as one that `choose` found; for each, the map set_size_<threshold> of how many classes "
        "have at least that probability",
    )
    members: StrictBool = Field(
        False,
        description="For each threshold in maps and each class also the map in_set_<threshold>_<class>, 1 where it is in",
    )

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not (self.coverages or self.missed or self.maps):
            raise ValueError("neither a coverage nor a missed share nor a map is wanted")
        if self.members and not self.maps:
            raise ValueError("`members: true` needs thresholds in `maps`: no threshold is chosen for maps")
        if len({set_size_map(threshold) for threshold in self.maps}) < len(self.maps):
            raise ValueError("two maps have the same threshold, to six digits")
        if len(set(self.coverages)) < len(self.coverages):
            raise ValueError("a coverage is wanted twice")
        return self


class ReportedOptions(StrictModel):
    """What results tell besides what they always do."""

    ordered: StrictBool = Field(
        False, description="Classes have an order, that of the class table: results have weighted kappas, too"
    )
    prediction_sets: PredictionSets | None = Field(None, description="By default no prediction sets")
    conventions: Annotated[list[Package], one_or_more(str), AfterValidator(once)] = Field(
        [], description="Packages whose numbers stand beside ours where they differ"
    )

    background: str | None = Field(
        None,
        description="The class that is no foreground: results have means over the other classes, too, and for cohorts their "
        "Dice comes first",
    )

    def set_maps(self, table: tuple[Class, ...]) -> tuple[SetMaps, ...]:
        """Return the prediction sets to be drawn; InputError where maps of two classes have the same name."""
        sets = self.prediction_sets
        if sets is None:
            return ()
        labels = tuple(soft_labels(table)) if sets.members else ()
        if len(set(labels)) < len(labels):
            raise InputError("prediction_sets: maps of two classes have the same name; rename one of the classes.")
        return tuple(SetMaps(threshold, labels) for threshold in sets.maps)

    def report_options(self, table: tuple[Class, ...]) -> ReportOptions:
        """Return what is to be read from counts of these classes; InputError for a class that is not in the table."""
        sets, names = self.prediction_sets, [name for _, name in table]
        for name in () if sets is None else sets.missed:
            if name not in names:
                raise InputError(f"prediction_sets: there is no class {name!r}. {suggestion(name, names, 'Classes')}")
        if self.background is not None and self.background not in names:
            hint = suggestion(self.background, names, "Classes")
            raise InputError(f"background: there is no class {self.background!r}. {hint}")
        coverages = () if sets is None else tuple(sorted(sets.coverages))
        missed = () if sets is None else tuple(MissedShare(*item) for item in sets.missed.items())
        return ReportOptions(self.ordered, coverages, missed, tuple(self.conventions), self.background)
