"""Files of the user around, inside of and named like folders of ours: no command changes a byte of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

import click
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dask_uncert as du
from dask_uncert.cli.main import cli
from dask_uncert.errors import InputError, OutputError
from dask_uncert.execution.checkpoints import open_checkpoints, run_checkpoints
from dask_uncert.io.output_folder import being_written, is_finished, put_in_place, rewritten, write_record
from dask_uncert.io.owned_folder import (
    check_outside,
    check_owned,
    make_folder,
    new_id,
    owned_files,
    remove_owned,
    store_attributes,
)
from dask_uncert.io.paths import as_path
from dask_uncert.io.summary_cache import replacing_folder
from dask_uncert.jobs.submission import Submission
from tests.support import cohorts

REFUSED = (InputError, OutputError, click.ClickException)
DEAD = f"{socket.gethostname()}-999999999-{'a' * 32}"
FOLDERS = (
    "out", "out.blocks", "out.cases", "out.job", "copy.zarr", "copy.zarr.converting", f"out.unfinished-{DEAD}",
    f"out.unfinished-{DEAD}-replaced", "out.unfinished-mine", "out-replaced",
)  # fmt: skip
NAMES = (
    "notes.txt", "run.json", "UNFINISHED.txt", "dask-uncert.json", "zarr.json", "report.html", "checkpoints.json",
    "tables/mine.csv", "figures/mine.png", "maps.zarr/notes.txt", "maps.zarr/gini/c/mine", "data/mine", "mine/zarr.json",
    "summary.zarr/mine.txt", "P1.maps/zarr.json", "submission.json", "c/0", "done/notes.txt", "RUN.JSON", "0.case", "raters/a.txt",
)  # fmt: skip
WRITTEN = (
    "run.json",
    "UNFINISHED.txt",
    "report.html",
    "checkpoints.json",
    "submission.json",
    "tables/mine.csv",
    "figures/mine.png",
)
CONTENTS = (
    b"",
    b"mine",
    b'{"fingerprint": "another tool"}',
    b'{"made_by": "dask-uncert"}',
    b'{"id": 1, "files": {}}',
)
PATHS = st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)).map("/".join) | st.sampled_from(FOLDERS)
TREES = st.dictionaries(PATHS, st.sampled_from(CONTENTS) | st.just("link"), max_size=4)


def plant(base, tree):
    """Put the user's files where nothing of ours lies; return what each of them is.

    Not among them: files under the very names that dask-uncert writes, inside of a folder that it is still writing.
    """
    (base / "elsewhere").mkdir()
    (base / "elsewhere" / "precious").write_text("precious")
    files = {base / "elsewhere" / "precious"}
    for name, content in tree.items():
        path = base / name
        with suppress(OSError):  # a file where another drawn path needs a folder
            path.parent.mkdir(parents=True, exist_ok=True)
            top, _, inside = name.partition("/")
            is_marked = (base / top / "dask-uncert.json").exists()
            if os.path.lexists(path) or (is_marked and inside in WRITTEN):
                continue
            if content == "link":
                path.symlink_to(base / "elsewhere")
            else:
                path.write_bytes(content)
            files.add(path)
    return {path: state(path) for path in files}


def state(path):
    """What a path is: a link with its target, or a file with its content."""
    if path.is_symlink():
        return os.readlink(path)
    return path.read_bytes() if path.is_file() else None


def make_ours(base, name):
    """Make a folder as dask-uncert makes it, as far as it is one of ours."""
    folder = base / name
    if name == "out":
        with being_written(folder) as working:
            write_result(working)
    elif name == "out.blocks":
        open_checkpoints(base / "out", "old", fresh=False)
        (folder / "maps.zarr" / "gini").mkdir(parents=True)
        (folder / "maps.zarr" / "gini" / "zarr.json").write_text("{}")
    elif name == "out.cases":
        make_folder(folder, "cases")
        (folder / f"P1.{'0' * 24}.case").write_text("x")
        (folder / f"P1.{'0' * 24}.maps").mkdir()
        (folder / f"P1.{'0' * 24}.maps" / "zarr.json").write_text("{}")
    elif name == "out.job":
        Submission("job.yaml", str(base / "out"), "tcp://here", "scheduler", "").create()
        (folder / "end.json").write_text('{"status": "done", "message": "", "time": 0}')
    elif name.startswith("copy.zarr"):
        write_store(folder)
    elif name == FOLDERS[6]:
        make_folder(folder, "output", "a" * 32)
        (folder / "results.json").write_text("{}")
    elif name == FOLDERS[7]:
        folder.mkdir()
        write_record(folder, {"id": new_id(), "files": {"": ["results.json"]}})


def write_result(working):
    (working / "tables").mkdir()
    for name in ("results.json", "tables/a.csv", "report.html"):
        (working / name).write_text("ours")
    write_record(working, {"fingerprint": "old"})


def write_store(folder):
    (folder / "data" / "c").mkdir(parents=True)
    (folder / "data" / "zarr.json").write_text("{}")
    (folder / "data" / "c" / "0").write_text("x")
    (folder / "zarr.json").write_text(json.dumps({"attributes": store_attributes(["data"])}))


def scene(base, fresh):
    out = base / "out"
    if not is_finished(out, "old" if not fresh else "new", fresh):
        with run_checkpoints(out, "key", fresh), being_written(out) as working:
            write_result(working)


def cohort(base, fresh):
    cache = base / "out.cases"
    check_owned(cache)
    if fresh:
        remove_owned(cache)
    make_folder(cache, "cases")
    with replacing_folder(cache / f"P1.{'0' * 24}.maps") as maps:
        maps.mkdir(exist_ok=True)
    scene(base, fresh)
    remove_owned(cache)


def conversion(base, fresh):
    goal, working = base / "copy.zarr", base / "copy.zarr.converting"
    if goal.exists() and not fresh:
        raise InputError("exists")
    check_owned(goal)
    check_owned(working)
    remove_owned(working)
    write_store(working)
    put_in_place(working, goal, last="zarr.json")


def report(base, fresh):
    with rewritten(base / "out") as working:
        for name in ("results.json", "tables/a.csv", "tables/mine.csv", "figures/mine.png", "report.html"):
            (working / name).parent.mkdir(exist_ok=True)
            (working / name).write_text("again")


def submission(base, fresh):
    Submission("job.yaml", str(base / "out"), "tcp://here", "scheduler", "", fresh).create()


ACTIONS = (scene, cohort, conversion, report, submission)
DRAWN = {"ours": st.sets(st.sampled_from(FOLDERS), max_size=5), "tree": TREES, "fresh": st.booleans()}


def check_direct(base, ours, tree, fresh):
    for name in sorted(ours):
        make_ours(base, name)
    foreign = plant(base, tree)
    for action in ACTIONS:
        with suppress(*REFUSED):
            action(base, fresh)
        assert {path: state(path) for path in foreign} == foreign, action


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(**DRAWN)
def test_no_foreign_byte_changes(tmp_path_factory, ours, tree, fresh):
    check_direct(tmp_path_factory.mktemp("t"), ours, tree, fresh)


@pytest.mark.slow
@settings(max_examples=500, suppress_health_check=list(HealthCheck), deadline=None)
@given(**DRAWN)
def test_no_foreign_byte_changes_in_many_trees(tmp_path_factory, ours, tree, fresh):
    check_direct(tmp_path_factory.mktemp("t"), ours, tree, fresh)


@pytest.mark.parametrize("name", FOLDERS[:6])
def test_what_is_ours_alone_is_replaced(tmp_path, name):
    make_ours(tmp_path, name)
    owned, foreign = owned_files(tmp_path / name)
    assert owned
    assert not foreign
    remove_owned(tmp_path / name)
    assert not (tmp_path / name).exists()
    make_ours(tmp_path, name)
    shutil.copytree(tmp_path / name, tmp_path / "out.cases.bak", dirs_exist_ok=True)
    (tmp_path / name / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds notes\.txt, which dask-uncert did not write"):
        check_owned(tmp_path / name)


def test_a_copy_of_a_folder_beside_an_output_is_the_users(tmp_path):
    make_ours(tmp_path, "out.cases")
    shutil.copytree(tmp_path / "out.cases", tmp_path / "other.cases")
    with pytest.raises(InputError, match="not ours to replace"):
        check_owned(tmp_path / "other.cases")


def test_inputs_are_never_inside_of_what_is_replaced(tmp_path):
    make_ours(tmp_path, "out")
    (tmp_path / "link").symlink_to(tmp_path / "out" / "tables")
    (tmp_path / "free.npy").write_text("x")
    inside = str(tmp_path / "out" / "results.json")
    for path in (
        inside,
        f"file://{inside}",
        f"zip://a.npy::{inside}",
        str(tmp_path / "link" / "a.csv"),
        str(tmp_path / "out"),
    ):
        with pytest.raises(InputError, match=r"y: .* is in .*out, which this run would replace"):
            check_outside([tmp_path / "out"], {"y": path})
    with pytest.raises(InputError, match="is in"):
        check_outside([as_path("memory://b/out")], {"y": "memory://b/out/maps.zarr"})
    check_outside([tmp_path / "out", tmp_path / "no"], {"y": str(tmp_path / "free.npy"), "z": f"{tmp_path}/out2/a.npy"})


@pytest.fixture(scope="module")
def studies(tmp_path_factory, shared_client):
    """A folder with a scene, a regression and a cohort, their jobs, and finished results of them."""
    base = tmp_path_factory.mktemp("studies")
    rng = np.random.default_rng(0)
    np.save(base / "p.npy", rng.dirichlet(np.ones(2), (6, 5)))
    np.save(base / "y.npy", rng.integers(0, 2, (6, 5)).astype("u1"))
    np.save(base / "v.npy", np.ones((6, 5)))
    dims = {"dims": ["y", "x"]}
    inputs = {
        "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]},
        "reference": {"store": "y.npy", **dims},
    }
    soft = [{"class": "b", "sigmas": [0.1], "uncertainty": "gini"}]
    job = {"version": 1, "kind": "scene", "classes": {0: "a", 1: "b"}, "measures": ["gini"], "maps": ["gini"]}
    job |= {"inputs": inputs, "output": "out", "soft_confusion": soft}
    real = {
        "mean": {"store": "v.npy", **dims},
        "reference": {"store": "v.npy", **dims},
        "variance": {"store": "v.npy", **dims},
    }
    (base / "scene.yaml").write_text(yaml.safe_dump(job))
    (base / "real.yaml").write_text(
        yaml.safe_dump({"version": 1, "kind": "regression", "inputs": real, "output": "out"})
    )
    (base / "slurm.yaml").write_text("kind: slurm\n")
    study = cohorts.Cohort(base, ["A", "B"], measures=["gini"], maps=["gini"])
    study.job().rename(base / "cohort.yaml")
    for name in ("scene", "cohort"):
        du.run(base / f"{name}.yaml", out=base / f"{name}s", cluster=shared_client)
    return base


def submit_to_slurm(base, fresh, client):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "/nowhere")  # without sbatch the submission is written, and ends as failed
        du.submit(base / "scene.yaml", cluster=str(base / "slurm.yaml"), fresh=fresh)


COMMANDS = {
    "scene": lambda b, fresh, client: du.run(
        b / "scene.yaml", cluster=client, fresh=fresh, performance_report=b / "out" / "notes.txt" if fresh else None
    ),
    "regression": lambda b, fresh, client: du.run(b / "real.yaml", cluster=client, fresh=fresh),
    "cohort": lambda b, fresh, client: du.run(b / "cohort.yaml", cluster=client, fresh=fresh),
    "merge": lambda b, fresh, client: du.merge(b / "out", [b / "scenes"], fresh=fresh),
    "report": lambda b, fresh, client: du.report(b / "out"),
    "convert": lambda b, fresh, client: du.convert(
        b / "y.npy", b / "copy.zarr", dims=["y", "x"], cluster=client, fresh=fresh
    ),
    "export": lambda b, fresh, client: [
        du.export(b / "scenes", "gini", b / name, fresh=fresh) for name in ("out/figures/mine.png", "mine.ome.zarr", "mine.nii")
    ],
    "sweep": lambda b, fresh, client: cli.main(
        ["sweep", str(b / "scenes"), "--csv", str(b / "out" / "notes.txt")], standalone_mode=False
    ),
    "compare": lambda b, fresh, client: cli.main(
        ["compare", str(b / "cohorts"), str(b / "cohorts"), "--csv", str(b / "out" / "notes.txt")], standalone_mode=False
    ),
    "submit": submit_to_slurm,
    "save": lambda b, fresh, client: du.save(du.load(b / "scenes"), b / "out"),
}  # fmt: skip
AROUND = st.sampled_from(
    (
        "mine.nii",
        "mine.ome.zarr/notes.txt",
        "mine.ome.zarr",
        ".out.lock",
        ".out.job.lock",
        ".copy.zarr.lock",
        ".scenes.lock",
    )
)


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    ours=st.sets(st.sampled_from(FOLDERS), max_size=4),
    tree=st.dictionaries(PATHS | AROUND, st.sampled_from(CONTENTS) | st.just("link"), max_size=3),
    fresh=st.booleans(),
)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_changes_a_foreign_byte(
    studies, shared_client, without_pictures, tmp_path_factory, command, ours, tree, fresh
):
    base = tmp_path_factory.mktemp("t") / "study"
    shutil.copytree(studies, base)
    for name in sorted(ours):
        make_ours(base, name)
    foreign = plant(base, tree)
    inputs = (
        "p.npy",
        "y.npy",
        "v.npy",
        "scene.yaml",
        "real.yaml",
        "cohort.yaml",
        "slurm.yaml",
        "cases.csv",
        "A.zarr",
        "B.zarr",
    )
    for folder in (*inputs, "scenes", "cohorts"):
        path = base / folder
        foreign |= {one: state(one) for one in (path, *Path(path).rglob("*")) if one.is_file()}
    with suppress(*REFUSED):
        COMMANDS[command](base, fresh, shared_client)
    assert {path: state(path) for path in foreign} == foreign
