"""The output folder: whole or not there, and nothing of anybody's lost on the way."""

import json
import os
import socket
import subprocess
import sys

import psutil
import pytest

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.execution.checkpoints import open_checkpoints, run_checkpoints
from dask_uncert.io.output_folder import being_written, is_finished, read_record, write_record
from dask_uncert.io.owned_folder import make_folder, new_id


def test_whole_or_not_there(tmp_path):
    out = tmp_path / "deep" / "out"
    with being_written(out) as working:
        assert not out.exists()
        assert (working / "UNFINISHED.txt").exists()
        write_record(working, {"fingerprint": "a"})
    assert read_record(out)["fingerprint"] == "a"
    assert [p.name for p in out.parent.iterdir()] == ["out"]
    with pytest.raises(ZeroDivisionError), being_written(out) as working:
        (working / "half").write_text(str(1 / 0))
    assert [p.name for p in out.parent.iterdir()] == ["out"]
    assert read_record(out)["fingerprint"] == "a"


def test_nothing_is_left_where_nothing_was(tmp_path):
    with pytest.raises(ZeroDivisionError), being_written(tmp_path / "deep" / "er" / "out") as working:
        (working / "half").write_text(str(1 / 0))
    assert not list(tmp_path.iterdir())


def test_two_runs_at_once_do_not_disturb_each_other(tmp_path):
    out = tmp_path / "out"
    other = tmp_path / f"out.unfinished-{socket.gethostname()}-{os.getppid()}"  # of a process that is running
    dead = tmp_path / f"out.unfinished-{socket.gethostname()}-999999999-{'0' * 32}"
    elsewhere = tmp_path / "out.unfinished-another-host-7"
    for folder in (other, dead, elsewhere):
        make_folder(folder, "output", "0" * 32)
    with being_written(out) as working:
        write_record(working, {"fingerprint": "b"})
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([out.name, other.name, elsewhere.name])


def test_a_second_run_is_told_at_its_start(tmp_path):
    folder = tmp_path / "out.blocks"
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with run_checkpoints(tmp_path / "out", "key", fresh=False):
            marker = json.loads((folder / "dask-uncert.json").read_text())
            marker["process"][1:] = [process.pid, psutil.Process(process.pid).create_time()]
            (folder / "dask-uncert.json").write_text(json.dumps(marker))
            with pytest.raises(InputError, match=f"another run is writing .* .process {process.pid} on"):
                open_checkpoints(tmp_path / "out", "key", fresh=True)
            assert (folder / "dask-uncert.json").exists()
    finally:
        process.kill()
        process.wait()
    assert not folder.exists()
    open_checkpoints(tmp_path / "out", "key", fresh=False)


def test_replacing_keeps_the_earlier_one_until_the_end(tmp_path):
    out = tmp_path / "out"
    for mark in ("first", "second"):
        with being_written(out) as working:
            if mark == "second":
                assert read_record(out)["fingerprint"] == "first"
            write_record(working, {"fingerprint": mark})
    assert read_record(out)["fingerprint"] == "second"


def test_a_run_killed_between_two_renames_loses_nothing(tmp_path):
    out = tmp_path / "out"
    left = tmp_path / f"out.unfinished-{socket.gethostname()}-999999999-{new_id()}-replaced"
    left.mkdir()
    write_record(left, {"fingerprint": "first", "id": new_id(), "files": {"": ["run.json"]}})
    with pytest.raises(ZeroDivisionError), being_written(out) as working:
        (working / "half").write_text(str(1 / 0))
    assert read_record(out)["fingerprint"] == "first"


def test_infinities_are_said_in_plain_json(tmp_path):
    write_record(tmp_path, {"job": {"dampings": [0.5, float("inf")]}})
    assert read_record(tmp_path) == {"job": {"dampings": [0.5, "inf"]}}


def test_what_may_be_replaced(tmp_path):
    out = tmp_path / "out"
    assert not is_finished(out, "a", fresh=False)
    with being_written(out) as working:
        write_record(working, {"fingerprint": "a"})
    assert is_finished(out, "a", fresh=False)
    assert not is_finished(out, "a", fresh=True)
    for mark in ("b", None):
        with pytest.raises(InputError, match="--fresh"):
            is_finished(out, mark, fresh=False)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        is_finished(tmp_path / "file", "a", fresh=True)


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be created"), being_written(tmp_path / "file" / "out"):
        pass


@pytest.mark.parametrize(
    "text",
    [
        "[]", "{", "[" * 100_000, "\x00", '{"failed": ["P1"]}', '{"maps": 3}', '{"cases": {"P1": []}}', '{"job": null}',
        '{"inputs": {"probabilities": "p.zarr"}}', '{"merged": [1]}', '{"fingerprint": {}}',
    ],
)  # fmt: skip
def test_a_record_that_is_not_ours_is_one_clear_paragraph(tmp_path, text):
    (tmp_path / "run.json").write_text(text)
    for function in (du.report, lambda folder: du.merge(folder / "sum", [folder])):
        with pytest.raises(InputError, match=r"run\.json is not as dask-uncert writes it") as caught:
            function(tmp_path)
        assert "\n" not in str(caught.value)
