"""GeoTIFFs: read as rasterio reads them; where they lie, what they lack and what cannot be used is said."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import fsspec
import numpy as np
import pytest
import rasterio
from hypothesis import given, settings
from hypothesis import strategies as st
from rasterio.transform import Affine

from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from tests.support.readers import refused

NORTH_UP = Affine(20, 0, 500_000, 0, -20, 4_480_000)


def write(path, values, **profile):
    """values: (bands, y, x)."""
    bands, height, width = values.shape
    given = {"crs": "EPSG:32616", "transform": NORTH_UP, "driver": "GTiff", **profile}
    with rasterio.open(path, "w", count=bands, height=height, width=width, dtype=values.dtype, **given) as file:
        file.write(values)
    return str(path)


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_part_of_any_raster_is_what_rasterio_reads(tmp_path_factory, data):
    shape = data.draw(st.tuples(st.integers(1, 4), st.integers(1, 70), st.integers(1, 70)))
    dtype = data.draw(st.sampled_from(["u1", "i1", "u2", "i2", "u4", "i4", "u8", "f4", "f8"]))
    layout = data.draw(
        st.sampled_from(
            [
                {},
                {"tiled": True, "blockxsize": 16, "blockysize": 32},
                {"interleave": "pixel", "compress": "deflate"},
            ]
        )
    )
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 100, shape).astype(dtype)
    path = write(tmp_path_factory.mktemp("t") / "a.tif", values, **layout)
    stored = pickle.loads(pickle.dumps(open_stored(path, "", "p", ["class", "y", "x"])))
    cut = st.tuples(st.integers(0, 70), st.integers(0, 70), st.integers(1, 3)).map(lambda t: slice(*t))
    region = tuple(data.draw(cut) for _ in shape)
    assert np.array_equal(stored[region], values[region])
    assert stored[region].dtype == values.dtype
    assert stored.absent_chunks() == []
    flat = open_stored(path, "", "p")
    assert flat.dims == (("y", "x") if shape[0] == 1 else ("band", "y", "x"))


def test_pixel_centres_reference_system_and_unit(tmp_path):
    found = open_stored(write(tmp_path / "a.tif", np.zeros((1, 3, 4), "u1")), "", "p").geometry(["row", "col"])
    assert found.dims == ("row", "col")
    assert found.steps == ((0, -20, 0), (20, 0, 0))
    assert found.origin == (500_010, 4_479_990, 0)
    assert (found.crs, found.unit) == ("EPSG:32616", "m")
    degrees = write(
        tmp_path / "b.tif",
        np.zeros((1, 3, 4), "u1"),
        crs="EPSG:4326",
        transform=Affine(0.5, 0, 10, 0, -0.5, 50),
    )
    assert open_stored(degrees, "", "p").geometry("yx").unit == "degree"
    bare = write(tmp_path / "c.tif", np.zeros((1, 3, 4), "u1"), crs=None, transform=Affine.identity())
    assert open_stored(bare, "", "p").geometry("yx") is None


def test_nodata_scale_and_offset_of_all_bands(tmp_path):
    path = write(tmp_path / "a.tif", np.zeros((2, 3, 4), "u2"), nodata=65535)
    with rasterio.open(path, "r+") as file:
        file.scales, file.offsets = (0.5, 0.5), (1.0, 1.0)
    found = open_stored(path, "", "p").decoding
    assert (found.scale, found.offset, found.missing) == (0.5, 1.0, (65535.0,))
    with rasterio.open(path, "r+") as file:
        file.scales = (0.5, 0.25)
    refused(r"p: the bands of .*a.tif have several scales: 0.5, 0.25", path, "", "p")


def test_tiles_that_were_never_written_are_known(tmp_path):
    path = tmp_path / "a.tif"
    profile = {"crs": "EPSG:32616", "transform": NORTH_UP, "tiled": True, "blockxsize": 16, "blockysize": 16}
    with rasterio.open(
        path, "w", driver="GTiff", count=1, height=40, width=40, dtype="uint8", SPARSE_OK=True, **profile
    ) as file:
        file.write(np.ones((1, 16, 16), "u1"), window=rasterio.windows.Window(16, 0, 16, 16))
    found = open_stored(str(path), "", "p").absent_chunks()
    assert sorted(found) == [(i, j) for i in range(3) for j in range(3) if (i, j) != (0, 1)]


def test_threads_share_one_input(tmp_path):
    values = np.random.default_rng(0).integers(0, 255, (3, 200, 200)).astype("u1")
    stored = open_stored(write(tmp_path / "a.tif", values, compress="deflate"), "", "p")
    wrong = []

    def read(i):
        for k in range(20):
            part = (slice(None), slice(i * 20, i * 20 + k), slice(5, None))
            wrong.extend([i] * (not np.array_equal(stored[part], values[part])))

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert not wrong


def test_behind_a_url(tmp_path):
    values = np.arange(24, dtype="u1").reshape(2, 3, 4)
    content = Path(write(tmp_path / "a.tif", values)).read_bytes()
    with fsspec.open("memory://there/a.tif", "wb") as file:
        file.write(content)
    stored = open_stored("memory://there/a.tif", "", "p")
    assert np.array_equal(stored[...], values)
    assert stored.fingerprint() is None


def test_unreadable_files_are_refused_in_one_sentence(tmp_path):
    good = write(
        tmp_path / "good.tif",
        np.random.default_rng(0).integers(0, 9, (1, 300, 300)).astype("u2"),
        compress="deflate",
    )
    content = Path(good).read_bytes()
    (tmp_path / "text.tif").write_text("no raster")
    (tmp_path / "cut.tif").write_bytes(content[: len(content) // 2])
    vrt = f'<VRTDataset rasterXSize="3" rasterYSize="3"><SRS></SRS><x>{good}</x></VRTDataset>'
    (tmp_path / "vrt.tif").write_text(vrt)
    (tmp_path / "folder.tif").mkdir()
    for name, message in (
        ("nothing.tif", "p: there is no file at .*nothing.tif"),
        ("text.tif", "p: .*text.tif cannot be read"),
        ("vrt.tif", "p: .*vrt.tif cannot be read"),
        ("cut.tif", "p: .*cut.tif cannot be read"),
        ("folder.tif", "p: .*folder.tif is a folder"),
    ):
        with pytest.raises(InputError, match=message) as error:
            open_stored(str(tmp_path / name), "", "p")[...]
        assert "\n" not in str(error.value)
    masked = write(tmp_path / "masked.tif", np.zeros((1, 3, 4), "u1"))
    with rasterio.open(masked, "r+") as file:
        file.write_mask(np.ones((3, 4), bool))
    refused("has a mask in addition to its bands", masked, "", "p")
    refused(
        "holds complex64; expected real numbers",
        write(tmp_path / "c.tif", np.zeros((1, 3, 4), "c8")),
        "",
        "p",
    )
    refused("leave out `array: b1`", good, "b1", "p")
