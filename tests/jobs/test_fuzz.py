"""Mutated jobs, manifests and cluster files: accepted, or refused in one paragraph; quickly and in little memory."""

from __future__ import annotations

import random
import resource
import time

import numpy as np
import pytest
import yaml

import dask_uncert as du
from dask_uncert.clusters.config import read_cluster
from dask_uncert.errors import InputError

SECONDS, BYTES = 10.0, 1 << 30
PIECES = [
    "", " ", "\n", "  ", "\t", "\x00", "\ufeff", "é", "e\u0301", "[", "]", "{", "}", ":", ": ", "- ", "? ", "#", "'", '"', "|", ">",
    "&a ", "*a", "<<: *a\n", "!!int ", "!!python/name:os.system ", "!!binary ", "---\n", "...\n", "null", "true", "010", "0", "-1",
    "1e999", ".nan", ".inf", "9" * 400, "2020-13-45", "12:30:00", "[" * 300, "- " * 300, "../" * 50, "s3://", "http://u:p@[::1", "://",
    ",", ",,", "=1+1", "/", "\\", "%", "a" * 300, "x: &x [*x]\n", "0x", "1_0", "~", "@", "`",
]  # fmt: skip
CLUSTERS = [
    {"kind": "local", "workers": 2, "threads": 1, "memory_limit": "4 GiB", "processes": True, "dashboard": 8787},
    {"kind": "address", "address": "tls://h:8786", "ca_file": "ca.pem", "cert": "c.pem", "key": "k.pem"},
    {"kind": "slurm", "jobs": 2, "wait": 60, "tls": True, "options": {"queue": "q", "walltime": "01:00:00", "cores": 4}},
    {"kind": "mpi", "launcher": ["mpirun", "-n", 4], "threads": 2, "interface": "lo", "local_directory": "/tmp"},
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> bytes:
    """Return a text with one to four edits: a piece put in or instead of some of it, lines copied, or a bit flipped."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        start = rng.randint(0, len(text))
        end = min(len(text), start + rng.choice([0, 0, 1, 3, 20]))
        lines = text.splitlines(keepends=True) or [""]
        text = rng.choice([
            text[:start] + rng.choice(PIECES) * rng.choice([1, 1, 2, 50]) + text[end:],
            text[:start] + text[end:],
            "".join(rng.sample(lines, len(lines))),
            "".join([*lines, *rng.choices(lines, k=2)]),
        ])  # fmt: skip
    content = bytearray(text.encode())
    if content and rng.random() < 0.2:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return bytes(content)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    np.save(folder / "p.npy", np.full((4, 5), 0.25))
    np.save(folder / "y.npy", np.zeros((4, 5), np.uint8))
    return folder


def texts(kind: str, rng: random.Random) -> str:
    """Return a file that is right, before it is mutated."""
    if kind == "cluster":
        return yaml.safe_dump(rng.choice(CLUSTERS))
    if kind == "manifest":
        return "patient,visit,site,probabilities,reference\nP1,a,Oslo,p.npy,y.npy\nP1,b,Oslo,p.npy,y.npy\nP2,a,Bern,p.npy,y.npy\n"
    inputs = {
        "probabilities": {"store": "p.npy", "dims": ["y", "x"]},
        "reference": {"store": "y.npy", "dims": ["y", "x"]},
    }
    return yaml.safe_dump({
        "version": 1, "kind": "scene", "classes": {0: "a", 1: "b"}, "inputs": inputs, "output": "out", "measures": ["gini"],
        "calibration": {"bins": 10}, "soft_confusion": [{"sigmas": [0, 0.1]}], "ignore": [9], "cluster": "local",
    })  # fmt: skip


def use(kind: str, folder, path) -> None:
    """Read a file the way a command does, without running anything."""
    if kind == "cluster":
        read_cluster(path)
    elif kind == "job":
        du.plan(path)
    else:
        dims = {"dims": ["y", "x"]}
        du.plan({
            "version": 1, "kind": "cohort", "manifest": str(path), "visits": "visit", "groups": ["site"], "measures": [],
            "classes": {0: "a", 1: "b"}, "inputs": {"probabilities": dims, "reference": dims},
            "output": str(folder / "out"),
        })  # fmt: skip


@pytest.mark.parametrize("number", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_mutated_files_are_accepted_or_refused(folder, number):
    used = dict.fromkeys(("job", "manifest", "cluster"), 0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for seed in range(number):
        rng = random.Random(seed)
        kind = rng.choice(list(used))
        path = folder / ("cases.csv" if kind == "manifest" else "file.yaml")
        path.write_bytes(mutated(texts(kind, rng), rng) if seed > 5 else texts(kind, rng).encode())
        start, message = time.monotonic(), ""
        try:
            use(kind, folder, path)
            used[kind] += 1
        except InputError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(f"mutation {seed}: {path.read_bytes()!r}") from error
        assert time.monotonic() - start < SECONDS, seed
        assert len(message) < 5000, seed
        assert "\n" not in message, seed
    assert min(used.values()) > 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < before + BYTES
    assert sorted(file.name for file in folder.iterdir()) == ["cases.csv", "file.yaml", "p.npy", "y.npy"]
