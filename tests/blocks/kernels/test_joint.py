"""The joint histogram's kernels: compiled and reference leave the same integers; rows are closed as told."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.blocks.kernels.types import RowGrid
from dask_uncert.formulas.fixed_point import FIRST, SECOND
from dask_uncert.formulas.soft_sweep import moment_powers

ENGINES = pytest.mark.parametrize("kernels", [compiled, reference])


def grid(size, cuts=()):
    """Equal cells over [0, 1], cut at some values."""
    edges = np.unique([*(np.arange(size + 1) / size), *cuts])
    return RowGrid(edges, np.searchsorted(edges, np.arange(size + 1) / size))


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    number=st.integers(0, 400),
    upper=st.sampled_from([1.0, 2.77, math.inf]),
    bins=st.sampled_from([1, 8, 32]),
    in_row=st.booleans(),
)
def test_both_leave_the_same_integers(seed, number, upper, bins, in_row):
    rng = np.random.default_rng(seed)
    rows_of = grid(8, rng.random(6))
    edges = rows_of.edges
    p = np.where(rng.random(number) < 0.4, rng.choice([*edges, 1e-300, 1 - 1e-16], number), rng.random(number))
    above, levels = rng.random(number) < 0.5, rng.integers(0, 2, number)
    u = rng.exponential(1.0, number)
    u[rng.random(number) < 0.3] = rng.choice([0.0, 0.5, 1.0, 64.0, 1e6, math.inf, 5e-324])
    u = np.minimum(u, upper)
    powers, left = moment_powers(in_row, bins > 1), []
    for kernels in (compiled, reference):
        rows, offsets = np.empty(number, np.int64), np.empty(number)
        kernels.find_rows(p, above, rows_of, rows, offsets)
        moments = np.zeros((2, edges.size - 1, bins, len(powers)), np.int64)
        inputs = (rows, offsets, levels, u)
        before = [array.copy() for array in inputs]
        kernels.count_joint(*inputs, upper, moments)
        for array, old in zip(inputs, before, strict=True):
            np.testing.assert_array_equal(array, old)
        left.append((rows, offsets, moments))
    for mine, theirs in zip(*left, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    rows, offsets, moments = left[0]
    assert moments[..., 0].sum() == number
    assert (np.abs(offsets) <= 1).all()
    inside = (edges[rows] <= p) & (p <= edges[rows + 1])
    assert inside.all()


@ENGINES
def test_a_value_on_an_edge_goes_where_it_is_told(kernels):
    p = np.array([0.0, 0.25, 0.25, 0.5, 0.5, 0.6, 0.6, 1.0, 1.0])
    above = np.array([True, *(False, True) * 4])
    rows, offsets = np.empty(9, np.int64), np.empty(9)
    kernels.find_rows(p, above, grid(4, [0.6]), rows, offsets)
    assert rows.tolist() == [0, 0, 1, 1, 2, 2, 3, 4, 4]
    assert offsets.tolist() == [-1, 1, -1, 1, -1, 1, -1, 1, 1]


@ENGINES
@pytest.mark.parametrize(("upper", "bins"), [(2.0, 4), (math.inf, 8), (1.0, 1)])
def test_moments_are_sums_of_powers(kernels, upper, bins):
    rng = np.random.default_rng(0)
    u, y = np.minimum(rng.exponential(1.0, 200), upper), rng.random(200) * 2 - 1
    powers = moment_powers(True, bins > 1)
    moments = np.zeros((1, 1, bins, len(powers)), np.int64)
    kernels.count_joint(np.zeros(200, np.int64), y, np.zeros(200, np.int64), u, upper, moments)
    v = u / (1 + u) if upper == math.inf else u / upper
    for b in range(bins):
        here = (v >= b / bins) & ((v < (b + 1) / bins) | (b == bins - 1))
        x = (v[here] * bins - b) * 2 - 1
        for k, (i, j) in enumerate(powers):
            unit = (1.0, FIRST, SECOND)[min(i + j, 2)]
            expected = (y[here] ** i * x**j).sum()
            assert abs(moments[0, 0, b, k] / unit - expected) <= here.sum() / unit / 2 + 1e-12
