"""NetCDF and HDF5: as xarray reads them; packing, coordinates, chunks never written; nothing outside of the file."""

from __future__ import annotations

import pickle
import threading
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.io.open import open_stored
from tests.support import DATA
from tests.support.readers import refused

SAMPLES = DATA / "formats" / "netcdf"
CLASSIC = Path(scipy.io.__file__).parent / "tests" / "data"


def variables():
    files = [*SAMPLES.glob("*.nc"), CLASSIC / "example_1.nc", CLASSIC / "example_3_maskedvals.nc"]
    for file in sorted(files):
        with warnings.catch_warnings(), xr.open_dataset(file, decode_cf=False) as found:
            warnings.simplefilter("ignore")
            yield from (
                pytest.param(file, name, id=f"{file.name}:{name}")
                for name, one in found.variables.items()
                if one.ndim > 1 and one.dtype.kind in "biuf"
            )


@pytest.mark.parametrize(("file", "name"), [*variables()])
def test_variables_equal_those_of_xarray(file, name):
    stored = pickle.loads(pickle.dumps(open_stored(str(file), name, "p")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(file, decode_times=False) as found:
            expected, dims = found[name].values, found[name].dims
            known = {dim: found[dim].values for dim in dims if dim in found.variables}
    values = stored.decoding.values(stored[...], "values").astype("f8")
    absent = stored.decoding.absent(stored[...])
    values = values if absent is None else np.where(absent, np.nan, values)
    assert stored.dims == dims
    assert np.allclose(values, expected, rtol=1e-6, equal_nan=True)
    for dim, (coordinate, _) in stored.coordinates(dims).items():
        assert np.allclose(coordinate, known[dim])


@given(st.data())
def test_any_part(tmp_path_factory, data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(["u1", "<i2", ">i4", "<f4", ">f8"]))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 100, shape).astype(dtype)
    path = tmp_path_factory.mktemp("h") / "a.h5"
    chunks = data.draw(st.sampled_from([None, tuple(min(2, n) for n in shape)]))
    with h5py.File(path, "w") as file:
        file.create_dataset("group/a", data=values, chunks=chunks)
    stored = open_stored(str(path), "group/a", "p")
    region = tuple(slice(*sorted(data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6))))) for _ in shape)
    assert np.array_equal(stored[region], values[region])
    assert stored[...].dtype == values.dtype.newbyteorder("=")
    assert stored.absent_chunks() == []
    assert stored.dims is None


def test_chunks_that_were_never_written(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        one = file.create_dataset("a", (4, 4), "u1", chunks=(2, 2), fillvalue=0)
        one[:2, 2:] = 1
    assert open_stored(str(tmp_path / "a.h5"), "a", "p").absent_chunks() == [(0, 0), (1, 0), (1, 1)]


def test_unsigned_numbers_in_signed_storage(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        one = file.create_dataset("a", data=np.array([-1, 5, -2], "i1"))
        one.attrs["_Unsigned"], one.attrs["_FillValue"] = "true", np.int8(-1)
    stored = open_stored(str(tmp_path / "a.h5"), "a", "p")
    assert stored[...].tolist() == [255, 5, 254]
    assert stored.decoding.absent(stored[...]).tolist() == [True, False, False]


def test_matlab_7_3_has_its_own_order_of_axes(tmp_path):
    values = np.arange(24.0).reshape(2, 3, 4)  # as MATLAB sees it
    with h5py.File(tmp_path / "a.mat", "w", userblock_size=512) as file:
        one = file.create_dataset("p", data=values.T, chunks=(2, 3, 1))
        one.attrs["MATLAB_class"] = np.bytes_("double")
    stored = open_stored(str(tmp_path / "a.mat"), "p", "p")
    assert stored.shape == (2, 3, 4)
    assert stored.chunks == (1, 3, 2)
    assert np.array_equal(stored[...], values)
    assert np.array_equal(stored[1:, :2, 3], values[1:, :2, 3])


def test_nothing_outside_the_file_is_read(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = np.arange(3)
    (tmp_path / "raw").write_bytes(bytes(24))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["linked"] = h5py.ExternalLink("other.h5", "secret")
        file["soft"] = h5py.SoftLink("/linked")
        file.create_dataset("raw", (3,), "f8", external=[(str(tmp_path / "raw"), 0, 24)])
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource("other.h5", "secret", (3,))
        file.create_virtual_dataset("virtual", layout)
    for name, said in (
        ("linked", "is a link"),
        ("soft", "is a link"),
        ("raw", "are in other files"),
        ("virtual", "are in"),
    ):
        refused(f"mask: .*{said}", tmp_path / "a.h5", name, "mask")


def test_side_reads_stay_inside_the_file(tmp_path):
    """A lone link, coordinates that are virtual, and a grid mapping that is a link."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["secret"] = np.arange(3.0)
        file["crs"] = 0
        file["crs"].attrs["crs_wkt"] = "secret"
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["linked"] = h5py.ExternalLink("other.h5", "secret")
    refused("has several arrays", tmp_path / "link.h5", "", "mask")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "secret", (3,))
        file.create_virtual_dataset("x", layout).make_scale("x")
        one = file.create_dataset("a", data=np.arange(3))
        one.dims[0].attach_scale(file["x"])
        one.attrs["grid_mapping"] = "crs"
        file["crs"] = h5py.ExternalLink("other.h5", "crs")
    stored = open_stored(str(tmp_path / "a.h5"), "a", "mask")
    assert stored.dims == ("x",)
    assert stored.coordinates(("x",)) == {}
    assert stored.crs is None


def test_datasets_without_numbers_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["text"], file["a"], file["group/b"] = "x", np.zeros((2, 2)), np.zeros((2, 2))
        file["pairs"] = np.zeros(2, [("x", "f4"), ("y", "f4")])
    for name, said in (
        ("text", "holds object"), ("pairs", "expected real numbers"), ("nothing", "has no array 'nothing'; it has: a"),
        ("group", "has several arrays; name one"), ("", "has several arrays"), ("a/../b", "must not contain"),
    ):  # fmt: skip
        refused(f"p: .*{said}", tmp_path / "a.h5", name, "p")


def test_threads_share_one_file(tmp_path):
    values = np.random.default_rng(0).integers(0, 255, (100, 100)).astype("u1")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(10, 10), compression="gzip")
    stored, wrong = open_stored(str(tmp_path / "a.h5"), "a", "p"), []

    def read(i):
        for k in range(0, 100, 10):
            wrong.extend([k] * (not np.array_equal(stored[i : i + 10, k:], values[i : i + 10, k:])))

    threads = [threading.Thread(target=read, args=(i,)) for i in range(0, 100, 10)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert not wrong
