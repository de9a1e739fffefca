"""The first time that a machine compiles, a second process compiles half of the kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support import ROOT

FIRST_USE = """
import numpy as np, psutil
from numba.core import event
import dask_uncert as du
from dask_uncert.execution.compile_ahead import compile_ahead

class Names(event.Listener):
    def on_start(self, what):
        print(what.data["dispatcher"].py_func.__name__)

    def on_end(self, what):
        pass

compile_ahead()
assert [helper.wait() for helper in psutil.Process().children()] == [0]
event.register("numba:compile", Names())
p = np.random.default_rng(1).dirichlet(np.ones(3), (4, 5)).astype("f4")
distances = {"table": [[0, 1, 2], [1, 0, 1], [2, 1, 0]]}
for _ in range(2):
    du.evaluate(p, p.argmax(-1), measures=["gini", "entropy", "fisher_rao", "homophily"], class_distances=distances)
before = psutil.Process().children()
compile_ahead()
assert psutil.Process().children() == before  # all is kept
"""
SECOND = {"add_scores", "put_right", "euclidean", "kullback_leibler", "fisher_rao", "homophily", "_group", "_count_values"}  # fmt: skip


@pytest.mark.slow
def test_a_pass_finds_what_the_second_process_has_compiled(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", FIRST_USE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    compiled = set(done.stdout.split())
    assert "_measure_singles" in compiled
    assert not compiled & SECOND
