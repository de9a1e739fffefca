"""A whole evaluation: every Summary of one pass, as one Summary."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.joint_histogram import JointHistogram
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.soft_confusion import SoftConfusion
from dask_uncert.summaries.summary import Summary
from dask_uncert.summaries.tiles import Tiles
from dask_uncert.summaries.weighted_decisions import WeightedDecisions


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
    calibration : Calibration
        Stated probabilities against how often they came true.
    soft_confusion : tuple of SoftConfusion
        Soft confusions at the settings of the job.
    joint : tuple of JointHistogram
        Joint histograms, from which `sweep` reads any other setting.
    tiles : Tiles or None
        Counts of each spatial tile, for intervals.
    weighted : tuple of WeightedDecisions
        Decisions weighed by a number per pixel, such as its area.

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
    calibration: Calibration
    soft_confusion: tuple[SoftConfusion, ...]
    joint: tuple[JointHistogram, ...]
    tiles: Tiles | None = None
    weighted: tuple[WeightedDecisions, ...] = ()

    @property
    def measures(self) -> dict[str, Distribution]:
        """Distribution of every measure, by its name."""
        return {distribution.measure.name: distribution for distribution in self.distributions}

    def sealed(self) -> Evaluation:
        """Return the Evaluation of a complete scene, whose tiles are not merged with those of other scenes.

        The scene gets a name: the hash of all counts and of the positions of its tiles.
        """
        if self.tiles is None:
            return self
        digest = hashlib.blake2b(digest_size=16)
        counted = [array for _, _, array in replace(self, tiles=None).arrays()]
        for array in (*counted, self.tiles.positions, self.tiles.starts):
            digest.update(np.ascontiguousarray(array, "<i8").tobytes())
        return replace(self, tiles=self.tiles.sealed(digest.hexdigest()))

    def plus_all(self, others: Sequence[Evaluation]) -> Evaluation:
        """Return the sum of many, as `sum` does, but sorting the tiles once."""
        if self.tiles is None or any(other.tiles is None for other in others):
            return sum(others, start=self)
        total = sum((replace(other, tiles=None) for other in others), start=replace(self, tiles=None))
        return replace(total, tiles=self.tiles.plus_all([other.tiles for other in others if other.tiles is not None]))
