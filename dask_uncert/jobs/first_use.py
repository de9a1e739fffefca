"""What a run says until its first block or case is done: that code is compiled, and how long that takes the first time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dask_uncert.blocks.kernels import cache
from dask_uncert.io.output_folder import Progress

LONGEST = "up to a minute"


def steps(report: Progress, stage: str, total: int, first: str) -> Callable[[int], None]:
    """Return a function that reports how many steps of a stage are done; first: what they wait for until one is."""
    first, started = f"{stage}: {first}", False

    def finished(done: int) -> None:
        nonlocal started
        if done and not started:
            started = True
            report(first, 1, 1)
        report(stage, done, total)

    report(first, 0, 1)
    return finished


def compiling(cluster: Any) -> str:
    """Return that code is compiled; on this machine, how long that takes where it is the first time."""
    return f"compile{first_use() if cluster == 'local' else ''}, read"


def first_use() -> str:
    """Return a note if this machine keeps no compiled code of this version yet; empty if it does."""
    if cache.is_kept():
        return ""
    temporary = Path(os.environ.get(cache.VARIABLE, "")).name.startswith("dask-uncert-")  # by `ensure_cache`
    return f" ({LONGEST})" if temporary else f" (once on this machine, {LONGEST})"
