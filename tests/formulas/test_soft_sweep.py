"""What a sweep stands on: parabolas for certainties and dampings with their errors, bounds of metrics."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import chebyshev
from scipy import optimize

from dask_uncert.formulas.confusion import cell_metrics
from dask_uncert.formulas.damping_series import NODES, damping_series, parabolas
from dask_uncert.formulas.metric_bounds import metric_bounds
from dask_uncert.formulas.soft_confusion import DAMPING_FORMS, damping_factor
from dask_uncert.formulas.threshold_distributions import DISTRIBUTIONS, named_distribution, parabola_error

NAMED = [(name, df) for name in DISTRIBUTIONS for df in ((0.7, 3.0) if name == "student-t" else (None,))]


@pytest.mark.parametrize(("name", "df"), NAMED)
def test_the_third_derivative_is_one_and_turns_where_it_says(name, df):
    shape = named_distribution(name, df)
    z = np.array([0.05, 0.3, 0.77, 0.95, 1.2, 2.5, 6.0])

    step = 0.005
    before, after = (shape.certainty(z - k * step) for k in (2, 1)), (shape.certainty(z + k * step) for k in (1, 2))
    third = np.array([-1, 2, -2, 1]) @ [*before, *after] / (2 * step**3)
    np.testing.assert_allclose(shape.third(z), third, atol=5e-4)
    assert shape.certainty(np.zeros(1)) == 0
    ends = np.array([0.0, *shape.turns, 50.0])
    for low, high in pairwise(ends):  # nothing larger between two turns
        sizes = np.abs(shape.third(np.linspace(low, high, 5000)))
        assert sizes.max() <= max(sizes[0], sizes[-1]) + 1e-12
    slope = np.diff(shape.certainty(np.linspace(0, 20, 2000)))
    assert (np.diff(slope) <= 1e-15).all()  # concave


@settings(max_examples=25, deadline=None)
@given(which=st.sampled_from(NAMED), low=st.floats(-2, 6), length=st.floats(1e-3, 3))
def test_no_parabola_misses_by_more_than_its_bound(which, low, length):
    shape = named_distribution(*which)
    z = np.linspace(low, low + length, 401)
    signed = np.sign(z) * shape.certainty(np.abs(z))
    nodes = low + length * (1 + NODES) / 2
    found = parabolas(np.sign(nodes) * shape.certainty(np.abs(nodes)))
    off = np.abs(chebyshev.chebval(np.linspace(-1, 1, 401), found) - signed).max()
    assert off <= parabola_error(shape, z[:1], z[-1:])[0] + 1e-14


@settings(max_examples=25, deadline=None)
@given(
    form=st.sampled_from(DAMPING_FORMS),
    damping=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 2.0, 7.0, 100.0]),
    upper=st.sampled_from([1.0, 2.77, math.inf]),
    bins=st.sampled_from([8, 32, 128]),
)
def test_a_series_is_as_good_as_it_says(form, damping, upper, bins):
    found = damping_series(form, damping, upper, bins)
    x = np.linspace(-1, 1, 201)
    v = (np.arange(bins)[:, np.newaxis] + (1 + x) / 2) / bins
    with np.errstate(divide="ignore"):
        u = v / (1 - v) if upper == math.inf else upper * v
    values = damping_factor(u, damping, form)
    off = np.abs(chebyshev.chebval(x, found.coefficients.T) - values).max(axis=1)
    assert (off <= found.error + 1e-14).all()
    assert (found.least <= values.min(axis=1) + 1e-15).all()
    assert (values.max(axis=1) <= found.most + 1e-15).all()
    assert np.median((found.error + 1e-13) / (off + 1e-13)) <= 5  # and not much worse


cells = st.lists(st.floats(0, 50) | st.just(0.0), min_size=4, max_size=4)


@settings(max_examples=25, deadline=None)
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
