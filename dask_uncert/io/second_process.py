"""A second process of this Python, for work beside the first."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def start(code: str, **pipes: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that runs code; None where this one is no plain Python, or no other can be started.

    It imports from where this one does. pipes: its `stdin` and `stdout`; what it writes to stderr is left out.
    """
    executable = sys.executable or ""
    if getattr(sys, "frozen", False) or not re.match(r"(python|pypy)[\d.]*w?t?$", Path(executable).stem.lower()):
        return None  # what embeds Python may be the executable
    with suppress(OSError):
        command = [executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {code}"]
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, **pipes)
    return None


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
