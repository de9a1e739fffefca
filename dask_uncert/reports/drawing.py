"""A second process that draws figures and page, while this one computes the counts and writes numbers.

It starts early and loads what draws, which takes as long as drawing. Nothing depends on it: wherever it cannot start
or does not finish, this process draws, and the bytes are the same.
"""

from __future__ import annotations

import atexit
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dask_uncert.io import second_process

if TYPE_CHECKING:
    from dask_uncert.io.map_types import Maps
    from dask_uncert.summaries.registry import AnyEvaluation

Progress = Callable[[str, int, int], object]
SMALL = 2**30  # bytes: reading and counting more takes far longer than drawing
# It draws one report and ends, so it looks for no garbage: figures take two thirds of the time.
SERVE = "import gc; gc.disable(); from dask_uncert.reports.pictures import serve; serve()"
_ahead: subprocess.Popen[bytes] | None = None  # started, and not in use yet


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


class DrawingProcess:
    """A process that draws one report; process: None where this one draws."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process
        self._begun: threading.Thread | None = None

    def begin(self, evaluation: AnyEvaluation, maps: Maps, all_figures: bool = False, unit: str = "pixel") -> None:
        """Send what figures show, and return at once."""
        self._begun = threading.Thread(target=self._send, args=((evaluation, maps, all_figures, unit),), daemon=True)
        self._begun.start()

    def finish(self, results: Mapping[str, Any], about: Mapping[str, str], report: Progress) -> dict[str, bytes] | None:
        """Return the files of figures and page by path; None where this process has to draw.

        It has to if the other one ended early. A warning ends it, too, and is shown when this one draws.
        """
        if self._process is None or self._begun is None:
            return None
        self._begun.join()
        self._send((results, about))
        assert self._process.stdout is not None
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while not isinstance(message := pickle.load(self._process.stdout), dict):
                report(*message)
            return message
        return None

    def end(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._begun is not None:
            self._begun.join()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def _send(self, message: object) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
            self._process.stdin.flush()
        except (OSError, ValueError):  # it has ended
            return
        except (pickle.PicklingError, AttributeError, TypeError):
            self._process.kill()


def load_ahead() -> None:
    """Start the process now, for the next report of this one: before imports that take as long as its own."""
    if _ahead is None and _saves_time():
        _keep(_start())


def end_ahead() -> None:
    """End a process that was started ahead, as no report needs it."""
    DrawingProcess(_keep(None)).end()


atexit.register(end_ahead)


@contextmanager
def drawing_process(nbytes: int = 0) -> Iterator[DrawingProcess]:
    """Give a process that draws, and end it with the `with`; there is none where it would save no time.

    nbytes: what the job reads; from `SMALL` on, drawing is little of its time.
    """
    if nbytes >= SMALL:
        end_ahead()
    else:
        load_ahead()
    drawing = DrawingProcess(_keep(None))
    try:
        yield drawing
    finally:
        drawing.end()


def _keep(process: subprocess.Popen[bytes] | None) -> subprocess.Popen[bytes] | None:
    """Keep a process that was started ahead; return the one kept before."""
    global _ahead
    _ahead, before = process, _ahead
    return before


def _saves_time() -> bool:
    """Return whether there are two cores, and what draws is not loaded here."""
    return second_process.cores() > 1 and "matplotlib.figure" not in sys.modules


def _start() -> subprocess.Popen[bytes] | None:
    """Start the process; None where none can be started."""
    return second_process.start(SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
