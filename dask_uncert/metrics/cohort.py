"""Statistics of a cohort or of groups of it: pooled, and over patients.

Pooled numbers are those of all pixels together; means and quantiles are over patients. They differ, so both are given
and named. A patient with several visits has the mean of the visits' defined values, so that each patient weighs once.
Undefined values take no part and are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError, suggestion
from dask_uncert.formulas.bootstrap_intervals import Confidence, Interval, quantiles_of
from dask_uncert.formulas.confusion import ratio
from dask_uncert.formulas.distributions import rank_of_share
from dask_uncert.formulas.resampling import weighted_means
from dask_uncert.formulas.typing import Floats
from dask_uncert.metrics.bootstrap import mean_interval, pooled_intervals
from dask_uncert.metrics.resampling_units import (
    RestrictedUnits,
    StackUnits,
    cases,
    patients,
    ranges,
    unit_scalars,
)
from dask_uncert.metrics.scalars import QUANTILES, Scalars, scalars
from dask_uncert.summaries.ledger import CHOSEN, REASONS, REPAIRS
from dask_uncert.summaries.stack import Stack

AVERAGED = 256  # patients whose visits are averaged at a time


@dataclass(frozen=True)
class GroupStatistics:
    """Statistics of a cohort or of one group of it; a metric a column, in the order of `metrics`.

    values: (patients, metrics). pooled, mean, std (of a sample, n - 1): (metrics,), with intervals where they
    were asked for. n, undefined: patients with and without a value. quantiles: (5, metrics), linear between
    patients, at the shares QUANTILES; at: the patient at each, the first by value whose rank reaches the share,
    "" where there is none.
    """

    metrics: tuple[str, ...]
    patients: tuple[str, ...]
    values: Floats
    pooled: Floats
    mean: Floats
    std: Floats
    n: NDArray[np.int64]
    undefined: NDArray[np.int64]
    quantiles: Floats
    at: tuple[tuple[str, ...], ...]
    pooled_interval: Interval | None = None
    mean_interval: Interval | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a metric, for a table: every number by its name."""
        rows = []
        for i, metric in enumerate(self.metrics):
            row: dict[str, Any] = {"metric": metric}
            numbers = {"pooled": (self.pooled, self.pooled_interval), "mean": (self.mean, self.mean_interval)}
            for name, (values, interval) in numbers.items():
                row[name] = values[i]
                if interval is not None:
                    keys = (f"{name}_low", f"{name}_high", f"{name}_undefined_replicates")
                    row |= {key: ends[i] for key, ends in zip(keys, interval, strict=True)}
            row["std"] = self.std[i]
            for k, share in enumerate(QUANTILES):
                row |= {f"quantile {share:g}": self.quantiles[k, i], f"at {share:g}": self.at[k][i]}
            rows.append({**row, "n": self.n[i], "undefined": self.undefined[i]})
        return rows


def case_table(stack: Stack, by_case: Scalars | None = None) -> dict[str, Sequence[Any]]:
    """Return a table with a row a case, columns by name: who it is, groups, counts and every scalar.

    by_case: `case_scalars(stack)`, if the caller has them.
    """
    table: dict[str, Sequence[Any]] = {"case": stack.names, "patient": stack.patients}
    if any(case.visit for case in stack.cases):
        table["visit"] = tuple(case.visit for case in stack.cases)
    table |= stack.groups
    table["counted"] = stack.array("ledger/counted").tolist()
    excluded = stack.array("ledger/excluded").sum(axis=2)
    for i, reason in enumerate(REASONS):
        if reason in CHOSEN or excluded[:, i].any():
            table[f"excluded/{reason}"] = excluded[:, i].tolist()
    repaired = stack.array("ledger/repaired")
    table |= {f"repaired/{kind}": repaired[:, i].tolist() for i, kind in enumerate(REPAIRS)}
    by_case = case_scalars(stack) if by_case is None else by_case
    return table | {name: values.tolist() for name, values in by_case.items()}


def cohort(
    stack: Stack,
    confidence: Confidence | None = None,
    metrics: Sequence[str] | None = None,
    by_case: Scalars | None = None,
) -> GroupStatistics:
    """Return the statistics of all cases of a Stack; intervals where `confidence` says how.

    metrics: names or patterns (``classes/*/f1``), by default every scalar. by_case: `case_scalars(stack)`, if the
    caller has them. Raises InputError where no metric fits.
    """
    units = patients(stack)
    pooled = scalars(units.total)
    chosen = matching_metrics(tuple(pooled), metrics)
    names, values = patient_values(stack, chosen, by_case)
    whole = np.array([float(pooled[name]) for name in chosen])
    if confidence is None:
        return _statistics(chosen, names, values, whole)
    intervals = pooled_intervals(RestrictedUnits(units, chosen), confidence)
    interval = Interval(*(np.array(ends) for ends in zip(*(intervals[name] for name in chosen), strict=True)))
    return _statistics(chosen, names, values, whole, interval, mean_interval(values, names, confidence))


