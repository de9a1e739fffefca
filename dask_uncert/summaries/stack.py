"""Many cases, each with its own Evaluation of one frame: the basis of pooling, leaving out and resampling.

A Stack is to a cohort what an Evaluation is to a scene: pooled, by group or without some patients, its numbers are sums
of rows, and no voxel is read again. Cases are sorted by name, so their order of arrival does not matter. Counts are
sparse (most bins of a case are empty) and may stay in a store until they are needed. With several visits of a patient, a
case is a visit; statistics over patients weigh each patient once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from dask_uncert.errors import InputError, listed, plural
from dask_uncert.formulas.docs import shared_sections
from dask_uncert.formulas.typing import Counts
from dask_uncert.summaries import display
from dask_uncert.summaries.case import Case, composed, positions, sorted_cases
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.layout import Layout, check_equal, layout_of, width_of
from dask_uncert.summaries.sparse_rows import SparseRow, SparseRows, add_rows, marginal_rows, split_rows

BATCH = 256  # cases whose rows are in memory at once in a loop over all


@shared_sections
@dataclass(frozen=True, eq=False)
class Stack:
    """The Evaluations of many cases, of equal frames, sorted by the names of the cases.

    Equal Stacks have equal cases, frames and counts.

    Attributes
    ----------
    cases : tuple of Case
        The cases, sorted by name.
    frame : dict
        Frame of the Evaluations, as `Evaluation.frame` gives it.
    layout : mapping of str to (dims, shape)
        Dimensions and shape of each array of the Evaluations, by path.
    rows : mapping of str to SparseRows
        Counts of each array, by path.
    order : numpy.ndarray
        Number of the row of each case.

    Examples
    --------
    >>> import dask_uncert as du
    >>> e = du.evaluate([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    >>> stack = du.Stack.of({"P2": e, "P1": e + e}, groups={"site": {"P1": "Oslo", "P2": "Bern"}})
    >>> stack.names, stack.groups["site"], stack.array("ledger/counted").tolist()
    (('P1', 'P2'), ('Oslo', 'Bern'), [4, 2])
    >>> stack.total() == e + e + e, stack.without(["P1"]).total() == e
    (True, True)
    >>> stack.select(["P1"]).names, [*stack.by("site")], stack.evaluation("P1") == e + e
    (('P1',), ['Bern', 'Oslo'], True)
    >>> stack.regroup("fold", {"P1": "0", "P2": "1"}).groups["fold"]
    ('0', '1')
    >>> [case.name for case, _ in stack.evaluations()], stack.sparse("ledger/counted").shape
    (['P1', 'P2'], (2, 1))
    """

    cases: tuple[Case, ...]
    frame: dict[str, Any]
    layout: Layout
    rows: Mapping[str, SparseRows]
    order: Counts

    @classmethod
    def of(
        cls,
        evaluations: Mapping[str, Evaluation] | Mapping[Case, Evaluation],
        groups: Mapping[str, Mapping[str, str]] | None = None,
    ) -> Stack:
        """Return the Stack of Evaluations by case.

        Parameters
        ----------
        evaluations : mapping of str or Case to Evaluation
            Evaluations of one frame, by patient or case.
        groups : mapping of str to (mapping of str to str), optional
            Value of each case, by grouping column and name of the case.

        {Returns: stack}

        Raises
        ------
        InputError
            If there is no case, or two of one name.
        UnequalFramesError
            If the Evaluations count different things.
        """
        pairs = []
        by_name = {c: {composed(name): value for name, value in v.items()} for c, v in (groups or {}).items()}
        for key, evaluation in evaluations.items():
            case = key if isinstance(key, Case) else Case(key)
            if groups:
                case = replace(case, groups=tuple((c, values[case.name]) for c, values in by_name.items()))
            pairs.append((case, evaluation))
        if not pairs:
            raise InputError("a Stack needs at least one case.")
        first = pairs[0][1]
        frame, layout = first.frame(), layout_of(first)
        for case, evaluation in pairs[1:]:
            check_equal(frame, evaluation.frame(), case.name)
        pairs.sort(key=lambda pair: pair[0].name)
        rows: dict[str, list[SparseRow]] = {path: [] for path in layout}
        for _, evaluation in pairs:
            for path, _, array in evaluation.arrays():
                rows[path].append(SparseRow.of(array))
        return cls(
            sorted_cases(case for case, _ in pairs),
            frame,
            layout,
            {path: SparseRows.of(width_of(layout, path), part) for path, part in rows.items()},
            np.arange(len(pairs)),
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

    def _title(self) -> str:
        patients, classes = len(set(self.patients)), self.frame.get("classes", [])
        what = f"{plural(len(self), 'case')} of {plural(patients, 'patient')}"
        return f"Stack of {what}, {plural(len(classes), 'class', 'classes')}: {listed((n for _, n in classes), 8)}"

    def _rows(self) -> list[list[Any]]:
        return [["case", *self.groups], *map(list, zip(self.names, *self.groups.values(), strict=True))]

    def __repr__(self) -> str:
        lines = display.text_table(self._rows(), display.LINES - 2, "all are in .names and .groups")
        return "\n".join([self._title(), *lines, "pooled numbers: .total(); every number: du.results(stack)"])

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the cases and their groups; no count is read."""
        return display.html(self._title(), display.html_table(self._rows(), "Cases"))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the cases, sorted."""
        return tuple(case.name for case in self.cases)

    @property
    def patients(self) -> tuple[str, ...]:
        """Patient of each case: the name itself where no patient has several visits."""
        return tuple(case.patient for case in self.cases)

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Value of each case, by grouping column; "" where a case has no such column."""
        columns = dict.fromkeys(column for case in self.cases for column, _ in case.groups)
        return {c: tuple(dict(case.groups).get(c, "") for case in self.cases) for c in columns}

    def sparse(self, path: str) -> sparse.csr_array:
        """Return the counts of one array of every case, sparse, for products with weights of cases.

        {Parameters: array path}

        Returns
        -------
        scipy.sparse.csr_array of int64
            (cases, cells), the array's cells in C order.

        {Raises: no such array}
        """
        if path not in self.layout:
            raise KeyError(f"no array {path!r} was counted; there are {', '.join(self.layout)}")
        return self.rows[path].read(self.order)

    def array(self, path: str, dims: Iterable[str] | None = None) -> Counts:
        """Return the counts of one array of every case.

        {Parameters: array path}
        dims : iterable of str, optional
            Dimensions to keep; the others are summed before anything is dense. By default all.

        Returns
        -------
        numpy.ndarray of int64
            (cases, *kept), the kept dimensions in the array's order.

        {Raises: no such array}
        """
        counts = self.sparse(path)
        names, shape = self.layout[path]
        kept = names if dims is None else tuple(dims)
        if not set(kept) <= set(names):
            raise KeyError(f"{path} has the dimensions {', '.join(names)}, asked for {', '.join(kept)}")
        if set(kept) != set(names):
            counts, shape = marginal_rows(counts, shape, [i for i, name in enumerate(names) if name in kept])
        return np.asarray(counts.toarray()).reshape(len(self), *shape)

    def evaluation(self, name: str) -> Evaluation:
        """Return the Evaluation of one case.

        Parameters
        ----------
        name : str
            Name of the case.

        {Returns: sum}

        {Raises: no such case}
        """
        (number,) = positions(self.names, [name])
        row = int(self.order[number])
        arrays = {path: self.rows[path].row(row).dense(shape) for path, (_, shape) in self.layout.items()}
        return Evaluation.from_plain(self.frame, arrays)

    def evaluations(self) -> Iterator[tuple[Case, Evaluation]]:
        """Yield every case and its Evaluation, in order; a batch of cases is in memory at a time.

        Yields
        ------
        tuple of (Case, Evaluation)
            Sorted by name.
        """
        for case, rows in self.sparse_cases():
            arrays = {path: row.dense(self.layout[path][1]) for path, row in rows.items()}
            yield case, Evaluation.from_plain(self.frame, arrays)

    def sparse_cases(self) -> Iterator[tuple[Case, dict[str, SparseRow]]]:
        """Yield every case and its counts, in order; a batch of cases is in memory at a time.

        Yields
        ------
        tuple of (Case, dict of str to SparseRow)
            Sorted by name; rows by path.
        """
        for start in range(0, len(self), BATCH):
            order = self.order[start : start + BATCH]
            batch = {}
            for path, rows in self.rows.items():
                counts = rows.read(order)
                batch[path] = split_rows(*(a.astype(np.int64) for a in (counts.indptr, counts.indices, counts.data)))
            for i, case in enumerate(self.cases[start : start + BATCH]):
                yield case, {path: rows[i] for path, rows in batch.items()}

    def total(self) -> Evaluation:
        """Return the sum of all cases.

        {Returns: sum}
        """
        arrays = {}
        for path, (_, shape) in self.layout.items():
            total = np.zeros(width_of(self.layout, path), np.int64)
            for start in range(0, len(self), BATCH):
                total = add_rows(total, self.rows[path].read(self.order[start : start + BATCH]), path)
            arrays[path] = total.reshape(shape)
        return Evaluation.from_plain(self.frame, arrays)

    def select(self, names: Iterable[str]) -> Stack:
        """Return the Stack of some cases.

        {Parameters: case names}

        {Returns: stack}

        {Raises: no such case}
        """
        return self._at(np.sort(np.unique(positions(self.names, names))))

    def without(self, names: Iterable[str]) -> Stack:
        """Return the Stack of all other cases.

        {Parameters: case names}

        {Returns: stack}

        {Raises: no such case}
        """
        return self._at(np.setdiff1d(np.arange(len(self)), positions(self.names, names)))

    def by(self, column: str) -> dict[str, Stack]:
        """Return a Stack for each value of a grouping column.

        {Parameters: group column}

        Returns
        -------
        dict of str to Stack
            By value, sorted.

        Raises
        ------
        InputError
            If there is no such column.
        """
        groups, column = {**self.groups, "patient": self.patients}, composed(column)
        if column not in groups:
            raise InputError(f"there is no grouping column {column!r}; there are {', '.join(groups)}.")
        values = np.asarray(groups[column], object)
        return {value: self._at(np.flatnonzero(values == value)) for value in sorted(set(groups[column]))}

    def regroup(self, column: str, values: Mapping[str, str]) -> Stack:
        """Return the Stack with other values in a new or an existing grouping column.

        Parameters
        ----------
        {group column}
        values : mapping of str to str
            Value of every case, by its name.

        {Returns: stack}

        Raises
        ------
        InputError
            If a case has no value.
        """
        values = {composed(name): value for name, value in values.items()}
        missing = [name for name in self.names if name not in values]
        if missing:
            raise InputError(f"{column}: no value for {listed(missing, 5)}.")
        grouped = ({**dict(case.groups), column: values[case.name]} for case in self.cases)
        cases = (replace(case, groups=tuple(g.items())) for case, g in zip(self.cases, grouped, strict=True))
        return replace(self, cases=tuple(cases))

    def __add__(self, other: Stack) -> Stack:
        """Return the union, in memory; InputError for a case in both, UnequalFramesError for other frames."""
        if not isinstance(other, Stack):
            return NotImplemented
        check_equal(self.frame, other.frame, other.names[0] if other.cases else "nothing")
        cases = sorted_cases((*self.cases, *other.cases))
        rows = {}
        for path in self.layout:
            both = sparse.csr_array(sparse.vstack([self.sparse(path), other.sparse(path)], format="csr"))
            rows[path] = SparseRows(both.shape[1], both.indptr.astype(np.int64), both.indices, both.data)
        row_of_case = {case.name: i for i, case in enumerate((*self.cases, *other.cases))}
        order = np.array([row_of_case[case.name] for case in cases], np.int64)
        return Stack(cases, self.frame, self.layout, rows, order)

    def _at(self, numbers: Counts) -> Stack:
        return replace(self, cases=tuple(self.cases[i] for i in numbers), order=self.order[numbers])
