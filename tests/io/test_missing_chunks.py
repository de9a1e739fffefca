"""Chunks that a Zarr store lacks: known by one listing, in every layout and kind of store; never taken for zeros."""

from __future__ import annotations

import errno
import json
import os
import pickle
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import fsspec
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from dask_uncert.errors import InputError
from dask_uncert.io import retries
from dask_uncert.io.maps import MapWriter
from dask_uncert.io.open import open_stored
from dask_uncert.io.readers.zarr import ZarrArray
from tests.support import DATA
from tests.support.readers import refused

SAMPLES = DATA / "formats" / "zarr"
VALUES = np.arange(1, 61, dtype="i4").reshape(6, 10)
WHOLE = {"write_empty_chunks": True}


def write(place, version=3, shards=None, separator=None, values=VALUES):
    """Chunks of (2, 3): three by four of them."""
    group = zarr.open_group(place, mode="w", zarr_format=version)
    words = {}
    if separator is not None:
        words["chunk_key_encoding"] = {"name": "v2" if version == 2 else "default", "separator": separator}
    array = group.create_array(
        "a", shape=values.shape, dtype=values.dtype, chunks=(2, 3), shards=shards, config=WHOLE, **words
    )
    array[...] = values
    return array


LAYOUTS = [(2, None, "."), (2, None, "/"), (3, None, "/"), (3, None, "."), (3, (4, 6), None)]


