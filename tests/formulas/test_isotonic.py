"""Isotonic reliability and CORP: against scikit-learn on the items, and the stated values of a random forest."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from dask_uncert.formulas import isotonic
from dask_uncert.formulas.fixed_point import encode
from tests.support import forest

EDGES = np.linspace(0, 1, 9)


def exact_parts(p, y):
    """Score, miscalibration, discrimination and uncertainty of the items themselves."""
    score, recalibrated = np.mean((p - y) ** 2), np.mean((IsotonicRegression().fit_transform(p, y) - y) ** 2)
    uncertainty = y.mean() * (1 - y.mean())
    return score, score - recalibrated, uncertainty - recalibrated, uncertainty


@given(st.lists(st.tuples(st.integers(0, 64).map(lambda k: k / 64), st.booleans()), min_size=1, max_size=40))
def test_parts_of_the_items_lie_within_the_bounds(items):
    p, y = (np.array(part, float) for part in zip(*items, strict=True))
    bins = np.maximum(np.ceil(p * 8) - 1, 0).astype(int)
    n, hits, stated = (np.bincount(bins, w, 8) for w in (None, y, p))
    parts = isotonic.corp(n.astype(int), hits.astype(int), encode(stated), EDGES)
    *exact, uncertainty = exact_parts(p, y)
    for bounded, value in zip(parts[:3], exact, strict=True):
        assert bounded.low - 1e-9 <= value <= bounded.high + 1e-9
        assert bounded.low - 1e-9 <= bounded.value <= bounded.high + 1e-9
    np.testing.assert_allclose(parts.uncertainty, uncertainty, atol=1e-12)
    total = parts.miscalibration.value - parts.discrimination.value + uncertainty
    assert total >= parts.score.value - 1e-9


def test_corp_of_the_random_forest():
    calibration = forest.evaluation().calibration
    score, miscalibration, discrimination, uncertainty = isotonic.corp(*calibration.fine, calibration.edges)
    stated = (0.1585874537, 0.0175663089, 0.0451269524)
    for bounded, exact in zip((score, miscalibration, discrimination), stated, strict=True):
        assert bounded.low <= exact <= bounded.high
        assert bounded.high - bounded.low < 2e-3
    np.testing.assert_allclose(uncertainty, 0.1861480972, atol=1e-10)
    curve = isotonic.isotonic_curve(*calibration.fine[:2])
    assert (np.diff(curve[~np.isnan(curve)]) >= 0).all()
