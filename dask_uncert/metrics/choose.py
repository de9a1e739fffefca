"""A threshold chosen on some zones or patients and reported on others, from their counts alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dask_uncert.errors import InputError, listed, plural
from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.resampling import bootstrap_weights
from dask_uncert.formulas.typing import Counts
from dask_uncert.metrics.bootstrap import WEIGHTS, defined
from dask_uncert.metrics.resampling_units import Units, patients, ranges
from dask_uncert.metrics.threshold_rules import Rule, least_units, rule_for, whole
from dask_uncert.metrics.tile_bootstrap import GROUPS, TileUnits
from dask_uncert.metrics.zones import ZONE, zones
from dask_uncert.summaries.case import composed
from dask_uncert.summaries.display import number as shown
from dask_uncert.summaries.display import text_table
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.stack import Stack

Selection = Mapping[str, str | int | Sequence[str | int]]
"""Values by column: a grouping column, `patient`, `case` or `zone`. Cases are meant that have one of each column's values."""
FEW = 10
"""Units below this number tell little about how units differ."""
FOLD = "fold"
"""Another word for the zones of a scene."""


NAMES = {"missed": "mean missed share"}
"""Display names of what a threshold is chosen for."""


@dataclass(frozen=True)
class Choice:
    """A threshold, where it was chosen and where it is reported.

    Attributes
    ----------
    of : str
        What is compared with the threshold: found, uncertain or in the set is what lies above it.
    by : str
        What it was chosen for; `wanted` is the value to reach, if any.
    threshold : float
        NaN where none will do.
    chosen_on, reported_on : tuple of str
        Names of zones or cases.
    chosen, reported : dict of str to float
        The same numbers, at the threshold, of all pixels of these zones or cases.
    intervals : dict of str to Interval
        Of the reported numbers; none where there are fewer than two units.
    best : tuple of float or None
        The threshold that would be best where it is reported, and the number there.
    unit, units, level : str, int, float
        What was resampled, how many there are, and the confidence level of the intervals.
    notes : tuple of str
        What flatters or limits the numbers, such as pixels on both sides.

    Examples
    --------
    >>> import dask_uncert as du
    >>> p, y = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]], [0, 1, 1, 1]
    >>> stack = du.Stack.of({"P1": du.evaluate(p, y), "P2": du.evaluate(p[:2], y[:2])})
    >>> choice = du.choose(stack, {"patient": "P1"}, class_name="1")
    >>> choice.reported_on, choice.reported["recall"]
    (('P2',), 1.0)
    """

    of: str
    by: str
    wanted: float | None
    threshold: float
    chosen_on: tuple[str, ...]
    reported_on: tuple[str, ...]
    chosen: dict[str, float]
    reported: dict[str, float]
    intervals: dict[str, Interval]
    best: tuple[float, float] | None
    unit: str
    units: int
    level: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON.

        Returns
        -------
        dict
            By the names of the attributes. Undefined numbers are None; ``<name>_interval`` has the ends of an interval.
        """
        ends = {f"{name}_interval": [float(i.low), float(i.high)] for name, i in self.intervals.items()}
        found: dict[str, Any] = {
            "of": self.of,
            "by": self.by,
            "wanted": self.wanted,
            "threshold": self.threshold,
            "chosen_on": {"names": list(self.chosen_on), **self.chosen},
            "reported_on": {"names": list(self.reported_on), **self.reported, **ends},
            "best_where_reported": None
            if self.best is None
            else dict(zip(("threshold", "value"), self.best, strict=True)),
            "unit": self.unit,
            "units": self.units,
            "level": self.level,
            "notes": list(self.notes),
        }
        return {key: _plain(value) for key, value in found.items()}

    def __repr__(self) -> str:
        goal = (
            f"the largest {self.by}" if self.wanted is None else f"a {NAMES.get(self.by, self.by)} of {self.wanted:g}"
        )
        source = f", intervals from {plural(self.units, self.unit)}" if self.intervals else ""
        rows: list[list[Any]] = [["number", "where chosen", "reported", f"{100 * self.level:g} % interval"]]
        for name, value in self.reported.items():
            interval = self.intervals.get(name)
            ends = "" if interval is None else f"{shown(float(interval.low))} to {shown(float(interval.high))}"
            rows.append([name, shown(self.chosen[name]), shown(value), ends])
        lines = [
            f"threshold of {self.of} for {goal}: {shown(self.threshold)}",
            f"chosen on {listed(self.chosen_on, 5)}; reported on {listed(self.reported_on, 5)}{source}",
            *text_table(rows, len(rows) + 1, ""),
        ]
        if self.best is not None:
            lines.append(f"best where reported: {self.by} {shown(self.best[1])} at {shown(self.best[0])}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def choose(
    result: Evaluation | Stack,
    on: Selection,
    by: Literal["f1", "youden", "precision", "recall", "coverage", "missed"] = "f1",
    wanted: float | None = None,
    *,
    class_name: str | None = None,
    uncertainty: str | None = None,
    report: Selection | Literal["others", "all"] = "others",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Choice:
    """Return a threshold that is chosen on some zones or patients, and how it does on others.

    Parameters
    ----------
    result : Evaluation or Stack
        A scene that was evaluated with zones, or the cases of a cohort.
    on : mapping of str to str or sequence of str
        Where to choose: values by column, such as ``{"zone": "train"}`` or ``{"site": ["A", "B"]}``. Columns are those
        that group cases, `patient`, `case`, and `zone` or `fold` for a scene.
    by : {"f1", "youden", "precision", "recall", "coverage", "missed"}, default "f1"
        What the threshold is for. With a class its decision threshold, with an uncertainty the threshold above which
        decisions are taken to be wrong: the largest F1, Youden's J, precision or recall, or with `wanted` at least that
        precision or recall. "coverage": sets of classes that hold the true one at the wanted rate (split conformal).
        "missed": the highest threshold at which new patients miss at most the wanted share of a class in the mean.
    wanted : float, optional
        The value to reach, in (0, 1).
    class_name, uncertainty : str, optional
        A class, or a measure of uncertainty.
    report : mapping, "others" or "all"
        Where to report, by default on all others.
    replicates, level, seed : int, float, int
        Bootstrap replicates of the units, level and seed of the intervals.

    Returns
    -------
    Choice
        The threshold, its numbers where it was chosen and where it is reported, with intervals, and notes on overlap.

    Raises
    ------
    InputError
        If a column, a value, a class or a measure is not there, or nothing is left to choose or to report on.

    Notes
    -----
    Reads no pixel. Thresholds are edges of the fine bins, so all counts are exact. Units of the intervals are patients; in
    a scene tiles where they keep what is needed (an uncertainty), else zones.

    Examples
    --------
    >>> import dask_uncert as du
    >>> p, y = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]], [0, 1, 1, 1]
    >>> evaluation = du.evaluate(p, y, classes=["a", "b"], zones=[1, 1, 1, 2])
    >>> choice = du.choose(evaluation, {"zone": 1}, class_name="b")
    >>> round(choice.threshold, 3), choice.reported["f1"]
    (0.399, 1.0)
    """
    if isinstance(result, Evaluation):
        stack, scene = _with_pixels(zones(result)), result
        on, report = _as_zones(on), report if isinstance(report, str) else _as_zones(report)
    else:
        stack, scene = result, None
    chosen = _selected(stack, on, "on")
    if report == "others":
        reported = [name for name in stack.names if name not in set(chosen)]
    else:
        reported = list(stack.names) if report == "all" else _selected(stack, report, "report")
    if not reported:
        raise InputError(
            "on: takes all there is, so that nothing is left to report on. Choose on fewer, or give `report`: all, whose "
            "numbers flatter the model."
        )
    rule = rule_for(stack.total(), by, wanted, class_name, uncertainty)
    first, second = stack.select(chosen), stack.select(reported)
    units: Units = patients(first)
    edge = rule.edge(units)
    notes = _overlaps(first, second, scene)
    before = whole(rule.numbers(np.ones((1, len(units.names)), np.int64), rule.cells(units, max(edge, 0))))
    units, unit = _report_units(rule, second, scene)
    cells = rule.cells(units, max(edge, 0))
    after = whole(rule.numbers(np.ones((1, len(units.names)), np.int64), cells))
    intervals: dict[str, Interval] = {}
    confidence = Confidence(replicates, level, seed)
    if edge < 0:
        before, after = dict.fromkeys(before, math.nan), dict.fromkeys(after, math.nan)
        notes.append(f"There is no such threshold: {least_units(rule)}.")
    elif len(units.names) > 1:
        intervals = _intervals(rule, units, cells, confidence)
        if len(units.names) < FEW:
            notes.append(f"The intervals are rough: they are drawn from {plural(len(units.names), unit)} only.")
    else:
        notes.append(f"There are no intervals: they need at least two {unit}s to report on.")
    if by == "coverage":
        notes.append(
            "The coverage is promised for pixels like those chosen on; pixels of other places or patients may differ."
        )
    threshold = rule.edges[edge] if edge >= 0 else math.nan
    best, names = rule.best(units), (first.names, second.names)
    return Choice(
        rule.label, by, wanted, threshold, *names, before, after, intervals, best, unit, len(units.names), level,
        tuple(notes),
    )  # fmt: skip


def _with_pixels(stack: Stack) -> Stack:
    """Return the zones in which a pixel counts: others say nothing."""
    counted = stack.array("ledger/counted")
    return stack.select([name for name, pixels in zip(stack.names, counted.tolist(), strict=True) if pixels])


def _as_zones(selection: Selection) -> Selection:
    return {ZONE if column == FOLD else column: values for column, values in selection.items()}


def _selected(stack: Stack, selection: Selection, key: str) -> list[str]:
    """Return the names of the cases that have one of the values of each column; InputError where there is none."""
    columns = {"case": stack.names, "patient": stack.patients, **stack.groups}
    kept = np.ones(len(stack), np.bool_)
    if not selection:
        raise InputError(f"{key}: name where, such as a value of {listed(columns, 10)}.")
    for column, values in selection.items():
        found = columns.get(composed(column))
        if found is None:
            raise InputError(f"{key}: there is no column {column!r}; there are {listed(columns, 10)}.")
        wanted = {composed(str(value)) for value in ([values] if isinstance(values, str | int) else values)}
        if missing := sorted(wanted - set(found)):
            raise InputError(f"{key}: no {column} is {listed(missing, 5)}; there are {listed(sorted(set(found)), 10)}.")
        kept &= np.isin(np.asarray(found, object), list(wanted))
    if not kept.any():
        raise InputError(f"{key}: no case has all of these values.")
    return [name for name, keep in zip(stack.names, kept, strict=True) if keep]


def _overlaps(first: Stack, second: Stack, scene: Evaluation | None) -> list[str]:
    """Return sentences about what is on both sides: cases, patients with other visits, tiles cut by zones."""
    notes, thing = [], "case" if scene is None else "zone"
    if both := sorted(set(first.names) & set(second.names)):
        notes.append(
            f"Choice and report overlap: {len(both)} of {plural(len(second), thing)} reported ({listed(both, 5)}) "
            f"{'was' if len(both) == 1 else 'were'} also chosen on. The numbers flatter the model."
        )
    own = sorted((set(first.patients) & set(second.patients)) - {p for n, p in _patients(first) if n in set(both)})
    if own:
        notes.append(
            f"Choice and report overlap: {plural(len(own), 'patient has', 'patients have')} visits on both sides "
            f"({listed(own, 5)}). Choose by `patient` to keep them apart."
        )
    if scene is not None and scene.tiles is not None and not both:
        sides = [scene.zone(*stack.names).tiles for stack in (first, second)]
        tiles = [set() if side is None else set(map(tuple, side.positions.tolist())) for side in sides]
        if cut := len(tiles[0] & tiles[1]):
            notes.append(
                f"{cut} of {plural(len(tiles[1]), 'tile')} reported {'has' if cut == 1 else 'have'} pixels on both sides: "
                f"neighbours there are alike."
            )
    return notes


def _patients(stack: Stack) -> Iterable[tuple[str, str]]:
    return zip(stack.names, stack.patients, strict=True)


def _report_units(rule: Rule, stack: Stack, scene: Evaluation | None) -> tuple[Units, str]:
    """Return what is resampled where a threshold is reported, and its name."""
    if scene is None:
        return patients(stack), "patient"
    if scene.tiles is not None and rule.by_tiles:
        zone = scene.zone(*stack.names)
        if zone.tiles is not None and len(zone.tiles.positions) > 1:
            return TileUnits(zone), "tile"
    return patients(stack), "zone"


def _intervals(rule: Rule, units: Units, cells: Counts, confidence: Confidence) -> dict[str, Interval]:
    number = len(units.names)
    pieces = [
        rule.numbers(bootstrap_weights(units.names, range(a, b), confidence.seed), cells)
        for a, b in ranges(confidence.replicates, max(1, WEIGHTS // number))
    ]
    groups = min(number, GROUPS)
    without = np.ones((groups, number), np.int64)
    without[np.arange(number) * groups // number, np.arange(number)] = 0
    left_out, estimates = rule.numbers(without, cells), rule.numbers(np.ones((1, number), np.int64), cells)
    return {
        name: defined(
            confidence.interval(estimates[name][0], np.concatenate([p[name] for p in pieces]), left_out[name]), number
        )
        for name in estimates
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
