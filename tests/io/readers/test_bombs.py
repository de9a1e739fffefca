"""A chunk that decodes to more than its array states is refused by name, in little memory; so is one that is no file."""

from __future__ import annotations

import bz2
import gzip
import os
import shutil
import socket
import struct
import zlib

import fsspec
import google_crc32c
import h5py
import numcodecs
import numpy as np
import pytest
import scipy.io
import yaml
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io.decoded_size import decodes_within
from dask_uncert.io.open import open_stored
from tests.support.peak_memory import grown

MIB = 1 << 20


ZEROS = 96 * MIB
PACKERS = {
    "gzip": lambda data: gzip.compress(data, 1),
    "zlib": lambda data: zlib.compress(data, 1),
    "bz2": bz2.compress,
    "zstd": lambda data: bytes(numcodecs.Zstd(1).encode(data)),
    "lz4": lambda data: bytes(numcodecs.LZ4().encode(data)),
    "blosc": lambda data: bytes(numcodecs.Blosc("zstd", 1, 0).encode(data)),
}
V2 = {"gzip": numcodecs.GZip, "zlib": numcodecs.Zlib, "bz2": numcodecs.BZ2, "zstd": numcodecs.Zstd}
V2 |= {"lz4": numcodecs.LZ4, "blosc": numcodecs.Blosc}
V3 = {"gzip": GzipCodec, "zstd": ZstdCodec, "blosc": BloscCodec}
STORES = [*((2, name) for name in V2), *((3, name) for name in V3)]


@pytest.fixture(scope="module")
def bombs():
    """Each kind of packed bytes, of many zeros."""
    return {name: pack(bytes(ZEROS)) for name, pack in PACKERS.items()}


@pytest.mark.parametrize(("version", "name"), STORES)
def test_a_chunk_that_decodes_to_more_than_stated_is_refused(tmp_path, bombs, version, name):
    packer = (V2 if version == 2 else V3)[name]()
    array = zarr.create_array(
        tmp_path / "a.zarr", shape=(80, 80), chunks=(40, 40), dtype="f4", zarr_format=version, compressors=packer
    )
    array[...] = np.ones((80, 80), "f4")
    (tmp_path / "a.zarr" / array.metadata.encode_chunk_key((1, 0))).write_bytes(bombs[name])
    stored = open_stored(str(tmp_path / "a.zarr"), "", "probabilities")
    assert (stored[:40] == 1).all()  # other chunks are good
    with grown() as peak, pytest.raises(InputError, match=r"probabilities: chunk (c/)?1[./]0 of .* 6400 bytes"):
        stored[40:, :40]
    assert peak() < ZEROS // 3


def test_a_chunk_in_an_archive_or_behind_a_url_or_in_a_shard_is_refused_too(tmp_path, bombs):
    words = {"shape": (80, 80), "chunks": (40, 40), "dtype": "f4", "compressors": ZstdCodec()}
    array = zarr.create_array(tmp_path / "a.zarr", **words)
    array[...] = np.ones((80, 80), "f4")
    (tmp_path / "a.zarr" / "c" / "1" / "0").write_bytes(bombs["zstd"])
    shutil.make_archive(tmp_path / "a.zarr", "zip", tmp_path / "a.zarr")
    sharded = zarr.create_array(tmp_path / "s.zarr", shards=(80, 80), **words)
    sharded[...] = np.ones((80, 80), "f4")
    shard = tmp_path / "s.zarr" / "c" / "0" / "0"
    index = np.frombuffer(shard.read_bytes()[-68:-4], "<u8").reshape(4, 2).copy()
    index[2] = [len(content := shard.read_bytes()[:-68]), len(bombs["zstd"])]
    places = index.tobytes()
    shard.write_bytes(content + bombs["zstd"] + places + google_crc32c.value(places).to_bytes(4, "little"))
    fsspec.filesystem("memory").put(str(tmp_path / "a.zarr"), "/bombs/", recursive=True)
    for store in (tmp_path / "s.zarr", tmp_path / "a.zarr.zip", "memory://bombs/a.zarr"):
        stored = open_stored(str(store), "", "probabilities")
        assert (stored[:40] == 1).all()
        with grown() as peak, pytest.raises(InputError, match=r"probabilities: chunk .* of .* 6400 bytes"):
            stored[40:, :40]
        assert peak() < ZEROS // 3


@pytest.mark.parametrize("words", [{}, {"shuffle": True, "fletcher32": True}])
def test_a_chunk_of_hdf5_that_decodes_to_more_than_stated_is_refused(tmp_path, bombs, words):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("p", shape=(80, 80), chunks=(40, 40), dtype="f4", compression="gzip", **words)
        data[...] = 1
        checksum = b"1234" if words else b""
        data.id.write_direct_chunk((40, 0), bombs["zlib"] + checksum)
    stored = open_stored(str(tmp_path / "a.h5"), "p", "probabilities", ["y", "x"])
    assert (stored[:, 40:] == 1).all()
    with grown() as peak, pytest.raises(InputError, match=r"probabilities: chunk \(40, 0\) of .* 640\d bytes"):
        stored[40:, :40]
    assert peak() < ZEROS // 3


