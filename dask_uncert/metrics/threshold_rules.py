"""What a threshold is chosen for: the counts it needs of each unit, the rule, and the numbers it is judged by.

A unit is a patient, a zone or a tile. A rule reads fine counts of units, picks an edge of the fine bins, keeps a few
cells for each unit at that edge, and turns weighted sums of cells into numbers: so choice, report and intervals are the
same formulas on other weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dask_uncert.errors import InputError, listed, plural
from dask_uncert.formulas import prediction_sets, rankings
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.resampling import weighted_means
from dask_uncert.formulas.typing import Counts, Floats
from dask_uncert.metrics.resampling_units import Units, ranges
from dask_uncert.summaries.evaluation import Evaluation, class_position

AT_A_TIME = 64  # units whose fine counts are in memory
BINARY = ("f1", "youden", "precision", "recall")
BY = (*BINARY, "coverage", "missed")
"""What a threshold may be chosen for."""


class Rule(Protocol):
    """How a threshold is chosen and judged. label: what it is a threshold of; by_tiles: tiles keep what it needs."""

    @property
    def label(self) -> str: ...
    @property
    def edges(self) -> tuple[float, ...]: ...
    @property
    def by_tiles(self) -> bool: ...
    def edge(self, units: Units) -> int:
        """Return the number of the edge that is chosen on these units; -1 where none will do."""
        ...

    def cells(self, units: Units, edge: int) -> Counts:
        """Return the counts of every unit at an edge, (units, cells)."""
        ...

    def numbers(self, weights: Counts, cells: Counts) -> dict[str, Floats]:
        """Return numbers of weighted sums of units, weights (draws, units) to (draws,) each."""
        ...

    def best(self, units: Units) -> tuple[float, float] | None:
        """Return the threshold that would be chosen on these units and its number; None where that says nothing."""
        ...


@dataclass(frozen=True)
class FindByScore:
    """Finds a class by its probability, or wrong decisions by their uncertainty: above a threshold means found.

    number: of the class, or of the measure. by, wanted: see `choose`.
    """

    label: str
    edges: tuple[float, ...]
    number: int
    of_measure: bool
    by: str
    wanted: float | None

    @property
    def by_tiles(self) -> bool:
        """Tiles keep the fine bins of measures, but not those of probabilities."""
        return self.of_measure

    def _counts(self, units: Units, start: int, stop: int) -> tuple[Counts, Counts]:
        """Return items and those to be found by bin, (units, bins) each."""
        counts = units.counts(f"{'histogram' if self.of_measure else 'class'}/{self.number}", start, stop)
        assert counts is not None
        if self.of_measure:
            return counts.sum(axis=-2), counts[..., 0, :]
        return counts[..., 0], counts[..., 1]

    def edge(self, units: Units) -> int:
        """See `Rule`."""
        return self._edge(self._table(units))

    def _table(self, units: Units) -> rankings.ThresholdTable:
        parts = [self._counts(units, a, b) for a, b in _batches(units)]
        return rankings.threshold_table(*(sum(part.sum(axis=0) for part in side) for side in zip(*parts, strict=True)))

    def _edge(self, table: rankings.ThresholdTable) -> int:
        if self.wanted is None:
            return int(rankings.best_edge(getattr(table, self.by)))
        return int(rankings.edge_for(table, self.by, self.wanted))

    def best(self, units: Units) -> tuple[float, float] | None:
        """See `Rule`."""
        table = self._table(units)
        edge = self._edge(table)
        return None if edge < 0 or self.wanted is not None else (self.edges[edge], float(getattr(table, self.by)[edge]))

    def cells(self, units: Units, edge: int) -> Counts:
        """Return TP, FP, FN and TN of every unit."""
        parts = []
        for a, b in _batches(units):
            items, own = self._counts(units, a, b)
            found, true = items[:, edge:].sum(axis=1), own[:, edge:].sum(axis=1)
            missed = own.sum(axis=1) - true
            parts.append(np.stack([true, found - true, missed, items.sum(axis=1) - found - missed], axis=1))
        return np.concatenate(parts)

    def numbers(self, weights: Counts, cells: Counts) -> dict[str, Floats]:
        """See `Rule`."""
        tp, fp, fn, tn = np.moveaxis(weights @ cells, -1, 0)
        recall, total = ratio(tp, tp + fn), tp + fp + fn + tn
        found = {
            "f1": ratio(2 * tp, 2 * tp + fp + fn),
            "precision": ratio(tp, tp + fp),
            "recall": recall,
            "youden": recall - ratio(fp, fp + tn),
            "accuracy": ratio(tp + tn, total),
            "found": ratio(tp + fp, total),
        }
        return found | {"accuracy_of_others": ratio(tn, tn + fn)} if self.of_measure else found


@dataclass(frozen=True)
class CoverByClasses:
    """Sets of the classes with a probability above a threshold, which hold the true class at a wanted rate."""

    edges: tuple[float, ...]
    classes: tuple[str, ...]
    coverage: float
    label: str = "sets of classes"
    by_tiles: bool = False

    def _counts(self, units: Units) -> Iterator[tuple[Counts, Counts]]:
        """Yield number and positives of some units by class and bin, (units, classes, bins) each."""
        for a, b in _batches(units):
            tallies = [units.counts(f"class/{c}", a, b) for c in range(len(self.classes))]
            tally = np.stack([counts for counts in tallies if counts is not None], axis=1)
            yield tally[..., 0], tally[..., 1]

    def edge(self, units: Units) -> int:
        """See `Rule`."""
        positives = sum(own.sum(axis=(0, 1)) for _, own in self._counts(units))
        return int(prediction_sets.conformal_edge(positives, self.coverage))

    def cells(self, units: Units, edge: int) -> Counts:
        """Return of every unit its pixels, the sum of their sets' sizes, and by class its pixels and those covered."""
        parts = []
        for number, own in self._counts(units):
            sizes = np.stack([number[:, 0].sum(axis=1), number[..., edge:].sum(axis=(1, 2))], axis=1)
            parts.append(np.concatenate([sizes, own.sum(axis=2), own[..., edge:].sum(axis=2)], axis=1))
        return np.concatenate(parts)

    def numbers(self, weights: Counts, cells: Counts) -> dict[str, Floats]:
        """See `Rule`."""
        sums, width = weights @ cells, len(self.classes)
        pixels, sizes, own, covered = sums[:, 0], sums[:, 1], sums[:, 2 : 2 + width], sums[:, 2 + width :]
        each = ratio(cells[:, 2 + width :].sum(axis=1), cells[:, 0])
        found = {
            "coverage": ratio(covered.sum(axis=1), pixels),
            "mean_coverage": weighted_means(weights, each[:, None])[:, 0],
            "mean_size": ratio(sizes, pixels),
        }
        by_class = ratio(covered, own)
        return found | {f"coverage of {name}": by_class[:, c] for c, name in enumerate(self.classes)}

    def best(self, units: Units) -> tuple[float, float] | None:
        """See `Rule`."""
        return None


