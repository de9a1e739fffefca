"""The laws of a Stack: sums, parts, order of arrival, and what comes back out of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.execution.evaluate import evaluate
from dask_uncert.formulas.measures import MEASURES
from dask_uncert.summaries.calibration import Calibration
from dask_uncert.summaries.decisions import Decisions
from dask_uncert.summaries.distribution import Distribution
from dask_uncert.summaries.evaluation import Class, Evaluation
from dask_uncert.summaries.ledger import Ledger
from dask_uncert.summaries.soft_confusion import SoftConfusion, SoftSettings
from dask_uncert.summaries.sparse_rows import RUNS, SparseRow, SparseRows, StreamedSum, add_rows
from dask_uncert.summaries.stack import Case, Stack
from dask_uncert.summaries.summary import UnequalFramesError
from tests.support.summaries import filled

ZERO = Evaluation(
    classes=(Class(0, "no"), Class(7, "yes")),
    class_metric=None,
    ledger=Ledger.zero(),
    decisions=Decisions.zero(2),
    distributions=(
        Distribution(
            MEASURES["gini"],
            1.0,
            (0.0, 0.3, 0.5, 1.0),
            (0.3,),
            histogram=np.zeros((2, 2, 3), np.int64),
            by_pair=np.zeros((2, 2, 2, 6), np.int64),
            by_confused=np.zeros((3, 2, 12), np.int64),
        ),
    ),
    calibration=Calibration(
        2,
        (0.0, 0.25, 0.5, 1.0),
        winning=np.zeros((3, 4), np.int64),
        classwise=np.zeros((2, 3, 4), np.int64),
        squared_error=np.zeros(2, np.int64),
        log_loss=np.zeros(2, np.int64),
        infinite=np.zeros((), np.int64),
    ),
    soft_confusion=(SoftConfusion.zero(SoftSettings(1, (0.5,), (0.0, 0.1))),),
    joint=(),
)
NAMES = st.lists(st.text("abcP159 é", min_size=1, max_size=4), min_size=1, max_size=6, unique=True)


def drawn(seed: int, share: float = 0.2, most: int = 2**50) -> Evaluation:
    """An Evaluation of ZERO's frame in which about this share of the cells is not 0."""
    return filled(ZERO, seed, share, most)


@settings(max_examples=6)
@given(names=NAMES, seed=st.integers(0, 1000), data=st.data())
def test_a_stack_holds_its_cases_and_their_sum(names, seed, data):
    parts = {name: drawn(seed + i) for i, name in enumerate(names)}
    stack = Stack.of(parts)
    assert stack.names == tuple(sorted(names))
    assert stack.total() == sum(parts.values())
    assert all(stack.evaluation(name) == part for name, part in parts.items())
    assert {case.name: found for case, found in stack.evaluations()} == parts
    running = StreamedSum({path: shape for path, (_, shape) in stack.layout.items()})
    for _, rows in stack.sparse_cases():
        running.add(rows)
    assert Evaluation.from_plain(stack.frame, running.arrays) == sum(parts.values())
    shuffled = data.draw(st.permutations(names))
    assert Stack.of({name: parts[name] for name in shuffled}) == stack


@settings(max_examples=6)
@given(names=NAMES.filter(lambda n: len(n) > 1), seed=st.integers(0, 1000), data=st.data())
def test_taking_out_and_putting_back_leaves_what_was(names, seed, data):
    parts = {name: drawn(seed + i) for i, name in enumerate(names)}
    stack = Stack.of(parts)
    some = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names) - 1, unique=True))
    rest = stack.without(some)
    assert set(rest.names) == set(names) - set(some)
    assert rest == Stack.of({name: parts[name] for name in rest.names})
    assert rest.total() == stack.total() - stack.select(some).total()
    assert rest + stack.select(some) == stack
    assert stack.select(some) + rest == stack
    assert stack.select(sorted(some, reverse=True)) == stack.select(some)


def test_groups_part_the_cases():
    parts = {f"P{i}": drawn(i) for i in range(7)}
    site = {name: "Oslo" if i % 2 else "Bern" for i, name in enumerate(parts)}
    stack = Stack.of(parts, groups={"site": site})
    groups = stack.by("site")
    assert list(groups) == ["Bern", "Oslo"]
    assert groups["Oslo"].names == ("P1", "P3", "P5")
    assert sum(one.total() for one in groups.values()) == stack.total()
    assert groups["Bern"] + groups["Oslo"] == stack
    again = stack.regroup("scanner", dict.fromkeys(parts, "A")).regroup("site", dict.fromkeys(parts, "Rome"))
    assert again.groups == {"site": ("Rome",) * 7, "scanner": ("A",) * 7}
    assert again.total() == stack.total()
    with pytest.raises(InputError, match="no grouping column 'age'; there are site, patient"):
        stack.by("age")
    with pytest.raises(InputError, match="scanner: no value for P6"):
        stack.regroup("scanner", dict.fromkeys(list(parts)[:6], "A"))


def test_visits_are_cases_of_one_patient():
    parts = {Case("P1", "b"): drawn(1), Case("P1", "a"): drawn(2), Case("P0"): drawn(3)}
    stack = Stack.of(parts)
    assert stack.names == ("P0", "P1/a", "P1/b")
    assert stack.patients == ("P0", "P1", "P1")
    assert {name: len(one) for name, one in stack.by("patient").items()} == {"P0": 1, "P1": 2}
    assert stack.evaluation("P1/a") == parts[Case("P1", "a")]


