"""The console script in a process of its own."""

from __future__ import annotations

import subprocess
import sys

COMMAND = (sys.executable, "-c", "from dask_uncert.cli.main import main; main()")


def command(*words, check: int | None = None, **options) -> subprocess.CompletedProcess[str]:
    """Run `dask-uncert WORDS...`; check: the exit status that it must have."""
    options = {"capture_output": True, "text": True, "timeout": 300, **options}
    done = subprocess.run([*COMMAND, *map(str, words)], check=False, **options)
    assert check in (None, done.returncode), done.stderr
    return done
