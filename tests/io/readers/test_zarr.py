"""Zarr as it is stored: both formats, shards, what is refused, and maps that survive a second writing."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import zarr

from dask_uncert.errors import InputError
from dask_uncert.io.maps import MapWriter, preview
from dask_uncert.io.readers.zarr import FAST, ZarrArray
from dask_uncert.io.summary_store import read_counts, write_counts
from tests.support.readers import contents

VALUES = np.random.default_rng(0).random((40, 30, 3)).astype("float32")


@pytest.mark.parametrize("layout", ["v2", "v3", "sharded"])
def test_read_as_stored_and_after_pickling(tmp_path, layout):
    store = str(tmp_path / "a.zarr")
    group = zarr.open_group(store, mode="w", zarr_format=2 if layout == "v2" else 3)
    words = {"chunks": (10, 10, 3)}
    if layout == "sharded":
        words["shards"] = (20, 30, 3)
    if layout == "v2":
        words["attributes"] = {"_ARRAY_DIMENSIONS": ["y", "x", "class"]}
    else:
        words["dimension_names"] = ("y", "x", "class")
    group.create_array("p", shape=VALUES.shape, dtype=VALUES.dtype, **words)[...] = VALUES
    one = ZarrArray(store, "p", "probabilities")
    assert one.dims == ("y", "x", "class")
    assert one.chunks == ((20, 30, 3) if layout == "sharded" else (10, 10, 3))
    again = pickle.loads(pickle.dumps(one))
    for array in (one, again):
        assert np.array_equal(array[5:25, 3:30], VALUES[5:25, 3:30])
    assert len(pickle.dumps(one)) < 2000


def test_fingerprint_changes_with_the_data(tmp_path):
    store = str(tmp_path / "a.zarr")
    zarr.open_group(store, mode="w").create_array("p", data=VALUES)
    mark = ZarrArray(store, "p", "p").fingerprint()
    assert ZarrArray(store, "p", "p").fingerprint() == mark
    zarr.open_group(store, mode="r+")["p"][0, 0, 0] = 7
    assert ZarrArray(store, "p", "p").fingerprint() != mark


def test_stores_that_cannot_be_opened_are_reported(tmp_path):
    (tmp_path / "text.zarr").write_text("no store")
    (tmp_path / "empty.zarr").mkdir()
    for name in ("text.zarr", "empty.zarr"):
        with pytest.raises(InputError, match=f"mask: .*{name} is not a readable Zarr store"):
            ZarrArray(str(tmp_path / name), "p", "mask")
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w").create_group("inner").create_array("p", data=VALUES)
    with pytest.raises(InputError, match="has no array 'p'; it has: none"):
        ZarrArray(str(tmp_path / "a.zarr"), "p", "mask")
    with pytest.raises(InputError, match="must not contain"):
        ZarrArray(str(tmp_path / "a.zarr"), "../other.zarr/p", "mask")
    assert ZarrArray(str(tmp_path / "a.zarr"), "inner/p", "mask").shape == VALUES.shape


def test_blocks_never_share_a_chunk_and_a_retry_changes_nothing(tmp_path):
    store = str(tmp_path / "maps.zarr")
    writer = MapWriter(store)
    whole = np.random.default_rng(1).random((25, 33)).astype("float32")
    writer.create({"u": ("float32", np.nan, {})}, ("y", "x"), whole.shape, (10, 8), {})
    blocks = [(y, x) for y in range(0, 25, 10) for x in range(0, 33, 8)]
    for y, x in [*blocks, *blocks[::-1]]:
        writer.write({"u": whole[y : y + 10, x : x + 8]}, (y, x))
    found = zarr.open_group(store, mode="r")["u"]
    assert np.array_equal(found[...], whole)
    assert all(b % c == 0 for b, c in zip((10, 8), found.chunks, strict=True))


def test_preview_is_small_and_undefined_is_nan(tmp_path):
    writer = MapWriter(str(tmp_path / "maps.zarr"))
    values = np.full((3, 1300, 700), 255, "uint8")
    values[1, ::2] = 1
    writer.create({"correct": ("uint8", 255, {"_FillValue": 255})}, ("z", "y", "x"), values.shape, values.shape, {})
    writer.write({"correct": values}, (0, 0, 0))
    small, dims = preview(str(tmp_path / "maps.zarr"), "correct")
    assert dims == ("y", "x")
    assert max(small.shape) <= 600
    assert set(np.unique(small[~np.isnan(small)])) <= {1.0}


def test_opening_in_many_threads_leaves_the_configuration_and_the_bytes_alone(tmp_path):
    """zarr's configuration is global: two threads that change and restore it at once would leave it changed."""
    store = str(tmp_path / "a.zarr")
    zarr.open_group(store, mode="w").create_array("p", data=VALUES, chunks=(10, 10, 3))
    counts = [("a", ("bin",), np.random.default_rng(0).integers(0, 2**50, 4000))]
    write_counts(str(tmp_path / "before"), {}, counts)
    before = zarr.config.get("codec_pipeline.path")

    def work(number):
        for _ in range(20):
            assert np.array_equal(ZarrArray(store, "p", "p")[:3], VALUES[:3])
        write_counts(str(tmp_path / f"during{number}"), {}, counts)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert zarr.config.get("codec_pipeline.path") == before
    write_counts(str(tmp_path / "after"), {}, counts)
    with zarr.config.set(FAST):  # of the user: this pipeline leaves chunks of zeros out
        write_counts(str(tmp_path / "fast"), {}, [("a", ("bin",), np.zeros(5, np.int64))])
    assert (tmp_path / "fast" / "total" / "a" / "c" / "0").exists()
    chunk = Path("total", "a", "c", "0")
    found = {(tmp_path / name / chunk).read_bytes() for name in ("before", "after", *(f"during{i}" for i in range(8)))}
    assert len(found) == 1


def test_counts_are_written_alike(tmp_path):
    arrays = [("a", ("bin",), np.arange(5)), ("deep/b", (), np.array(2**60))]
    for name in ("one", "two"):
        write_counts(str(tmp_path / name), {"x": [0.1, float("inf")]}, arrays)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    frame, found = read_counts(str(tmp_path / "one"))
    assert frame == {"x": [0.1, float("inf")]}
    assert found["deep/b"] == 2**60


@pytest.mark.parametrize("version", [2, 3])
def test_only_arrays_of_one_dimension_are_coordinates(tmp_path, version):
    store = str(tmp_path / "a.zarr")
    group = zarr.open_group(store, mode="w", zarr_format=version)
    for name, values in (("p", VALUES[..., 0]), ("y", VALUES[..., 0]), ("x", np.arange(30.0))):
        group.create_array(name, shape=values.shape, dtype=values.dtype)[...] = values
    (tmp_path / "a.zarr" / "z").mkdir()
    (tmp_path / "a.zarr" / "z" / "zarr.json").write_text("{")
    found = ZarrArray(store, "p", "probabilities").coordinates(("y", "x"))
    assert list(found) == ["x"]
    assert np.array_equal(found["x"][0], np.arange(30.0))
    assert ZarrArray(store, "p", "probabilities").coordinates(("z", "t")) == {}
