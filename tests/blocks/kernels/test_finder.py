"""The finder of bins says what a search among the edges says, for any edges and on every one of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks.kernels.bins import find_bin, find_bins
from dask_uncert.blocks.kernels.measures import STRIP
from dask_uncert.blocks.kernels.types import finder
from dask_uncert.summaries.calibration import fine_edges
from dask_uncert.summaries.distribution import edges_with, value_edges_with


def bins_of(values, upper, table):
    return [find_bin(value, value / upper, table) for value in values]


def bins_of_strips(values, upper, table):
    bins, strip, places = np.empty(values.size, np.int64), np.zeros(STRIP), np.empty(STRIP, np.int64)
    for start in range(0, values.size, STRIP):
        width = min(STRIP, values.size - start)
        strip[:width] = values[start : start + width]
        find_bins(strip, strip / upper, table, places)
        bins[start : start + width] = places[:width]
    return bins


def check(edges, upper, rng, octaves=False):
    inner = np.asarray(edges)
    values = np.concatenate(
        [
            inner,
            np.nextafter(inner[:-1], np.inf),
            np.nextafter(inner[1:], 0),
            rng.random(3000) * upper,
            10.0 ** rng.uniform(-40, 0, 1000) * upper,
            [0.0, upper, 5e-324],
        ]
    )
    wanted = np.maximum(np.searchsorted(inner, values, side="left") - 1, 0)
    assert np.array_equal(bins_of(values, upper, finder(edges, upper, octaves)), wanted)
    assert np.array_equal(bins_of_strips(values, upper, finder(edges, upper, octaves)), wanted)


@pytest.mark.slow
@given(
    thresholds=st.lists(st.floats(1e-9, 1 - 1e-9), max_size=8),
    upper=st.sampled_from([1.0, float(np.log(2)), float(np.log(17)), 5.0]),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_thresholds(thresholds, upper, seed):
    chosen = tuple(t * upper for t in thresholds)
    check(edges_with(chosen, upper), upper, np.random.default_rng(seed))
    check(value_edges_with(chosen, upper), upper, np.random.default_rng(seed), octaves=True)


def test_bins_of_values_have_the_steps_of_a_thousandth_and_of_octaves():
    edges = np.array(value_edges_with((0.3333,), 1.0))
    assert np.isin([i / 1000 for i in range(1001)], edges).all()
    assert 0.3333 in edges
    widths = np.diff(edges)
    assert widths.max() <= 0.001 + 1e-15
    near = edges[1:] > 2.0**-14
    assert (widths[near] <= edges[1:][near] / 64).all()
    assert (widths[1:] <= edges[1:-1] / 16).all()


@settings(max_examples=8)
@given(
    bins=st.integers(1, 200),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    seed=st.integers(0, 99),
)
def test_calibration_edges_in_every_dtype(bins, dtype, seed):
    """Rounded to float16, neighbouring edges may fall together."""
    edges = np.asarray(fine_edges(bins)).astype(dtype).astype(np.float64)
    check(tuple(edges.tolist()), 1.0, np.random.default_rng(seed))


def test_edges_closer_than_any_cell():
    edges = edges_with((0.5, 0.5 + 1e-9, 0.5 + 2e-9), 1.0)
    check(edges, 1.0, np.random.default_rng(0))
