"""The joint histogram's kernels: compiled and reference leave the same integers; rows are closed as told."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.blocks.kernels.types import finder
from dask_uncert.formulas.fixed_point import decode
from dask_uncert.summaries.joint_histogram import uncertainty_intervals

ENGINES = pytest.mark.parametrize("kernels", [compiled, reference])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    number=st.integers(0, 400),
    upper=st.sampled_from([1.0, 2.77, math.inf]),
    moments=st.sampled_from([(1, 1), (1, 0), (3, 2), (16, 6)]),
)
def test_both_leave_the_same_integers(seed, number, upper, moments):
    rng = np.random.default_rng(seed)
    edges = np.unique([0.0, 1.0, *rng.random(6), *(np.arange(9) / 8)])
    p = np.where(rng.random(number) < 0.4, rng.choice(edges, number), rng.random(number))
    above, levels = rng.random(number) < 0.5, rng.integers(0, 2, number)
    u = rng.exponential(1.0, number)
    u[rng.random(number) < 0.3] = rng.choice([0.0, 0.5, 1.0, 64.0, 1e6])
    u = np.minimum(u, upper)
    intervals = np.array(uncertainty_intervals(upper, *moments))
    left = []
    for kernels in (compiled, reference):
        rows, offsets = np.empty(number, np.int64), np.empty(number)
        kernels.find_rows(p, above, finder(tuple(edges), 1.0), rows, offsets)
        columns = int(intervals[:, 2:].sum())
        counts = np.zeros((2, edges.size - 1, columns, 2), np.int64)
        for array in (rows, offsets, levels, u):
            array.setflags(write=False)
        kernels.count_joint(rows, offsets, levels, u, intervals, counts)
        left.append((rows, offsets, counts))
    for mine, theirs in zip(*left, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    rows, offsets, counts = left[0]
    assert decode(counts[:, :, _starts(intervals)]).sum() == number
    assert (np.abs(offsets) <= 1 + 1e-9).all()
    inside = (edges[rows] <= p) & (p <= edges[rows + 1])
    assert inside.all()


def _starts(intervals):
    return np.concatenate([[0], np.cumsum(intervals[:, 2])[:-1]]).astype(int)


@ENGINES
def test_a_value_on_an_edge_goes_where_it_is_told(kernels):
    edges = finder((0.0, 0.25, 0.5, 1.0), 1.0)
    p = np.array([0.0, 0.25, 0.25, 0.5, 0.5, 1.0, 1.0])
    above = np.array([True, False, True, False, True, False, True])
    rows, offsets = np.empty(7, np.int64), np.empty(7)
    kernels.find_rows(p, above, edges, rows, offsets)
    assert rows.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert offsets.tolist() == [-1, 1, -1, 1, -1, 1, 1]


@ENGINES
def test_moments_are_sums_of_chebyshev_polynomials(kernels):
    rng = np.random.default_rng(0)
    u, offsets = rng.random(200) * 2, rng.random(200) * 2 - 1
    intervals = np.array([(0.0, 2.0, 5, 3)])
    counts = np.zeros((1, 1, 8, 2), np.int64)
    kernels.count_joint(np.zeros(200, np.int64), offsets, np.zeros(200, np.int64), u, intervals, counts)
    waves = np.cos(np.arange(5)[:, np.newaxis] * np.arccos(u - 1))
    expected = [*waves.sum(axis=1), *(waves[:3] * offsets).sum(axis=1)]
    np.testing.assert_allclose(decode(counts[0, 0]), expected, rtol=0, atol=1e-10)