@dataclass(frozen=True)
class MissLittle:
    """Finds a class above a threshold such that new units miss a wanted share of it at most, in the mean."""

    edges: tuple[float, ...]
    number: int
    risk: float
    label: str
    by_tiles: bool = False

    def _tally(self, units: Units, start: int, stop: int) -> Counts:
        counts = units.counts(f"class/{self.number}", start, stop)
        assert counts is not None
        return counts

    def edge(self, units: Units) -> int:
        """See `Rule`."""
        positives = np.concatenate([self._tally(units, a, b)[..., 1] for a, b in _batches(units)])
        return prediction_sets.risk_controlling_edge(positives, self.risk)[0]

    def cells(self, units: Units, edge: int) -> Counts:
        """Return of every unit the pixels of the class, those missed, all pixels, and those found."""
        parts = []
        for a, b in _batches(units):
            number, own = self._tally(units, a, b)[..., 0], self._tally(units, a, b)[..., 1]
            columns = [own.sum(axis=1), own[:, :edge].sum(axis=1), number.sum(axis=1), number[:, edge:].sum(axis=1)]
            parts.append(np.stack(columns, axis=1))
        return np.concatenate(parts)

    def numbers(self, weights: Counts, cells: Counts) -> dict[str, Floats]:
        """See `Rule`."""
        own, missed, pixels, found = np.moveaxis(weights @ cells, -1, 0)
        each = ratio(cells[:, 1], cells[:, 0])
        return {
            "mean_missed": weighted_means(weights, each[:, None])[:, 0],
            "missed": ratio(missed, own),
            "precision": ratio(own - missed, found),
            "found": ratio(found, pixels),
        }

    def best(self, units: Units) -> tuple[float, float] | None:
        """See `Rule`."""
        return None


