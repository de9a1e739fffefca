"""MATLAB files of version 5: variables as SciPy reads them; anything but numbers is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from tests.support.readers import refused


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_part_of_any_variable(tmp_path_factory, data):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=4))
    dtype = data.draw(st.sampled_from(["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"]))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 100, shape).astype(dtype)
    path = tmp_path_factory.mktemp("m") / "a.mat"
    scipy.io.savemat(path, {"p": values, "other": "text"}, do_compression=data.draw(st.booleans()))
    stored = pickle.loads(pickle.dumps(open_stored(str(path), "p", "reference")))
    expected = scipy.io.loadmat(path)["p"]
    assert stored.shape == expected.shape
    assert stored.dtype == values.dtype
    region = tuple(slice(*sorted(data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))))) for _ in expected.shape)
    assert np.array_equal(stored[region], expected[region])
    assert np.array_equal(open_stored(str(path), "", "reference")[...], expected)


def test_variables_without_numbers_are_refused(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"p": np.zeros((3, 4)), "s": {"a": 1}, "q": np.ones((2, 2))})
    for array, message in (
        ("s", "s in .*a.mat is a struct; expected numbers"),
        ("x", "has no variable 'x'"),
        ("", "p, q"),
    ):
        refused(message, tmp_path / "a.mat", array, "mask")
    content = (tmp_path / "a.mat").read_bytes()
    for name, broken in {"cut.mat": content[:150], "text.mat": b"nothing", "none.mat": b""}.items():
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(InputError, match=f"mask: .*{name}") as error:
            open_stored(str(tmp_path / name), "p", "mask")[...]
        assert "\n" not in str(error.value)
    refused("there is no file", tmp_path / "nothing.mat", "p", "mask")
