"""A whole evaluation: every Summary of one pass, as one Summary."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dask_uncert.formulas.bootstrap_intervals import Confidence
from dask_uncert.formulas.measures import Measure
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.joint_histogram import JointHistogram, JointSettings
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings
from dask_uncert.summaries.summary import Summary
from dask_uncert.summaries.tiles import Tiles
from dask_uncert.summaries.weighted_decisions import WeightedDecisions

if TYPE_CHECKING:
    pass


class Class(NamedTuple):
    """A class of the class table: the code that references use, and its name."""

    code: int
    name: str


@dataclass(frozen=True, eq=False)
class Evaluation(Summary):
    """Everything that was counted in one pass over a scene, or the sum of such.

    Evaluations of the same classes, measures, edges and settings add: patients to a cohort, tiles to a
    scene, sites to a study; `sum()` works. `-` takes a part out again.

    >>> import dask_uncert as du
    >>> one = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> two = du.evaluate([[0.6, 0.4]], [1])
    >>> int((one + two).ledger.counted), one + two - two == one
    (3, True)
    """

    classes: tuple[Class, ...]
    class_metric: str | None
    ledger: Ledger
    decisions: Decisions
    distributions: tuple[Distribution, ...]
    calibration: Calibration
    soft_confusion: tuple[SoftConfusion, ...]
    joint: tuple[JointHistogram, ...]
    tiles: Tiles | None = None
    weighted: tuple[WeightedDecisions, ...] = ()

    @property
    def measures(self) -> dict[str, Distribution]:
        """The distribution of every measure, by its name."""
        return {one.measure.name: one for one in self.distributions}

    def sealed(self) -> Evaluation:
        """That of a whole scene: its tiles are complete, and another scene's stay apart from them.

        The scene gets a name, made of all that was counted and of where its tiles lie.
        """
        if self.tiles is None:
            return self
        digest = hashlib.blake2b(digest_size=16)
        known = [array for _, _, array in replace(self, tiles=None).arrays()]
        for array in (*known, self.tiles.positions, self.tiles.starts):
            digest.update(np.ascontiguousarray(array, "<i8").tobytes())
        return replace(self, tiles=self.tiles.sealed(digest.hexdigest()))

    def plus_all(self, others: Sequence[Evaluation]) -> Evaluation:
        """The sum of many; what `sum` gives, but that tiles are put in order once."""
        if self.tiles is None or any(other.tiles is None for other in others):
            return sum(others, start=self)
        total = sum((replace(one, tiles=None) for one in others), start=replace(self, tiles=None))
        return replace(
            total, tiles=self.tiles.plus_all([one.tiles for one in others if one.tiles is not None])
        )


SETTINGS: dict[type[Summary], type[Any]] = {SoftConfusion: SoftSettings, JointHistogram: JointSettings}
"""By kind of part: what its field `settings` is."""


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


def from_plain(frame: dict[str, Any], arrays: dict[str, Any]) -> Evaluation:
    """The Evaluation whose `frame()` and `arrays()` these are (paths to int64 arrays).

    Raises KeyError or TypeError where something is missing or unknown.
    """

    def part(kind: type[Any], words: dict[str, Any], prefix: str, names: tuple[str, ...]) -> Any:
        framed = {k: _tuples(v) for k, v in words.items() if k != "kind"}
        if kind is Distribution:
            framed["measure"] = Measure(**{k: _tuples(v) for k, v in words["measure"].items()})
        if kind is Tiles:
            framed["confidence"] = Confidence(**words["confidence"])
        if kind in SETTINGS:
            settings = {k: _tuples(v) for k, v in words["settings"].items()}
            framed["settings"] = SETTINGS[kind](**settings)
        return kind(**framed, **{name: arrays[f"{prefix}/{name}"] for name in names})

    distributions = ("histogram", "by_pair", "by_confused")
    return Evaluation(
        classes=tuple(Class(int(code), str(name)) for code, name in frame["classes"]),
        class_metric=frame["class_metric"],
        ledger=part(Ledger, frame["ledger"], "ledger", ("counted", "excluded", "repaired")),
        decisions=part(Decisions, frame["decisions"], "decisions", ("pairs", "by_confused")),
        distributions=tuple(
            part(Distribution, words, f"distributions/{i}", distributions)
            for i, words in enumerate(frame["distributions"])
        ),
        calibration=part(
            Calibration,
            frame["calibration"],
            "calibration",
            ("winning", "classwise", "squared_error", "log_loss", "infinite"),
        ),
        soft_confusion=tuple(
            part(SoftConfusion, words, f"soft_confusion/{i}", ("weights",))
            for i, words in enumerate(frame["soft_confusion"])
        ),
        joint=tuple(
            part(JointHistogram, words, f"joint/{i}", ("moments",)) for i, words in enumerate(frame["joint"])
        ),
        tiles=part(Tiles, frame["tiles"], "tiles", ("positions", "starts", "cells", "numbers"))
        if frame.get("tiles")
        else None,
        weighted=tuple(
            part(WeightedDecisions, words, f"weighted/{i}", ("pairs",))
            for i, words in enumerate(frame.get("weighted", ()))
        ),
    )