def test_a_matlab_variable_that_decodes_to_more_than_stated_is_refused(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"other": np.ones((300, 300)), "p": np.ones((10, 10))}, do_compression=True)
    raw = path.read_bytes()
    at = 128 + 8 + struct.unpack_from("<I", raw, 132)[0]  # of the second variable
    whole = zlib.decompress(raw[at + 8 :])
    content = whole[8:-808] + struct.pack("<II", 9, ZEROS) + bytes(ZEROS)
    packed = zlib.compress(struct.pack("<II", 14, len(content)) + content, 1)
    path.write_bytes(raw[:at] + struct.pack("<II", 15, len(packed)) + packed)
    del content
    assert (open_stored(str(path), "other", "probabilities", ["y", "x"])[...] == 1).all()
    stored = open_stored(str(path), "p", "probabilities", ["y", "x"])
    with (
        grown() as peak,
        pytest.raises(InputError, match=r"probabilities: .*a.mat:p decodes to more than the 800 bytes"),
    ):
        stored[...]
    assert peak() < ZEROS // 3


@given(
    st.lists(st.sampled_from([*PACKERS]), min_size=1, max_size=2),
    st.binary(max_size=300),
    st.integers(1, 2000),
    st.integers(0, 9),
)
@settings(deadline=None, max_examples=20)
def test_what_is_as_large_as_stated_always_passes(names, drawn, repeats, level):
    content = drawn * repeats
    data = numcodecs.Zstd(level).encode(content) if names == ["zstd"] else content
    if names != ["zstd"]:
        for name in reversed(names):
            data = PACKERS[name](bytes(data))
    assert decodes_within(names, memoryview(data), len(content))


def special(path, kind):
    """Put something in the place of a file that is none."""
    path.unlink(missing_ok=True)
    if kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            before = os.getcwd()
            os.chdir(path.parent)  # the names of sockets are short
            server.bind(path.name)
            os.chdir(before)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        there = path.with_name(f"pipe-{path.name}") if kind == "link" else path
        os.mkfifo(there)
        if kind == "link":
            path.symlink_to(there)


KINDS = {"FIFO": "FIFO", "link": "FIFO", "socket": "socket", "device": "device"}
FILES = ["a.npy", "a.npz", "a.nii.gz", "a.tif", "a.nc", "a.img", "a.mat", "a.zarr", "a.zarr.zip"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_at_once_as_an_input(tmp_path, kind):
    for name in FILES:
        special(tmp_path / name, kind)
        for store in (tmp_path / name, f"file://{tmp_path / name}"):
            with pytest.raises(
                InputError, match=rf"probabilities: .*{name} is a {KINDS[kind]}, so reading it may never end"
            ):
                open_stored(str(store), "", "probabilities")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_at_once_beside_an_input(tmp_path, kind):
    zarr.open_group(tmp_path / "g.zarr", mode="w", zarr_format=2).create_array(
        "p", shape=(4,), chunks=(2,), dtype="f4"
    )[...] = 1
    special(tmp_path / "g.zarr" / "p" / "1", kind)
    stored = open_stored(str(tmp_path / "g.zarr"), "p", "probabilities")
    with pytest.raises(InputError, match=rf"probabilities: chunk .*/p/1 is a {KINDS[kind]}"):
        stored[...]
    for place in ("p/.zarray", ".zgroup"):
        special(tmp_path / "g.zarr" / place, kind)
        with pytest.raises(InputError, match=rf"probabilities: .*{place} is a {KINDS[kind]}"):
            open_stored(str(tmp_path / "g.zarr"), "p", "probabilities")
    (tmp_path / "e.img").write_bytes(b"1")
    special(tmp_path / "e.hdr", kind)
    with pytest.raises(InputError, match=rf"probabilities: .*e.hdr is a {KINDS[kind]}|no header"):
        open_stored(str(tmp_path / "e.img"), "", "probabilities")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_at_once_among_labels(tmp_path, kind):
    group = zarr.open_group(tmp_path / "g.zarr", mode="w")
    group.create_array("p", shape=(4, 3), dtype="f4", dimension_names=("y", "class"))[...] = 1
    group.create_array("class", shape=(3,), dtype="i4", dimension_names=("class",))[...] = [1, 2, 3]
    stored = open_stored(str(tmp_path / "g.zarr"), "p", "probabilities")
    assert stored.labels(("y", "class"), 1) == (1, 2, 3)
    special(tmp_path / "g.zarr" / "class" / "c" / "0", kind)
    with pytest.raises(InputError, match=rf"probabilities: .*/class/c/(pipe-)?0 is a {KINDS[kind]}"):
        stored.labels(("y", "class"), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_at_once_as_a_job(tmp_path, kind):
    special(tmp_path / "job.yaml", kind)
    for door in (du.run, du.plan):
        with pytest.raises(InputError, match=rf"job.yaml is a {KINDS[kind]}"):
            door(tmp_path / "job.yaml")
    special(tmp_path / "cluster.yaml", kind)
    with pytest.raises(InputError, match=rf"cluster.yaml is a {KINDS[kind]}"), du.connect(tmp_path / "cluster.yaml"):
        pass
    for manifest in ("m.csv", "m.parquet"):
        special(tmp_path / manifest, kind)
        inputs = {name: {"dims": ["x"]} for name in ("probabilities", "reference")}
        job = {"version": 1, "kind": "cohort", "classes": {0: "a", 1: "b"}, "manifest": manifest, "inputs": inputs}
        (tmp_path / "cohort.yaml").write_text(yaml.safe_dump({**job, "output": "out"}))
        with pytest.raises(InputError, match=rf"the manifest .*{manifest} is a {KINDS[kind]}"):
            du.plan(tmp_path / "cohort.yaml")
