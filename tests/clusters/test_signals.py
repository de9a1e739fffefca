"""Ctrl-C and SIGTERM end a run at once, without a traceback and without temporary files."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time

import pytest

from tests.support import scenes

SECONDS = 4.0  # two on an idle machine


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_at_once(tmp_path, number):
    job = scenes.Scene(tmp_path).job
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = [word for word in scenes.command(job, tmp_path / "out", many=64) if word != "--quiet"]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stderr:
            if re.match("evaluate: [1-9]", line):
                break
        start = time.monotonic()
        while len(scenes.finished(tmp_path / "out.blocks")) < 4 and time.monotonic() - start < SECONDS:
            time.sleep(0.01)  # until groups of blocks are kept
        start = time.monotonic()
        process.send_signal(number)
        message = process.stderr.read()
        assert process.wait() == 128 + number
        assert time.monotonic() - start < SECONDS
    assert (
        message.strip()
        .splitlines()[-1]
        .startswith("stopped. What is finished is kept. To go on, type: dask-uncert run ")
    )
    assert "Traceback" not in message
    assert not list(temporary.glob("dask-uncert*"))
    assert sorted(os.listdir(tmp_path)) == ["job.yaml", "out.blocks", "s.zarr", "temporary"]
