"""Jobs that are sent off: on a running scheduler and on SLURM; found again by their output; cancelled, killed, resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import yaml
from distributed import LocalCluster

import dask_uncert as du
from dask_uncert.io.paths import write_atomic
from dask_uncert.jobs import submission, submit
from dask_uncert.jobs.submission import JobStatus, Submission, folder_of
from tests.support import scenes, schedulers, slurm
from tests.support.command import command


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
    out = tmp_path / "out"
    sent = command("submit", job[0], "--cluster", address, "--out", out, "--json", check=0)
    assert json.loads(sent.stdout) == {"output": str(out)}
    kept = tmp_path / "out.blocks"
    is_ended = (tmp_path / "out.job" / "end.json").exists
    wait_for(lambda: len(scenes.finished(kept)) >= 2 or is_ended())
    again = command("submit", job[0], "--cluster", address, "--out", out)
    if not is_ended():
        assert again.returncode == 2
        assert "already" in again.stderr
    for child in psutil.Process(nannies[0].pid).children(recursive=True):  # a worker, perhaps the driver's
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
    waited = command("wait", out, "--timeout", 200, "--json")
    assert waited.returncode == 0, waited.stdout + waited.stderr + (tmp_path / "out.job" / "log.txt").read_text()
    ended = json.loads(waited.stdout)
    assert (ended["output"], ended["status"]) == (str(out), "done")
    assert du.load(out) == job[1]
    assert json.loads(command("status", out, "--json").stdout) == ended
    assert not kept.exists()


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)


@pytest.mark.slow
def test_a_cluster_without_workers_is_given_time_to_have_one(tmp_path, job, monkeypatch):
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        monkeypatch.setattr(submit, "FIRST_WORKER", 0.1)
        with pytest.raises(du.ClusterError, match="none came within"):
            du.submit(job[0], cluster=cluster.scheduler_address, out=tmp_path / "none")
        assert not list(tmp_path.iterdir())
        monkeypatch.setattr(submit, "FIRST_WORKER", 60)
        threading.Timer(0.5, cluster.scale, [1]).start()
        du.submit(job[0], cluster=cluster.scheduler_address, out=tmp_path / "out")
        assert du.wait(tmp_path / "out", timeout=120).status == "done"


@pytest.mark.slow
def test_a_cancelled_job_ends_and_goes_on_when_it_is_sent_again(tmp_path, job, scheduler):
    address, _ = scheduler
    out = tmp_path / "out"
    command("submit", job[0], "--cluster", address, "--out", out, check=0)
    wait_for(lambda: scenes.finished(tmp_path / "out.blocks"))
    command("cancel", out, check=0)
    assert command("status", out).stdout.startswith(("cancelled", "done"))
    if not out.exists():
        assert scenes.finished(tmp_path / "out.blocks")
    command("submit", job[0], "--cluster", address, "--out", out, check=0)
    command("wait", out, "--timeout", 200, check=0)
    assert du.load(out) == job[1]


@pytest.mark.slow
def test_what_goes_wrong_is_found_beside_the_output(tmp_path, job, scheduler):
    address, _ = scheduler
    out, changes = tmp_path / "out", {"ignore": [7], "classes": {1: "a", 2: "b"}}
    du.submit(job[0], cluster=address, out=out, overrides=changes)
    waited = command("wait", out, "--timeout", 120, check=1)
    assert waited.stderr.startswith("failed: ")
    assert "6 classes along its class dimension, but the class table has 2" in waited.stderr


@pytest.mark.needs(*slurm.PROGRAMS)
def test_a_job_of_slurm(tmp_path, job):
    with (
        tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder,
        slurm.slurm(Path(folder)) as environment,
    ):
        options = {
            "queue": "debug", "cores": 1, "memory": "1500MB", "walltime": "00:10:00", "interface": "lo", "python": sys.executable,
            "scheduler_options": {"interface": "lo"}, "local_directory": str(tmp_path), "log_directory": str(tmp_path),
        }  # fmt: skip
        (tmp_path / "c.yaml").write_text(yaml.safe_dump({"kind": "slurm", "jobs": 2, "wait": 60, "options": options}))
        words = ("submit", job[0], "--cluster", tmp_path / "c.yaml", "--out", tmp_path / "out")
        sent = command(*words, check=0, env=environment, cwd=tmp_path)
        waited = command("wait", sent.stdout.strip(), "--timeout", 200, env=environment)
        log = (tmp_path / "out.job" / "log.txt").read_text()
        assert waited.returncode == 0, waited.stdout + waited.stderr + log
        assert du.load(tmp_path / "out") == job[1]
        bad = {**options, "queue": "nowhere"}
        (tmp_path / "bad.yaml").write_text(yaml.safe_dump({"kind": "slurm", "options": bad}))
        words = ("submit", job[0], "--cluster", tmp_path / "bad.yaml", "--out", tmp_path / "no")
        refused = command(*words, check=2, env=environment)
        assert "SLURM refused the job" in refused.stderr


def test_the_folder_next_to_the_output_gives_the_status(tmp_path, monkeypatch):
    job = Submission("j", str(tmp_path / "out"), "tcp://h:1", "scheduler", "k")
    job.create()
    assert job.status().status == "waiting"
    with pytest.raises(du.InputError, match="is already waiting"):
        job.create()
    cancelled = []
    monkeypatch.setattr(submission, "HEARTBEAT", 0.01)
    with job.heartbeat(lambda: cancelled.append(1)) as report:
        report("evaluate", 3, 16)
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


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_differs_does_not_make_a_live_job_lost(tmp_path, monkeypatch, hours):
    monkeypatch.setattr(submission, "HEARTBEAT", 0.1)
    job = Submission("j", str(tmp_path / "out"), "tcp://h:1", "scheduler", "k")
    job.create()
    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.02):
            content = {"time": time.time() + 3600 * hours, "stage": "evaluate", "done": 3, "total": 16}
            write_atomic(job.folder / "progress.json", json.dumps(content).encode())

    thread = threading.Thread(target=beat)
    thread.start()
    wait_for((job.folder / "progress.json").exists)
    assert job.status().status == "running"
    over.set()
    thread.join()
    assert job.status().status == "lost"


FOREIGN = {
    "submission.json": ["[]", "{", "[" * 100_000, '{"job": 1}', "\\x00", '{"a": 1e999}'],
    "progress.json": ["{}", '{"time": "x"}', '{"time": 1, "stage": "", "done": [], "total": 2}'],
    "end.json": ["3", '{"status": "done"}'],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in FOREIGN.items() for text in texts])
def test_a_record_that_is_not_ours_is_one_clear_paragraph(tmp_path, name, text):
    job = Submission("j", str(tmp_path / "out"), "tcp://h:1", "slurm", "12")
    job.create()
    (job.folder / name).write_text(text)
    for function in (du.status, du.wait, du.cancel):
        with pytest.raises(
            du.InputError, match=f"{name} is not as dask-uncert writes it .*Remove it, and submit"
        ) as caught:
            function(tmp_path / "out")
        assert "\n" not in str(caught.value)


def test_the_number_of_a_job_is_never_an_option(tmp_path):
    Submission("j", str(tmp_path / "out"), "c.yaml", "slurm", "--user=all").create()
    with pytest.raises(du.InputError, match=r"submission\.json is not as dask-uncert writes it \(`key`"):
        du.cancel(tmp_path / "out")


def test_what_cannot_be_submitted_is_said(tmp_path, job):
    (tmp_path / "local.yaml").write_text("kind: local\n")
    for cluster, message in (
        ("local", "needs a cluster that keeps running without this terminal"),
        (str(tmp_path / "local.yaml"), "describes this machine"),
        (str(tmp_path / "none.yaml"), "there is no file"),
    ):
        with pytest.raises(du.InputError, match=message):
            du.submit(job[0], cluster=cluster, out=tmp_path / "out")
    for function in (du.status, du.wait, du.cancel):
        with pytest.raises(du.InputError, match="no job was submitted for"):
            function(tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


@pytest.mark.slow
def test_a_job_that_slurm_ends_says_so(tmp_path):
    """SLURM sends SIGTERM before it ends a job: at its time limit, or by scancel."""
    out = tmp_path / "out"
    Submission(str(tmp_path / "job.yaml"), str(out), "local", "slurm", "7").create()
    code = "import sys, time; from dask_uncert.jobs import drive; drive.run = lambda *a, **k: time.sleep(60);"
    words = [sys.executable, "-c", f"{code} sys.exit(drive.main(sys.argv[1]))", str(out)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        wait_for((tmp_path / "out.job" / "progress.json").exists)
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 143
        assert "Traceback" not in process.stderr.read()
    assert Submission.read(out).status() == JobStatus("failed", "it was ended by SIGTERM; submit it again to resume")
