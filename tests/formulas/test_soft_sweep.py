"""What a sweep stands on: slopes and bends of certainties, damping series and their errors, bounds of metrics."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from scipy import differentiate, optimize

from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.damping_series import damping_series
from dask_uncert.formulas.metric_bounds import metric_bounds
from dask_uncert.formulas.soft_confusion import DAMPING_FORMS, damping_factor
from dask_uncert.formulas.threshold_distributions import DISTRIBUTIONS, named_distribution, tangent_error

NAMED = [(name, df) for name in DISTRIBUTIONS for df in ((0.7, 3.0) if name == "student-t" else (None,))]


@pytest.mark.parametrize(("name", "df"), NAMED)
def test_slopes_and_bends_are_derivatives(name, df):
    shape = named_distribution(name, df)
    z = np.array([0.05, 0.3, 0.77, 0.95, 1.2, 2.5, 6.0])
    slope = differentiate.derivative(shape.certainty, z, initial_step=0.02).df
    np.testing.assert_allclose(shape.slope(z), slope, rtol=1e-7, atol=1e-9)
    bend = differentiate.derivative(shape.slope, z, initial_step=0.02).df
    np.testing.assert_allclose(shape.curvature(z), np.abs(bend), rtol=1e-6, atol=1e-8)
    assert shape.certainty(np.zeros(1)) == 0
    rising = np.linspace(0, shape.peak, 50)[:-1]
    falling = np.linspace(shape.peak, shape.peak + 5, 200)
    assert shape.peak == 0 or (np.diff(shape.curvature(rising)) >= 0).all()
    assert (np.diff(shape.curvature(falling)) <= 1e-15).all()


@settings(max_examples=60, deadline=None)
@given(which=st.sampled_from(NAMED), middle=st.floats(0.01, 6), share=st.floats(0, 1))
def test_no_tangent_misses_by_more_than_its_bound(which, middle, share):
    shape = named_distribution(*which)
    reach = middle * share
    z = np.linspace(middle - reach, middle + reach, 201)
    tangent = shape.certainty(np.array([middle])) + shape.slope(np.array([middle])) * (z - middle)
    allowed = tangent_error(shape, z[:1], z[-1:], np.array([reach]))[0]
    assert np.abs(shape.certainty(z) - tangent).max() <= allowed + 1e-14


@settings(max_examples=80, deadline=None)
@given(
    form=st.sampled_from(DAMPING_FORMS),
    damping=st.sampled_from([0.0, 1e-3, 0.5, 2.0, 7.0, 100.0]),
    ends=st.sampled_from([(0.0, 1.0), (0.0, 2.77), (0.5, 1.0), (4.0, 8.0), (64.0, math.inf)]),
    terms=st.integers(1, 18),
)
def test_a_series_is_as_good_as_it_says(form, damping, ends, terms):
    low, high = ends
    found = damping_series(form, damping, low, high, terms)
    assert found.coefficients.shape == (terms,)
    u = np.linspace(low, high, 500) if math.isfinite(high) else low + np.geomspace(1e-6, 1e6, 200)
    x = (2 * u - low - high) / (high - low) if math.isfinite(high) else np.zeros_like(u)
    value = chebyshev.chebval(x, found.coefficients) if math.isfinite(high) else found.coefficients[0]
    off = np.abs(value - damping_factor(u, damping, form)).max()
    assert off <= found.error + 1e-14
    if form != "gaussian" and math.isfinite(high):  # and not much worse
        assert found.error <= 30 * off + 1e-13


cells = st.lists(st.floats(0, 50) | st.just(0.0), min_size=4, max_size=4)


@settings(max_examples=100, deadline=None)
@given(values=cells, errors=st.lists(st.floats(0, 5), min_size=4, max_size=4), seed=st.integers(0, 2**32 - 1))
def test_metrics_stay_within_their_bounds(values, errors, seed):
    v, e = np.array(values), np.array(errors)
    bounds, middle = metric_bounds(v, e), cell_metrics(*v)
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 3, (300, 4)) - 1.0
    anywhere = np.concatenate([corners, rng.uniform(-1, 1, (300, 4))])
    points = np.maximum(v + e * anywhere, 0)
    for name, there in cell_metrics(*points.T).items():
        if np.isnan(middle[name]):
            assert np.isnan(bounds[name])
        else:
            off = np.abs(there - middle[name])
            assert (off[~np.isnan(off)] <= bounds[name] + 1e-9).all(), name


def test_bounds_of_metrics_are_tight_where_cells_are_well_known():
    v, e = np.array([30.0, 50.0, 7.0, 9.0]), np.array([0.3, 0.2, 0.1, 0.2])
    bounds, middle = metric_bounds(v, e), cell_metrics(*v)
    for name, bound in bounds.items():
        worst = max(
            -optimize.minimize(
                lambda x, name=name: -abs(float(cell_metrics(*(v + e * x))[name] - middle[name])),
                start, bounds=[(-1, 1)] * 4,
            ).fun
            for start in ([-0.5, -0.5, 0.5, 0.5], [0.5, 0.5, -0.5, -0.5])
        )  # fmt: skip
        assert worst <= bound + 1e-12
        assert bound <= 1.02 * worst
