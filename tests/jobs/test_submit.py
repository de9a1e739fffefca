"""Jobs that are sent off: on a running scheduler and on SLURM; found again by their output; cancelled, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
import yaml

import dask_uncert as du
from dask_uncert.jobs import submission
from dask_uncert.jobs.submission import Heartbeat, JobStatus, Submission, folder_of
from tests.support import scenes, schedulers, slurm

COMMAND = str(Path(sys.executable).with_name("dask-uncert"))


def command(*words, **more):
    return subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, check=False, timeout=240, **more
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A scene of many blocks, and its evaluation on this machine."""
    scene = scenes.Scene(tmp_path_factory.mktemp("job"))
    return scene.job, scene.wanted()


@pytest.fixture
def scheduler(tmp_path):
    """The address of a scheduler, and the processes of two workers under nannies."""
    with schedulers.scheduler(tmp_path) as (address, processes):
        yield address, processes[1:]


@pytest.mark.slow
def test_a_job_on_a_scheduler_outlives_its_command_and_its_worker(tmp_path, job, scheduler):
    address, nannies = scheduler
    sent = command("submit", job[0], "--cluster", address, "--out", tmp_path / "out")
    assert sent.returncode == 0, sent.stderr
    place = sent.stdout.strip()
    assert place == str(tmp_path / "out")
    kept = tmp_path / "out.blocks"
    end = time.monotonic() + 120
    while (
        len(list(kept.glob("*.case"))) < 2
        and not (tmp_path / "out.job" / "end.json").exists()
        and time.monotonic() < end
    ):
        time.sleep(0.02)
    again = command("submit", job[0], "--cluster", address, "--out", tmp_path / "out")
    if not (tmp_path / "out.job" / "end.json").exists():
        assert again.returncode == 2
        assert "already" in again.stderr
    for child in psutil.Process(nannies[0].pid).children(recursive=True):  # a worker, perhaps the driver's
        with_signal(child.pid, signal.SIGKILL)
    waited = command("wait", place, "--timeout", 200)
    assert waited.returncode == 0, (
        waited.stdout + waited.stderr + (tmp_path / "out.job" / "log.txt").read_text()
    )
    assert waited.stdout.startswith("done: the result is in")
    assert du.load(tmp_path / "out") == job[1]
    assert command("status", place).stdout.startswith("done")
    assert not kept.exists()


def with_signal(process, which):
    try:
        os.kill(process, which)
    except ProcessLookupError:
        return


@pytest.mark.slow
def test_a_cancelled_job_ends_and_goes_on_when_it_is_sent_again(tmp_path, job, scheduler):
    address, _ = scheduler
    out = tmp_path / "out"
    assert command("submit", job[0], "--cluster", address, "--out", out).returncode == 0
    end = time.monotonic() + 120
    while not list((tmp_path / "out.blocks").glob("*.case")) and time.monotonic() < end:
        time.sleep(0.02)
    ended = command("cancel", out)
    assert ended.returncode == 0, ended.stdout
    assert command("status", out).stdout.startswith(("cancelled", "done"))
    if not out.exists():
        assert list((tmp_path / "out.blocks").glob("*.case"))
    assert command("submit", job[0], "--cluster", address, "--out", out).returncode == 0
    assert command("wait", out, "--timeout", 200).returncode == 0
    assert du.load(out) == job[1]


@pytest.mark.slow
def test_what_goes_wrong_is_found_beside_the_output(tmp_path, job, scheduler):
    address, _ = scheduler
    sent = command(
        "submit",
        job[0],
        "--cluster",
        address,
        "--out",
        tmp_path / "out",
        "--set",
        "ignore=[7]",
        "--set",
        "classes={1: a, 2: b}",
    )
    assert sent.returncode == 0, sent.stderr
    waited = command("wait", tmp_path / "out", "--timeout", 120)
    assert waited.returncode == 1
    assert waited.stderr.startswith("failed: ")
    assert "6 classes along its class dimension, but the class table has 2" in waited.stderr


@pytest.mark.slow
@pytest.mark.skipif(not slurm.THERE, reason="SLURM is not installed here, or this is not root")
def test_a_job_of_slurm(tmp_path, job):
    with (
        tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder,
        slurm.slurm(Path(folder)) as environment,
    ):
        options = {
            "queue": "debug", "cores": 1, "memory": "1500MB", "walltime": "00:10:00", "interface": "lo", "python": sys.executable,
            "scheduler_options": {"interface": "lo"}, "local_directory": str(tmp_path), "log_directory": str(tmp_path),
        }  # fmt: skip
        (tmp_path / "c.yaml").write_text(
            yaml.safe_dump({"kind": "slurm", "jobs": 2, "wait": 60, "options": options})
        )
        sent = command(
            "submit",
            job[0],
            "--cluster",
            tmp_path / "c.yaml",
            "--out",
            tmp_path / "out",
            env=environment,
            cwd=tmp_path,
        )
        assert sent.returncode == 0, sent.stderr
        waited = command("wait", sent.stdout.strip(), "--timeout", 200, env=environment)
        log = (tmp_path / "out.job" / "log.txt").read_text()
        assert waited.returncode == 0, waited.stdout + waited.stderr + log
        assert du.load(tmp_path / "out") == job[1]
        bad = {**options, "queue": "nowhere"}
        (tmp_path / "bad.yaml").write_text(yaml.safe_dump({"kind": "slurm", "options": bad}))
        refused = command(
            "submit", job[0], "--cluster", tmp_path / "bad.yaml", "--out", tmp_path / "no", env=environment
        )
        assert refused.returncode == 2
        assert "SLURM refused the job" in refused.stderr


def test_the_status_is_told_by_the_folder_beside_the_output_alone(tmp_path, monkeypatch):
    job = Submission("j", str(tmp_path / "out"), "tcp://h:1", "scheduler", "k")
    job.create()
    assert job.status().status == "waiting"
    with pytest.raises(du.InputError, match="is waiting already"):
        job.create()
    cancelled, heartbeat = [], Heartbeat(job)
    monkeypatch.setattr(submission, "HEARTBEAT", 0.01)
    with heartbeat.beating(lambda: cancelled.append(1)):
        heartbeat.report("evaluate", 3, 16)
        time.sleep(0.1)
        assert job.status() == JobStatus("running", "evaluate: 3 of 16")
        job.request_cancel()
        time.sleep(0.1)
    assert cancelled == [1]
    beat = folder_of(job.output) / "progress.json"
    content = json.loads(beat.read_text())
    beat.write_text(json.dumps({**content, "time": content["time"] - 600}))
    assert job.status().status == "lost"
    assert "no heartbeat for 60" in job.status().message
    job.create()  # one that is lost may be submitted again
    job.end("done", "x")
    assert str(job.status()) == "done: x"


def test_what_cannot_be_submitted_is_said(tmp_path, job, dask_uncert_command):
    for words, said in (
        (["--cluster", "local"], "needs a cluster that goes on without this terminal"),
        (["--cluster", str(tmp_path / "local.yaml")], "describes this machine"),
        (["--cluster", str(tmp_path / "none.yaml")], "there is no file"),
    ):
        (tmp_path / "local.yaml").write_text("kind: local\n")
        status, _, error = dask_uncert_command("submit", job[0], *words, "--out", tmp_path / "out")
        assert status == 2
        assert said in error
    status, _, error = dask_uncert_command("status", tmp_path / "out")
    assert status == 2
    assert "no job was submitted for" in error
    assert not list(tmp_path.glob("out*"))
