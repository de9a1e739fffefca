"""Numbers of a cohort: pooled, per patient, by group; with intervals, and with the patients that stand for them.

Pooled numbers are those of all pixels together, means and quantiles are over patients; both are given and named,
for they differ. Where a patient has several visits, a patient's value is the mean of the visits' defined ones, so
that each patient weighs once. Undefined values take no part and are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dask_uncert.errors import InputError
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
    parts,
    patients,
    unit_scalars,
)
from dask_uncert.metrics.scalars import QUANTILES, Scalars, scalars
from dask_uncert.summaries.ledger import CHOSEN, REASONS, REPAIRS
from dask_uncert.summaries.stack import Stack

AVERAGED = 256  # patients whose visits are averaged at a time


@dataclass(frozen=True)
class GroupStatistics:
    """Numbers of a cohort or of one group of it; a metric a column, in the order of `metrics`.

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
        """One row a metric: every number beside its name, for a table."""
        found = []
        for i, metric in enumerate(self.metrics):
            row: dict[str, Any] = {"metric": metric, "pooled": self.pooled[i], "mean": self.mean[i]}
            for name, one in (("pooled", self.pooled_interval), ("mean", self.mean_interval)):
                if one is not None:
                    row |= {f"{name}_low": one.low[i], f"{name}_high": one.high[i]}
                    row[f"{name}_undefined_replicates"] = one.undefined[i]
            row["std"] = self.std[i]
            for k, share in enumerate(QUANTILES):
                row |= {f"quantile {share:g}": self.quantiles[k, i], f"at {share:g}": self.at[k][i]}
            found.append({**row, "n": self.n[i], "undefined": self.undefined[i]})
        return found


def case_table(stack: Stack, each: Scalars | None = None) -> dict[str, Sequence[Any]]:
    """A row a case: its name, groups, counts, what was left out and repaired, and every scalar; columns by name.

    each: `case_scalars(stack)`, if the caller has them.
    """
    found: dict[str, Sequence[Any]] = {"case": stack.names, "patient": stack.patients}
    if any(case.visit for case in stack.cases):
        found["visit"] = tuple(case.visit for case in stack.cases)
    found |= stack.groups
    found["counted"] = stack.array("ledger/counted").tolist()
    excluded = stack.array("ledger/excluded").sum(axis=2)
    found |= {
        f"excluded/{reason}": excluded[:, i].tolist()
        for i, reason in enumerate(REASONS)
        if reason in CHOSEN or excluded[:, i].any()
    }
    repaired = stack.array("ledger/repaired")
    found |= {f"repaired/{kind}": repaired[:, i].tolist() for i, kind in enumerate(REPAIRS)}
    known = case_scalars(stack) if each is None else each
    return found | {name: values.tolist() for name, values in known.items()}


def cohort(
    stack: Stack,
    confidence: Confidence | None = None,
    metrics: Sequence[str] | None = None,
    each: Scalars | None = None,
) -> GroupStatistics:
    """The numbers of all cases of a Stack; intervals where `confidence` says how.

    metrics: names or patterns (``classes/*/f1``), by default every scalar. each: `case_scalars(stack)`, if the
    caller has them. InputError where no metric fits.
    """
    units = patients(stack)
    pooled = scalars(units.like)
    chosen = matching_metrics(tuple(pooled), metrics)
    names, table = patient_values(stack, chosen, each)
    numbers = statistics(chosen, names, table, np.array([float(pooled[name]) for name in chosen]))
    if confidence is None:
        return GroupStatistics(**numbers)
    intervals = pooled_intervals(RestrictedUnits(units, chosen), confidence)
    picked = [intervals[name] for name in chosen]
    together = Interval(*(np.array([one[k] for one in picked]) for k in range(3)))
    return GroupStatistics(
        **numbers, pooled_interval=together, mean_interval=mean_interval(table, names, confidence)
    )


