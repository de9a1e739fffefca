"""Geometric uncertainty against mpmath and the published values."""

import mpmath
import numpy as np
import pytest

from dask_uncert.formulas.simplex_distances import geometric_uncertainty

ROWS = np.array([[0.51, 0.49, 0, 0], [0.51, 0.19, 0.15, 0.15], [0.35, 0.25, 0.25, 0.15], [0.65, 0.35, 0, 0]])


def exact(p, distance, n, alpha=None):
    p = [mpmath.mpf(float(x)) for x in p]
    total, classes = mpmath.fsum(p), len(p)
    p = [x / total for x in p]

    def d(p):
        u = mpmath.mpf(1) / classes
        if distance == "euclidean":
            return mpmath.sqrt(sum((x - u) ** 2 for x in p))
        if distance == "kullback-leibler" or alpha == 1:
            return sum(x * mpmath.log(x / u) for x in p if x)
        if distance == "fisher-rao":
            return 2 * mpmath.acos(min(sum(mpmath.sqrt(x * u) for x in p), mpmath.mpf(1)))
        if mpmath.isinf(alpha):
            return mpmath.log(classes * max(p))
        a = mpmath.mpf(alpha)
        return mpmath.log(sum(x**a * u ** (1 - a) for x in p if x)) / (a - 1)

    return float(1 - (d(p) / d([1] + [0] * (classes - 1))) ** n)


@pytest.mark.parametrize(
    ("distance", "alpha"),
    [("euclidean", None), ("kullback-leibler", None), ("fisher-rao", None)]
    + [("renyi", a) for a in (0.2, 0.6, 1, 1.00001, 2, 30, float("inf"))],
)
def test_agrees_with_mpmath(distance, alpha):
    rng = np.random.default_rng(11)
    drawn = [
        *rng.dirichlet(np.full(5, 0.3), size=8),
        *rng.dirichlet(np.full(5, 1e5), size=4),
        np.full(5, 0.2),
    ]
    with mpmath.workdps(40):
        for p in drawn:
            for n in (1, 2, 3):
                expected = exact(p, distance, n, alpha)
                assert geometric_uncertainty(p, distance, n, alpha) == pytest.approx(expected, rel=0, abs=1e-12)
            single = geometric_uncertainty(p.astype("float32"), distance, 2, alpha)
            assert single.dtype == np.float32
            assert single == pytest.approx(exact(p, distance, 2, alpha), rel=0, abs=2e-6)


def test_published_table():
    np.testing.assert_allclose(geometric_uncertainty(ROWS), [0.6664, 0.8784, 0.973333, 0.606667], atol=5e-7)
    found = geometric_uncertainty(ROWS, "fisher-rao", 2)
    np.testing.assert_allclose(found, [0.437428, 0.930834, 0.980731, 0.420883], atol=5e-7)
    found = geometric_uncertainty(ROWS, "kullback-leibler", 1)
    np.testing.assert_allclose(found, [0.499856, 0.885873, 0.970323, 0.467034], atol=5e-7)


def test_fisher_rao_at_and_near_the_centre():
    thirds = np.full(3, 1 / 3, dtype="float32")
    assert 1 - 1e-7 <= geometric_uncertainty(thirds, "fisher-rao") <= 1
    p = np.random.default_rng(2).dirichlet(np.ones(3), size=2000).astype("float32")
    p[:1000] = thirds + np.float32(1e-7) * p[:1000]
    found = geometric_uncertainty(p, "fisher-rao")
    assert not np.isnan(found).any()
    assert found.max() <= 1


def test_grows_with_n():
    p = np.random.default_rng(3).dirichlet(np.ones(6), size=300)
    for distance in ("euclidean", "kullback-leibler", "fisher-rao"):
        values = np.stack([geometric_uncertainty(p, distance, n) for n in range(1, 8)])
        assert (np.diff(values, axis=0) >= 0).all()


def test_a_distance_of_the_users():
    def city_block(p, u, axis):
        return np.abs(p - u).sum(axis=axis)

    found = geometric_uncertainty(ROWS, city_block, 1)
    np.testing.assert_allclose(found, 1 - np.abs(ROWS - 0.25).sum(axis=1) / 1.5, atol=1e-15)
    with pytest.raises(ValueError, match="finite and positive"):
        geometric_uncertainty(ROWS, lambda p, u, axis: 0 * p.sum(axis=axis))


def test_parameters_are_checked():
    for wrong, words in (
        ({"distance": "manhattan"}, "unknown distance"),
        ({"n": 0}, "positive integer"),
        ({"n": 1.5}, "positive integer"),
        ({"distance": "renyi"}, "order alpha"),
        ({"alpha": 2.0}, "leave it out"),
    ):
        with pytest.raises(ValueError, match=words):
            geometric_uncertainty(ROWS, **wrong)
