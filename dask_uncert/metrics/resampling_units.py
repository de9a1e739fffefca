"""Units that are resampled, and the marginals that belong to a resample.

Units are patients (all visits of one together), cases or tiles. Each reader below gives `scalars` its marginals with
a leading dimension: of units, of all units but one, of weighted sums of units, or of two models' units swapped.
Counts are dense for some units at a time only; sums are exact.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

import numpy as np
from scipy import sparse

from dask_uncert.formulas.resampling import weighted_sums
from dask_uncert.formulas.typing import Counts
from dask_uncert.metrics.scalars import Scalars, concatenated, scalars
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.marginals import MarginalReader, in_bins, marginal_reader, marginals, marginals_for
from dask_uncert.summaries.stack import Stack

DENSE_UNITS = 1000  # whose counts are dense at a time


class Units(Protocol):
    """Named units of one frame; `total` is their sum."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def total(self) -> Evaluation: ...
    def counts(self, marginal: str, start: int, stop: int) -> Counts | None:
        """Return a marginal of the units from `start` to `stop`, (units, *marginal); None where it was not kept."""
        ...


class StackUnits:
    """Cases of a Stack; those with the same label are one unit, their sum. Units are sorted by label.

    labels: of the cases, in the order of the Stack.
    """

    def __init__(self, stack: Stack, labels: Sequence[str]) -> None:
        self.stack, self.total = stack, stack.total()
        self.names = tuple(sorted(set(labels)))
        self._case_names = stack.names
        number = {name: i for i, name in enumerate(self.names)}
        self._unit_of_case = np.array([number[label] for label in labels], np.int64)
        self._marginals = marginals(self.total)
        self._cache: dict[tuple[str, int, int], sparse.csr_array] = {}  # of one path: classes share theirs

    def counts(self, marginal: str, start: int, stop: int) -> Counts:
        """See `Units`."""
        path, keep, entry, binned, tally = self._marginals[marginal]
        rows, (dims, shape) = self._rows(path, start, stop), self.stack.layout[path]
        if entry is not None:
            width = rows.shape[1] // shape[0]
            rows = sparse.csr_array(rows[:, entry * width : (entry + 1) * width])
            dims, shape = dims[1:], shape[1:]
        if tally is not None:
            rows = sparse.csr_array(rows[:, tally :: shape[-1]])
            dims, shape = dims[:-1], shape[:-1]
        kept = [n if d in keep else 1 for d, n in zip(dims, shape, strict=True)]
        # The cell of the marginal that each cell of the array is summed to.
        cell = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), shape).ravel()
        dense = np.zeros((stop - start, math.prod(kept)), np.int64)
        first = np.repeat(np.arange(stop - start) * dense.shape[1], np.diff(rows.indptr))
        np.add.at(dense.reshape(-1), first + cell[rows.indices], rows.data)
        counts = dense.reshape(stop - start, *(n for d, n in zip(dims, shape, strict=True) if d in keep))
        return in_bins(counts, self.total.stated) if binned else counts

    def _rows(self, path: str, start: int, stop: int) -> sparse.csr_array:
        """Return an array of the Evaluations of these units, (units, cells)."""
        if not any(known == path for known, _, _ in self._cache):
            self._cache.clear()
        if (path, start, stop) not in self._cache:
            chosen = np.flatnonzero((self._unit_of_case >= start) & (self._unit_of_case < stop))
            rows = self.stack.select([self._case_names[i] for i in chosen]).sparse(path)
            unit = self._unit_of_case[chosen] - start
            if not np.array_equal(unit, np.arange(stop - start)):
                ones = (np.ones(len(chosen), np.int64), (unit, np.arange(len(chosen))))
                rows = sparse.csr_array(sparse.csr_array(ones, (stop - start, len(chosen))) @ rows)
            self._cache[path, start, stop] = rows
        return self._cache[path, start, stop]


class RestrictedUnits:
    """Units of which only the marginals are kept that these scalars need: the others cost nothing."""

    def __init__(self, units: Units, scalars: Collection[str]) -> None:
        self.units, self.names, self.total = units, units.names, units.total
        self._kept = marginals_for(units.total, scalars)

    def counts(self, marginal: str, start: int, stop: int) -> Counts | None:
        """See `Units`."""
        return self.units.counts(marginal, start, stop) if marginal in self._kept else None


def patients(stack: Stack) -> StackUnits:
    """Return every patient, with all visits, as a unit."""
    return StackUnits(stack, stack.patients)


def cases(stack: Stack) -> StackUnits:
    """Return every case as a unit: a visit, where patients have several."""
    return StackUnits(stack, stack.names)


def ranges(number: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges that make up `number`, of at most `size` each."""
    for start in range(0, number, size):
        yield start, min(start + size, number)


def unit_scalars(units: Units) -> Scalars:
    """Return the scalars of every unit, (units,) each."""

    def read(a: int, b: int) -> MarginalReader:
        return lambda name: units.counts(name, a, b)

    return concatenated([scalars(units.total, read(a, b)) for a, b in ranges(len(units.names), DENSE_UNITS)])


def jackknife(units: Units, groups: int | None = None) -> Scalars:
    """Return the scalars of all units but one, for each unit, (units,).

    groups: where there are more units, leave out this number of groups of neighbours, of about equal size, instead.
    """
    total, number = marginal_reader(units.total), len(units.names)
    count = number if groups is None else min(number, groups)
    ends = np.arange(count + 1) * number // count

    def read(a: int, b: int) -> MarginalReader:
        def remaining(name: str) -> Counts | None:
            whole, counts = total(name), units.counts(name, int(ends[a]), int(ends[b]))
            if counts is None or whole is None:
                return None
            return whole - np.add.reduceat(counts, ends[a:b] - ends[a], axis=0)

        return remaining

    step = max(1, DENSE_UNITS * count // number)
    return concatenated([scalars(units.total, read(a, b)) for a, b in ranges(count, step)])


def weighted_totals(units: Units, weights: Counts) -> MarginalReader:
    """Return a reader of sums of units with integer weights (draws, units): a leading dimension of draws."""

    def read(name: str) -> Counts | None:
        total = None
        for a, b in ranges(len(units.names), DENSE_UNITS):
            counts = units.counts(name, a, b)
            if counts is None:
                return None
            part = weighted_sums(weights[:, a:b], counts)
            total = part if total is None else total + part
        return total

    return read


def swapped_totals(first: Units, second: Units, swaps: Counts) -> tuple[MarginalReader, MarginalReader]:
    """Return readers of both models' sums, with units exchanged where `swaps` (draws, units) is 1."""

    def add(own: Units, other: Units) -> MarginalReader:
        kept, taken = weighted_totals(own, 1 - swaps), weighted_totals(other, swaps)

        def read(name: str) -> Counts | None:
            a, b = kept(name), taken(name)
            return None if a is None or b is None else a + b

        return read

    return add(first, second), add(second, first)
