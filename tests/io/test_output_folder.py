"""The output folder: whole or not there, and nothing of anybody's lost on the way."""

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io import output_folder, owned_folder
from dask_uncert.io.output_folder import being_written, is_finished, read_record, write_record
from dask_uncert.io.output_lock import reserved
from dask_uncert.io.owned_folder import make_folder, new_id
from dask_uncert.io.paths import as_path


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
    out, lock = tmp_path / "deep" / "out", tmp_path / "deep" / ".out.lock"
    hold = "import sys, pathlib; from dask_uncert.io.output_lock import reserved\n"
    hold += "with reserved(pathlib.Path(sys.argv[1])): print('held', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", hold, out], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        with (
            pytest.raises(InputError, match=f"another run is writing to {out} .process {process.pid} on"),
            reserved(out),
        ):
            pass
        process.kill()
    assert lock.exists()  # of a run that was killed: the system has unlocked it
    with reserved(out), reserved(tmp_path / "other"):
        assert str(os.getpid()) in lock.read_text()
        with pytest.raises(InputError, match="another run is writing"), reserved(out):
            pass
    url = as_path("memory://bucket/out")
    with reserved(url), pytest.raises(InputError, match="another run is writing to memory://"), reserved(url):
        pass
    assert not list(out.parent.iterdir())


def test_of_many_runs_at_once_one_goes_on(tmp_path):
    entered = []

    def run(number):
        for _ in range(50):
            with suppress(InputError), reserved(tmp_path / "out"):
                (tmp_path / "inside").touch(exist_ok=False)
                entered.append(number)
                (tmp_path / "inside").unlink()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))
    assert len(entered) > 8
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"mine", b'{"made_by": "dask-uncert"}', "link", "folder"])
def test_a_file_of_the_user_with_the_locks_name_is_left_alone(tmp_path, content):
    lock = tmp_path / ".out.lock"
    if content == "folder":
        lock.mkdir()
    elif content == "link":
        lock.symlink_to(tmp_path)
    else:
        lock.write_bytes(content)
    before = lock.lstat()
    with suppress(InputError), reserved(tmp_path / "out"):
        pass
    assert (lock.lstat().st_mtime_ns, lock.lstat().st_size) == (before.st_mtime_ns, before.st_size)


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


@pytest.mark.parametrize("step", ["make_folder", "write_atomic", "put_in_place"])
def test_what_a_run_leaves_that_is_killed_before_a_step_is_removed(tmp_path, monkeypatch, step):
    out = tmp_path / "out"
    if not (child := os.fork()):
        module = owned_folder if step == "write_atomic" else output_folder
        with suppress(BaseException), monkeypatch.context() as patch:
            patch.setattr(module, step, lambda *args, **words: os._exit(9))
            with being_written(out) as working:
                write_record(working, {"a": 1})
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert [path.name for path in tmp_path.iterdir()] != []
    with being_written(out) as working:
        write_record(working, {"a": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


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