def cohort_by(
    stack: Stack,
    column: str,
    confidence: Confidence | None = None,
    metrics: Sequence[str] | None = None,
    each: Scalars | None = None,
) -> dict[str, GroupStatistics]:
    """The numbers of each group of a grouping column, by its value; arguments as for `cohort`."""
    groups = stack.by(column)
    labels = np.asarray(stack.patients if column == "patient" else stack.groups[column], object)
    known = case_scalars(stack) if each is None else each
    if confidence is not None:
        rows = {value: np.flatnonzero(labels == value) for value in groups}
        return {
            value: cohort(part, confidence, metrics, {name: v[rows[value]] for name, v in known.items()})
            for value, part in groups.items()
        }
    # Without intervals, all groups are read at once: there may be many.
    units = StackUnits(stack, labels.tolist())
    pooled = unit_scalars(units)
    chosen = matching_metrics(tuple(pooled), metrics)
    values, patient = case_values(stack, chosen, known), np.asarray(stack.patients, object)
    found = {}
    for i, value in enumerate(units.names):
        names, table = by_patient(patient[labels == value].tolist(), values[labels == value])
        whole = np.array([pooled[name][i] for name in chosen])
        found[value] = GroupStatistics(**statistics(chosen, names, table, whole))
    return found


def case_scalars(stack: Stack) -> Scalars:
    """Every scalar of every case, (cases,) each."""
    return unit_scalars(cases(stack))


def patient_values(
    stack: Stack, metrics: Sequence[str], each: Scalars | None = None
) -> tuple[tuple[str, ...], Floats]:
    """Patients' names, sorted, and their values, (patients, metrics): means over the visits that define them."""
    return by_patient(stack.patients, case_values(stack, metrics, each))


def case_values(stack: Stack, metrics: Sequence[str], each: Scalars | None = None) -> Floats:
    """Every case's values, (cases, metrics)."""
    found = unit_scalars(RestrictedUnits(cases(stack), metrics)) if each is None else each
    return np.stack([found[metric] for metric in metrics], axis=1)


def by_patient(of: Sequence[str], values: Floats) -> tuple[tuple[str, ...], Floats]:
    """Patients' names, sorted, and the means of their cases' defined values; of: the patient of each case."""
    names = tuple(sorted(set(of)))
    number = {name: i for i, name in enumerate(names)}
    patient = np.array([number[name] for name in of], np.int64)
    order = np.argsort(patient, kind="stable")
    pieces = []
    for a, b in parts(len(names), AVERAGED):
        rows = order[slice(*np.searchsorted(patient[order], (a, b)))]
        visits = np.zeros((b - a, len(rows)))
        visits[patient[rows] - a, np.arange(len(rows))] = 1.0
        pieces.append(weighted_means(visits, values[rows]))
    return names, np.concatenate(pieces)


def matching_metrics(names: Sequence[str], patterns: Sequence[str] | None) -> tuple[str, ...]:
    """Those of the names that fit one of the patterns, in their order; all without patterns."""
    if patterns is None:
        return tuple(names)
    for pattern in patterns:
        if not any(name == pattern or fnmatchcase(name, pattern) for name in names):
            raise InputError(f"metrics: nothing is called {pattern!r}; there are {', '.join(names[:8])}, ...")
    return tuple(name for name in names if any(name == p or fnmatchcase(name, p) for p in patterns))


def mean_of_defined(values: Floats) -> Floats:
    """The mean of the defined values, (n, metrics) to (metrics,); NaN where there is none."""
    return np.asarray(weighted_means(np.ones((1, len(values))), values)[0])


def statistics(
    metrics: tuple[str, ...], names: tuple[str, ...], values: Floats, pooled: Floats
) -> dict[str, Any]:
    """The fields of a GroupStatistics but for its intervals."""
    defined = ~np.isnan(values)
    n = defined.sum(axis=0)
    mean = mean_of_defined(values)
    with np.errstate(invalid="ignore"):  # of infinite values: undefined
        squares = np.where(defined, (values - mean) ** 2, 0.0).sum(axis=0)
    std = np.sqrt(ratio(squares, n - 1))
    at = []
    order = np.argsort(values, axis=0, kind="stable")  # undefined last
    for share in QUANTILES:
        place = np.maximum(np.ceil(rank_of_share(share, n)).astype(np.int64) - 1, 0)
        who = np.take_along_axis(order, place[None], axis=0)[0]
        at.append(tuple(names[i] if k else "" for i, k in zip(who.tolist(), n.tolist(), strict=True)))
    return {
        "metrics": metrics,
        "patients": names,
        "values": values,
        "pooled": pooled,
        "mean": mean,
        "std": np.where(n > 1, std, np.nan),
        "n": n,
        "undefined": len(values) - n,
        "quantiles": quantiles_of(values, QUANTILES),
        "at": tuple(at),
    }
