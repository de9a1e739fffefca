"""Two models on the same patients, or on the same scene: differences, their intervals, and whether they are chance.

Differences are the first model minus the second. Units are patients, or the tiles of a scene. Pooled differences are
resampled with the same units drawn for both models, and tested by swapping the two models' Summaries unit by unit.
Differences per unit are tested by Student's paired t-test ([A22]) and by Wilcoxon's signed ranks. Each test's p-values
are also given Holm-adjusted over the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dask_uncert.errors import InputError, plural
from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval
from dask_uncert.formulas.paired_tests import (
    Significance,
    holm,
    paired_t_test,
    permutation_test,
    signed_rank_test,
)
from dask_uncert.formulas.resampling import all_swaps, swaps
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics import bootstrap
from dask_uncert.metrics.cohort import matching_metrics, mean_of_defined, patient_values
from dask_uncert.metrics.resampling_units import (
    RestrictedUnits,
    Units,
    jackknife,
    patients,
    ranges,
    swapped_totals,
    unit_scalars,
)
from dask_uncert.metrics.scalars import Scalars, scalars
from dask_uncert.metrics.tile_bootstrap import GROUPS, TileUnits
from dask_uncert.summaries import display
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.layout import check_equal
from dask_uncert.summaries.stack import Stack

ROWS = 1000  # permutations worked out at a time
TESTS = ("permutation", "t_test", "signed_rank")


@dataclass(frozen=True)
class Comparison:
    """Differences of two models, the first minus the second; a metric a column, in the order of `metrics`.

    only: cases that one of the models lacks, which took no part, by model. pooled, mean: (2, metrics). Fields of
    tests are of (metrics,); `exact`: all swaps were listed, not drawn. holm: adjusted p-values by test. unit: what is
    paired, "patient" or "tile"; `patients` holds the names of these.
    """

    metrics: tuple[str, ...]
    patients: tuple[str, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    pooled: Floats
    mean: Floats
    pooled_difference: Floats
    pooled_interval: Interval
    mean_difference: Floats
    mean_interval: Interval
    permutation: Significance
    t_test: Significance
    signed_rank: Significance
    exact: bool
    holm: dict[str, Floats]
    unit: str = "patient"

    def _title(self) -> str:
        units = plural(len(self.patients), self.unit)
        return f"Comparison of two models over {units}, A minus B; pooled; p of the permutation test"

    def _table(self) -> list[list[Any]]:
        interval = self.pooled_interval
        columns = (*self.pooled, self.pooled_difference, interval.low, interval.high, self.permutation.p_value)
        rows = zip(self.metrics, *columns, strict=True)
        return [["metric", "A", "B", "difference", "low", "high", "p"], *map(list, rows)]

    def __repr__(self) -> str:
        return "\n".join(
            [self._title(), *display.text_table(self._table(), display.LINES - 1, "all are in to_dataframe()")]
        )

    def _repr_html_(self) -> str:
        """Return what a notebook shows: both models, the difference and its interval for every metric."""
        return display.html(self._title(), display.html_table(self._table(), "Pooled numbers"))

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame with a row per metric: both models, differences, intervals and tests."""
        rows = self.rows()
        keys = [key for key in rows[0] if key != "metric"]
        return display.dataframe("metric", self.metrics, {key: [row[key] for row in rows] for key in keys})

    def differences(self) -> dict[str, tuple[Floats, Floats, Interval]]:
        """Return both models' numbers, their difference and its interval: pooled, and means over patients."""
        return {
            "pooled": (self.pooled, self.pooled_difference, self.pooled_interval),
            "mean": (self.mean, self.mean_difference, self.mean_interval),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a metric, for a table: every number by its name."""
        rows = []
        for i, metric in enumerate(self.metrics):
            row: dict[str, Any] = {"metric": metric}
            for name, (both, difference, interval) in self.differences().items():
                row |= {f"{name} 1": both[0, i], f"{name} 2": both[1, i], f"{name} difference": difference[i]}
                row |= {f"{name} low": interval.low[i], f"{name} high": interval.high[i]}
                row[f"{name} undefined replicates"] = interval.undefined[i]
            for test in TESTS:
                row |= {f"{test} p": getattr(self, test).p_value[i], f"{test} p holm": self.holm[test][i]}
            row |= {"t": self.t_test.statistic[i], "w": self.signed_rank.statistic[i]}
            rows.append({**row, "n": self.t_test.n[i], "undefined": self.t_test.undefined[i]})
        return rows


class PairedUnits(NamedTuple):
    """The units of two models in pairs, their Stacks of cases if any, and what one model alone has.

    unit: what a unit is. groups: of the jackknife.
    """

    units: tuple[Units, Units]
    stacks: Sequence[Stack]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    unit: str
    groups: int | None


def compare(
    first: Stack | Evaluation,
    second: Stack | Evaluation,
    confidence: Confidence | None = None,
    metrics: Sequence[str] | None = None,
    permutations: int = 2000,
) -> Comparison:
    """Compare two models' Stacks over the cases that both have, or their Evaluations of one scene tile by tile.

    Cases that one lacks are named in `only`. metrics: names or patterns, by default every scalar; the Holm adjustment
    is over these. All swaps are listed where there are at most `permutations` of them, else `permutations` are drawn.

    Raises InputError where no case is in both, or where the two were not evaluated alike.
    """
    confidence = confidence or Confidence()
    whole, stacks, only, unit, groups = _paired(first, second)
    totals = [scalars(model.total) for model in whole]
    kept = scalars(whole[0].total, lambda name: whole[0].counts(name, 0, 1))  # tiles do not keep every marginal
    chosen = matching_metrics(tuple(name for name in totals[0] if name in kept), metrics)
    units, names = [RestrictedUnits(model, chosen) for model in whole], whole[0].names
    if stacks:  # a patient's value is the mean over the visits
        values = [patient_values(stack, chosen)[1] for stack in stacks]
    else:
        values = [_columns(unit_scalars(model), chosen) for model in units]
    pooled = np.stack([_columns(total, chosen) for total in totals])
    with np.errstate(invalid="ignore"):  # inf - inf: undefined
        differences = values[0] - values[1]
        pooled_difference = pooled[0] - pooled[1]
        replicates = _difference([bootstrap.bootstrap_replicates(model, confidence) for model in units], chosen)
        left_out = _difference([jackknife(model, groups) for model in units], chosen)
    permuted, exact = _permuted(units[0], units[1], chosen, permutations, confidence.seed)
    tests = {
        "permutation": permutation_test(pooled_difference, permuted, exact),
        "t_test": paired_t_test(differences),
        "signed_rank": signed_rank_test(differences),
    }
    defined = ~np.isnan(differences)
    interval = confidence.interval(pooled_difference, replicates, left_out)
    return Comparison(
        metrics=chosen,
        patients=names,
        only=only,
        pooled=pooled,
        mean=np.stack([mean_of_defined(np.where(defined, v, np.nan)) for v in values]),
        pooled_difference=pooled_difference,
        pooled_interval=bootstrap.defined(interval, len(names)),
        mean_difference=mean_of_defined(differences),
        mean_interval=bootstrap.mean_interval(differences, names, confidence),
        exact=exact,
        holm={name: holm(test.p_value) for name, test in tests.items()},
        unit=unit,
        **tests,
    )


def _paired(first: Stack | Evaluation, second: Stack | Evaluation) -> PairedUnits:
    """Return the units of two models in pairs; InputError where the two were not evaluated alike."""
    if isinstance(first, Stack) and isinstance(second, Stack):
        common, only = _common_cases(first, second)
        stacks = first.select(common), second.select(common)
        if stacks[0].patients != stacks[1].patients:
            raise InputError("the two evaluations name other patients for the same cases; use one manifest for both.")
        _check_frames(stacks[0].frame, stacks[1].frame, common[0])
        return PairedUnits((patients(stacks[0]), patients(stacks[1])), stacks, only, "patient", None)
    if not (isinstance(first, Evaluation) and isinstance(second, Evaluation)):
        raise InputError("one is a scene and the other has cases; compare two models on the same scene or cases.")
    tiles = [evaluation.tiles for evaluation in (first, second)]
    if tiles[0] is None or tiles[1] is None:
        raise InputError(
            "a scene without tiles cannot be compared: nothing says by how much chance moves its numbers. Evaluate both "
            "models with `confidence: {unit: tile}`."
        )
    if tiles[0].size != tiles[1].size:
        raise InputError(f"tiles of {tiles[0].size} and of {tiles[1].size} pixels a side do not pair; use one size.")
    if len(tiles[0].scenes) > 1 or len(tiles[1].scenes) > 1:
        raise InputError(
            "sums of several scenes do not pair; evaluate each without `confidence`, and make a Stack of them."
        )
    _check_frames(replace(first, tiles=None).frame(), replace(second, tiles=None).frame(), "of the scene")
    units = TileUnits(first), TileUnits(second)
    alone = [len({*a.names} - {*b.names}) for a, b in (units, units[::-1])]
    if any(alone) or not units[0].names:
        raise InputError(
            f"the two models were not evaluated on the same pixels: {plural(alone[0], 'tile')} only in the first, "
            f"{plural(alone[1], 'tile')} only in the second, of {len(units[0].names)} and {len(units[1].names)}. Give "
            f"both one mask of the pixels to count."
        )
    return PairedUnits(units, (), ((), ()), "tile", GROUPS)


def _check_frames(first: dict[str, Any], second: dict[str, Any], name: str) -> None:
    try:
        check_equal(first, second, name)
    except ValueError as error:
        raise InputError(f"the second evaluation does not compare with the first: {error}.") from None


def _common_cases(first: Stack, second: Stack) -> tuple[list[str], tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the cases that both have, and those that only one has."""
    names, others = set(first.names), set(second.names)
    if not names & others:
        raise InputError(
            f"the two evaluations have no case in common: the first has {first.names[0]}, ..., the second "
            f"{second.names[0]}, ...; `compare` needs two models on the same cases."
        )
    return sorted(names & others), (tuple(sorted(names - others)), tuple(sorted(others - names)))


def _permuted(first: Units, second: Units, metrics: Sequence[str], number: int, seed: int) -> tuple[Floats, bool]:
    """Return pooled differences with patients swapped, (permutations, metrics), and whether these are all."""
    n = len(first.names)
    exact = n <= 20 and 2 ** (n - 1) <= number
    pieces = []
    for a, b in ranges(2 ** (n - 1) if exact else number, ROWS):
        drawn = all_swaps(first.names)[a:b] if exact else swaps(first.names, range(a, b), seed)
        readers = swapped_totals(first, second, drawn.astype(np.int64))
        with np.errstate(invalid="ignore"):
            pieces.append(_difference([scalars(first.total, read) for read in readers], metrics))
    return np.concatenate(pieces), exact


def _columns(values: Scalars, metrics: Sequence[str]) -> Floats:
    return np.stack([values[name] for name in metrics], axis=-1)


def _difference(both: Sequence[Scalars], metrics: Sequence[str]) -> Floats:
    return np.asarray(_columns(both[0], metrics) - _columns(both[1], metrics))