@given(st.sampled_from(LAYOUTS), st.sets(st.integers(0, 11), max_size=5))
def test_exactly_the_chunks_that_were_removed_are_absent(tmp_path_factory, layout, gone):
    place = tmp_path_factory.mktemp("z") / "s.zarr"
    array = write(place, *layout)
    numbers = list(np.ndindex(*(-(-n // c) for n, c in zip(array.shape, array.shards or array.chunks, strict=True))))
    expected = sorted(numbers[i % len(numbers)] for i in gone)
    for number in set(expected):
        (place / "a" / array.metadata.encode_chunk_key(number)).unlink()
    assert open_stored(str(place), "a", "p").absent_chunks() == sorted(set(expected))


class Answers(SimpleHTTPRequestHandler):
    """Files, but no listings; `faults` holds what to answer instead (None: hang up), and how often, by end of a path."""

    faults: ClassVar[dict[str, list[int | None]]] = {}

    def log_message(self, *words):
        pass

    def list_directory(self, path):
        self.send_error(403)

    def do_HEAD(self):
        if not self.failed():
            super().do_HEAD()

    def do_GET(self):
        if not self.failed():
            super().do_GET()

    def failed(self):
        end = next((end for end, answers in self.faults.items() if answers and self.path.endswith(end)), None)
        answer = 200 if end is None else self.faults[end].pop()
        if answer is None:
            self.connection.shutdown(2)
        elif answer != 200:
            self.send_error(answer)
        return answer != 200


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder behind a plain web server, which cannot be listed."""
    folder = tmp_path_factory.mktemp("www")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Answers, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "rule"), [(503, "leave_out"), (403, "refuse"), (None, "leave_out")])
@pytest.mark.usefixtures("at_once")
def test_a_passing_failure_is_not_a_missing_chunk(served, tmp_path, dask_uncert_command, answer, rule):
    place = served[0] / "ones.zarr"
    group = zarr.open_group(place, mode="w")
    for name, dtype in (("p", "f4"), ("y", "u1"), ("x", "f8")):
        shape = (4,) * (2 - (name == "x"))
        array = group.create_array(
            name, shape=shape, dtype=dtype, chunks=(2,) * len(shape), dimension_names=("y", "x")[-len(shape) :]
        )
        array[...] = np.arange(4) if name == "x" else 1
    inputs = {
        kind: {"store": f"{served[1]}/ones.zarr", "array": name, "missing_chunks": rule}
        for kind, name in (("probabilities", "p"), ("reference", "y"))
    }
    words = {"version": 1, "kind": "scene", "classes": ["out", "in"], "output": "out", "inputs": inputs}
    (tmp_path / "job.yaml").write_text(json.dumps(words))
    once = [answer] * (2 if answer is None else 1)  # aiohttp itself asks again after a broken connection
    Answers.faults = {end: [*once] for end in ("p/c/0/1", "p/zarr.json", "x/zarr.json", "x/c/1")}
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml", "--quiet")
    assert status == 0, said
    results, record = (json.loads((tmp_path / "out" / f"{name}.json").read_text()) for name in ("results", "run"))
    assert results["counted"] == 16
    assert record["reads_tried_again"] == 4 == len(Answers.faults)
    # one that stays is an error that says so, and absence needs a "not found"
    Answers.faults = {"p/c/0/1": [answer] * 99}
    status, _, said = dask_uncert_command("run", tmp_path / "job.yaml", "--fresh", "--quiet")
    assert status == 2
    assert "does not say whether it holds every chunk of p" in said
    Answers.faults = {"p/c/0/1": [404] * 99}
    stored = open_stored(f"{served[1]}/ones.zarr", "p", "p")
    assert stored.absent_chunks() == [(0, 1)]
    Answers.faults = {}


@pytest.mark.usefixtures("at_once")
def test_a_file_that_a_server_refuses_for_a_moment_did_not_change(served):
    np.save(served[0] / "p.npy", np.ones((4, 4)))
    stored = open_stored(f"{served[1]}/p.npy", "", "p", ("y", "x"))
    before = stored.fingerprint()
    assert before is not None
    for answer in (503, 403, None):
        Answers.faults = {"p.npy": [answer] * (4 if answer is None else 2)}  # HEAD, then GET
        assert stored.fingerprint() == before
    (served[0] / "p.npy").unlink()
    assert stored.fingerprint() is None


@pytest.mark.parametrize("remote", [True, False])
def test_a_folder_that_cannot_be_listed_is_not_empty(tmp_path, monkeypatch, remote):
    """Both kinds of listing pass over such folders by default."""
    write(tmp_path / "s.zarr")
    if remote:
        fsspec.filesystem("memory").put(str(tmp_path / "s.zarr"), "/locked/s.zarr", recursive=True)
        system, name = type(fsspec.filesystem("memory")), "ls"
    else:
        system, name = os, "scandir"
    real = getattr(system, name)

    def locked(*words, **options):
        if any(str(word).endswith("c/1") for word in words):
            raise PermissionError(errno.EACCES, "locked")
        return real(*words, **options)

    stored = open_stored("memory://locked/s.zarr" if remote else str(tmp_path / "s.zarr"), "a", "p")
    monkeypatch.setattr(system, name, locked)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.0)
    with pytest.raises(PermissionError, match="locked"):
        stored.absent_chunks()


def test_other_kinds_of_stores(tmp_path, served):
    write(tmp_path / "s.zarr")
    (tmp_path / "s.zarr" / "a" / "c" / "1" / "2").unlink()
    shutil.make_archive(str(tmp_path / "t.zarr"), "zip", tmp_path / "s.zarr")
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "s.zarr"), "/there/s.zarr", recursive=True)
    shutil.copytree(tmp_path / "s.zarr", served[0] / "s.zarr")
    packed = str(tmp_path / "t.zarr.zip")
    for store in (packed, f"zip::file://{packed}", "memory://there/s.zarr", f"{served[1]}/s.zarr"):
        stored = open_stored(store, "a", "p")
        assert stored.absent_chunks() == [(1, 2)], store
        expected = VALUES.copy()
        expected[2:4, 6:9] = 0
        assert np.array_equal(pickle.loads(pickle.dumps(stored))[...], expected), store


def test_a_chunk_that_vanishes_after_it_was_listed_is_an_error(served):
    write(served[0] / "v.zarr")
    stored = open_stored(f"{served[1]}/v.zarr", "a", "p")
    assert stored.absent_chunks() == []
    (served[0] / "v.zarr" / "a" / "c" / "0" / "1").unlink()
    with pytest.raises(
        InputError,
        match=r"p: http.*v.zarr:a cannot be read at \[0:2, 0:6\] .*c/0/1 is no longer in the store",
    ):
        pickle.loads(pickle.dumps(stored))[0:2, 0:6]


def test_our_own_stores_lack_no_chunk(tmp_path):
    writer = MapWriter(str(tmp_path / "m.zarr"))
    writer.create({"a": ("uint8", 0, {}), "b": ("float32", np.nan, {})}, ("y", "x"), (8, 8), (4, 4), {})
    for y in (0, 4):
        for x in (0, 4):
            writer.write({"a": np.zeros((4, 4), "u1"), "b": np.full((4, 4), np.nan, "f4")}, (y, x))
    for name in "ab":
        assert open_stored(str(tmp_path / "m.zarr"), name, "p").absent_chunks() == []


@pytest.mark.parametrize("group", ["v2_from_zarr-python", "v3_from_zarrita"])
def test_arrays_of_other_programs(group):
    place = SAMPLES / group / "data.zarr"
    read = unreadable = 0
    for folder in sorted(one for one in place.iterdir() if one.is_dir()):
        try:
            stored = open_stored(str(place), folder.name, "p")
        except InputError:
            unreadable += 1
            continue
        expected = zarr.open_array(folder, mode="r")
        assert stored.dtype.isnative
        assert np.array_equal(stored[...], expected[...]), folder.name
        read += 1
    assert (read, unreadable) == ((20, 6) if group.startswith("v2") else (32, 1))


def test_objects_are_never_unpickled(tmp_path):
    place = tmp_path / "s.zarr"
    write(place, 2)
    words = (place / "a" / ".zarray").read_text()
    (place / "a" / ".zarray").write_text(
        words.replace('"filters": null', '"filters": [{"id": "pickle", "protocol": 5}]')
    )
    refused(r"holds Python objects|is damaged, or its kind", place, "a", "p")


def test_names_stay_inside(tmp_path):
    write(tmp_path / "s.zarr")
    for name in ("../other/a", "a/../../b"):
        with pytest.raises(InputError, match=r"must not contain '\.\.'"):
            ZarrArray(str(tmp_path / "s.zarr"), name, "p")


@pytest.mark.parametrize(("shape", "chunks"), [([6, 10], [2, 0]), ([1 << 70, 10], [2, 3]), ([10**6, 10**6], [2, 3])])
def test_impossible_shapes_are_refused(tmp_path, shape, chunks):
    write(tmp_path / "s.zarr")
    place = tmp_path / "s.zarr" / "a" / "zarr.json"
    words = json.loads(place.read_text())
    words["shape"], words["chunk_grid"]["configuration"]["chunk_shape"] = shape, chunks
    place.write_text(json.dumps(words))
    with pytest.raises(InputError, match=r"^p: .*s.zarr"):
        open_stored(str(tmp_path / "s.zarr"), "a", "p").absent_chunks()


def test_unsigned_numbers_in_signed_storage(tmp_path):
    array = write(tmp_path / "s.zarr", values=np.array([[-1, 5], [-2, 0]], "i1"))
    array.attrs.update({"_Unsigned": "true", "_FillValue": -1, "scale_factor": 0.5})
    stored = open_stored(str(tmp_path / "s.zarr"), "a", "p")
    assert stored[...].tolist() == [[255, 5], [254, 0]]
    assert stored.decoding.missing == (255,)


def test_behind_a_url_a_missing_chunk_is_an_error_unless_absence_means_the_fill_value(served):
    write(served[0] / "f.zarr")
    (served[0] / "f.zarr" / "a" / "c" / "0" / "1").unlink()
    stored = open_stored(f"{served[1]}/f.zarr", "a", "p")
    with pytest.raises(InputError, match="c/0/1 is no longer in the store"):
        stored[...]
    stored.fill()
    assert not stored[0:2, 3:6].any()
