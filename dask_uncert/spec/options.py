"""The options of an evaluation: what `evaluate` takes as keywords and a job file as keys, checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any, Literal, Self, TypedDict

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, model_validator

from dask_uncert.errors import InputError, suggestion
from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.class_distances import Metric
from dask_uncert.formulas.measures import LARGEST_UNCERTAINTY, MEASURES, Measure, parse_measure, upper_bound
from dask_uncert.formulas.soft_confusion import ReferenceCertainty
from dask_uncert.io.maps import MAPS, Layer
from dask_uncert.io.validation import AboveZero, Counting, StrictModel, WholeNumber, one_or_more
from dask_uncert.spec.map_names import soft_labels
from dask_uncert.spec.report_options import ReportedOptions
from dask_uncert.spec.request import SoftMaps, map_layers
from dask_uncert.spec.types import Classes, Codes, Inside, MapList, MeasureList, NotNegative, Scale, Side, Strings, once
from dask_uncert.summaries.evaluation import Class
from dask_uncert.summaries.soft_confusion import SoftSettings
from dask_uncert.summaries.tiles import MOST, TILE

UNCERTAINTY_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
Distribution = Literal["gaussian", "logistic", "laplace", "uniform", "triangular", "cauchy", "student-t"]
RegressionMap = Literal["nssr", "predicted_probability"]
DampingForm = Literal["exponential", "reciprocal", "gaussian"]


def _near(name: str, names: Sequence[str]) -> str:
    """Return the end of a message about a name that is not among others: what to do about a measure or a misspelling."""
    if name in MEASURES:
        return f" Add `{name}` to measures."
    near = suggestion(name, names)
    return f" {near}" if near.startswith("Did") else ""


class ClassDistances(StrictModel):
    """How far apart classes are, for the measure `homophily`: a metric over features, or a table."""

    metric: Metric | None = None
    table: Annotated[
        str | list[list[float]] | None,
        BeforeValidator(lambda t: t.tolist() if isinstance(t, np.ndarray) else t),
    ] = Field(None, description="A CSV file of numbers, or the rows")


class Sweep(StrictModel):
    """How fine the joint histogram is from which `dask-uncert sweep` computes any other setting."""

    error: AboveZero = Field(5e-6, le=1, description="Wanted error of TP, TN, FP and FN, as a share of their pixels")
    memory: AboveZero = Field(8e6, le=1e10, description="Largest number of bytes of counts per class")


class SoftConfusion(StrictModel):
    """Soft confusion of one class, several or (left out) all, one against the rest, at every combination."""

    classes: Annotated[tuple[str, ...], one_or_more(str)] | None = Field(None, alias="class")
    thresholds: Annotated[tuple[Inside, ...], one_or_more(float)] = Field((0.5,), min_length=1)
    sigmas: Annotated[tuple[Scale, ...], one_or_more(float)] = Field((0.0,), min_length=1)
    dampings: Annotated[tuple[NotNegative, ...], one_or_more(float)] = Field((0.0,), min_length=1)
    uncertainty: str | None = Field(None, description="The measure that damps")
    distribution: Distribution = "gaussian"
    df: AboveZero | None = Field(None, le=1e6, description="Degrees of freedom of student-t")
    damping_form: DampingForm = "exponential"
    reference_threshold: Inside | None = None
    reference_certainty: ReferenceCertainty = "paper"
    maps: StrictBool = Field(
        False,
        description="Write the four weights and the picture they make, soft_TP_<class> to soft_<class>, at the "
        "first threshold, sigma and damping",
    )
    sweep: StrictBool | Sweep = Field(True, description="Keep what `dask-uncert sweep` needs for any other setting")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.uncertainty is None and any(self.dampings):
            raise ValueError("a damping above 0 needs `uncertainty: <measure>`")
        if (self.distribution == "student-t") != (self.df is not None):
            raise ValueError(
                "`distribution: student-t` needs df (degrees of freedom), and no other distribution takes it"
            )
        return self

    @property
    def finer(self) -> Sweep | None:
        """How fine the joint histogram is; None where none is wanted."""
        return Sweep() if self.sweep is True else self.sweep or None

    def settings(self, table: tuple[Class, ...]) -> list[SoftSettings]:
        """Return the settings of each class; InputError for a class that is not in the table."""
        known = [name for _, name in table]
        unknown = [name for name in self.classes or () if name not in known]
        if unknown:
            raise InputError(
                f"soft_confusion: there is no class {unknown[0]!r}. {suggestion(unknown[0], known, 'Classes')}"
            )
        shared = {f.name: getattr(self, f.name) for f in fields(SoftSettings) if f.name != "class_index"}
        return [SoftSettings(known.index(name), **shared) for name in self.classes or known]


class UncertaintyConfusion(StrictModel):
    """Right or wrong against certain or uncertain, for these measures (by default all) at these thresholds."""

    measures: Strings | None = None
    thresholds: Annotated[list[Annotated[AboveZero, Field(le=LARGEST_UNCERTAINTY)]], one_or_more(float)] = Field(
        list(UNCERTAINTY_THRESHOLDS)
    )


class Calibration(StrictModel):
    """Reliability over equally wide bins of the winning class's confidence."""

    bins: Annotated[WholeNumber, Field(ge=1, le=10_000)] = 15


