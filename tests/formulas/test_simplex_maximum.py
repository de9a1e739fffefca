"""The global maximum against brute force over all supports, known graphs, and its certificate."""

import itertools
import time

import numpy as np
import pytest

from dask_uncert.formulas.homophily import check_distances
from dask_uncert.formulas.simplex_ascent import ascend
from dask_uncert.formulas.simplex_maximum import simplex_maximum


def brute_force(s):
    """Every support's stationary point by one linear system: independent of how the search goes about it."""
    unit = s.max() or 1.0
    s, best = s / unit, 0.0
    for size in range(2, len(s) + 1):
        for support in map(list, itertools.combinations(range(len(s)), size)):
            system = np.block([[s[np.ix_(support, support)], -np.ones((size, 1))], [np.ones((1, size)), 0.0]])
            if np.linalg.matrix_rank(system) == size + 1:
                q = np.linalg.solve(system, [0.0] * size + [1.0])[:-1]
                if (q >= -1e-12).all():
                    best = max(best, float(q @ s[np.ix_(support, support)] @ q))
    return best * unit


TRENTO = np.array([
    [0, 0.89, 0.58, 0.35, 0.36, 0.88],
    [0.89, 0, 0.56, 0.85, 1, 0.33],
    [0.58, 0.56, 0, 0.6, 0.73, 0.65],
    [0.35, 0.85, 0.6, 0, 0.51, 0.91],
    [0.36, 1, 0.73, 0.51, 0, 0.95],
    [0.88, 0.33, 0.65, 0.91, 0.95, 0],
])  # fmt: skip
BCSS = np.array([
    [0, 0.46, 0.34, 0.51, 0.74],
    [0.46, 0, 0.26, 0.8, 0.33],
    [0.34, 0.26, 0, 0.55, 0.47],
    [0.51, 0.8, 0.55, 0, 1],
    [0.74, 0.36, 0.47, 1, 0],
])  # fmt: skip


def test_published_class_distances():
    """The matrices (9) and (10) of [C23]; the second is printed with .33 and .36 for one pair."""
    found = simplex_maximum(TRENTO**2)
    assert found.value == pytest.approx(0.500165343916, abs=1e-12)
    np.testing.assert_allclose(found.argument, [0, 0.473986, 0, 0, 0.497006, 0.029008], atol=5e-7)
    with pytest.raises(ValueError, match=r"H\[1, 4\] = 0.33 but H\[4, 1\] = 0.36$"):
        check_distances(BCSS)
    for distance in (0.33, 0.36):
        table = BCSS.copy()
        table[1, 4] = table[4, 1] = distance
        found = simplex_maximum(table**2)
        assert found.value == pytest.approx(0.5, abs=1e-12)
        np.testing.assert_allclose(found.argument, [0, 0, 0, 0.5, 0.5], atol=1e-12)
        assert found.certificate.kind == "exact"


def symmetric(h):
    h = np.triu(h, 1)
    return h + h.T


def kinds(classes, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(classes, 3))
    group = np.arange(classes) // 4
    yield "uniform", symmetric(rng.random((classes, classes)))
    yield "near", symmetric(0.6 + 0.4 * rng.random((classes, classes)))
    yield "euclid", np.sqrt(((points[:, None] - points) ** 2).sum(-1))
    yield "city block", np.abs(points[:, None] - points).sum(-1)
    yield "range", symmetric(np.exp(4 * rng.normal(size=(classes, classes))))
    yield "equal", 1 - np.eye(classes)
    yield "blocks", np.where(group[:, None] == group, 0.1, 1.0) * (1 - np.eye(classes))
    yield "binary", symmetric((rng.random((classes, classes)) < 0.6).astype(float))


@pytest.mark.parametrize("classes", [2, 3, 5, 7])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_brute_force(classes, seed):
    for kind, h in kinds(classes, seed):
        s = h * h
        found = simplex_maximum(s)
        assert found.value == pytest.approx(brute_force(s), rel=2e-12, abs=0), kind
        assert found.certificate.kind == "exact"
        assert found.value <= found.certificate.upper_bound <= found.value * (1 + 1e-11)
        q = found.argument
        assert (q >= 0).all()
        assert q.sum() == pytest.approx(1, abs=1e-14)
        assert q @ s @ q == pytest.approx(found.value, rel=1e-14)


def paley(p):
    squares = {i * i % p for i in range(1, p)}
    return np.array([[float((i - j) % p in squares) for j in range(p)] for i in range(p)])


@pytest.mark.parametrize(("graph", "clique"), [(paley(5), 2), (paley(13), 3), (paley(17), 3)])
def test_motzkin_straus(graph, clique):
    # the maximum over a graph's adjacency is 1 - 1 / (size of its largest clique)
    assert simplex_maximum(graph).value == pytest.approx(1 - 1 / clique, rel=1e-12)


@pytest.mark.slow
def test_twenty_classes_are_exact_within_seconds():
    for kind, h in kinds(20, 4):
        start = time.perf_counter()
        found = simplex_maximum(h * h)
        assert time.perf_counter() - start < 5, kind
        assert found.certificate.kind == "exact", kind
        rng = np.random.default_rng(8)
        for start_point in rng.dirichlet(np.full(20, 0.3), size=5):
            q = ascend(h * h / np.max(h * h), start_point)
            assert q @ (h * h) @ q <= found.certificate.upper_bound


@pytest.mark.slow
def test_every_face_concave_but_the_whole():
    # a sum of city-block distances, squared: nearly all of the 2**20 faces are strictly concave
    points = np.random.default_rng(0).normal(size=(20, 30))
    h = np.abs(points[:, None] - points).sum(-1)
    start = time.perf_counter()
    assert simplex_maximum(h * h).certificate.kind == "exact"
    assert time.perf_counter() - start < 10


@pytest.mark.slow
def test_sixty_four_classes_have_a_bound():
    for kind, h in kinds(64, 5):
        if kind not in ("uniform", "city block", "binary"):
            continue
        found = simplex_maximum(h * h)
        assert found.value <= found.certificate.upper_bound, kind
        gap = found.certificate.gap
        assert gap == found.certificate.upper_bound / found.value - 1 or gap < 1e-9
        assert gap < 0.05, kind


def test_same_bits_again_and_scale():
    s = np.square(next(kinds(12, 9))[1])
    one, two, large = simplex_maximum(s), simplex_maximum(s), simplex_maximum(s * 2.0**40)
    assert one.value == two.value == large.value / 2.0**40
    np.testing.assert_array_equal(one.argument, two.argument)
    np.testing.assert_array_equal(one.argument, large.argument)


def test_tables_are_checked():
    assert simplex_maximum(np.zeros((3, 3))).value == 0
    off = np.nan
    for wrong in ([[0, 1], [2, 0]], [[1, 1], [1, 0]], [[0, -1], [-1, 0]], [[0, off], [off, 0]], [[0, 1]]):
        with pytest.raises(ValueError, match=r"expected|must be"):
            simplex_maximum(wrong)
