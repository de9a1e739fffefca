"""A reader is chosen by the name's ending; one whose library is not there says what to install."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.io.decoding import AS_STORED, Decoding
from dask_uncert.io.indexing import spans_of
from dask_uncert.io.open import FORMATS, format_of, reader_of
from tests.support.readers import refused


@pytest.mark.parametrize(
    ("store", "module"),
    [
        ("a/b.nii.gz", "nifti"), ("s3://x/B.NII", "nifti"), ("a.tiff", "geotiff"), ("https://x/a.tif?token=1.nc", "geotiff"),
        ("a.nc", "netcdf4"), ("a.h5", "netcdf4"), ("a.hdr", "envi"), ("a.npz", "numpy"), ("a.mat", "matlab"),
        ("a.zarr", "zarr"), ("a.ome.zarr", "zarr"), ("a.zarr.zip", "zarr"), ("folder", "zarr"),
    ],
)  # fmt: skip
def test_the_format_is_known_by_the_ending(store, module):
    assert reader_of(format_of(store).name).__module__ == f"dask_uncert.io.readers.{module}"


@pytest.mark.parametrize(
    ("form", "library"),
    [
        (form, {"geotiff": "rasterio", "netcdf": "h5py", "envi": "spectral"}[form.extra])
        for form in FORMATS
        if form.extra
    ],
)
def test_a_missing_library_is_named_with_its_extra(monkeypatch, tmp_path, form, library):
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    reader = {"netcdf": "netcdf4"}.get(form.extra, form.extra)
    for name in [name for name in sys.modules if name.startswith(f"dask_uncert.io.readers.{reader}")]:
        monkeypatch.delattr(name, raising=False)
        monkeypatch.delitem(sys.modules, name)
    refused(
        rf"mask: reading .* needs {library}.*, which is not installed.*\[{form.extra}\]",
        tmp_path / f"a{form.endings[0]}",
        "",
        "mask",
    )


@given(st.data())
def test_spans_select_what_numpy_selects(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    values = np.arange(np.prod(shape)).reshape(shape)
    part = st.one_of(
        st.tuples(st.integers(-8, 8), st.integers(-8, 8), st.integers(1, 3)).map(lambda t: slice(*t)),
        st.just(slice(None)),
    )
    region = [data.draw(st.one_of(part, st.integers(-n, n - 1))) for n in shape]
    if data.draw(st.booleans()):
        region = [*region[: data.draw(st.integers(0, len(region)))], ...]
    spans, rest = spans_of(tuple(region), shape)
    assert np.array_equal(values[tuple(slice(a, b) for a, b in spans)][rest], values[tuple(region)])


@given(st.data())
def test_missing_codes_are_compared_in_the_storage_dtype(data):
    dtype = np.dtype(data.draw(st.sampled_from(["u1", "i2", "u4", "f4", "f8"])))
    values = np.array(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=20)), dtype)
    codes = data.draw(st.lists(st.sampled_from([0, 3, 9.0, 2.5, -1, 1e300, float("nan")]), max_size=3))
    found = Decoding(missing=tuple(codes)).absent(values)
    expected = np.isin(values, [c for c in codes if c == c and abs(c) < 100])
    if found is None:
        assert not expected.any()
    else:
        assert np.array_equal(found, expected)
    assert AS_STORED.absent(values) is None


def test_a_float32_code_as_text_of_a_float64():
    values = np.array([-3.4e38, 1.0], "f4")
    assert Decoding(missing=(-3.3999999521443642e38,)).absent(values).tolist() == [True, False]
    assert Decoding(missing=(float("nan"),)).absent(np.array([np.nan, 1])).tolist() == [True, False]
