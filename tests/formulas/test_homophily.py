"""Homophily: never above 1, Gini at equal distances, the published example, refusals."""

import numpy as np
import pytest
from scipy import stats

from dask_uncert.formulas.homophily import check_distances, homophily_uncertainty
from dask_uncert.formulas.simplex_ascent import ascend
from dask_uncert.formulas.simplex_distances import geometric_uncertainty
from dask_uncert.formulas.simplex_maximum import simplex_maximum
from tests.support.arrays import distance_table


@pytest.mark.parametrize("classes", [3, 8])
def test_never_above_one(classes):
    rng = np.random.default_rng(classes)
    p = np.concatenate([rng.dirichlet(np.full(classes, 0.5), size=50), np.full((1, classes), 1 / classes)])
    edges = [np.eye(classes)[i] / 2 + np.eye(classes)[j] / 2 for i in range(classes) for j in range(i)]
    p = np.concatenate([p, edges])
    for _ in range(25):
        found = homophily_uncertainty(p, distance_table(rng, classes))
        assert found.min() >= 0
        assert found.max() <= 1


@pytest.mark.slow
def test_two_thousand_tables():
    rng = np.random.default_rng(23)
    centre_misses = 0
    p = np.concatenate([rng.dirichlet(np.full(8, a), 100) for a in (0.1, 0.5, 2.0)])
    for _ in range(2000):
        s = distance_table(rng, 8) ** 2
        found = simplex_maximum(s)
        assert found.certificate.kind == "exact"
        # HU is at most 1, and not by clipping
        assert np.einsum("ni,ij,nj->n", p, s, p).max() <= found.value * (1 + 1e-12)
        q = ascend(s, np.full(8, 1 / 8))
        assert q @ s @ q <= found.value * (1 + 1e-12)
        centre_misses += q @ s @ q < found.value * (1 - 1e-9)
    assert centre_misses > 0  # the search is needed


def test_equal_distances_are_gini():
    rng = np.random.default_rng(1)
    for classes in (2, 3, 10, 20, 33):
        p = rng.dirichlet(np.ones(classes), size=100)
        found = homophily_uncertainty(p, 3.7 * (1 - np.eye(classes)))
        np.testing.assert_allclose(found, geometric_uncertainty(p), rtol=0, atol=1e-12)


def test_scale_is_ignored():
    rng = np.random.default_rng(2)
    h, p = distance_table(rng, 6), rng.dirichlet(np.ones(6), size=30)
    for scale in (2.0**-900, 1e-200, 17.0, 1e200):
        found = homophily_uncertainty(p, h * scale)
        np.testing.assert_allclose(found, homophily_uncertainty(p, h), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("x", "alpha", "expected"),
    [
        ((1, 1), 0, (1, 1, 1, 0.888889)),
        ((1, 1), 1, (0.933511, 0.867376, 0.887782, 0.423883)),
        ((1, 1), 2, (1, 1, 1, 1)),
        ((2.5, 2.5), (5 - 13**0.5) / 2, (0.769157, 0.785106, 0.719638, 0.457103)),
        ((2.5, 2.5), (5 + 13**0.5) / 2, (0.769157, 0.785106, 0.719638, 0.955116)),
    ],
)
def test_published_gaussians(x, alpha, expected):
    means = np.array([[0, 0], [2, 0], [alpha, alpha]], dtype=float)
    density = np.array([stats.multivariate_normal(mean).pdf(x) for mean in means])
    p = density / density.sum()
    h = np.abs(means[:, None] - means).max(axis=-1)
    found = (
        geometric_uncertainty(p, "fisher-rao"),
        geometric_uncertainty(p),
        geometric_uncertainty(p, "kullback-leibler", 1),
        homophily_uncertainty(p, h),
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=6e-7)


def test_invalid_tables_are_refused_by_entry():
    good = [[0, 0.5, 0.33], [0.5, 0, 1], [0.33, 1, 0]]
    assert check_distances(good).dtype == np.float64

    def changed(i, j, value):
        h = np.array(good)
        h[i, j] = value
        return h

    for wrong, words in (
        (changed(2, 0, 0.36), r"symmetric: H\[0, 2\] = 0.33 but H\[2, 0\] = 0.36$"),
        (changed(1, 1, 0.1), r"zero on the diagonal: H\[1, 1\] = 0.1$"),
        (changed(1, 2, np.inf), r"finite: H\[1, 2\] = inf"),
        (-np.array(good), r"non-negative: H\[0, 1\] = -0.5, "),
        (np.zeros((3, 3)), "not be all 0"),
        (np.zeros((3, 2)), "square"),
        ([["a", "b"], ["b", "a"]], "numbers"),
    ):
        with pytest.raises(ValueError, match=words):
            check_distances(wrong)
    with pytest.raises(ValueError, match="2 classes along axis 0, but distances between 3"):
        homophily_uncertainty([0.5, 0.5], good)
