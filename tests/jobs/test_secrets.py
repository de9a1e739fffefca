"""Secrets in addresses: a job reads with them, and nothing that it writes or says holds them."""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import dask_uncert as du
from dask_uncert.cli.main import main
from dask_uncert.errors import ClusterError, InputError, OutputError, UnusableBlockError, without_secrets
from dask_uncert.jobs.submission import Submission, folder_of

SECRET = "S3CRET"
QUERY = f"?X-Signature={SECRET}%2F1&who=({SECRET})"


class Handler(SimpleHTTPRequestHandler):
    def translate_path(self, path):
        assert SECRET in path
        return super().translate_path(path)

    def log_message(self, *args):
        pass


@pytest.fixture
def address(tmp_path):
    """The address of a server of files in a folder, which answers only if the query holds the secret."""
    folder = tmp_path / "served"
    folder.mkdir()
    rng = np.random.default_rng(4)
    np.save(folder / "p.npy", rng.dirichlet([1, 1], (4, 5)).astype("f4"))
    np.save(folder / "y.npy", rng.integers(0, 2, (4, 5)).astype("u1"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    server.server_close()


@pytest.fixture
def job(tmp_path, address):
    inputs = {
        "probabilities": {"store": f"{address}/p.npy{QUERY}", "dims": ["y", "x", "class"]},
        "reference": {"store": f"{address}/y.npy{QUERY}", "dims": ["y", "x"]},
    }
    return {
        "version": 1, "kind": "scene", "classes": {0: "a", 1: "b"}, "inputs": inputs, "measures": [],
        "output": str(tmp_path / "out"),
    }  # fmt: skip


def written(folder):
    """Everything below a folder, as bytes, and the names."""
    return b"".join(str(p).encode() + (p.read_bytes() if p.is_file() else b"") for p in folder.rglob("*"))


def test_nothing_that_a_scene_writes_or_says_holds_a_secret(job, tmp_path, address, capsys):
    assert SECRET not in json.dumps(du.plan(job))
    assert SECRET not in json.dumps(du.plan({**job, "output": f"s3://me@bucket/out?{SECRET}"}))
    du.run(job)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["inputs"]["probabilities"]["store"] == f"{address}/p.npy"
    assert f"{address}/p.npy" in (tmp_path / "out" / "report.html").read_text()
    assert SECRET.encode() not in written(tmp_path / "out")
    for changes, message in (
        ({"store": f"{address}/none.npy{QUERY}"}, "there is no file at http"),
        ({"dims": ["y", "class", "x"]}, "/p.npy"),
        ({"scale": f"s3://u@b/{QUERY}"}, "scale"),
    ):
        inputs = {**job["inputs"], "probabilities": {**job["inputs"]["probabilities"], **changes}}
        with pytest.raises(InputError, match=message) as caught:
            du.plan({**job, "inputs": inputs})
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("options", [(), ("--debug",)])
def test_no_command_repeats_a_secret(tmp_path, address, monkeypatch, capsys, options):
    (tmp_path / "job.yaml").write_text("version: 1\n")
    for words in (
        ("plan", str(tmp_path / "job.yaml"), "--cluster", f"tcp://{SECRET}@h:1"),
        ("plan", str(tmp_path / "job.yaml"), "--set", f"https://h/{QUERY.replace('=', '')}"),
        ("convert", f"{address}/none.npy{QUERY}", str(tmp_path / "a.zarr"), "--dims", "y,x"),
        ("report", f"s3://{SECRET}@bucket/out"),
        ("run", str(tmp_path / "job.yaml"), "--out", f"s3://bucket/out?{SECRET}"),
    ):
        monkeypatch.setattr("sys.argv", ["dask-uncert", *options, *words])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 2
        shown = capsys.readouterr()
        assert "rror" in shown.err
        assert SECRET not in shown.out + shown.err


@pytest.mark.slow
def test_nothing_that_a_cohort_writes_holds_a_secret(job, tmp_path, address):
    first, second = (f"{address}/{name}.npy{QUERY}" for name in ("p", "y"))
    broken = f"{address}/none.npy{QUERY}"
    rows = [
        "patient,probabilities,reference",
        f"a,{first},{second}",
        f"b,{broken},{second}",
        f"c,{first},{second}",
    ]
    (tmp_path / "cases.csv").write_text("\n".join(rows))
    inputs = {name: {"dims": options["dims"]} for name, options in job["inputs"].items()}
    cohort = {
        **job,
        "kind": "cohort",
        "inputs": inputs,
        "manifest": "cases.csv",
        "confidence": {"replicates": 5},
    }
    assert SECRET not in json.dumps(du.plan({**cohort, "manifest": str(tmp_path / "cases.csv")}))
    with pytest.warns(match="1 case failed") as caught:
        du.run({**cohort, "manifest": str(tmp_path / "cases.csv")})
    assert SECRET not in str(caught[0].message)
    assert SECRET.encode() not in written(tmp_path / "out")


def test_a_submission_holds_no_secret(tmp_path):
    job = Submission("j", str(tmp_path / "out"), "tcp://h:1", "scheduler", "k")
    job.create()
    job.log(f"cannot read https://me@h/p.npy{QUERY}\n")
    assert SECRET.encode() not in written(folder_of(job.output))
    store = {"inputs.reference.store": f"https://h/y.npy{QUERY}"}
    with pytest.raises(InputError, match=r"a user part or a query string, which submission\.json would hold"):
        Submission("j", str(tmp_path / "new"), "tcp://h:1", "scheduler", "k", overrides=store).create()
    assert not folder_of(tmp_path / "new").exists()


@pytest.mark.parametrize(
    "text",
    [
        f"https://{SECRET}@h/p.nii", f"https://u:{SECRET}@h", f"https://h/a file.nii?sig={SECRET}",
        f"simplecache::https://{SECRET}@h/a.zip?b={SECRET}", f"(https://h/p?a='{SECRET}').",
    ],
)  # fmt: skip
def test_every_error_is_free_of_secrets(text):
    for error in (InputError(text), ClusterError(text), OutputError(text), UnusableBlockError("codes", text)):
        assert SECRET not in f"{error} {error!r} {error.args}"
    assert (
        without_secrets("is `a`? Ask s3://bucket/a b.zarr, tcp://h:1.")
        == "is `a`? Ask s3://bucket/a b.zarr, tcp://h:1."
    )