class PatientConfidence(StrictModel):
    """Confidence intervals by drawing patients with replacement."""

    unit: Literal["patient"] = "patient"
    replicates: Counting = Field(1000, description="How often the units are drawn")
    level: Inside = Field(0.95, description="Level of the intervals")
    seed: Annotated[WholeNumber, Field(ge=0)] = Field(0, description="The same seed draws the same units")


class TileConfidence(PatientConfidence):
    """Confidence intervals by drawing square tiles of the scene with replacement."""

    unit: Literal["tile"] = "tile"  # type: ignore[assignment]
    size: Side | None = Field(
        None,
        description=f"Pixels a side; by default {TILE}, doubled until the scene has at most {MOST} tiles",
    )
    method: Literal["bca", "percentile"] = Field(
        "bca", description="Bias-corrected and accelerated, or plain percentiles of the replicates"
    )

    @property
    def confidence(self) -> Confidence:
        """How the intervals are made."""
        return Confidence(self.replicates, self.level, self.seed, self.method)


class ClassificationOptions(ReportedOptions):
    """The options of a classification, of a scene or of each case of a cohort."""

    classes: Classes | None = Field(
        None,
        description="Reference code: name, in the order of the class axis; or the names, whose codes are 0, 1, ...; or "
        "`from_file`, the table in the reference's file, without ignored codes. By default the classes are called by "
        "their codes 0, 1, ...",
    )
    ignore: Codes = Field([], description="Reference codes of pixels that do not count")
    measures: MeasureList = Field(
        ["gini", "entropy", "fisher_rao"],
        description=f"Names, or {{name: {{parameter: value}}}}: {', '.join(MEASURES)}, geometric; or an own one, `module:function` or "
        "the name of an entry point",
    )
    class_distances: ClassDistances | None = None
    soft_confusion: Annotated[list[SoftConfusion], one_or_more(SoftConfusion)] = Field([])
    uncertainty_confusion: UncertaintyConfusion = UncertaintyConfusion()
    calibration: Calibration = Calibration()
    joint_distributions: Strings = Field(
        [],
        description="Measures that are counted together with the confidence, over correct and wrong predictions; by default "
        "none, because it takes time",
    )
    maps: MapList = Field(
        [],
        description="Measures, or correct, predicted, confused_classes; those of soft_confusion and prediction_sets are asked for "
        "there. Without any, the page of a small scene has an overview",
    )

    @property
    def table(self) -> tuple[Class, ...]:
        """The classes in the order of the class axis; none where they are not known yet."""
        known = {} if isinstance(self.classes, str) else self.classes or {}
        return tuple(Class(code, name) for code, name in known.items())

    @property
    def records(self) -> tuple[Measure, ...]:
        """The measures with their parameters."""
        return tuple(parse_measure(measure) for measure in self.measures)

    @property
    def layers(self) -> dict[str, Layer]:
        """The maps asked for, by name."""
        return map_layers(self.maps, self.soft_maps(), self.set_maps(self.table))

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [measure.name for measure in self.records]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"measures: asked for twice: {', '.join(twice)}.")
        self._check_names(names)
        self._check_class_distances()
        if self.table:
            both = sorted(set(self.ignore) & {label.code for label in self.table})
            if both:
                raise InputError(f"ignore: codes {both} are in the class table too; a code is a class or ignored.")
            self.thresholds()
            self.report_options(self.table)
            for soft in self.soft_confusion:
                soft.settings(self.table)
            self.soft_maps()
            self.set_maps(self.table)
        return self

    def _check_names(self, names: list[str]) -> None:
        for soft in self.soft_confusion:
            if soft.uncertainty not in (None, "uncertainty", *names):
                raise InputError(
                    f"soft_confusion: the uncertainty {soft.uncertainty!r} is not among the measures asked for: "
                    f"{', '.join(names)}.{_near(str(soft.uncertainty), names)}"
                )
        wanted = {
            "uncertainty_confusion": self.uncertainty_confusion.measures or (),
            "joint_distributions": self.joint_distributions,
        }
        for key, name in ((key, name) for key, measures in wanted.items() for name in measures):
            if name not in names:
                raise InputError(
                    f"{key}: {name!r} is not among the measures asked for: {', '.join(names)}.{_near(name, names)}"
                )
        for name in self.maps:
            if name not in names and name not in MAPS:
                raise InputError(
                    f"maps: {name!r} is neither a measure asked for ({', '.join(names)}) nor one of {', '.join(MAPS)}."
                    f"{_near(name, [*names, *MAPS])}"
                )

    def _check_class_distances(self) -> None:
        distances = self.class_distances
        if any(measure.kind == "homophily" for measure in self.records):
            if distances is None or (distances.table is None) == (distances.metric is None):
                raise InputError(
                    "class_distances: the measure `homophily` needs either `metric` (with the input `features`) or "
                    "`table`."
                )
        elif distances is not None:
            raise InputError("class_distances: no measure uses them; add `homophily` to measures.")

    def thresholds(self) -> tuple[tuple[float, ...], ...]:
        """Return the thresholds of each measure's uncertainty confusion.

        Thresholds for all measures go to those whose range holds them; measures that are named must hold them.
        The default ones go wherever they fit: the entropies of two classes end at ln 2.
        """
        chosen, levels = self.uncertainty_confusion.measures, self.uncertainty_confusion.thresholds
        classes = len(self.table)
        uppers = {measure.name: upper_bound(measure, classes) for measure in self.records}
        stated = tuple(levels) != UNCERTAINTY_THRESHOLDS
        for level in levels:
            short = [name for name in chosen or uppers if level > uppers[name]]
            if short and stated and (chosen is not None or len(short) == len(uppers)):
                raise InputError(
                    f"uncertainty_confusion: the threshold {level:g} is above {uppers[short[0]]:g}, the largest value of "
                    f"{short[0]}."
                )
        unique = sorted(set(levels))
        return tuple(
            tuple(level for level in unique if level <= upper) if chosen is None or name in chosen else ()
            for name, upper in uppers.items()
        )

    def soft_maps(self) -> tuple[SoftMaps, ...]:
        """Return the soft confusions to be drawn, with labels that are array names."""
        drawn = [settings for soft in self.soft_confusion if soft.maps for settings in soft.settings(self.table)]
        indices = [settings.class_index for settings in drawn]
        twice = {self.table[i].name for i in indices if indices.count(i) > 1}
        if twice:
            raise InputError(
                f"soft_confusion: maps of {', '.join(sorted(twice))} are asked for twice; only one entry of a class may have `maps: true`."
            )
        labels = soft_labels(self.table)
        soft_maps = tuple(SoftMaps(settings, labels[settings.class_index]) for settings in drawn)
        if len(map_layers(self.maps, soft_maps)) < len(self.maps) + 5 * len(soft_maps):
            raise InputError("soft_confusion: maps of two classes have the same name; rename one of the classes.")
        return soft_maps