@given(seed=st.integers(0, 1000))
def test_arrays_are_the_cases_stacked(seed):
    parts = {f"P{i}": drawn(seed + i, share=0.5) for i in range(3)}
    stack = Stack.of(parts)
    for path, (dims, shape) in stack.layout.items():
        wanted = np.stack([{p: a for p, _, a in one.arrays()}[path] for one in parts.values()])
        assert stack.array(path).dtype == np.int64
        assert np.array_equal(stack.array(path), wanted)
        assert np.array_equal(stack.sparse(path).toarray().reshape(3, *shape), wanted)
        for kept in ((), dims[:1], dims[1:], dims[::2]):
            over = tuple(1 + i for i, d in enumerate(dims) if d not in kept)
            assert np.array_equal(stack.array(path, kept), wanted.sum(axis=over)), (path, kept)
    with pytest.raises(KeyError, match="no array 'ledger'"):
        stack.array("ledger")
    with pytest.raises(KeyError, match="has the dimensions reason"):
        stack.array("ledger/excluded", ["bin"])


@given(order=st.lists(st.integers(0, 99), max_size=60), seed=st.integers(0, 1000))
def test_rows_are_read_in_any_order(order, seed):
    rng = np.random.default_rng(seed)
    dense = rng.integers(-3, 4, (100, 9)) * (rng.random((100, 9)) < 0.3)
    rows = SparseRows.of(9, (SparseRow.of(row) for row in dense))
    assert np.array_equal(rows.read(order).toarray(), dense[order].reshape(-1, 9))
    assert all(np.array_equal(rows.row(i).dense((9,)), dense[i]) for i in order)


def test_what_is_not_asked_for_is_not_read():
    class Watched:
        """Entries in a store, of which only slices may be taken."""

        def __init__(self, values):
            self.values, self.shape, self.read = values, values.shape, 0

        def __getitem__(self, region):
            assert isinstance(region, slice)
            found = self.values[region]
            self.read += found.size
            return found

    dense = np.ones((1000, 5), np.int64)
    full = SparseRows.of(5, (SparseRow.of(row) for row in dense))
    rows = SparseRows(5, full.starts, Watched(full.cells), Watched(full.counts))
    assert rows.read(range(10, 12)).sum() == 10
    assert rows.counts.read == 10
    assert rows.read([5, 3, 990]).sum() == 15
    assert rows.counts.read == 25
    assert rows.read(np.arange(0, 4 * RUNS, 2)).sum() == 2 * RUNS * 5


def test_who_counts_twice_or_is_unknown_is_named():
    stack = Stack.of({"P1": drawn(1), "P2": drawn(2)})
    with pytest.raises(InputError, match="P2 would count twice"):
        stack + stack.select(["P2"])
    with pytest.raises(InputError, match="no case P3; there are P1, P2"):
        stack.without(["P3"])
    with pytest.raises(InputError, match="at least one case"):
        Stack.of({})
    assert len(stack.without(["P1", "P2"])) == 0
    assert stack.without(["P1", "P2"]).total() == ZERO


def test_other_frames_do_not_stack():
    p, c = [[0.9, 0.1], [0.2, 0.8]], [0, 1]
    one, two = evaluate(p, c), evaluate(p, c, measures=["gini"])
    with pytest.raises(UnequalFramesError, match="case P2 was evaluated with other distributions"):
        Stack.of({"P1": one, "P2": two})
    with pytest.raises(UnequalFramesError, match=r"case P2 .* distributions"):
        Stack.of({"P1": one}) + Stack.of({"P2": two})


def test_sums_beyond_64_bits_are_refused():
    rows = SparseRows.of(1, [SparseRow.of(np.array([2**62]))] * 2)
    with pytest.raises(OverflowError, match="ledger"):
        add_rows(np.zeros(1, np.int64), rows.read([0, 1]), "ledger")
    assert add_rows(np.zeros(1, np.int64), rows.read([0]), "ledger")[0] == 2**62
    running = StreamedSum({"ledger": ()})
    running.add({"ledger": SparseRow.of(np.array(2**62))})
    assert running.arrays["ledger"] == 2**62
    with pytest.raises(OverflowError, match="ledger"):
        running.add({"ledger": SparseRow.of(np.array(2**62))})


def test_two_encodings_of_a_name_are_one_name():
    composed, decomposed = "José", "Jose\u0301"
    assert Case(decomposed, decomposed, ((decomposed, decomposed),)) == Case(
        composed, composed, ((composed, composed),)
    )
    with pytest.raises(InputError, match="José would count twice"):
        Stack.of({composed: ZERO, decomposed: ZERO})
    stack = Stack.of({decomposed: drawn(0), "P": drawn(1)}, groups={decomposed: {composed: "x", "P": "y"}})
    assert stack.evaluation(decomposed) == stack.evaluation(composed) == drawn(0)
    assert stack.select([decomposed]).names == stack.without(["P"]).names == (composed,)
    assert stack.regroup("site", {decomposed: "a", "P": "b"}).by("site")["a"].names == (composed,)
    assert stack.by(decomposed)["x"].names == (composed,)
