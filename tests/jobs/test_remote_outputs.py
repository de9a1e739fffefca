"""Outputs in an object store: a real S3 server; what a folder would hold, no more lost, no secret in it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
import yaml
import zarr

import dask_uncert as du
from dask_uncert.errors import InputError
from dask_uncert.io.paths import as_path, list_files, list_names
from tests.support import cohorts, object_stores, scenes, schedulers
from tests.support.command import command

CLASSES = {0: "a", 1: "b", 2: "c"}


@pytest.fixture(scope="module")
def server():
    with object_stores.object_store() as found:
        yield found


@pytest.fixture(scope="module")
def files(server):
    import s3fs

    return s3fs.S3FileSystem(use_listings_cache=False)


def scene_job(folder, **changes):
    """A scene in 16 blocks with maps, of which an output has every kind of file."""
    rng = np.random.default_rng(0)
    np.save(folder / "p.npy", rng.dirichlet(np.ones(3), (64, 48)).astype("f4"))
    np.save(folder / "y.npy", rng.integers(0, 3, (64, 48)).astype("u1"))
    words = {
        "version": 1, "kind": "scene", "classes": CLASSES, "output": "out", "measures": ["gini", "entropy"],
        "maps": ["gini", "correct"], "soft_confusion": [{"class": "b", "sigmas": [0.1]}],
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.npy", "dims": ["y", "x"]},
        },
        **changes,
    }  # fmt: skip
    (folder / "job.yaml").write_text(yaml.safe_dump(words))
    return folder / "job.yaml"


def contents(place):
    """Every file of an output but its record, by name."""
    place = as_path(place)
    return {name: (place / name).read_bytes() for name in list_files(place) if name != "run.json"}


def record(place):
    return json.loads((as_path(place) / "run.json").read_text())


@pytest.mark.slow
def test_a_scene_leaves_what_a_folder_would_hold(tmp_path, files, dask_uncert_command):
    job, out = scene_job(tmp_path), "s3://bucket/scene/out"
    assert dask_uncert_command("run", job, "--quiet")[0] == 0
    status, said, _ = dask_uncert_command("run", job, "--out", out)
    assert status == 0
    assert out in said
    there, here = contents(out), contents(tmp_path / "out")
    assert there == here
    assert any(name.startswith("maps.zarr/gini/c/") for name in there)
    assert files.ls("bucket/scene") == ["bucket/scene/out"]
    started = record(out)["started"]
    time.sleep(1.1)
    assert dask_uncert_command("run", job, "--out", out, "--quiet")[0] == 0
    assert record(out)["started"] == started  # it is finished: nothing ran
    status, _, said = dask_uncert_command("run", job, "--out", out, "--set", "maps=[]")
    assert status == 2
    assert "another job" in said
    assert contents(out) == here
    assert dask_uncert_command("run", job, "--out", out, "--set", "maps=[]", "--fresh", "--quiet")[0] == 0
    left = contents(out)
    assert not [name for name in left if name.startswith("maps.zarr")]
    assert left["results.json"] == here["results.json"]


@pytest.mark.slow
def test_what_commands_read_is_read_there(tmp_path, server, dask_uncert_command):
    job, out = scene_job(tmp_path), "s3://bucket/read/out"
    one = du.run(job, out=out)
    assert du.load(out) == one
    before = contents(out)
    assert dask_uncert_command("report", out)[0] == 0
    assert {name: content for name, content in contents(out).items() if name != "report.html"} == {
        name: content for name, content in before.items() if name != "report.html"
    }
    status, swept, _ = dask_uncert_command("sweep", out, "--sigma", "0.05", "--json")
    assert status == 0
    assert json.loads(swept)
    status, said, _ = dask_uncert_command("export", out, tmp_path / "gini.tif", "--map", "gini", "--quiet")
    assert status == 0, said
    assert (tmp_path / "gini.tif").stat().st_size > 64 * 48
    status, _, said = dask_uncert_command("export", out, "s3://bucket/read/gini.tif", "--map", "gini")
    assert status == 2
    assert "exported to a file on this machine" in said
    other = du.run(job, out="s3://bucket/read/other", overrides={"measures": ["gini"]})
    assert dask_uncert_command("merge", "s3://bucket/read/sum", out, out)[0] == 2
    with pytest.raises(InputError, match="cannot be added"):
        du.merge("s3://bucket/read/sum", [out, "s3://bucket/read/other"])
    assert other != one
    np.save(tmp_path / "y.npy", np.random.default_rng(1).integers(0, 3, (64, 48)).astype("u1"))
    local = du.run(job, out=tmp_path / "local")
    assert du.merge("s3://bucket/read/sum", [out, tmp_path / "local"]) == one + local
    assert du.load("s3://bucket/read/sum") == one + local
    du.save(one, "s3://bucket/read/one.zarr")
    assert du.load("s3://bucket/read/one.zarr") == one


@pytest.mark.slow
def test_a_cohort_leaves_what_a_folder_would_hold(tmp_path, files, dask_uncert_command):
    cohort = cohorts.Cohort(tmp_path, ["A", "B", "C"], maps=["correct"], measures=["gini"])
    job, out = cohort.job(), "s3://bucket/cohort/out"
    assert dask_uncert_command("run", job, "--quiet")[0] == 0
    assert dask_uncert_command("run", job, "--out", out, "--quiet")[0] == 0
    there = contents(out)
    assert there == contents(cohort.out)
    assert any(name.startswith("maps.zarr/B/correct/") for name in there)
    assert files.ls("bucket/cohort") == ["bucket/cohort/out"]
    cohort.add("D", seed=9)
    for words in ((), ("--out", out)):
        assert dask_uncert_command("run", cohort.job(), *words, "--quiet")[0] == 0
    assert contents(out) == contents(cohort.out)
    assert {name: one["status"] for name, one in record(out)["cases"].items()} == {
        "A": "kept", "B": "kept", "C": "kept", "D": "computed",
    }  # fmt: skip
    assert du.load_cases(out) == du.load_cases(cohort.out)
    before = contents(out)
    assert dask_uncert_command("report", out)[0] == 0
    assert contents(out).keys() == before.keys()
    assert dask_uncert_command("merge", tmp_path / "fewer", out, "--leave-out", "A")[0] == 0
    assert du.load_cases(tmp_path / "fewer").names == ("B", "C", "D")
    assert (tmp_path / "fewer" / "maps.zarr" / "D").is_dir()
    assert dask_uncert_command("compare", out, cohort.out, "--json")[0] == 0


@pytest.mark.slow
def test_a_server_that_fails_changes_no_bit(tmp_path, server, dask_uncert_command):
    job, number = scene_job(tmp_path), itertools.count(1)
    assert dask_uncert_command("run", job, "--quiet")[0] == 0
    server.failed = 0
    with server.following(lambda environment: "busy" if next(number) % 20 == 0 else None):
        status, _, said = dask_uncert_command("run", job, "--out", "s3://bucket/faulty/out", "--quiet")
    assert status == 0, said
    assert server.failed > 3
    assert contents("s3://bucket/faulty/out") == contents(tmp_path / "out")


@pytest.mark.slow
def test_where_nothing_may_be_written_it_is_said_and_what_was_there_stands(tmp_path, server, dask_uncert_command):
    job, out = scene_job(tmp_path), "s3://bucket/denied/out"
    assert dask_uncert_command("run", job, "--out", out, "--quiet")[0] == 0
    before = contents(out)
    for where in ("/out.blocks/", "/out/"):
        words = ("run", job, "--out", out, "--set", "measures=[gini]", "--fresh", "--quiet")
        with server.refusing(where):
            status, _, said = dask_uncert_command(*words)
        assert status in (1, 2)
        assert "s3://bucket/denied/out" in said
        assert "Access Denied" in said
        assert len(said.strip().splitlines()) == 1
        assert contents(out) == before
    status, _, said = dask_uncert_command("run", job, "--out", "s3://nobucket/out", "--quiet")
    assert status == 2
    assert "s3://nobucket/out" in said


@pytest.mark.slow
def test_a_copy_that_was_stopped_is_unfinished_and_done_again(tmp_path, files, server, dask_uncert_command):
    job, out = scene_job(tmp_path), "s3://bucket/stopped/out"
    with server.refusing("results.json"):
        status, _, said = dask_uncert_command("run", job, "--out", out, "--quiet")
    assert status == 1, said
    with pytest.raises(InputError, match=r"holds no run\.json: it is unfinished"):
        du.compare(out, out)
    assert files.exists("bucket/stopped/out/UNFINISHED.txt")
    status, _, said = dask_uncert_command("run", job, "--out", out, "--quiet")
    assert status == 0, said
    assert record(out)["blocks_computed"] == 0
    assert not files.exists("bucket/stopped/out/UNFINISHED.txt")
    assert dask_uncert_command("run", job, "--quiet")[0] == 0
    assert contents(out) == contents(tmp_path / "out")
    files.pipe("bucket/foreign/out/holiday.jpg", b"x")
    status, _, said = dask_uncert_command("run", job, "--out", "s3://bucket/foreign/out", "--quiet")
    assert status == 2
    assert "not ours to replace" in said


@pytest.mark.slow
def test_a_conversion_is_whole_or_goes_on(tmp_path, files, server, dask_uncert_command):
    values = np.random.default_rng(0).random((40, 30, 4), dtype="f4")
    np.save(tmp_path / "p.npy", values)
    target = "s3://bucket/converted/p.zarr"
    words = ("convert", tmp_path / "p.npy", target, "--dims", "y,x,class", "--chunks", "10,10,4")
    with server.refusing("/data/c/3/2"):
        assert dask_uncert_command(*words)[0] != 0
    assert not files.exists("bucket/converted/p.zarr")
    written = []
    with server.following(
        lambda environment: written.append(environment["PATH_INFO"])
        if environment["REQUEST_METHOD"] == "PUT" and "/data/c/" in environment["PATH_INFO"]
        and "HTTP_X_AMZ_COPY_SOURCE" not in environment else None
    ):  # fmt: skip
        status, said, _ = dask_uncert_command(*words)
    assert status == 0
    assert said.endswith("s3://bucket/converted/p.zarr\n")
    assert 0 < len(written) < 12
    assert files.ls("bucket/converted") == ["bucket/converted/p.zarr"]
    store = zarr.storage.FsspecStore.from_url("s3://bucket/converted/p.zarr", read_only=True)
    assert np.array_equal(zarr.open_group(store, mode="r")["data"][...], values)
    assert dask_uncert_command(*words)[0] == 0
    with pytest.raises(InputError, match="one is inside the other"):
        du.convert(target, f"{target}/b.zarr")


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on(tmp_path, files):
    scene = scenes.Scene(tmp_path, maps=["gini"])
    files.put(str(tmp_path / "s.zarr"), "bucket/killed/s.zarr", recursive=True)
    job, out = tmp_path / "remote.yaml", "s3://bucket/killed/out"
    job.write_text(scene.job.read_text().replace("s.zarr", "s3://bucket/killed/s.zarr"))
    process = subprocess.Popen(
        scenes.command(job, out, many=100), start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    kept = as_path("s3://bucket/killed/out.blocks")
    while sum(name.endswith(".case") for name in list_names(kept)) < 5 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, process.stderr.read()
    left = files.find("bucket/killed/out.blocks")
    done = sum(name.endswith(".case") for name in left)
    assert 5 <= done < 64
    for name in left:
        assert object_stores.SECRET.encode() not in files.cat(name)
    (tmp_path / "cluster.yaml").write_text("{kind: local, processes: true, workers: 2}")
    for goal in (out, tmp_path / "whole"):
        words = scenes.command(job, goal, "--cluster", tmp_path / "cluster.yaml", many=100)
        again = subprocess.run(words, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
    assert du.load(out) == scene.wanted()
    there, here = contents(out), contents(tmp_path / "whole")
    assert there == here
    assert 0 < record(out)["blocks_computed"] < record(out)["blocks"]
    assert not files.exists("bucket/killed/out.blocks")
    for content in (*there.values(), files.cat("bucket/killed/out/run.json")):
        assert object_stores.SECRET.encode() not in content
    files.pipe("bucket/killed/s.zarr/y/c/0/0", files.cat("bucket/killed/s.zarr/y/c/0/1"))
    with pytest.raises(InputError, match="another job, other inputs"):  # the server says that it was written
        du.run(job, out=out)


@pytest.mark.slow
def test_a_submitted_job_is_found_again_by_its_output_alone(tmp_path, server):
    job, out = scene_job(tmp_path), "s3://bucket/submitted/out"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    with schedulers.scheduler(tmp_path, workers=1) as (address, _):
        words = ("submit", job, "--cluster", address, "--out", out)
        assert command(*words, check=0, cwd=elsewhere).stdout.strip() == out
        for name in ("wait", "status"):
            assert command(name, out, check=0, cwd=elsewhere).stdout == f"done: the result is in {out}\n"
        assert du.load(out) == du.run(job)
        command(*words, "--set", "measures=[gini]", check=0, cwd=elsewhere)
        assert "finished evaluation of another job" in command("wait", out, check=1, cwd=elsewhere).stderr
        assert "InputError" in (as_path(out).with_name("out.job") / "log.txt").read_text()


def test_a_url_whose_library_is_not_there_says_what_to_install(tmp_path, dask_uncert_command):
    status, _, said = dask_uncert_command("run", scene_job(tmp_path), "--out", "gs://bucket/out")
    assert status == 2
    assert "gs://bucket/out cannot be reached: Please install gcsfs" in said


@pytest.mark.parametrize("command", ["run", "submit"])
def test_a_bucket_is_no_folder(tmp_path, server, dask_uncert_command, command):
    words = ["--cluster", "tcp://127.0.0.1:1"] if command == "submit" else []
    status, _, said = dask_uncert_command(command, scene_job(tmp_path), "--out", "s3://bucket/", *words)
    assert status == 2
    assert "is a whole bucket" in said
