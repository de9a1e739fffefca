"""Ctrl-C and SIGTERM: a command ends within two seconds, leaves no temporary file and says how to go on."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPED = "stopped; run the same command again to resume."
LAST_MOMENT = 1.5  # seconds after which a local cluster that is still being closed is ended at once


@contextmanager
def ending_soon(note: Callable[[int], object] = bool, advice: str = STOPPED) -> Iterator[None]:
    """Turn the first signal inside of the `with` into a KeyboardInterrupt that holds its number; ignore later ones.

    note: called with the number first. advice: what to type to go on.
    """

    def interrupt(number: int, frame: Any) -> None:
        for ignored in SIGNALS:
            signal.signal(ignored, signal.SIG_IGN)
        note(number)
        _interrupt(number, advice)

    before = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_number(error: BaseException) -> int:
    """Return the number of the signal that an interruption, or its cause, holds; 0 if it holds none."""
    cause = error if isinstance(error, KeyboardInterrupt) else error.__cause__
    return int(cause.args[0]) if cause is not None and cause.args else 0


def _interrupt(number: int, advice: str) -> None:
    os.write(2, f"{advice}\n".encode())
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # reports what was waited for
    timer = threading.Timer(LAST_MOMENT, _end_now, [number])
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt(number)


def _end_now(number: int) -> None:
    """End this process and its workers, which may not answer before a block is done; only for a local cluster.

    A batch system's jobs and keys are removed in the time that it takes.
    """
    from dask_uncert.clusters.connect import remove_local_clusters
    from dask_uncert.io.output_lock import remove_locks

    if remove_local_clusters():
        remove_locks()
        os._exit(128 + number)
