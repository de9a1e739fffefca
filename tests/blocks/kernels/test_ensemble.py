"""Samples added one member at a time: compiled and reference agree, and a pixel does not depend on its place."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.blocks.encoding import rounding_of, three_axes
from dask_uncert.blocks.kernels import compiled, reference
from dask_uncert.blocks.kernels.types import MISSING, OFF
from tests.support.arrays import probability_vectors


def drawn(rng, members, pixels, classes, dtype):
    """Vectors with vertices, ties, the centre, holes and vectors off the simplex among them."""
    p = probability_vectors(rng, (members, pixels), classes).astype(dtype)
    p[rng.random((members, pixels)) < 0.03, 0] = np.nan
    p[rng.random((members, pixels)) < 0.03] *= 2
    return p


def added(engine, members, pixels, classes, axis):
    number = members[0].size // classes
    sums, entropies = np.zeros((classes, number)), np.zeros(number)
    votes, state = np.zeros((classes, number), np.int32), np.zeros(number, np.uint8)
    values = np.zeros((4, number))
    for member in members:
        stored, dtype = three_axes(member, axis, None)
        rounding = rounding_of(dtype, classes)
        engine.add_member(stored, pixels, rounding.tolerance, rounding.exact, sums, entropies, votes, state)
    engine.close_members(pixels, len(members), math.log(classes), sums, entropies, votes, state, values)
    return sums[:, pixels].T, votes[:, pixels].T, state[pixels], values[:, pixels]


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32 - 1),
    members=st.integers(1, 5),
    classes=st.integers(2, 20),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    axis=st.sampled_from([0, 1]),
    pixels=st.integers(1, 300),
)
def test_engines_agree(seed, members, classes, dtype, axis, pixels):
    rng = np.random.default_rng(seed)
    p = drawn(rng, members, pixels, classes, dtype)
    cubes = [member if axis else np.ascontiguousarray(member.T) for member in p]
    for cube in cubes:
        cube.setflags(write=False)
    chosen = np.flatnonzero(rng.random(pixels) < 0.8)
    one, other = (added(engine, cubes, chosen, classes, axis) for engine in (compiled, reference))
    usable = (one[2] & (MISSING | OFF)) == 0
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1][usable], other[1][usable])
    np.testing.assert_array_equal(one[2], other[2])
    np.testing.assert_allclose(one[3], other[3], rtol=0, atol=2e-12, equal_nan=True)
    for sums, _, state, values in (one, other):
        usable = (state & (MISSING | OFF)) == 0
        assert np.isnan(sums[~usable]).all()
        assert np.isnan(values[:, ~usable]).all()
        inside = values[:, usable]
        assert (inside >= 0).all()
        assert not np.signbit(inside).any()
        assert (inside[:3] <= math.log(classes)).all()
        assert (inside[3] < 1).all()
        assert (sums[usable] <= 1).all()


def test_a_pixel_does_not_depend_on_its_place():
    p = drawn(np.random.default_rng(3), 4, 500, 7, "float32")
    whole = added(compiled, list(p), np.arange(500), 7, 1)
    for i in range(0, 500, 37):
        alone = added(compiled, [member[i : i + 1] for member in p], np.arange(1), 7, 1)
        np.testing.assert_array_equal(alone[3][:, 0], whole[3][:, i])
        np.testing.assert_array_equal(alone[0][0], whole[0][i])


@pytest.mark.parametrize("engine", [compiled, reference])
def test_certain_samples_are_exactly_certain(engine):
    """Also where storage missed 1: the vertex is divided by itself."""
    p = np.eye(5, dtype="float32") * np.float32(0.99997)
    sums, _, _, values = added(engine, [p, p, p], np.arange(5), 5, 1)
    assert np.array_equal(sums, np.eye(5))
    assert np.array_equal(values, np.zeros((4, 5)))
