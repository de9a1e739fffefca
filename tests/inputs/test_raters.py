"""Several raters: their mean is what a plain loop over pixels says, however it is sliced."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.inputs.cube import Cube
from dask_uncert.inputs.raters import mean_of_raters, raters_of
from dask_uncert.io.geometry import geometry_of


def cubes(*arrays, dims=("y", "x")):
    return [Cube(f"reference_{i}", np.asarray(a), dims, None, f"file {i}") for i, a in enumerate(arrays)]


@given(seed=st.integers(0, 1000), raters=st.integers(1, 4), classes=st.integers(2, 4), data=st.data())
def test_shares_are_votes_over_raters(seed, raters, classes, data):
    rng = np.random.default_rng(seed)
    codes, ignore = [10 * (i + 1) for i in range(classes)], [0, 99]
    votes = rng.choice([*codes, *([0] if seed % 2 else [])], (raters, 5, 6)).astype("uint8")
    mean = mean_of_raters(cubes(*votes), codes, ignore, shares=False)
    expected = np.empty((5, 6, classes))
    for y, x in np.ndindex(5, 6):
        chosen = votes[:, y, x]
        for i, code in enumerate(codes):
            expected[y, x, i] = np.nan if (chosen == 0).any() else (chosen == code).sum() / raters
    if classes == 2:
        expected = expected[:, :, 1]
    a, b = sorted(data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))))
    assert mean.data.shape == expected.shape
    assert mean.data[...].dtype == np.float64
    np.testing.assert_array_equal(mean.data[...], expected)
    np.testing.assert_array_equal(mean.data[a:b], expected[a:b])
    np.testing.assert_array_equal(mean.data[:, 2:4], expected[:, 2:4])
    if classes > 2:
        np.testing.assert_array_equal(mean.data[a:b, :, 1:2], expected[a:b, :, 1:2])
        assert mean.dims == ("y", "x", "class")


def test_shares_are_averaged():
    one, two = np.array([[0.0, 0.5, np.nan]], "float32"), np.array([[1.0, 0.25, 1.0]], "float32")
    mean = mean_of_raters(cubes(one, two), [0, 1], [], shares=True)
    np.testing.assert_array_equal(mean.data[...], [[0.5, 0.375, np.nan]])
    with pytest.raises(InputError, match="reference_0: file 0 holds uint8; expected shares"):
        mean_of_raters(cubes(np.zeros((2, 2), "uint8")), [0, 1], [], shares=True)


def test_a_nan_code_leaves_the_pixel_undefined():
    mean = mean_of_raters(cubes([[0.0, np.nan, 1.0]], [[0.0, 0.0, 1.0]]), [0, 1], [], shares=False)
    np.testing.assert_array_equal(mean.data[...], [[0.0, np.nan, 1.0]])


def test_raters_that_do_not_fit_are_named():
    with pytest.raises(InputError, match=r"reference_1: file 1 covers .* but reference_0, file 0, covers"):
        mean_of_raters(cubes(np.zeros((2, 3), int), np.zeros((3, 2), int)), [0, 1], [], shares=False)
    mean = mean_of_raters(cubes([[0, 1]], [[7, 8]]), [0, 1], [9], shares=False)
    with pytest.raises(InputError, match=r"reference_1: file 1 holds codes .* nor ignored: 7, 8"):
        mean.data[...]
    with pytest.raises(InputError, match="holds no rater"):
        raters_of(Cube("reference", np.zeros((0, 2), int), ("rater", "y"), None, "file"))


@given(axis=st.integers(0, 2), seed=st.integers(0, 100))
def test_raters_along_an_axis_are_separated(axis, seed):
    stacked = np.random.default_rng(seed).integers(0, 2, (3, 4, 5))
    dims = ["y", "x"]
    dims.insert(axis, "rater")
    found = raters_of(Cube("reference", np.moveaxis(stacked, 0, axis), tuple(dims), None, "file"))
    assert list(found) == ["rater_0", "rater_1", "rater_2"]
    for one, expected in zip(found.values(), stacked, strict=True):
        assert one.dims == ("y", "x")
        np.testing.assert_array_equal(one.data[1:3, ...], expected[1:3])
    mean = mean_of_raters(list(found.values()), [0, 1], [], shares=False)
    np.testing.assert_array_equal(mean.data[...], stacked.mean(axis=0))
    assert raters_of(Cube("reference", stacked[0], ("y", "x"))) == {}


def test_raters_with_a_reversed_axis_are_aligned():
    forth = geometry_of([[0, 2, 0], [3, 0, 0], [0, 0, 0], [0, 0, 1]], ["y", "x"])
    back = geometry_of([[0, -2, 4], [3, 0, 0], [0, 0, 0], [0, 0, 1]], ["y", "x"])
    one, two = cubes([[0, 0, 1]], [[1, 0, 0]])
    placed = [Cube(c.name, c.data, c.dims, None, c.where, g) for c, g in ((one, forth), (two, back))]
    mean = mean_of_raters(placed, [0, 1], [], shares=False)
    np.testing.assert_array_equal(mean.data[...], [[0, 0, 1]])
    assert mean.geometry == forth
