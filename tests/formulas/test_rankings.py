"""Rankings and prediction sets: against scikit-learn, the items themselves and the stated values of a random forest."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from dask_uncert.formulas import prediction_sets as sets
from dask_uncert.formulas import rankings
from tests.support import forest
from tests.support.arrays import by_slice

EDGES = np.linspace(0, 1, 9)
ITEMS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=30)


def binned(p, edges=EDGES):
    return np.histogram(np.maximum(np.ceil(np.asarray(p) * (len(edges) - 1)) - 1, 0), np.arange(len(edges)))[0]


@given(ITEMS)
def test_areas_of_the_items_lie_within_the_bounds(items):
    p, own = (np.array(part) for part in zip(*items, strict=True))
    assume(0 < own.sum() < len(own))
    n, positives = binned(p), binned(p[own])
    for formula, exact in ((rankings.auroc, roc_auc_score), (rankings.average_precision, average_precision_score)):
        value, low, high = formula(n, positives)
        assert low - 1e-12 <= exact(own, p) <= high + 1e-12
        middle = (
            np.repeat(np.arange(len(n)), n),
            np.concatenate([np.arange(k) < h for k, h in zip(n, positives, strict=True)]),
        )
        np.testing.assert_allclose(value, exact(middle[1], middle[0]), atol=1e-12)


@given(ITEMS)
def test_tables_count_the_items_above_each_edge(items):
    p, own = (np.array(part) for part in zip(*items, strict=True))
    table = rankings.threshold_table(binned(p), binned(p[own]))
    for k, edge in enumerate(EDGES):
        found = (p > edge) if k else np.ones(len(p), bool)
        assert [table.tp[k], table.fp[k]] == [(found & own).sum(), (found & ~own).sum()]
        assert [table.fn[k], table.tn[k]] == [(~found & own).sum(), (~found & ~own).sum()]


def test_areas_and_thresholds_of_the_random_forest():
    calibration = forest.evaluation().calibration
    n, positives, _ = calibration.fine_by_class
    area, precision = rankings.auroc(n, positives), rankings.average_precision(n, positives)
    for bounded, exact in ((area, 0.9396374610), (precision, 0.7790216482)):
        one = [part[forest.CORN_NOTILL] for part in bounded]
        assert one[1] <= exact <= one[2]
        assert max(one[0] - one[1], one[2] - one[0]) < 2.5e-3
    np.testing.assert_allclose([area.value.mean(), precision.value.mean()], [0.9766514836, 0.7817855220], atol=1e-9)
    table = rankings.threshold_table(n, positives)
    best = rankings.best_edge(table.f1)[forest.CORN_NOTILL]
    np.testing.assert_allclose(table.f1[forest.CORN_NOTILL, best], 0.6910505837, atol=1e-10)
    assert abs(calibration.edges[best] - 0.359) < 1e-3


@pytest.mark.parametrize(
    ("q", "covered", "size"),
    [(0.05, 0.9837009671, 3.2011300663), (0.1, 0.9614256221, 2.3537976747), (0.2, 0.8976420732, 1.5286319678),
     (0.196, 0.9003585787, 1.5475388460), (0.12, 0.9506682603, 2.1255025535)],
)  # fmt: skip
def test_sets_of_the_random_forest(q, covered, size):
    calibration = forest.evaluation().calibration
    n, positives, _ = calibration.fine_by_class
    for bounded, exact in (
        (sets.coverage(positives.sum(axis=0), calibration.edges, q), covered),
        (sets.mean_size(n, calibration.edges, q), size),
    ):
        np.testing.assert_allclose(bounded.value, exact, atol=1e-10)
        assert bounded.low <= exact <= bounded.high + 1e-10


@pytest.mark.parametrize(("level", "q"), [(0.9, 0.196), (0.95, 0.12)])
def test_conformal_thresholds_of_the_random_forest(level, q):
    calibration = forest.evaluation().calibration
    edge = sets.conformal_edge(calibration.fine_by_class.positives.sum(axis=0), level)
    assert calibration.edges[edge] < q <= calibration.edges[edge + 1] + 1e-9


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.floats(0.05, 0.99), st.floats(0, 1))
def test_sets_above_an_edge_cover_as_the_items_do(p_true, level, q):
    p_true = np.array(p_true)
    counts = binned(p_true)
    value, low, high = sets.coverage(counts, EDGES, q)
    assert low - 1e-12 <= (p_true >= q).mean() <= high + 1e-12
    assert low <= value <= high
    k = int(np.ceil(round((len(p_true) + 1) * level, 9)))
    edge = sets.conformal_edge(counts, level)
    wanted = np.sort(p_true)[::-1][k - 1] if k <= len(p_true) else 0.0
    assert EDGES[edge] < wanted <= EDGES[edge + 1] or (edge == 0 and wanted <= EDGES[1])


def simulated(rng, cases, edges=200):
    """Positives of one class by case, (cases, B): each case has its own difficulty, some lack the class."""
    shape, size = rng.uniform(1, 6, cases), rng.integers(0, 60, cases)
    bins = (rng.beta(np.repeat(shape, size), 1.5) * edges).astype(int)
    return np.bincount(np.repeat(np.arange(cases), size) * edges + bins, minlength=cases * edges).reshape(cases, edges)


@pytest.mark.slow
def test_promises_hold_on_new_patients():
    """Over 2000 cohorts the mean missed share of new cases is at most the risk, and sets cover at the level."""
    rng = np.random.default_rng(0)
    risk, level, missed, covered = 0.1, 0.9, [], []
    for _ in range(2000):
        cases = simulated(rng, 60)
        chosen, new = cases[:30], cases[30:]
        edge, _ = sets.risk_controlling_edge(chosen, risk)
        missed.append(np.nanmean(sets.missed_share(new)[:, edge]))
        pixels, others = rng.multinomial(400, np.full(1000, 1e-3)), rng.multinomial(4000, np.full(1000, 1e-3))
        covered.append(others[sets.conformal_edge(pixels, level) :].sum() / 4000)
    spread = np.std(missed) / np.sqrt(2000)
    assert risk - 0.05 < np.mean(missed) <= risk + 3 * spread
    spread = np.std(covered) / np.sqrt(2000)
    assert level - 3 * spread < np.mean(covered) < level + 1 / 401 + 1e-3 + 3 * spread


def test_leading_dimensions_give_the_numbers_of_each():
    rng = np.random.default_rng(1)
    own, others = rng.integers(0, 9, (2, 3, 4, 12))
    n = own + others
    for formula in (rankings.auroc, rankings.average_precision):
        for part in range(3):
            wanted = by_slice(lambda n, own, f=formula, i=part: f(n, own)[i], n, own)
            np.testing.assert_array_equal(formula(n, own)[part], wanted)
    edges = np.linspace(0, 1, 13)
    np.testing.assert_array_equal(
        sets.coverage(own, edges, 0.3).low, by_slice(lambda own: sets.coverage(own, edges, 0.3).low, own)
    )
    np.testing.assert_array_equal(
        sets.conformal_edge(own, 0.8), by_slice(lambda own: sets.conformal_edge(own, 0.8), own)
    )


def test_what_no_edge_gives_is_said():
    table = rankings.threshold_table([3, 3], [1, 2])
    assert rankings.edge_for(table, "precision", 0.9) == -1
    assert sets.risk_controlling_edge([[1, 3]], 0.1) == (-1, 1)
    with pytest.raises(ValueError, match="precision or recall"):
        rankings.edge_for(table, "f1", 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        sets.conformal_edge([1, 2], 1.0)
    with pytest.raises(ValueError, match="lies in"):
        sets.coverage([1, 2], [0, 0.5, 1], 1.5)
