"""Checkpoints of a pass: the sums of finished groups of blocks, kept beside the output until that is complete.

A group is one file, whole or not there, under a key made of the job, its inputs and the blocks. A run that was
stopped, for whatever reason, reads back what is finished and computes the rest, to the same bits.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dask_uncert.errors import InputError, one_line
from dask_uncert.execution.chunking import cut_in_groups
from dask_uncert.io.format_version import FORMAT
from dask_uncert.io.owned_folder import check_owned, make_folder, marker_of, remove_owned
from dask_uncert.io.paths import AnyPath, absolute, as_path, list_names, write_atomic
from dask_uncert.io.summary_cache import CaseFolder, Frame
from dask_uncert.summaries.registry import AnyEvaluation, evaluation_from_plain

GROUPS = 64  # files at most: few to write, and a crash costs little more than the work in progress
ENDING = ".blocks"
MAPS = "maps.zarr"
LABEL = ""
HEADER = "checkpoints.json"
_latest: Frame | None = None  # that was saved


@dataclass(frozen=True)
class Checkpoints:
    """The folder of one output's checkpoints, and the key of what they belong to; pickles."""

    folder: str
    key: str

    @property
    def maps(self) -> str:
        """Where maps are written while the run goes on."""
        return str(as_path(self.folder) / MAPS)

    def has(self, group: int) -> bool:
        """Return whether a group is finished; its file is not read."""
        return CaseFolder(self.folder).has(f"{group}", self.key)

    def finished(self) -> frozenset[int]:
        """Return the groups that are finished, by one listing."""
        files = CaseFolder(self.folder)
        names = list_names(files.path)
        return frozenset(i for i in range(GROUPS) if files.file(f"{i}", self.key).name in names)

    def unfinished_blocks(self, blocks: int) -> int:
        """Return how many of `blocks` blocks are in no finished group."""
        finished = self.finished()
        groups = enumerate(cut_in_groups(blocks, GROUPS))
        return sum(len(group) for number, group in groups if number not in finished)

    def load(self, group: int) -> AnyEvaluation:
        """Return the sum of a finished group; InputError where its file is gone since it was looked for."""
        evaluation = self._read(group)
        if evaluation is None:
            raise InputError(
                f"{self.folder} was changed by another run of the same job. Run again when that has ended."
            )
        return evaluation

    def save(self, evaluation: AnyEvaluation, group: int) -> AnyEvaluation:
        """Write the sum of a group, and return it."""
        summaries = {LABEL: (_known(Frame.of(evaluation)), evaluation)}
        CaseFolder(self.folder).write(f"{group}", self.key, summaries, {})
        return evaluation

    def clear(self) -> None:
        """Remove all groups and maps, and note what belongs here from now on."""
        folder = as_path(self.folder)
        check_owned(folder)
        remove_owned(folder)
        make_folder(folder, "checkpoints")
        write_atomic(folder / HEADER, self._header())

    def is_current(self) -> bool:
        """Return whether the folder holds checkpoints of this format and key."""
        file = as_path(self.folder) / HEADER
        return file.is_file() and file.read_bytes() == self._header()

    def remove_damaged(self) -> None:
        """Remove files that cannot be read: each is read this once before a run trusts it."""
        for group in self.finished():
            if self._read(group) is None:
                CaseFolder(self.folder).file(f"{group}", self.key).unlink(missing_ok=True)

    def _header(self) -> bytes:
        return json.dumps({"format": FORMAT, "key": self.key}).encode()

    def _read(self, group: int) -> AnyEvaluation | None:
        """Return the sum of a group; None where it is not finished, or damaged."""
        files = CaseFolder(self.folder)
        case = files.read(f"{group}", self.key)
        if case is None:
            return None
        try:
            frame = files.frame(case.frames[LABEL])
        except (OSError, ValueError, KeyError):
            return None
        rows = case.rows[LABEL]
        return evaluation_from_plain(
            frame.frame, {path: rows[path].dense(shape) for path, (_, shape) in frame.layout.items()}
        )


def _known(frame: Frame) -> Frame:
    """Return the latest frame instead of an equal one: it has its text, which takes longest for a small group."""
    global _latest
    latest = _latest
    if latest is None or latest != frame:
        _latest = latest = frame
    return latest


def open_checkpoints(output: AnyPath, key: str, fresh: bool) -> Checkpoints:
    """Return the checkpoints of an output; those of another job, key or format that are there are removed.

    Raises InputError where nothing can be written beside the output, or something else would be lost there.
    """
    folder = absolute(output).with_name(output.name + ENDING)
    checkpoints = Checkpoints(str(folder), key)
    try:
        check_owned(folder)
        if fresh or not (marker_of(folder) and checkpoints.is_current()):
            checkpoints.clear()
        checkpoints.remove_damaged()
    except OSError as error:
        raise InputError(f"{folder}, beside the output, cannot be written: {one_line(error)}.") from None
    return checkpoints


@contextmanager
def run_checkpoints(output: AnyPath, key: str | None, fresh: bool) -> Iterator[Checkpoints]:
    """Give the checkpoints of a run; they are removed unless the run fails and another could go on with them.

    key: None where no other run may go on with them, because inputs cannot show whether they have changed.
    """
    checkpoints = open_checkpoints(output, key or uuid.uuid4().hex, fresh)
    folder = as_path(checkpoints.folder)
    try:
        yield checkpoints
    except InputError:  # another run would end the same way
        remove_owned(folder)
        raise
    except BaseException:
        if key is None or not any(name.endswith((".case", ".log")) for name in list_names(folder)):
            remove_owned(folder)
        raise
    remove_owned(folder)
