"""What a detached job leaves beside its output, so that anyone who sees that folder can tell how it fares.

`OUTPUT.job` holds `submission.json` (what was asked, where it runs), `progress.json` (a sign of life every few
seconds), `log.txt` and, once it has ended, `end.json`. Nothing else needs to be asked, and no machine but the one the
job runs on needs to be up.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from dask_uncert.errors import InputError
from dask_uncert.io.paths import AnyPath, absolute, remove, write_atomic

ENDING = ".job"
SUBMISSION, PROGRESS, LOG, END, CANCEL = "submission.json", "progress.json", "log.txt", "end.json", "cancel"
BEAT = 2.0  # seconds between signs of life
SILENT = 60.0  # seconds without one after which a job is taken for lost
System = Literal["scheduler", "slurm"]
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Submission:
    """A job that was sent off: its file, the words changed in it, its output, and where it runs.

    cluster: an address, or a file of `cluster/`. system, key: who runs the driver, and what it is called there.
    """

    job: str
    output: str
    cluster: str
    system: System
    key: str
    fresh: bool = False
    sets: Mapping[str, Any] | None = None
    submitted: str = ""

    @property
    def place(self) -> AnyPath:
        """The folder beside the output."""
        return as_path(self.output)


@dataclass(frozen=True)
class State:
    """How a job fares: "waiting", "running", "lost" (no sign of life), "done", "failed" or "cancelled"; in words."""

    status: str
    said: str


def as_path(output: str | AnyPath) -> AnyPath:
    """The folder beside an output."""
    place = absolute(output)
    return place.with_name(place.name + ENDING)


def record(one: Submission) -> None:
    """Write the submission; what an earlier one of the same output left is removed.

    Raises InputError while that one is still at work.
    """
    place = one.place
    if (place / SUBMISSION).exists() and (state := state_of(read(one.output))).status in (
        "waiting",
        "running",
    ):
        raise InputError(
            f"a job for {one.output} is {state.status} already. Wait for it, or end it: dask-uncert cancel {one.output}"
        )
    remove(place)
    _write(place / SUBMISSION, {**asdict(one), "submitted": datetime.now(UTC).isoformat(timespec="seconds")})


def amend(one: Submission) -> None:
    """Write the submission again, with what has become known of it."""
    _write(one.place / SUBMISSION, asdict(one))


def read(output: str | AnyPath) -> Submission:
    """The submission of an output; InputError where there is none."""
    place = as_path(output)
    found = _read(place / SUBMISSION)
    if found is None:
        raise InputError(
            f"no job was submitted for {output}: there is no {place / SUBMISSION}. Name its output folder."
        )
    return Submission(**found)


def state_of(one: Submission) -> State:
    """How it fares, by what lies beside its output alone."""
    ended = _read(one.place / END)
    if ended is not None:
        return State(ended["status"], ended["said"])
    beat = _read(one.place / PROGRESS)
    if beat is None:
        return State("waiting", f"sent to {one.cluster} at {one.submitted}; not begun yet")
    age = time.time() - beat["time"]
    at = f"{beat['what']}: {beat['done']} of {beat['total']}" if beat["total"] else "begun"
    if age > SILENT:
        return State("lost", f"{at}; no sign of life for {age:.0f} s: submit it again to go on where it was")
    return State("running", at)


def ask_to_end(one: Submission) -> None:
    """Leave word for the driver to stop; it looks every few seconds."""
    write_atomic(one.place / CANCEL, b"")


def is_asked_to_end(one: Submission) -> bool:
    """Whether the driver should stop."""
    return (one.place / CANCEL).exists()


def end(one: Submission, status: str, said: str) -> None:
    """Write how it ended."""
    _write(one.place / END, {"status": status, "said": said, "time": time.time()})


def log(one: Submission, text: str) -> None:
    """Add to the log."""
    file = one.place / LOG
    if isinstance(file, Path):
        with file.open("a", encoding="utf-8") as opened:  # SLURM writes to it as well
            opened.write(text)
        return
    before = file.read_bytes() if file.exists() else b""
    write_atomic(file, before + text.encode())


class Beats:
    """Signs of life of a driver: written while the `with` lasts, with what was last reported."""

    def __init__(self, one: Submission) -> None:
        self.one, self.last = one, ("", 0, 0)

    def report(self, what: str, done: int, total: int) -> None:
        """As `run` calls it."""
        self.last = what, done, total

    @contextmanager
    def beating(self, asked: Any) -> Iterator[None]:
        """`asked` is called once when the job is asked to end."""
        over = threading.Event()

        def beat() -> None:
            told = False
            while True:
                what, done, total = self.last
                _write(
                    self.one.place / PROGRESS,
                    {"time": time.time(), "what": what, "done": done, "total": total},
                )
                if not told and is_asked_to_end(self.one):
                    told = True
                    asked()
                if over.wait(BEAT):
                    return

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(10)


def _write(path: AnyPath, words: Mapping[str, Any]) -> None:
    write_atomic(path, f"{json.dumps(words, indent=1)}\n".encode())


def _read(path: AnyPath) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
