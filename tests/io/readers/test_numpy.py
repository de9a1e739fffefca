"""`.npy` and `.npz`: numbers as saved, mapped or read once; no object is ever unpickled."""

from __future__ import annotations

import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from tests.support.readers import refused


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_part_of_any_array(tmp_path_factory, data):
    shape = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    dtype = data.draw(st.sampled_from(["?", "u1", "<i2", ">i4", "<f2", ">f4", "<f8"]))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 2, shape).astype(dtype)
    if data.draw(st.booleans()):
        values = np.asfortranarray(values)
    folder = tmp_path_factory.mktemp("n")
    np.save(folder / "a.npy", values)
    np.savez_compressed(folder / "b.npz", p=values, other=np.zeros(3))
    cut = st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 3)).map(lambda t: slice(*t))
    region = tuple(data.draw(cut) for _ in shape)
    for store, array in (("a.npy", ""), ("b.npz", "p")):
        stored = pickle.loads(pickle.dumps(open_stored(str(folder / store), array, "reference")))
        assert stored.shape == values.shape
        assert stored.dims is None
        assert np.array_equal(stored[region], values[region])
        assert stored[...].dtype == stored.dtype == values.dtype.newbyteorder("=")
        assert stored.held == (values.nbytes if array else 0)


class Touched:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_objects_are_refused_and_nothing_runs(tmp_path):
    mark = tmp_path / "run"
    values = np.array([Touched(mark)], object)
    np.save(tmp_path / "a.npy", values, allow_pickle=True)
    np.savez(tmp_path / "b.npz", p=values)
    for store, array in (("a.npy", ""), ("b.npz", "p")):
        refused("holds Python objects, and reading them would run code", tmp_path / store, array, "mask")
    assert not mark.exists()


def test_impossible_headers_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 5)))
    content = (tmp_path / "a.npy").read_bytes()
    wrong = {
        "cut.npy": content[:-8],
        "long.npy": content + b"0",
        "text.npy": b"nothing",
        "huge.npy": content.replace(b"(4, 5)", b"(9**9,"),
        "version.npy": content[:6] + b"\x09" + content[7:],
        "shape.npy": content.replace(b"(4, 5)", b"(-4,5)"),
        "c.npz": b"PK no zip",
    }
    for name, broken in wrong.items():
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(InputError, match=f"mask: .*{name}") as error:
            open_stored(str(tmp_path / name), "", "mask")
        assert "\n" not in str(error.value)
    np.save(tmp_path / "c.npy", np.zeros(3, "c8"))
    refused("holds complex64", tmp_path / "c.npy", "", "mask")
    np.savez(tmp_path / "two.npz", a=np.zeros(2), b=np.ones(2))
    refused("has no array 'c'; it has: a, b", tmp_path / "two.npz", "c", "mask")
    refused("there is no file", tmp_path / "nothing.npz", "c", "mask")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("p.npy", header.getvalue() + bytes(1 << 20))
    refused(r"states 8796093022208 bytes in its header, but its archive states", tmp_path / "a.npz", "p", "mask")


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(5))
    stored = open_stored(str(tmp_path / "a.npy"), "", "mask")
    before = stored.fingerprint()
    np.save(tmp_path / "a.npy", np.ones(5))
    os.utime(tmp_path / "a.npy", (1, 1))
    assert open_stored(str(tmp_path / "a.npy"), "", "mask").fingerprint() != before
    with pytest.raises(InputError, match="has changed since it was opened"):
        stored[...]
