"""The first time that a machine compiles, a second process compiles half; see `blocks.kernels.ahead`."""

from __future__ import annotations

import atexit
import subprocess

from dask_uncert.blocks.kernels import cache
from dask_uncert.io import second_process

CODE = "from dask_uncert.blocks.kernels.ahead import compile_last_parts; compile_last_parts()"


def compile_ahead() -> None:
    """Start a process that compiles half of `measure` and `count_values` for float32, unless they are kept already.

    It needs a processor of its own and a place for what it compiles, ends after seconds, and with this process at the latest.
    """
    if cache.is_kept("compiled._measure_singles") or second_process.cores() == 1 or not cache.has_place():
        return
    helper = second_process.start(CODE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if helper is not None:  # else this process compiles all
        atexit.register(helper.kill)
