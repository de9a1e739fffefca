"""A real Grid Engine: a run whose workers are its jobs gives the bits of this machine, and leaves no job."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

import dask_uncert as du
from tests.support import grid_engine


@pytest.mark.needs(*grid_engine.PROGRAMS)
def test_a_run_on_grid_engine_gives_the_bits_of_this_machine(long_job, tmp_path, monkeypatch, without_pictures):
    monkeypatch.chdir(tmp_path)
    options = {
        "queue": "all.q", "cores": 1, "processes": 1, "memory": "1500MB", "walltime": "00:10:00", "interface": "lo",
        "resource_spec": "h_rt=600", "log_directory": str(tmp_path / "logs"), "local_directory": str(tmp_path),
        "python": sys.executable,
    }  # fmt: skip
    (tmp_path / "sge.yaml").write_text(yaml.safe_dump({"kind": "sge", "jobs": 2, "wait": 60, "options": options}))
    with grid_engine.grid_engine() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        with du.connect(tmp_path / "sge.yaml") as client:
            client.wait_for_workers(2, timeout=60)
            assert du.run(long_job[0], cluster=client, out=tmp_path / "out") == long_job[1]
        left = subprocess.run(["qstat", "-s", "p"], env=os.environ, capture_output=True, text=True, check=True)
        assert left.stdout == ""