class SceneOptions(ClassificationOptions):
    """The options of a classification of one scene."""

    confidence: TileConfidence | None = Field(None, description="By default no intervals")
    overlap: StrictBool = Field(
        False,
        description="Inputs may cover other parts of the reference's grid; pixels that one does not reach are left out",
    )


class RegressionOptions(StrictModel):
    """The options of a regression."""

    maps: Annotated[list[RegressionMap], one_or_more(RegressionMap), AfterValidator(once)] = Field([])


class PassOptions(StrictModel):
    """How a pass is cut and computed; the results do not depend on it."""

    block: tuple[Annotated[WholeNumber, Field(le=2**31 - 1)], ...] | None = Field(
        None, description="Grid sizes of a task"
    )
    split_every: Annotated[WholeNumber, Field(ge=2, le=10**6)] | None = Field(
        None, description="Summaries that a merge adds"
    )
    engine: Literal["compiled", "reference"] = Field("compiled", description="The kernels")


MeasureWord = str | Callable[[Any], Any] | Mapping[Any, Mapping[str, Any] | None]


class EvaluateOptions(TypedDict, total=False):
    """The keywords of `evaluate`: SceneOptions, which are keys of a job file, too, and PassOptions."""

    classes: Mapping[int, str] | Sequence[str] | Literal["from_file"] | None
    ignore: int | Iterable[int]
    measures: MeasureWord | Sequence[MeasureWord]
    class_distances: Mapping[str, Any] | None
    soft_confusion: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    uncertainty_confusion: Mapping[str, Any]
    calibration: Mapping[str, Any]
    ordered: bool
    background: str | None
    prediction_sets: Mapping[str, Any] | None
    conventions: str | Sequence[str]
    joint_distributions: str | Sequence[str]
    confidence: Mapping[str, Any] | None
    maps: str | Sequence[str]
    overlap: bool
    block: Sequence[int] | None
    split_every: int | None
    engine: Literal["compiled", "reference"]
