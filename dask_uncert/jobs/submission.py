"""The folder next to a submitted job's output, whose files give the job's status.

`OUTPUT.job` holds `submission.json` (what was submitted, where it runs), `progress.json` (a heartbeat every few
seconds), `log.txt` and, once the job has ended, `end.json`. Reading them needs no connection to the cluster.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dask_uncert.errors import InputError, without_secrets
from dask_uncert.io.integrity import check_sealed, sealed
from dask_uncert.io.output_folder import DIGEST, Progress
from dask_uncert.io.output_lock import reserved
from dask_uncert.io.owned_folder import check_owned, make_folder, remove_owned
from dask_uncert.io.paths import AnyPath, absolute, check_not_special, write_atomic
from dask_uncert.io.validation import Content, read_json

ENDING = ".job"
SUBMISSION, PROGRESS, LOG, END, CANCEL = "submission.json", "progress.json", "log.txt", "end.json", "cancel"
HEARTBEAT = 2.0  # seconds between heartbeats
LOST_AFTER = 60.0  # seconds without a heartbeat after which a job counts as lost
System = Literal["scheduler", "slurm"]
ENDED = ("done", "failed", "cancelled")


@dataclass(frozen=True)
class JobStatus:
    """The status of a job: "waiting", "running", "lost" (no heartbeat), "done", "failed" or "cancelled"; a message."""

    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.status}: {self.message}"


@dataclass(frozen=True)
class Heartbeat:
    """What a job writes every few seconds: the time by its machine's clock, and its progress."""

    time: float
    stage: str
    done: int
    total: int


@dataclass(frozen=True)
class Submission:
    """A submitted job: its file, the keys overridden in it, its output, and where it runs.

    cluster: an address, or a cluster file. system, key: what runs the job, and the key or number it has there.
    """

    job: str
    output: str
    cluster: str
    system: System
    key: Annotated[str, Field(pattern=r"^(\w[\w-]*)?$")]
    fresh: bool = False
    overrides: Mapping[str, Any] = field(default_factory=dict)
    submitted: str = ""

    @property
    def folder(self) -> AnyPath:
        """Folder next to the output."""
        return folder_of(self.output)

    def create(self) -> None:
        """Write the submission in place of an earlier one of this output; InputError while that one waits or runs."""
        with reserved(self.folder):
            self._create()

    def _create(self) -> None:
        check_owned(self.folder)
        if (self.folder / SUBMISSION).exists():
            status = Submission.read(self.output).status().status
            if status in ("waiting", "running"):
                hint = f"Wait for it, or end it: dask-uncert cancel {self.output}"
                raise InputError(f"a job for {self.output} is already {status}. {hint}")
        if json.dumps(without_secrets(asdict(self))) != json.dumps(asdict(self)):
            raise InputError(
                f"an address in the cluster or the overrides has a user part or a query string, which {SUBMISSION} would "
                f"hold. Write it in the job file, or take credentials from the environment."
            )
        remove_owned(self.folder)
        make_folder(self.folder, "submission")
        replace(self, submitted=datetime.now(UTC).isoformat(timespec="seconds")).write()
        _remember(self.output)

    def write(self) -> None:
        """Write the submission."""
        _write(self.folder / SUBMISSION, sealed(asdict(self), DIGEST))

    @classmethod
    def read(cls, output: str | AnyPath) -> Submission:
        """Return the submission of an output; InputError if there is none."""
        path = folder_of(output) / SUBMISSION
        content = _read(path, cls)
        if content is None:
            raise InputError(f"no job was submitted for {output}: there is no {path}. Name its output folder.")
        check_sealed(json.loads(path.read_bytes()), DIGEST, path)
        return replace(content, output=str(absolute(output)))

    def status(self) -> JobStatus:
        """Return the status, from the files in the folder."""
        end = _read(self.folder / END, JobStatus)
        if end is not None:
            return end
        beat = _read(self.folder / PROGRESS, Heartbeat)
        if beat is None:
            return JobStatus("waiting", f"sent to {self.cluster} at {self.submitted}; not started yet")
        stage = f"{beat.stage}: {beat.done} of {beat.total}" if beat.total else "started"
        silence = time.time() - beat.time
        if abs(silence) > LOST_AFTER and not self._goes_on(beat):  # the job's clock may be another machine's
            message = f"{stage}; no heartbeat for {max(silence, 0):.0f} s: submit it again to resume"
            return JobStatus("lost", message)
        return JobStatus("running", stage)

    def _goes_on(self, beat: Heartbeat) -> bool:
        """Return whether another heartbeat comes soon."""
        end = time.monotonic() + 5 * HEARTBEAT
        while _read(self.folder / PROGRESS, Heartbeat) == beat:
            if time.monotonic() > end:
                return False
            time.sleep(HEARTBEAT / 4)
        return True

    def request_cancel(self) -> None:
        """Ask the job to stop; it checks every few seconds."""
        write_atomic(self.folder / CANCEL, b"")

    def is_cancel_requested(self) -> bool:
        """Return whether the job should stop."""
        return (self.folder / CANCEL).exists()

    def end(self, status: str, message: str) -> None:
        """Write how the job ended."""
        _write(self.folder / END, {"status": status, "message": message, "time": time.time()})

    def log(self, text: str) -> None:
        """Append to the log."""
        path, text = self.folder / LOG, without_secrets(text)
        if isinstance(path, Path):
            with path.open("a", encoding="utf-8") as file:  # SLURM writes to it as well
                file.write(text)
            return
        before = path.read_bytes() if path.exists() else b""
        write_atomic(path, before + text.encode())

    @contextmanager
    def heartbeat(self, cancel: Callable[[], object]) -> Iterator[Progress]:
        """Write a heartbeat every few seconds, with the progress reported to the function that this yields.

        `cancel` is called once when the job is asked to stop.
        """
        last, over = ("", 0, 0), threading.Event()

        def report(stage: str, done: int, total: int) -> None:
            nonlocal last
            last = stage, done, total

        def beat() -> None:
            cancelled = False
            while True:
                stage, done, total = last
                _write(self.folder / PROGRESS, asdict(Heartbeat(time.time(), stage, done, total)))
                if not cancelled and self.is_cancel_requested():
                    cancelled = True
                    cancel()
                if over.wait(HEARTBEAT):
                    return

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield report
        finally:
            over.set()
            thread.join(10)


def submitted() -> list[Submission]:
    """Return the jobs that this user submitted from this machine and whose folders are still there, the latest last."""
    try:
        outputs = _list_of_outputs().read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found = []
    for output in dict.fromkeys(reversed(outputs)):
        with suppress(InputError):
            found.append(Submission.read(output))
    return found[::-1]


def _remember(output: str) -> None:
    """Add an output to the list of this user's submissions, where that can be written."""
    path = _list_of_outputs()
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{without_secrets(output)}\n")


def _list_of_outputs() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "dask-uncert" / "submitted.txt"


def folder_of(output: str | AnyPath) -> AnyPath:
    """Return the folder next to an output."""
    path = absolute(output)
    return path.with_name(path.name + ENDING)


def _write(path: AnyPath, content: Mapping[str, Any]) -> None:
    write_atomic(path, f"{json.dumps(content, indent=1)}\n".encode())


def _read(path: AnyPath, kind: type[Content]) -> Content | None:
    check_not_special(str(path))
    try:
        text = path.read_bytes()
    except OSError:
        return None
    return read_json(kind, text, path, "Remove it, and submit the job again.")
