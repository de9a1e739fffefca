"""What is drawn when a cohort or a scene is resampled, and the counts that belong to a draw.

Units are patients (all visits of one together) or tiles. Each of the readers below gives `scalars` its counts with
a leading dimension: every unit, all units but one, weighted sums of units, or two models' units swapped. Counts
are dense for some units at a time only; sums are exact.
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

UNITS = 1000  # whose counts are dense at a time


class Units(Protocol):
    """Named units of one frame; `like` is their sum."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def like(self) -> Evaluation: ...
    def counts(self, item: str, start: int, stop: int) -> Counts | None:
        """One of `items` of the units from `start` to `stop`, (units, *item); None where it was not kept."""
        ...


class StackUnits:
    """The cases of a Stack, those of one label together as one unit; units are sorted by label.

    labels: of each case, in the order of the Stack. A unit's counts are the sum of its cases'.
    """

    def __init__(self, stack: Stack, labels: Sequence[str]) -> None:
        self.stack, self.like = stack, stack.total()
        self.names = tuple(sorted(set(labels)))
        self._cases = stack.names
        number = {name: i for i, name in enumerate(self.names)}
        self.of_case = np.array([number[label] for label in labels], np.int64)
        self._marginals = marginals(self.like)
        self._read: dict[tuple[str, int, int], sparse.csr_array] = {}  # of one path: classes share theirs

    def counts(self, item: str, start: int, stop: int) -> Counts:
        """See `Units`."""
        one = self._marginals[item]
        rows, (dims, shape) = self._rows(one.path, start, stop), self.stack.layout[one.path]
        if one.entry is not None:
            width = rows.shape[1] // shape[0]
            rows = sparse.csr_array(rows[:, one.entry * width : (one.entry + 1) * width])
            dims, shape = dims[1:], shape[1:]
        kept = [d in one.keep for d in dims]
        left = tuple(n for n, keep in zip(shape, kept, strict=True) if keep)
        # Which cell of the item each cell of the array goes to.
        sides = [n if keep else 1 for n, keep in zip(shape, kept, strict=True)]
        place = np.broadcast_to(np.arange(math.prod(left)).reshape(sides), shape).ravel()
        dense = np.zeros((stop - start, math.prod(left)), np.int64)
        of_row = np.repeat(np.arange(stop - start) * dense.shape[1], np.diff(rows.indptr))
        np.add.at(dense.reshape(-1), of_row + place[rows.indices], rows.data)
        found = dense.reshape(stop - start, *left)
        return in_bins(found, self.like.calibration) if one.binned else found

    def _rows(self, path: str, start: int, stop: int) -> sparse.csr_array:
        """An array of the Evaluations of these units, (units, cells)."""
        if not any(known == path for known, _, _ in self._read):
            self._read.clear()
        if (path, start, stop) not in self._read:
            chosen = np.flatnonzero((self.of_case >= start) & (self.of_case < stop))
            rows = self.stack.select([self._cases[i] for i in chosen]).sparse(path)
            of_case = self.of_case[chosen] - start
            if not np.array_equal(of_case, np.arange(stop - start)):
                ones = np.ones(len(chosen), np.int64)
                at = (of_case, np.arange(len(chosen)))
                rows = sparse.csr_array(sparse.csr_array((ones, at), (stop - start, len(chosen))) @ rows)
            self._read[path, start, stop] = rows
        return self._read[path, start, stop]


class RestrictedUnits:
    """Units of which only the items are kept that these scalars are read off: the rest costs nothing."""

    def __init__(self, units: Units, names: Collection[str]) -> None:
        self.units, self.names, self.like = units, units.names, units.like
        self._kept = marginals_for(units.like, names)

    def counts(self, item: str, start: int, stop: int) -> Counts | None:
        """See `Units`."""
        return self.units.counts(item, start, stop) if item in self._kept else None


def patients(stack: Stack) -> StackUnits:
    """Every patient a unit, with all visits."""
    return StackUnits(stack, stack.patients)


def cases(stack: Stack) -> StackUnits:
    """Every case a unit: a visit, where patients have several."""
    return StackUnits(stack, stack.names)


def parts(number: int, size: int | None = None) -> Iterator[tuple[int, int]]:
    """Ranges that make up `number`, of at most `size` each, by default UNITS."""
    step = UNITS if size is None else size
    for start in range(0, number, step):
        yield start, min(start + step, number)


def unit_scalars(units: Units) -> Scalars:
    """Every unit's scalars, (units,) each."""

    def read(a: int, b: int) -> MarginalReader:
        return lambda name: units.counts(name, a, b)

    return concatenated([scalars(units.like, read(a, b)) for a, b in parts(len(units.names))])


def jackknife(units: Units, groups: int | None = None) -> Scalars:
    """The scalars of all units but one, for each unit, (units,).

    groups: where there are more units, so many groups of neighbours, about equally many in each, for units.
    """
    total, number = marginal_reader(units.like), len(units.names)
    count = number if groups is None else min(number, groups)
    ends = np.arange(count + 1) * number // count

    def read(a: int, b: int) -> MarginalReader:
        def one(name: str) -> Counts | None:
            whole = total(name)
            apart = units.counts(name, int(ends[a]), int(ends[b]))
            if apart is None or whole is None:
                return None
            return whole - np.add.reduceat(apart, ends[a:b] - ends[a], axis=0)

        return one

    step = max(1, UNITS * count // number)
    return concatenated([scalars(units.like, read(a, b)) for a, b in parts(count, step)])


def weighted_totals(units: Units, weights: Counts) -> MarginalReader:
    """Sums of units with integer weights, (draws, units): a leading dimension of draws."""

    def read(name: str) -> Counts | None:
        total = None
        for a, b in parts(len(units.names)):
            counts = units.counts(name, a, b)
            if counts is None:
                return None
            found = weighted_sums(weights[:, a:b], counts)
            total = found if total is None else total + found
        return total

    return read


def swapped_totals(one: Units, other: Units, swaps: Counts) -> tuple[MarginalReader, MarginalReader]:
    """Both models' sums with the units' counts changed over where `swaps` (draws, units) says 1."""

    def add(first: Units, second: Units) -> MarginalReader:
        kept, taken = weighted_totals(first, 1 - swaps), weighted_totals(second, swaps)

        def read(name: str) -> Counts | None:
            a, b = kept(name), taken(name)
            return None if a is None or b is None else a + b

        return read

    return add(one, other), add(other, one)
