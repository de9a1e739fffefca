"""Many cases, each with its own Evaluation, one frame: what pooling, leaving out and resampling work on.

A Stack is to a cohort what an Evaluation is to a scene. It keeps every case's integer counts apart, so that the
pooled Evaluation, one without some patients, one a group, or numbers of each case are sums of rows, and no voxel
is read again. Cases are sorted by name: a Stack is the same for every order in which they came. Counts are
sparse (most bins of a case are empty) and may stay in a store until they are asked for.

- `stack.array(path)`: (cases, *shape) int64, dense, of one array of the Evaluations (`stack.layout` lists them);
  ``dims=("right", "bin")`` keeps only those of its dimensions and sums the others, before anything is dense.
- `stack.sparse(path)`: the same as a scipy CSR array (cases, cells), for products with weights of cases.
- `stack.total()`: the pooled Evaluation, exact. `stack.evaluation(name)`: that of one case.
- `stack.select(names)`, `stack.without(names)`, `stack.by("site")`, `one + other`: other Stacks.
- `stack.names`, `stack.patients`, `stack.groups[column]`: of each case, in the order of the rows. With several
  visits a patient, a case is a visit; what is said of patients weighs each patient once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from dask_uncert.errors import InputError
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries.evaluation import Evaluation, from_plain
from dask_uncert.summaries.sparse_rows import Row, Rows, add_rows, fold, row_of
from dask_uncert.summaries.summary import Summary, UnequalFramesError

BATCH = 256  # cases whose rows are in memory at once where all are gone through
Layout = Mapping[str, tuple[tuple[str, ...], tuple[int, ...]]]


@dataclass(frozen=True)
class Case:
    """Who a row is about. `groups`: the value in each grouping column; `mark`: of its inputs, job and version.

    >>> Case("P1", "2024-05").name
    'P1/2024-05'
    """

    patient: str
    visit: str = ""
    groups: tuple[tuple[str, str], ...] = ()
    mark: str = ""

    @property
    def name(self) -> str:
        """The patient, and the visit where there are several."""
        return f"{self.patient}/{self.visit}" if self.visit else self.patient


@dataclass(frozen=True, eq=False)
class Stack:
    """The Evaluations of many cases, of equal frames, sorted by the cases' names; see the module's first lines.

    frame: the Evaluations'. layout: of each of their arrays, by path, its dimensions and shape, in their order.
    rows: by path, the counts; `order` says which row is whose. Equal Stacks have equal cases, frames and counts.

    >>> import dask_uncert as du
    >>> one = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> stack = du.Stack.of({"P2": one, "P1": one + one}, groups={"site": {"P1": "Oslo", "P2": "Bern"}})
    >>> stack.names, stack.groups["site"], stack.array("ledger/counted").tolist()
    (('P1', 'P2'), ('Oslo', 'Bern'), [4, 2])
    >>> stack.total() == one + one + one, stack.without(["P1"]).total() == one
    (True, True)
    """

    cases: tuple[Case, ...]
    frame: dict[str, Any]
    layout: Layout
    rows: Mapping[str, Rows]
    order: Counts

    @classmethod
    def of(
        cls,
        evaluations: Mapping[str, Evaluation] | Mapping[Case, Evaluation],
        groups: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Stack:
        """From Evaluations by case, or by patient's name with the groups' values by column and name."""
        listed = []
        for key, evaluation in evaluations.items():
            case = key if isinstance(key, Case) else Case(key)
            if groups:
                case = replace(case, groups=tuple((c, values[case.name]) for c, values in groups.items()))
            listed.append((case, evaluation))
        if not listed:
            raise InputError("a Stack needs at least one case.")
        first = listed[0][1]
        frame, layout = first.frame(), layout_of(first)
        for case, evaluation in listed[1:]:
            check_equal(frame, evaluation.frame(), case.name)
        listed.sort(key=lambda one: one[0].name)
        rows: dict[str, list[Row]] = {path: [] for path in layout}
        for _, evaluation in listed:
            for path, _, array in evaluation.arrays():
                rows[path].append(Row.of(array))
        return cls(
            sorted_cases(case for case, _ in listed),
            frame,
            layout,
            {path: Rows.of(width_of(layout, path), found) for path, found in rows.items()},
            np.arange(len(listed)),
        )

    def __len__(self) -> int:
        return len(self.cases)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stack):
            return NotImplemented
        return (
            self.cases == other.cases
            and self.frame == other.frame
            and all((self.sparse(path) - other.sparse(path)).count_nonzero() == 0 for path in self.layout)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the cases, sorted."""
        return tuple(case.name for case in self.cases)

    @property
    def patients(self) -> tuple[str, ...]:
        """Each case's patient: the names themselves where nobody has several visits."""
        return tuple(case.patient for case in self.cases)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """By column, each case's value; "" where a case has no such column."""
        columns = dict.fromkeys(column for case in self.cases for column, _ in case.groups)
        return {c: tuple(dict(case.groups).get(c, "") for case in self.cases) for c in columns}

    def sparse(self, path: str) -> sparse.csr_array:
        """The counts of one array, (cases, cells), the array's cells in C order."""
        self._check_path(path)
        return self.rows[path].read(self.order)

    def array(self, path: str, dims: Iterable[str] | None = None) -> Counts:
        """The counts of one array, (cases, *shape); `dims`: those of its dimensions to keep, in its order."""
        counts = self.sparse(path)
        names, shape = self.layout[path]
        kept = names if dims is None else tuple(dims)
        if not set(kept) <= set(names):
            raise KeyError(f"{path} has the dimensions {', '.join(names)}, asked for {', '.join(kept)}")
        if set(kept) != set(names):
            counts, shape = fold(counts, shape, [i for i, name in enumerate(names) if name in kept])
        return np.asarray(counts.toarray()).reshape(len(self), *shape)

    def evaluation(self, name: str) -> Evaluation:
        """One case's Evaluation."""
        (number,) = self._numbers([name])
        return self._evaluation_at(int(self.order[number]))

    def evaluations(self) -> Iterator[tuple[Case, Evaluation]]:
        """Every case and its Evaluation, in order; a batch of cases is in memory at a time."""
        for case, rows in self.each():
            yield case, from_plain(self.frame, {p: row.dense(self.layout[p][1]) for p, row in rows.items()})

    def each(self) -> Iterator[tuple[Case, dict[str, Row]]]:
        """Every case and its sparse rows by path, in order; a batch of cases is in memory at a time."""
        for start in range(0, len(self), BATCH):
            order = self.order[start : start + BATCH]
            read = {path: rows.read(order) for path, rows in self.rows.items()}
            for i, case in enumerate(self.cases[start : start + BATCH]):
                yield case, {path: row_of(counts, i) for path, counts in read.items()}

    def total(self) -> Evaluation:
        """The sum of all cases: the pooled Evaluation."""
        arrays = {}
        for path, (_, shape) in self.layout.items():
            found = np.zeros(width_of(self.layout, path), np.int64)
            for start in range(0, len(self), BATCH):
                found = add_rows(found, self.rows[path].read(self.order[start : start + BATCH]), path)
            arrays[path] = found.reshape(shape)
        return from_plain(self.frame, arrays)

    def select(self, names: Iterable[str]) -> Stack:
        """These cases alone; InputError for a name that is not there."""
        return self._at(np.sort(np.unique(self._numbers(names))))

    def without(self, names: Iterable[str]) -> Stack:
        """All cases but these; InputError for a name that is not there."""
        return self._at(np.setdiff1d(np.arange(len(self)), self._numbers(names)))

    def by(self, column: str) -> dict[str, Stack]:
        """A Stack for each value of a grouping column, or for each `patient`; sorted by value."""
        groups = {**self.groups, "patient": self.patients}
        if column not in groups:
            raise InputError(f"there is no grouping column {column!r}; there are {', '.join(groups)}.")
        values = np.asarray(groups[column], object)
        return {value: self._at(np.flatnonzero(values == value)) for value in sorted(set(groups[column]))}

    def regroup(self, column: str, values: Mapping[str, str]) -> Stack:
        """With other values, by case, in a grouping column, which may be a new one."""
        missing = [name for name in self.names if name not in values]
        if missing:
            raise InputError(f"{column}: no value for {_few(missing)}.")
        grouped = ({**dict(case.groups), column: values[case.name]} for case in self.cases)
        cases = (replace(case, groups=tuple(g.items())) for case, g in zip(self.cases, grouped, strict=True))
        return replace(self, cases=tuple(cases))

    def __add__(self, other: Stack) -> Stack:
        """The union, in memory; InputError where a case is in both, UnequalFramesError where they do not fit."""
        if not isinstance(other, Stack):
            return NotImplemented
        check_equal(self.frame, other.frame, other.names[0] if other.cases else "nothing")
        cases = sorted_cases((*self.cases, *other.cases))
        rows = {}
        for path in self.layout:
            both = sparse.csr_array(sparse.vstack([self.sparse(path), other.sparse(path)], format="csr"))
            rows[path] = Rows(both.shape[1], both.indptr.astype(np.int64), both.indices, both.data)
        place = {case.name: i for i, case in enumerate((*self.cases, *other.cases))}
        order = np.array([place[case.name] for case in cases], np.int64)
        return Stack(cases, self.frame, self.layout, rows, order)

    def _at(self, numbers: Counts) -> Stack:
        return replace(self, cases=tuple(self.cases[i] for i in numbers), order=self.order[numbers])

    def _numbers(self, names: Iterable[str]) -> list[int]:
        known = {name: i for i, name in enumerate(self.names)}
        listed = [names] if isinstance(names, str) else list(names)
        missing = [name for name in listed if name not in known]
        if missing:
            raise InputError(f"there is no case {_few(missing)}; there are {_few(self.names)}.")
        return [known[name] for name in listed]

    def _check_path(self, path: str) -> None:
        if path not in self.layout:
            raise KeyError(f"no array {path!r} was counted; there are {', '.join(self.layout)}")

    def _evaluation_at(self, row: int) -> Evaluation:
        arrays = {p: self.rows[p].row(row).dense(shape) for p, (_, shape) in self.layout.items()}
        return from_plain(self.frame, arrays)


def layout_of(evaluation: Summary) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    """Dimensions and shape of each of its arrays, by path."""
    return {path: (dims, array.shape) for path, dims, array in evaluation.arrays()}


def width_of(layout: Layout, path: str) -> int:
    """Cells of an array."""
    return int(np.prod(layout[path][1], dtype=np.int64))


def check_equal(frame: Mapping[str, Any], other: Mapping[str, Any], name: str) -> None:
    """UnequalFramesError saying which part of the frame of the case `name` differs."""
    for part in frame:
        if frame[part] != other.get(part):
            raise UnequalFramesError(
                f"case {name} was evaluated with other {part}; evaluate all cases with the same job"
            )


def sorted_cases(cases: Iterable[Case]) -> tuple[Case, ...]:
    """By name; InputError where two have the same."""
    found = tuple(sorted(cases, key=lambda case: case.name))
    twice = [one.name for one, next_ in pairwise(found) if one.name == next_.name]
    if twice:
        raise InputError(f"{_few(twice)} would count twice; each case counts once.")
    return found


def _few(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")
