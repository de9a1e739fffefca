"""ENVI rasters: case F4 in every layout; headers as instruments write them; headers that cannot be right."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from tests.support.readers import refused

AXES = {"bsq": (2, 0, 1), "bil": (0, 2, 1), "bip": (0, 1, 2)}
TYPES = {"u1": 1, "i2": 2, "i4": 3, "f4": 4, "f8": 5, "u2": 12, "u4": 13, "i8": 14, "u8": 15}


def write(folder, values, interleave="bsq", order="<", offset=0, name="a", ending=".img", more="", **words):
    """values: (lines, samples, bands)."""
    lines, samples, bands = values.shape
    stated = {
        "samples": samples, "lines": lines, "bands": bands, "header offset": offset,
        "data type": TYPES[values.dtype.str[1:]], "interleave": interleave, "byte order": int(order == ">"),
        **{key.replace("_", " "): value for key, value in words.items()},
    }  # fmt: skip
    text = "ENVI\n" + "\n".join(f"{key} = {value}" for key, value in stated.items() if value is not None)
    (folder / f"{name}.hdr").write_text(f"{text}\n{more}\n")
    stored = values.astype(values.dtype.newbyteorder(order)).transpose(AXES.get(interleave, AXES["bsq"]))
    (folder / f"{name}{ending}").write_bytes(b"\7" * offset + stored.tobytes())
    return str(folder / f"{name}.hdr")


@pytest.mark.parametrize(("interleave", "order", "offset"), list(itertools.product(AXES, "<>", (0, 32))))
def test_every_layout(tmp_path, interleave, order, offset):
    v = (100 * np.arange(2)[:, None, None] + 10 * np.arange(2)[:, None] + np.arange(3)).astype("u2")
    path = write(tmp_path, v, interleave, order, offset)
    stored = open_stored(path, "", "p")
    assert int(stored[1, 0, 2]) == 102
    assert np.array_equal(stored[...], v)
    assert stored.dims == ("y", "x", "band")
    assert stored[...].dtype.isnative
    assert np.array_equal(open_stored(path.replace(".hdr", ".img"), "", "p")[...], v)


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_part_of_any_raster(tmp_path_factory, data):
    shape = data.draw(st.tuples(*[st.integers(1, 7)] * 3))
    dtype = data.draw(st.sampled_from(sorted(TYPES)))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 100, shape).astype(dtype)
    path = write(
        tmp_path_factory.mktemp("e"), values, data.draw(st.sampled_from(sorted(AXES))), data.draw(st.sampled_from("<>")),
        data.draw(st.integers(0, 40)), ending=data.draw(st.sampled_from(["", ".dat", ".bsq"])),
    )  # fmt: skip
    stored = pickle.loads(pickle.dumps(open_stored(path, "", "p", ["y", "x", "class"])))
    cut = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 3)).map(lambda t: slice(*t))
    region = tuple(data.draw(cut) for _ in shape)
    assert np.array_equal(stored[region], values[region])
    if shape[2] == 1:
        assert open_stored(path, "", "p").dims == ("y", "x")


def test_fields_of_a_header(tmp_path):
    more = (
        "data ignore value = -9999\nreflectance scale factor = 10000\nWavelength = {\n 400.5,\n 500.25 }\n"
        "map info = {UTM, 1.000, 1.000, 500000.000, 4480000.000, 2.0e+01, 2.0e+01, 16, North, WGS-84, units=Meters}\n"
        'coordinate system string = {PROJCS["UTM",GEOGCS["WGS 84"],AUTHORITY["EPSG","32616"]]}\n'
    )
    stored = open_stored(write(tmp_path, np.zeros((3, 4, 2), "f4"), more=more), "", "p")
    assert stored.decoding.missing == (-9999.0,)
    assert stored.decoding.scale == 1 / 10000
    assert stored.attributes["wavelength"] == ["400.5", "500.25"]
    found = stored.geometry(stored.dims)
    assert found.origin == (500_010, 4_479_990, 0)
    assert found.steps == ((0, -20, 0), (20, 0, 0))
    assert (found.crs, found.unit) == ("EPSG:32616", "m")
    plain = more.replace("coordinate system string", "; coordinate system string")
    assert (
        open_stored(write(tmp_path, np.zeros((3, 4, 2), "f4"), name="c", more=plain), "", "p").geometry("yxb").crs
        == "EPSG:32616"
    )
    gains = open_stored(write(tmp_path, np.zeros((3, 4, 2), "u2"), name="b", data_gain_values="{0.5, 0.5}"), "", "p")
    assert gains.decoding.scale == 0.5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"lines": 4}, "states 96 bytes .* but .*a.img holds 72"),
        ({"lines": 2}, "states 48 bytes .* but .*a.img holds 72"),
        ({"lines": -3}, "states lines = '-3'; expected a whole number of at least 1"),
        ({"samples": None}, "does not state samples"),
        ({"interleave": "bsx"}, "states interleave = 'bsx'; expected bsq, bil or bip"),
        ({"data_type": 6}, "states data type = '6'; real numbers are"),
        ({"byte_order": None}, "does not state byte order"),
        ({"byte_order": 2}, "states byte order = 2"),
        ({"file_compression": 1}, "states file compression"),
        ({"data_gain_values": "{1, 2, 3}"}, "states several data gain values"),
        ({"reflectance_scale_factor": 0}, "states reflectance scale factor = 0; expected a number above 0"),
        ({"reflectance_scale_factor": 10, "data_gain_values": "{2}"}, "beside data gain or offset values"),
        ({"bbl": "{1, 0}"}, "states bbl of 2 bands, but has 3"),
        ({"bbl": "{1, 0, 2}"}, "states a bbl with other numbers than 0"),
        ({"data_ignore_value": "none"}, "states data ignore value = 'none'; expected numbers"),
    ],
)
def test_impossible_headers_are_refused(tmp_path, words, said):
    path = write(tmp_path, np.zeros((3, 4, 3), "u2"), **words)
    with pytest.raises(InputError, match=said) as error:
        open_stored(path, "", "reference")
    assert str(error.value).startswith("reference: ")
    assert "\n" not in str(error.value)


def test_missing_or_ambiguous_headers_are_refused(tmp_path):
    path = write(tmp_path, np.zeros((3, 4, 3), "u2"))
    (tmp_path / "a.dat").write_bytes(b"")
    refused(r"several files may be the data file of .*a.hdr: a.img, a.dat", path, "", "p")
    assert open_stored(path.replace(".hdr", ".img"), "", "p").shape == (3, 4, 3)
    (tmp_path / "a.img.hdr").write_text("ENVI\n")
    refused(r"several files may be the header of .*a.img: a.img.hdr, a.hdr", path.replace(".hdr", ".img"), "", "p")
    (tmp_path / "b.hdr").write_text("ENVI\n")
    refused(r"there is no data file next to .*b.hdr", tmp_path / "b.hdr", "", "p")
    (tmp_path / "c.img").write_bytes(b"")
    refused(r"there is no header next to .*c.img", tmp_path / "c.img", "", "p")
    (tmp_path / "c.hdr").write_text("HDR\n")
    refused("its first line is not ENVI", tmp_path / "c.img", "", "p")


def test_bad_bands_are_no_features_and_no_classes(tmp_path, shared_client):
    rng = np.random.default_rng(0)
    features, y = rng.integers(0, 9000, (4, 5, 3)).astype("i2"), rng.integers(0, 2, (4, 5))
    p, reference = du.Input(np.eye(2)[y], dims=["y", "x", "class"]), du.Input(y, dims=["y", "x"])
    good = features[..., [0, 2]] * 1e-4
    expected = du.class_distances(good, y, [0, 1])
    words = {"measures": ["homophily"], "class_distances": {"metric": "energy"}, "engine": "reference"}
    for interleave in AXES:
        path = write(tmp_path, features, interleave, name=interleave, bbl="{1, 0, 1}", reflectance_scale_factor=10000)
        copy = du.convert(path, tmp_path / f"{interleave}.zarr", cluster=shared_client)
        for store in ({"data": path}, {"data": copy, "array": "data"}):
            found = du.evaluate(p, reference, features=du.Input(**store), **words)
            assert np.allclose(found.measures["homophily"].measure.distances, expected, rtol=1e-12)
            with pytest.raises(InputError, match=r"probabilities: .* marks band 1 \(the first is 0\) as bad, in `bbl`"):
                du.evaluate(du.Input(**store, dims=["y", "x", "class"]), y)
    none = write(tmp_path, features, name="none", bbl="{0, 0, 0}")
    with pytest.raises(InputError, match=r"features: .* marks bands 0, 1, 2"):
        du.evaluate(p, reference, features=none, **words)


def test_reflectance_scale_factor(tmp_path):
    y = np.zeros((2, 2), "u1")
    u = du.Input(write(tmp_path, np.full((2, 2, 1), 6000, "i2"), name="u", reflectance_scale_factor=10000))
    maps = tmp_path / "maps.zarr"
    p = write(tmp_path, np.full((2, 2, 2), 5000, "i2"), name="p", reflectance_scale_factor=10000)
    probabilities = du.Input(p, dims=["y", "x", "class"])
    words = {"measures": ["uncertainty"], "maps": ["uncertainty"], "maps_store": maps, "engine": "reference"}
    found = du.evaluate(probabilities, y, uncertainty=u, **words)
    assert int(found.ledger.counted) == 4
    assert np.allclose(xr.open_zarr(maps)["uncertainty"], 0.6)