def cohort_by(
    stack: Stack,
    column: str,
    confidence: Confidence | None = None,
    metrics: Sequence[str] | None = None,
    by_case: Scalars | None = None,
) -> dict[str, GroupStatistics]:
    """Return the statistics of each group of a grouping column, by its value; arguments as for `cohort`."""
    groups = stack.by(column)
    labels = np.asarray(stack.patients if column == "patient" else stack.groups[column], object)
    by_case = case_scalars(stack) if by_case is None else by_case
    rows = {value: np.flatnonzero(labels == value) for value in groups}
    if confidence is not None:
        return {
            value: cohort(part, confidence, metrics, {name: v[rows[value]] for name, v in by_case.items()})
            for value, part in groups.items()
        }
    # Without intervals, all groups are read at once: there may be many.
    units = StackUnits(stack, labels.tolist())
    pooled = unit_scalars(units)
    chosen = matching_metrics(tuple(pooled), metrics)
    values, statistics = case_values(stack, chosen, by_case), {}
    for i, value in enumerate(units.names):
        names, means = patient_means([stack.patients[row] for row in rows[value]], values[rows[value]])
        statistics[value] = _statistics(chosen, names, means, np.array([pooled[name][i] for name in chosen]))
    return statistics


def case_scalars(stack: Stack) -> Scalars:
    """Return every scalar of every case, (cases,) each."""
    return unit_scalars(cases(stack))


def patient_values(
    stack: Stack, metrics: Sequence[str], by_case: Scalars | None = None
) -> tuple[tuple[str, ...], Floats]:
    """Return patients' names, sorted, and their values, (patients, metrics): means over the visits that define them."""
    return patient_means(stack.patients, case_values(stack, metrics, by_case))


def case_values(stack: Stack, metrics: Sequence[str], by_case: Scalars | None = None) -> Floats:
    """Return every case's values, (cases, metrics)."""
    if by_case is None:
        by_case = unit_scalars(RestrictedUnits(cases(stack), metrics))
    return np.stack([by_case[metric] for metric in metrics], axis=1)


def patient_means(patients: Sequence[str], values: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return patients' names, sorted, and the means of their cases' defined values.

    patients: the patient of each case, by name.
    """
    names, number = np.unique(np.asarray(patients, object), return_inverse=True)
    order = np.argsort(number, kind="stable")
    pieces = []
    for a, b in ranges(len(names), AVERAGED):
        rows = order[slice(*np.searchsorted(number[order], (a, b)))]
        visits = np.zeros((b - a, len(rows)))
        visits[number[rows] - a, np.arange(len(rows))] = 1.0
        pieces.append(weighted_means(visits, values[rows]))
    return tuple(names.tolist()), np.concatenate(pieces)


def matching_metrics(names: Sequence[str], patterns: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names that fit one of the patterns, in their order; all without patterns."""
    if patterns is None:
        return tuple(names)
    fitting = {pattern: {n for n in names if n == pattern or fnmatchcase(n, pattern)} for pattern in patterns}
    for pattern, matches in fitting.items():
        if not matches:
            raise InputError(f"metrics: nothing is called {pattern!r}. {suggestion(pattern, names)}")
    return tuple(name for name in names if name in set().union(*fitting.values()))


def mean_of_defined(values: Floats) -> Floats:
    """Return the mean of the defined values, (n, metrics) to (metrics,); NaN where there is none."""
    return np.asarray(weighted_means(np.ones((1, len(values))), values)[0])


def _statistics(
    metrics: tuple[str, ...],
    patients: tuple[str, ...],
    values: Floats,
    pooled: Floats,
    pooled_interval: Interval | None = None,
    mean_interval: Interval | None = None,
) -> GroupStatistics:
    defined = ~np.isnan(values)
    n = defined.sum(axis=0)
    mean = mean_of_defined(values)
    with np.errstate(invalid="ignore"):  # of infinite values: undefined
        squares = np.where(defined, (values - mean) ** 2, 0.0).sum(axis=0)
    at = []
    order = np.argsort(values, axis=0, kind="stable")  # undefined last
    for share in QUANTILES:
        rank = np.maximum(np.ceil(rank_of_share(share, n)).astype(np.int64) - 1, 0)
        number = np.take_along_axis(order, rank[None], axis=0)[0]
        at.append(tuple(patients[i] if k else "" for i, k in zip(number.tolist(), n.tolist(), strict=True)))
    return GroupStatistics(
        metrics,
        patients,
        values,
        pooled,
        mean,
        std=np.where(n > 1, np.sqrt(ratio(squares, n - 1)), np.nan),
        n=n,
        undefined=len(values) - n,
        quantiles=quantiles_of(values, QUANTILES),
        at=tuple(at),
        pooled_interval=pooled_interval,
        mean_interval=mean_interval,
    )
