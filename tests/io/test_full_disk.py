"""Output on a disk that is full: the error names the place, earlier results stand, and a rerun completes."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest
import yaml

import dask_uncert as du

pytestmark = pytest.mark.needs("root", "mount", "umount")


@pytest.fixture
def disk(tmp_path):
    """A file system of 6 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not allow mounting a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def job(tmp_path, disk):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "p.npy", rng.dirichlet(np.ones(3), (300, 300)).astype("f4"))
    np.save(tmp_path / "y.npy", rng.integers(0, 3, (300, 300)).astype("u1"))
    job = {
        "version": 1, "kind": "scene", "classes": {0: "a", 1: "b", 2: "c"}, "output": str(disk / "out"), "measures": ["gini"],
        "inputs": {
            "probabilities": {"store": "p.npy", "dims": ["y", "x", "class"]}, "reference": {"store": "y.npy", "dims": ["y", "x"]},
        },
    }  # fmt: skip
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    return tmp_path / "job.yaml"


def test_a_full_disk(job, disk, dask_uncert_command):
    assert dask_uncert_command("run", job, "--quiet")[0] == 0
    before = du.load(disk / "out")
    (disk / "ballast").write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - (200 << 10)))
    maps = [
        "run",
        job,
        "--set",
        "maps=[gini, correct]",
        "--set",
        "measures=[gini, entropy]",
        "--fresh",
        "--quiet",
    ]
    status, _, said = dask_uncert_command(*maps)
    assert status in (1, 2)
    assert "No space left on device" in said
    assert str(disk) in said
    assert len(said.strip().splitlines()) == 1
    assert du.load(disk / "out") == before
    (disk / "ballast").unlink()
    status, _, said = dask_uncert_command(*maps)
    assert status == 0, said
    assert set(du.load(disk / "out").measures) == {"gini", "entropy"}
    assert sorted(one.name for one in disk.iterdir()) == ["out"]


def test_a_place_that_may_not_be_written_to(job, disk, dask_uncert_command):
    assert dask_uncert_command("run", job, "--quiet")[0] == 0
    before = du.load(disk / "out")
    again = ["run", job, "--set", "measures=[gini, entropy]", "--fresh", "--quiet"]
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        status, _, said = dask_uncert_command(*again)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
    assert status == 2
    assert "Read-only file system" in said
    assert f"the output folder {disk}/out cannot be created" in said
    assert du.load(disk / "out") == before
    assert dask_uncert_command(*again)[0] == 0
