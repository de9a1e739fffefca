"""A case file is whole or not there, is found for what it was computed from alone, and gives back what went in."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dask_uncert.execution.evaluate import evaluate
from dask_uncert.io.summary_cache import CaseFile, CaseFolder, Frame, _packed, _unpacked
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.sparse_rows import SparseRow

ROW = st.dictionaries(st.integers(0, 2**40), st.integers(-(2**63), 2**63 - 1).filter(lambda n: n != 0), max_size=8).map(
    lambda d: SparseRow(np.array(sorted(d), np.int64), np.array([d[k] for k in sorted(d)], np.int64))
)
LABELS = st.dictionaries(st.text(max_size=4), st.dictionaries(st.text(max_size=4), ROW, max_size=3), max_size=3)


def equal(one, two):
    assert one.keys() == two.keys()
    for label in one:
        assert one[label].keys() == two[label].keys()
        for path in one[label]:
            assert one[label][path].cells.tolist() == two[label][path].cells.tolist()
            assert one[label][path].counts.tolist() == two[label][path].counts.tolist()
            assert one[label][path].counts.dtype == np.int64


@given(
    rows=LABELS,
    name=st.text(max_size=5),
    facts=st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
def test_packed_and_unpacked(rows, name, facts):
    case = CaseFile(facts, dict.fromkeys(rows, "digest"), rows)
    content = _packed(name, "key", case)
    found = _unpacked(name, "key", content)
    assert (found.facts, found.frames) == (case.facts, case.frames)
    equal(found.rows, rows)
    assert _unpacked(name, "other key", content) is None
    assert _unpacked(name + "x", "key", content) is None


@settings(max_examples=20)
@given(data=st.data())
def test_a_damaged_file_is_no_case(data):
    content = _packed("P1", "key", CaseFile({}, {"": "d"}, {"": {"a": SparseRow.of(np.arange(50))}}))
    at = data.draw(st.integers(0, len(content) - 1))
    cut = content[:at]
    flipped = content[:at] + bytes([content[at] ^ data.draw(st.integers(1, 255))]) + content[at + 1 :]
    assert _unpacked("P1", "key", cut) is None
    assert _unpacked("P1", "key", flipped) is None


def scene(seed=0):
    rng = np.random.default_rng(seed)
    return evaluate(rng.dirichlet([0.5] * 3, 30), rng.integers(0, 3, 30), measures=["gini"])


def test_written_read_and_found_by_what_it_is_of(tmp_path):
    folder = CaseFolder(tmp_path / "out.cases")
    parts = {"": scene(1), "reference_1": scene(2)}
    framed = {label: (Frame.of(one), one) for label, one in parts.items()}
    assert folder.read("P1/v", "key") is None
    folder.write("P1/v", "key", framed, {"seconds": 1.5})
    found = folder.read("P1/v", "key")
    assert found.facts == {"seconds": 1.5}
    for label, evaluation in parts.items():
        frame = folder.frame(found.frames[label])
        assert frame == Frame.of(evaluation)
        arrays = {path: row.dense(frame.layout[path][1]) for path, row in found.rows[label].items()}
        assert Evaluation.from_plain(frame.frame, arrays) == evaluation
    assert folder.read("P1/v", "another key") is None
    assert folder.read("P1 v", "key") is None
    before = {path.name: path.read_bytes() for path in folder.path.iterdir()}
    folder.write("P1/v", "key", framed, {"seconds": 1.5})
    assert {path.name: path.read_bytes() for path in folder.path.iterdir()} == before
    assert len(before) == 2  # the frame is there once
    folder.file("P1/v", "key").write_bytes(b"")
    assert folder.read("P1/v", "key") is None


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    folder = CaseFolder(tmp_path / "out.cases")

    def full(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        folder.write("P1", "key", {"": (Frame.of(scene()), scene())}, {})
    assert list(folder.path.iterdir()) == []


def test_names_that_look_alike_in_files_stay_apart(tmp_path):
    folder = CaseFolder(tmp_path)
    for name in ("P 1", "P_1", "P/1", "P:1"):
        folder.write(name, "key", {"": (Frame.of(scene()), scene())}, {"name": name})
    assert {folder.read(name, "key").facts["name"] for name in ("P 1", "P_1", "P/1", "P:1")} == {
        "P 1", "P_1", "P/1", "P:1",
    }  # fmt: skip
