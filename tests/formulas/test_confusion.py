"""Agreement of classes against scikit-learn and exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sk

from dask_uncert.formulas import confusion as ag
from tests.support import forest
from tests.support.arrays import by_slice

PER_CLASS = (ag.precision, ag.recall, ag.f1, ag.iou)
OVERALL = (ag.accuracy, ag.kappa, ag.matthews)
SMALL = hnp.arrays(np.int64, st.integers(2, 5).map(lambda c: (c, c)), elements=st.integers(0, 20))


def close(a, b, tolerance=1e-12):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def labels(matrix):
    c = len(matrix)
    pairs = np.repeat(np.arange(c * c), np.asarray(matrix).ravel())
    return pairs // c, pairs % c


@given(SMALL)
def test_classes_agree_with_scikit_learn(matrix):
    if matrix.sum() == 0:
        return
    reference, predicted = labels(matrix)
    every = list(range(len(matrix)))
    words = {"labels": every, "average": None, "zero_division": np.nan}
    close(ag.precision(matrix), sk.precision_score(reference, predicted, **words))
    close(ag.recall(matrix), sk.recall_score(reference, predicted, **words))
    close(ag.f1(matrix), sk.f1_score(reference, predicted, **words))
    union = matrix.sum(0) + matrix.sum(1) - np.diag(matrix)
    expected = sk.jaccard_score(reference, predicted, labels=every, average=None, zero_division=0)
    close(ag.iou(matrix)[union > 0], expected[union > 0])
    assert np.isnan(ag.iou(matrix)[union == 0]).all()
    close(ag.accuracy(matrix), sk.accuracy_score(reference, predicted))
    cells = np.stack(ag.cells(matrix), -1)
    expected = sk.multilabel_confusion_matrix(reference, predicted, labels=every)
    np.testing.assert_array_equal(cells, expected[:, [1, 0, 0, 1], [1, 0, 1, 0]])


@given(SMALL)
def test_kappa_and_matthews_agree_with_scikit_learn(matrix):
    reference, predicted = labels(matrix)
    if len(set(reference)) < 2 or len(set(predicted)) < 2:
        assert np.isnan(ag.matthews(matrix))
        return
    close(ag.kappa(matrix), sk.cohen_kappa_score(reference, predicted))
    close(ag.matthews(matrix), sk.matthews_corrcoef(reference, predicted))


@given(SMALL)
def test_weighted_kappa_agrees_with_scikit_learn(matrix):
    reference, predicted = labels(matrix)
    if len(set(reference) | set(predicted)) < 2:
        return
    for weights in ("linear", "quadratic"):
        wanted = sk.cohen_kappa_score(reference, predicted, labels=range(len(matrix)), weights=weights)
        close(ag.weighted_kappa(matrix, weights), wanted)


@settings(max_examples=25, deadline=None)
@given(SMALL)
def test_quantity_and_allocation_add_to_the_error(matrix):
    total = (ag.quantity_disagreement(matrix).sum() + ag.allocation_disagreement(matrix).sum()) / 2
    close(total, 1 - ag.accuracy(matrix))


def test_agreement_of_the_random_forest():
    matrix = forest.evaluation().decisions.confusion
    found = [ag.matthews(matrix), *(ag.weighted_kappa(matrix, weights) for weights in ("linear", "quadratic"))]
    found += [ag.quantity_disagreement(matrix).sum() / 2, ag.allocation_disagreement(matrix).sum() / 2]
    close(found, [0.7161748039, 0.7052694954, 0.6875154818, 0.0831250679, 0.1641855917], 1e-9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=4, max_size=4))
def test_two_classes_are_the_cells(four):
    tp, tn, fp, fn = four
    matrix = [[tn, fp], [fn, tp]]
    metrics = ag.cell_metrics(*four)
    for name in ("accuracy", "kappa", "matthews"):
        close(metrics[name], getattr(ag, name)(matrix))
    for name in ("precision", "recall", "f1", "iou"):
        close(metrics[name], getattr(ag, name)(matrix)[1])
    close(metrics["negative_predictive_value"], ag.precision(matrix)[0])
    close(metrics["specificity"], ag.recall(matrix)[0])
    close(metrics["false_positive_rate"], 1 - metrics["specificity"])
    if tp + fn and tn + fp:
        close(metrics["balanced_accuracy"], sk.balanced_accuracy_score(*labels(matrix)))


@settings(max_examples=25, deadline=None)
@given(hnp.arrays(np.int64, (3, 3), elements=st.one_of(st.integers(0, 5), st.integers(0, 2**40))))
def test_counts_up_to_2_to_40_lose_no_digits(matrix):
    rows = [[int(x) for x in row] for row in matrix]
    n = sum(map(sum, rows))
    r, c = [sum(row) for row in rows], [sum(column) for column in zip(*rows, strict=True)]
    off = n - sum(rows[i][i] for i in range(3))
    expected = sum(a * (n - b) for a, b in zip(r, c, strict=True))
    if expected:
        close(ag.kappa(matrix), float(1 - Fraction(off * n, expected)), 1e-14)
    spread = sum(a * (n - a) for a in r) * sum(b * (n - b) for b in c)
    if spread:
        # One side may be far rarer than the other: the error then is relative to the larger term.
        size = max(expected, off * n) / math.sqrt(spread)
        assert abs(ag.matthews(matrix) - (expected - off * n) / math.sqrt(spread)) <= 1e-14 * max(size, 1)
    for value in ag.cell_metrics(*ag.cells(matrix)).values():
        assert np.all(np.isnan(value) | ((value >= -1) & (value <= 1)))


def test_rare_classes_of_huge_scenes_keep_their_digits():
    matrix = [[2**40, 1], [1, 1]]
    exact = Fraction(2**40 * 1 - 1, 1) / Fraction((2**40 + 1) * 2)
    close(ag.matthews(matrix), float(exact), 1e-15)
    close(ag.kappa(matrix), float(exact), 1e-15)
    close(ag.cell_metrics(1, 2**40, 1, 1)["matthews"], float(exact), 1e-15)
    assert ag.support(np.array([[2**24, 0], [1, 0]])).tolist() == [2**24, 1]


def test_perfect_chance_and_undefined():
    perfect = np.diag([3, 5, 7])
    assert [float(f(perfect)) for f in OVERALL] == [1, 1, 1]
    assert float(ag.kappa(np.ones((4, 4), int))) == float(ag.matthews(np.ones((4, 4), int))) == 0
    for undefined in (np.zeros((3, 3), int), np.diag([9, 0, 0])):
        assert np.isnan(ag.kappa(undefined))
        assert np.isnan(ag.matthews(undefined))
    assert all(np.isnan(v) for v in ag.cell_metrics(0, 0, 0, 0).values())
    one = ag.cell_metrics(5, 0, 0, 0)
    assert one["f1"] == one["accuracy"] == one["iou"] == 1
    assert np.isnan(one["kappa"])
    assert np.isnan(one["specificity"])
    assert np.isnan(one["balanced_accuracy"])
    tiny = ag.cell_metrics(3e-200, 3e-200, 1e-200, 1e-200)
    close(tiny["matthews"], 0.5)
    close(tiny["kappa"], 0.5)


@settings(max_examples=25, deadline=None)
@given(SMALL)
def test_macro_and_micro(matrix):
    cells = ag.cells(matrix)
    pooled = ag.cell_metrics(*ag.micro(cells))
    for name in ("precision", "recall", "f1"):
        close(pooled[name], ag.accuracy(matrix))
    supported = ag.support(matrix) > 0
    values = ag.precision(matrix)
    value, n, undefined = ag.macro(values, ag.support(matrix))
    kept = values[supported & ~np.isnan(values)]
    close(value, kept.mean() if kept.size else np.nan)
    assert n == kept.size
    assert n + undefined == supported.sum()


def test_leading_dimensions():
    rng = np.random.default_rng(0)
    stack = rng.integers(0, 9, (2, 3, 4, 4))
    stack[0, 0] = 0
    for f in (*PER_CLASS, *OVERALL, ag.support):
        np.testing.assert_array_equal(f(stack), by_slice(f, stack))
    each = ag.cell_metrics(*ag.cells(stack[1, 2]))
    macro = ag.macro(ag.f1(stack), ag.support(stack))
    assert macro.value.shape == macro.n.shape == (2, 3)
    for name, value in ag.cell_metrics(*ag.cells(stack)).items():
        np.testing.assert_array_equal(value[1, 2], each[name])


def test_refusals():
    with pytest.raises(ValueError, match=r"\(2, 3\)"):
        ag.accuracy(np.zeros((2, 3), int))
    with pytest.raises(TypeError):
        ag.accuracy(np.array([["a", "b"], ["c", "d"]]))
