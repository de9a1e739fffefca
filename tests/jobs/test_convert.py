"""Inputs of any format written anew in Zarr: the same numbers, where they lie and what they mean; resumable, aligned."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import psutil
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io.open import open_stored
from dask_uncert.io.zarr_copy import DONE, Writer, layout_of, source_of
from dask_uncert.jobs.convert import _check_apart
from tests.support import DATA

CROSS_FORMAT = DATA / "cross_format"
SOURCES = {
    "proba_bil_be.hdr": {},
    "proba_scaled_uint16.tif": {},
    "proba_packed.nc": {"array": "proba"},
    "proba_xyzc_uint8_slope.nii.gz": {},
    "proba_ome_0.4.zarr": {},
    "proba_v3_sharded.zarr": {},
    "proba.h5": {"array": "proba", "dims": ["y", "x", "class"]},
    "proba.mat": {"array": "proba", "dims": ["y", "x", "class"]},
}


@pytest.mark.parametrize("name", SOURCES)
def test_numbers_meaning_and_place_are_kept(tmp_path, shared_client, name):
    words = SOURCES[name]
    one = open_stored(str(CROSS_FORMAT / name), words.get("array", ""), "input", words.get("dims"))
    dims = tuple(words.get("dims") or one.dims or "xyzc")
    place = du.convert(CROSS_FORMAT / name, tmp_path / "a.zarr", **{"dims": dims, **words}, cluster=shared_client)
    new = open_stored(str(place), Path(one.array).name or "data", "input")
    assert new.dims == dims
    assert new.dtype == one.dtype
    assert new[...].tobytes() == np.ascontiguousarray(one[...]).tobytes()
    assert new.decoding == one.decoding
    assert new.geometry(dims) == one.geometry(dims)
    assert new.absent_chunks() == []
    assert xr.open_zarr(place, mask_and_scale=False)[Path(one.array).name or "data"].dims == dims
    assert not (place / DONE).exists()
    assert (
        du.convert(CROSS_FORMAT / name, tmp_path / "a.zarr", **{"dims": dims, **words}, cluster="not even looked at")
        == place
    )


@given(
    st.lists(st.integers(1, 3000), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4, 8]),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_blocks_tile_the_array_and_never_share_a_chunk_or_a_shard(shape, itemsize, whole):
    layout = layout_of(shape, itemsize, whole[: len(shape)])
    if layout.shards is not None:
        assert all(s % c == 0 for s, c in zip(layout.shards, layout.chunks, strict=True))
    if np.prod(-(-np.array(shape) // layout.block)) > 5000:
        return
    blocks = layout.blocks()
    assert sum(int(np.prod([p.stop - p.start for p in b])) for b in blocks) == np.prod(shape)
    for block in blocks:
        for part, side, n in zip(block, layout.block, shape, strict=True):
            assert part.start % side == 0
            assert part.stop % side == 0 or part.stop == n


@pytest.mark.slow
def test_z4_random_numbers_through_shards_come_back_to_the_bit(tmp_path, shared_client):
    values = np.random.default_rng(0).random((400, 400))
    np.save(tmp_path / "a.npy", values)
    for number, (chunks, shards) in enumerate((((25, 25), None), ((25, 25), (100, 100)), ((100, 100), None))):
        place = du.convert(
            tmp_path / "a.npy", tmp_path / f"{number}.zarr", dims=["y", "x"], chunks=chunks, shards=shards,
            cluster=shared_client,
        )  # fmt: skip
        array = zarr.open_group(place, mode="r")["data"]
        assert (array.chunks, array.shards) == (chunks, shards)
        assert np.array_equal(array[...], values)
    with pytest.raises(InputError, match=r"shards: \[100, 90\] are not multiples of the chunks \[25, 25\]"):
        du.convert(tmp_path / "a.npy", tmp_path / "b.zarr", dims=["y", "x"], chunks=(25, 25), shards=(100, 90))


class Fragile:
    """An array that fails at a certain read."""

    def __init__(self, values, reads):
        self.values, self.left = values, reads
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __getitem__(self, region):
        self.left -= 1
        if self.left < 0:
            raise OSError("the disk went away")
        return self.values[region]


def test_what_is_done_is_not_done_again(tmp_path):
    from dask_uncert.io.zarr_copy import create

    values = np.random.default_rng(0).random((40, 40))
    layout = layout_of(values.shape, 8, (False, False), (10, 10))
    create(tmp_path / "a", "v", layout, values.dtype, ("y", "x"), {}, {}, {"conversion": "x"})
    first = Writer(Fragile(values, 7), str(tmp_path / "a"), "v")
    with pytest.raises(OSError, match="the disk went away"):
        [first(block) for block in layout.blocks()]
    rest = Writer(Fragile(values, 9), str(tmp_path / "a"), "v")  # 16 blocks, 7 of them done
    assert [rest(block) > 0 for block in layout.blocks()] == [False] * 7 + [True] * 9
    assert np.array_equal(zarr.open_group(tmp_path / "a", mode="r")["v"][...], values)


def test_a_stopped_conversion_goes_on_unless_its_input_changed(tmp_path, shared_client, monkeypatch):
    values = np.random.default_rng(0).random((40, 40))
    np.save(tmp_path / "a.npy", values)
    words = {"dims": ["y", "x"], "chunks": (10, 10), "cluster": shared_client}
    whole = du.convert(tmp_path / "a.npy", tmp_path / "a.zarr", **words)
    working = tmp_path / "a.zarr.converting"

    def stop():
        """As if it had been killed after three blocks."""
        shutil.move(whole, working)
        (working / DONE).mkdir()
        for name in ("0-0", "0-10", "0-20"):
            (working / DONE / name).touch()

    written = []
    call = Writer.__call__
    monkeypatch.setattr(Writer, "__call__", lambda self, region: written.append(call(self, region)) or written[-1])
    stop()
    du.convert(tmp_path / "a.npy", tmp_path / "a.zarr", **words)
    assert written.count(0) == 3
    assert np.array_equal(zarr.open_group(whole, mode="r")["data"][...], values)
    stop()
    np.save(tmp_path / "a.npy", values + 1)
    written.clear()
    du.convert(tmp_path / "a.npy", tmp_path / "a.zarr", **words)
    assert written.count(0) == 0
    assert np.array_equal(zarr.open_group(whole, mode="r")["data"][...], values + 1)


def test_nothing_else_is_overwritten(tmp_path, shared_client):
    np.save(tmp_path / "a.npy", np.zeros((4, 4)))
    (tmp_path / "b.zarr").mkdir()
    (tmp_path / "b.zarr" / "precious").write_text("x")
    words = {"dims": ["y", "x"], "cluster": shared_client}
    with pytest.raises(InputError, match=r"b.zarr exists and is not this conversion"):
        du.convert(tmp_path / "a.npy", tmp_path / "b.zarr", **words)
    with pytest.raises(InputError, match=r"b.zarr holds precious, and no marker.*nothing was changed"):
        du.convert(tmp_path / "a.npy", tmp_path / "b.zarr", fresh=True, **words)
    assert (tmp_path / "b.zarr" / "precious").read_text() == "x"
    (tmp_path / "b.zarr" / "precious").unlink()
    du.convert(tmp_path / "a.npy", tmp_path / "b.zarr", fresh=True, **words)
    assert source_of(tmp_path / "b.zarr") is not None
    before = {path: path.read_bytes() for path in (tmp_path / "b.zarr").rglob("*") if path.is_file()}
    for target in (tmp_path / "b.zarr", tmp_path / "b.zarr" / "inside.zarr"):
        with pytest.raises(InputError, match="is the input"):
            du.convert(tmp_path / "b.zarr", target, array="data", fresh=True, cluster=shared_client)
    for source in (
        f"file://{tmp_path}/b.zarr",
        f"zip://x::file://{tmp_path}/b.zarr",
        f"zip::{tmp_path}/b.zarr",
    ):
        for target in (tmp_path / "b.zarr", tmp_path / "b.zarr" / "inside.zarr"):
            with pytest.raises(InputError, match="is the input"):
                du.convert(source, target, array="data", fresh=True, cluster=shared_client)
    (tmp_path / "file.zarr").write_text("x")
    with pytest.raises(InputError, match="is a file; name a new folder"):
        du.convert(tmp_path / "a.npy", tmp_path / "file.zarr", fresh=True, **words)
    (tmp_path / "precious").mkdir()
    with pytest.raises(InputError, match=r"name ends in \.zarr"):
        du.convert("memory://a.npy", tmp_path / "precious", fresh=True, **words)
    os.symlink(tmp_path / "b.zarr", tmp_path / "link.zarr")
    with pytest.raises(InputError, match="is the input"):
        _check_apart(str(tmp_path / "b.zarr"), tmp_path / "link.zarr")
    assert {path: path.read_bytes() for path in before} == before
    with pytest.raises(InputError, match=r"name ends in \.zarr"):
        du.convert(tmp_path / "a.npy", tmp_path / "c.tif", **words)


def test_the_command(tmp_path, dask_uncert_command):
    status, out, _ = dask_uncert_command(
        "convert", CROSS_FORMAT / "proba_strip_band.tif", tmp_path / "a.zarr", "--dims", "class,y,x", "--name", "p", "--chunks",
        "16,32,32",
    )  # fmt: skip
    assert status == 0
    assert out.strip() == str(tmp_path / "a.zarr")
    assert zarr.open_group(tmp_path / "a.zarr", mode="r")["p"].chunks == (16, 32, 32)
    status, _, said = dask_uncert_command("convert", tmp_path / "nothing.tif", tmp_path / "b.zarr")
    assert status == 2
    assert said.startswith("error: input: there is no file at")
    assert dask_uncert_command("convert", "a", "b.zarr", "--chunks", "x")[0] == 2


@settings(max_examples=10)
@given(st.integers(0, 99))
def test_a_block_that_does_not_read_back_is_an_error(tmp_path_factory, seed):
    from dask_uncert.io import zarr_copy

    folder = tmp_path_factory.mktemp("c")
    values = np.random.default_rng(seed).random((4, 4))
    layout = layout_of(values.shape, 8, (False, False))
    zarr_copy.create(folder / "a", "v", layout, values.dtype, ("y", "x"), {}, {}, {})

    class Worse(zarr_copy.ZarrArray):
        def __getitem__(self, region):
            found = super().__getitem__(region).copy()
            found[seed % 4, seed % 3] += 1
            return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zarr_copy, "ZarrArray", Worse)
        with pytest.raises(InputError, match=r"the block \[0:4, 0:4\] of .* does not read back"):
            Writer(values, str(folder / "a"), "v")(layout.blocks()[0])
    assert [one.name for one in (folder / "a" / DONE).iterdir()] == [zarr_copy.BEGUN]


def test_an_input_that_changes_meanwhile_is_refused(tmp_path, shared_client, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((40, 40)))
    call = Writer.__call__

    def touched(self, region):
        found = call(self, region)
        os.utime(tmp_path / "a.npy", (1, 1))
        return found

    monkeypatch.setattr(Writer, "__call__", touched)
    with pytest.raises(InputError, match="changed while it was read"):
        du.convert(tmp_path / "a.npy", tmp_path / "a.zarr", dims=["y", "x"], cluster=shared_client)
    assert not (tmp_path / "a.zarr").exists()


def test_a_chunk_larger_than_memory_is_refused_before_it_is_read(tmp_path):
    side = 1 << 15  # a chunk of 4 GiB that was never written
    array = zarr.create_array(tmp_path / "a.zarr", shape=(2 * side, side), chunks=(side, side), dtype="f4")
    for row in range(2):
        key = tmp_path / "a.zarr" / array.metadata.encode_chunk_key((row, 0))
        key.parent.mkdir(parents=True)
        key.write_bytes(b"never looked at")
    np.savez_compressed(tmp_path / "whole.npz", np.zeros((6000, 6000), "u1"))
    (tmp_path / "small.yaml").write_text("kind: local\nthreads: 1\nmemory_limit: 2 GiB\n")
    small, words = tmp_path / "small.yaml", {"dims": ["y", "x"], "chunks": (512, 512)}
    with pytest.raises(InputError, match=r"a chunk of .*a.zarr \(y 32768, x 32768\), 4096 MiB, is read at once"):
        du.convert(tmp_path / "a.zarr", tmp_path / "new.zarr", cluster=small, **words)
    with (
        du.connect(threads=8, memory_limit="800 MiB") as client,
        pytest.raises(InputError, match=r"all of .*whole.npz, 34 MiB, is read at once.* fewer threads or more memory"),
    ):
        du.convert(tmp_path / "whole.npz", tmp_path / "new.zarr", cluster=client, **words)
    assert not list(tmp_path.glob("new*"))
    inputs = {name: {"store": str(tmp_path / "a.zarr"), "dims": ["y", "x"]} for name in ("probabilities", "reference")}
    job = {
        "version": 1,
        "kind": "scene",
        "classes": {0: "a", 1: "b"},
        "inputs": inputs,
        "output": str(tmp_path / "out"),
    }
    for door in (du.plan, du.run):
        with pytest.raises(InputError, match=r"a block of y 32768, x 32768 needs \d+ MiB, but a thread has"):
            door(job, cluster=small)


def test_blocks_are_read_with_the_memory_that_is_there(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((300, 200)))
    with du.connect(threads=1, memory_limit=psutil.Process().memory_info().rss + (1 << 30)) as client:
        place = du.convert(tmp_path / "a.npy", tmp_path / "a.zarr", dims=["y", "x"], cluster=client)
        np.lib.format.open_memmap(tmp_path / "b.npy", "w+", "f8", (1 << 13, 1 << 13))
        with pytest.raises(InputError, match=r"written in blocks of 512 MiB.* smaller `--chunks` and `--shards`"):
            du.convert(tmp_path / "b.npy", tmp_path / "b.zarr", dims=["y", "x"], chunks=[1 << 13] * 2, cluster=client)
    assert open_stored(str(place), "data", "input").shape == (300, 200)
