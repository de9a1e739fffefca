"""A whole evaluation: every Summary of one pass, as one Summary."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dask_uncert.errors import InputError, listed, plural, suggestion
from dask_uncert.formulas import calibration, confusion
from dask_uncert.summaries import display
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.confidence_joint import ConfidenceJoint
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.joint_histogram import JointHistogram
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.report_options import NOTHING_MORE, ReportOptions
from dask_uncert.summaries.soft_confusion import SoftConfusion
from dask_uncert.summaries.summary import Summary
from dask_uncert.summaries.tiles import Tiles
from dask_uncert.summaries.weighted_decisions import WeightedDecisions
from dask_uncert.summaries.zones import Zones


class Class(NamedTuple):
    """A class of the class table: the code that references use, and its name."""

    code: int
    name: str


@dataclass(frozen=True, eq=False)
class Evaluation(Summary):
    """All counts of one pass over a scene, or the sum of several.

    Evaluations of the same classes, measures, edges and settings add: patients to a cohort, tiles to a
    scene, sites to a study; `sum()` works. `-` takes a part out again.

    Attributes
    ----------
    classes : tuple of Class
        Code and name of each class, in the order of the class axis.
    class_metric : str or None
        Metric of the class distances of homophily.
    ledger : Ledger
        Pixels counted, and pixels left out by reason.
    decisions : Decisions
        Pixels by reference and predicted class.
    distributions : tuple of Distribution
        Distribution of each uncertainty measure over right and wrong decisions.
    calibration : Calibration or None
        Stated probabilities against how often they came true; None where the prediction was class codes.
    soft_confusion : tuple of SoftConfusion
        Soft confusions at the settings of the job.
    joint : tuple of JointHistogram
        Joint histograms, from which `sweep` reads any other setting.
    tiles : Tiles or None
        Counts of each spatial tile, for intervals.
    weighted : tuple of WeightedDecisions
        Decisions weighed by a number per pixel, such as its area.
    zones : Zones or None
        Counts of each zone; `zone` gives the Evaluation of one.
    report_options : ReportOptions
        What a report reads from the counts besides what it always does.
    confidence_joint : tuple of ConfidenceJoint
        Joint distributions of the confidence and the measures of the job's `joint_distributions`.

    Examples
    --------
    >>> import dask_uncert as du
    >>> first = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> second = du.evaluate([[0.6, 0.4]], [1])
    >>> int((first + second).ledger.counted), first + second - second == first
    (3, True)
    """

    kind = "classification"
    classes: tuple[Class, ...]
    class_metric: str | None
    ledger: Ledger
    decisions: Decisions
    distributions: tuple[Distribution, ...]
    calibration: Calibration | None
    soft_confusion: tuple[SoftConfusion, ...]
    joint: tuple[JointHistogram, ...]
    tiles: Tiles | None = None
    weighted: tuple[WeightedDecisions, ...] = ()
    zones: Zones | None = None
    report_options: ReportOptions = NOTHING_MORE
    confidence_joint: tuple[ConfidenceJoint, ...] = ()

    def _classes(self) -> dict[str, Any]:
        """Return support, predicted and the main metrics of each class, (classes,) each."""
        matrix = self.decisions.confusion
        counts = {"support": matrix.sum(axis=1), "predicted": matrix.sum(axis=0)}
        return counts | {key: getattr(confusion, key)(matrix) for key in ("precision", "recall", "f1", "iou")}

    def _overall(self) -> dict[str, float]:
        """Return the main metrics of all classes together, by their names in `results.json`."""
        matrix = self.decisions.confusion
        numbers = {
            "overall/accuracy": float(confusion.accuracy(matrix)),
            "overall/kappa": float(confusion.kappa(matrix)),
            "overall/macro_f1": float(confusion.macro(confusion.f1(matrix), confusion.support(matrix)).value),
        }
        if self.calibration is not None:
            binned = self.calibration.binned(self.calibration.fine)
            numbers["calibration/ece"] = float(calibration.expected_calibration_error(*binned))
        return numbers

    def _title(self) -> str:
        counted, left_out = int(self.ledger.counted), int(self.ledger.excluded.sum())
        unit = "pixels" if self.tiles is None or self.tiles.positions.shape[1] != 4 else "voxels"
        classes = plural(len(self.classes), "class", "classes")
        return f"Evaluation of {classes}: {counted:,} {unit} counted, {left_out:,} left out"

    def _class_rows(self) -> list[list[Any]]:
        columns = self._classes()
        header = ["class", "support", "predicted", "precision", "recall", "F1", "IoU"]
        return [header, *([c.name, *(v[i] for v in columns.values())] for i, c in enumerate(self.classes))]

    def __repr__(self) -> str:
        labels = ("accuracy", "kappa", "mean F1", "calibration error (ECE)")
        overall = zip(labels, map(display.number, self._overall().values()), strict=False)
        measured = ", ".join(self.measures) or "none"
        return "\n".join(
            [
                self._title(),
                ", ".join(f"{label} {value}" for label, value in overall),
                *display.text_table(self._class_rows(), display.LINES - 3, "all are in to_dataframe()"),
                f"measures: {measured[:100]}{'…' * (len(measured) > 100)}",
            ]
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the main metrics, the classes, and how honest the confidence is."""
        names = ("Accuracy", "Kappa", "Mean F1", "Calibration error (ECE)")
        numbers = zip(names, map(display.number, self._overall().values()), strict=False)
        parts = [
            display.html_text(", ".join(f"{name} {value}" for name, value in numbers)),
            display.html_table(self._class_rows(), "Classes"),
        ]
        if self.calibration is not None:
            curve = zip(*calibration.reliability(*self.calibration.binned(self.calibration.fine)), strict=True)
            text = "Reliability: accuracy by mean confidence"
            parts.append(display.html_curve(curve, "mean confidence", "accuracy", text))
        return display.html(self._title(), *parts)

    def to_dataframe(self) -> Any:
        """Return the main numbers as a pandas DataFrame: of all classes together, then of each class.

        Returns
        -------
        pandas.DataFrame
            Column ``value``; the index holds names as in `results.json` and `intervals`, such as
            ``classes/Corn/f1``. NaN where undefined.

        Examples
        --------
        >>> import dask_uncert as du
        >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
        >>> evaluation.to_dataframe().loc["classes/1/recall", "value"].item()
        0.5
        """
        numbers = {"counted": int(self.ledger.counted), "excluded": int(self.ledger.excluded.sum()), **self._overall()}
        columns = self._classes()
        for i, c in enumerate(self.classes):
            numbers |= {f"classes/{c.name}/{name}": values[i] for name, values in columns.items()}
        return display.dataframe("name", [*numbers], {"value": [float(value) for value in numbers.values()]})

    @property
    def stated(self) -> Calibration:
        """The calibration; InputError where the prediction was class codes, without probabilities."""
        if self.calibration is None:
            raise InputError(
                "the prediction was class codes, so there are no probabilities to read this from. Evaluate `probabilities`."
            )
        return self.calibration

    @property
    def foreground(self) -> list[int] | None:
        """Positions of all classes but the background; None where the job names none."""
        background = self.report_options.background
        return None if background is None else [i for i, name in enumerate(self.class_names) if name != background]

    @property
    def class_names(self) -> list[str]:
        """Name of every class, in the order of the class axis."""
        return [name for _, name in self.classes]

    @property
    def measures(self) -> dict[str, Distribution]:
        """Distribution of every measure, by its name."""
        return {distribution.measure.name: distribution for distribution in self.distributions}

    def sealed(self) -> Evaluation:
        """Return the Evaluation of a complete scene, whose tiles are not merged with those of other scenes.

        Returns
        -------
        Evaluation
            The same counts; its tiles name the scene: the hash of all counts and of their positions.
        """
        if self.tiles is None:
            return self
        digest = hashlib.blake2b(digest_size=16)
        counted = [array for _, _, array in self.alone().arrays()]
        for array in (*counted, self.tiles.positions, self.tiles.starts):
            digest.update(np.ascontiguousarray(array, "<i8").tobytes())
        scene = digest.hexdigest()
        zones = None if self.zones is None else self.zones.sealed(scene)
        return replace(self, tiles=self.tiles.sealed(scene), zones=zones)

    def alone(self) -> Evaluation:
        """Return the Evaluation without its tiles and zones.

        Returns
        -------
        Evaluation
            The other counts.
        """
        return replace(self, tiles=None, zones=None)

    def zone(self, *names: str) -> Evaluation:
        """Return the Evaluation of the pixels of a zone, or of several together.

        Parameters
        ----------
        *names : str
            Names of zones; of those without names their codes.

        Returns
        -------
        Evaluation
            Of the same classes, measures, edges and settings. Its tiles are those parts of tiles that lie in the zones.

        Raises
        ------
        InputError
            If there is no zone of a name.

        Examples
        --------
        >>> import dask_uncert as du
        >>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1], zones=[5, 7])
        >>> int(evaluation.zone("7").ledger.counted), evaluation.zone("5", "7") == evaluation.alone()
        (1, True)
        """
        table = () if self.zones is None else self.zones.table
        code_of = {zone.name: zone.code for zone in table}
        if self.zones is None or not names or not set(names) <= code_of.keys():
            there = f"the zones are {listed([*code_of], 20)}" if table else "the scene was evaluated without zones"
            missing = [name for name in names if name not in code_of]
            raise InputError(f"there is no zone {listed(missing or ['without a name'], 5)}; {there}.")
        codes = [code_of[name] for name in names]
        alone = self.alone().in_buffer(self.zones.row(codes).dense((self.zones.width,)))
        return replace(alone, tiles=self.zones.tiles_of(codes))


def class_position(evaluation: Evaluation, class_name: str) -> int:
    """Return the position of a class in the class table; raise InputError if there is none of this name."""
    names = evaluation.class_names
    if class_name not in names:
        raise InputError(f"there is no class {class_name!r}. {suggestion(class_name, names, 'Classes')}")
    return names.index(class_name)
