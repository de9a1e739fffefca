"""Slices that show a volume: across its shortest axis, where most is wrong."""

from __future__ import annotations

import numpy as np
import pytest
import zarr

from dask_uncert.io.map_slices import most_wrong_slice, read_slice
from dask_uncert.io.maps import MapWriter


def maps(folder, dims=("z", "y", "x"), **arrays):
    shape = next(iter(arrays.values())).shape[: len(dims)]
    writer = MapWriter(str(folder))
    about, extras = {}, {}
    for name, values in arrays.items():
        fill = 255 if values.dtype == np.uint8 else -1.0
        about[name] = (values.dtype.name, fill, {"_FillValue": fill})
        extras[name] = {"rgb": 3} if values.ndim > len(dims) else {}
    writer.create(about, dims, shape, [max(1, n // 2) for n in shape], {}, extras)
    writer.write(arrays, [0] * len(dims))
    return str(folder)


@pytest.mark.parametrize("shortest", [0, 1, 2])
def test_the_slice_with_most_wrong_pixels_is_shown(tmp_path, shortest):
    shape = [9, 8, 9]
    shape[shortest] = 5
    rng = np.random.default_rng(shortest)
    correct = rng.choice(np.array([0, 1, 255], "uint8"), shape, p=[0.2, 0.7, 0.1])
    values = rng.random(shape)
    values[0, 0, 0] = -1.0
    store = maps(tmp_path / "m.zarr", ("a", "b", "c"), correct=correct, gini=values)
    at = most_wrong_slice(store, ["gini", "correct"])
    others = tuple(i for i in range(3) if i != shortest)
    assert at == (shortest, int(np.argmax((correct == 0).sum(axis=others))))
    shown, dims = read_slice(store, "gini", at)
    expected = np.take(values, at[1], axis=shortest)
    np.testing.assert_array_equal(shown, np.where(expected == -1.0, np.nan, expected))
    assert dims == tuple("abc"[i] for i in others)
    right, _ = read_slice(store, "correct", at)
    assert np.isnan(right).sum() == (np.take(correct, at[1], axis=shortest) == 255).sum()
    assert most_wrong_slice(store, ["gini"]) == (shortest, 2)


def test_where_nothing_is_wrong_the_middle_is_shown(tmp_path):
    correct = np.ones((7, 5, 6), "uint8")
    assert most_wrong_slice(maps(tmp_path / "m.zarr", correct=correct), ["correct"]) == (1, 2)


def test_x_runs_to_the_right_and_colours_stay(tmp_path):
    picture = np.arange(4 * 6 * 2 * 3, dtype="uint8").reshape(4, 6, 2, 3)
    store = maps(tmp_path / "m.zarr", ("x", "y", "z"), soft=picture)
    shown, dims = read_slice(store, "soft", most_wrong_slice(store, ["soft"]))
    assert dims == ("y", "x")
    np.testing.assert_array_equal(shown, picture[:, :, 1].swapaxes(0, 1))
    thinned, _ = read_slice(store, "soft", (2, 0), most=3)
    np.testing.assert_array_equal(thinned, picture[::2, ::2, 0].swapaxes(0, 1))


def test_a_map_of_two_dimensions_is_shown_whole(tmp_path):
    values = np.random.default_rng(0).random((5, 7))
    store = maps(tmp_path / "m.zarr", ("y", "x"), gini=values)
    assert most_wrong_slice(store, ["gini"]) is None
    shown, dims = read_slice(store, "gini", None)
    np.testing.assert_array_equal(shown, values)
    assert dims == ("y", "x")


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1, 1), (1, -1, -1)])
@pytest.mark.parametrize("order", ["xyz", "zyx", "yzx"])
@pytest.mark.parametrize("across", "xyz")
def test_patients_are_seen_from_the_feet_or_the_front(tmp_path, signs, order, across):
    """Values are where voxels lie: x to the patient's right, y to the front, z to the head."""
    shape = [4 if axis == across else 6 + "xyz".index(axis) for axis in order]
    sign = dict(zip("xyz", signs, strict=True))
    index = dict(zip(order, np.indices(shape), strict=True))
    place = {axis: sign[axis] * index[axis] for axis in "xyz"}
    store = maps(tmp_path / "m.zarr", tuple(order), code=sum(place[a] * 10**k for k, a in enumerate("xyz")))
    array = zarr.open_group(store, mode="r+")["code"]
    affine = np.eye(4)
    affine[:3, :3] = 0
    for column, axis in enumerate(order):
        affine["xyz".index(axis), column] = 2.0 * sign[axis]
    array.attrs.update({"affine": affine.tolist(), "affine_dims": list(order)})
    shown, dims = read_slice(store, "code", most_wrong_slice(store, ["code"]))
    one, other = (axis for axis in "xyz" if axis != across)
    assert dims == (other, one)
    k = {axis: 10 ** "xyz".index(axis) for axis in "xyz"}
    assert (np.diff(shown, axis=1) == -k[one]).all()  # across: towards the left, or the back
    assert (np.diff(shown, axis=0) == -k[other]).all()  # down: towards the back, or the feet