def rule_for(
    evaluation: Evaluation, by: str, wanted: float | None, class_name: str | None, uncertainty: str | None
) -> Rule:
    """Return the rule that these words name; InputError where they contradict each other or the evaluation."""
    if by not in BY:
        raise InputError(f"by: {by!r} is not one of {', '.join(BY)}.")
    needs, takes = by in ("coverage", "missed"), by in ("precision", "recall", "coverage", "missed")
    if (wanted is None and needs) or (wanted is not None and not takes):
        example = {"coverage": 0.9, "missed": 0.1}.get(by, 0.9)
        raise InputError(
            f"by: {by} needs a wanted value, such as `{by}={example}`." if needs else f"by: {by} takes no wanted value."
        )
    if wanted is not None and not 0 < wanted < 1:
        raise InputError(f"by: the wanted {by} must lie between 0 and 1, found {wanted:g}.")
    names = tuple(evaluation.class_names)
    if by == "coverage":
        if class_name is not None or uncertainty is not None:
            raise InputError("by: coverage is of sets of all classes; leave out the class and the uncertainty.")
        return CoverByClasses(evaluation.stated.edges, names, float(wanted or 0))
    if (class_name is None) == (uncertainty is None):
        raise InputError(
            f"by: {by} needs either a class, whose decision threshold is chosen ({listed(names, 10)}), or an uncertainty, whose "
            f"threshold finds wrong decisions ({listed(evaluation.measures, 10) or 'none was measured'})."
        )
    if class_name is not None:
        position, edges = class_position(evaluation, class_name), evaluation.stated.edges
        if by == "missed":
            return MissLittle(edges, position, float(wanted or 0), f"the probability of {class_name}")
        return FindByScore(f"the probability of {class_name}", edges, position, False, by, wanted)
    measures = list(evaluation.measures)
    if by == "missed":
        raise InputError("by: missed is a share of a class; name the class instead of an uncertainty.")
    if uncertainty not in measures:
        raise InputError(f"there is no measure {uncertainty!r}; measured: {listed(measures, 10) or 'none'}.")
    number = measures.index(uncertainty)
    return FindByScore(str(uncertainty), evaluation.distributions[number].edges, number, True, by, wanted)


def least_units(rule: Rule) -> str:
    """Return why a rule may find no threshold, for a message."""
    if isinstance(rule, MissLittle):
        least = max(1, int(np.ceil(1 / rule.risk - 1)))
        return (
            f"a mean missed share of {rule.risk:g} needs at least {plural(least, 'unit')} with the class to choose on"
        )
    return "no threshold reaches it, or it is undefined everywhere"


def _batches(units: Units) -> Iterator[tuple[int, int]]:
    return ranges(len(units.names), AT_A_TIME)


def whole(numbers: dict[str, Any]) -> dict[str, float]:
    """Return numbers of one draw."""
    return {name: float(values[0]) for name, values in numbers.items()}
