"""What finished groups of a scene's blocks counted, kept beside the output until the scene is: a crash costs little.

A group leaves one file, whole or not at all, under a key made of the job, its inputs and the cut; so a run that was
stopped, whatever stopped it, reads back what is finished and computes the rest, to the same bits.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dask_uncert.errors import InputError
from dask_uncert.execution.chunking import cut_in_groups
from dask_uncert.io.paths import AnyPath, absolute, as_path, list_names, remove, write_atomic
from dask_uncert.io.summary_cache import CaseFolder, Frame
from dask_uncert.summaries.registry import AnyEvaluation, evaluation_from_plain

GROUPS = (
    64  # files at most: few to write, and a crash costs a sixty-fourth of the work beside what was under way
)
ENDING = ".blocks"
MAPS = "maps.zarr"
LABEL = ""
MARK = "of.txt"


@dataclass(frozen=True)
class Checkpoints:
    """The folder of one output's groups, and the key of what they are of; pickles."""

    folder: str
    key: str

    @property
    def most(self) -> int:
        """Groups there may be."""
        return GROUPS

    def has(self, group: int) -> bool:
        """Whether a group is finished; its file is not read."""
        return CaseFolder(self.folder).has(f"{group}", self.key)

    def finished(self) -> frozenset[int]:
        """The groups that are finished, by one listing."""
        files = CaseFolder(self.folder)
        there = list_names(files.place)
        return frozenset(i for i in range(self.most) if files.file(f"{i}", self.key).name in there)

    def drop_damaged(self) -> None:
        """Remove what cannot be read: each file is read this once before a run trusts it."""
        for group in self.finished():
            if self.read(group) is None:
                CaseFolder(self.folder).file(f"{group}", self.key).unlink(missing_ok=True)

    def read(self, group: int) -> AnyEvaluation | None:
        """What a group left; None where it is not finished, or damaged."""
        files = CaseFolder(self.folder)
        found = files.read(f"{group}", self.key)
        if found is None:
            return None
        try:
            frame = files.frame(found.frames[LABEL])
        except (OSError, ValueError, KeyError):
            return None
        rows = found.rows[LABEL]
        return evaluation_from_plain(
            frame.frame, {path: rows[path].dense(shape) for path, (_, shape) in frame.layout.items()}
        )

    def fetch(self, group: int) -> AnyEvaluation:
        """What a finished group left; InputError where it is gone since it was looked for."""
        found = self.read(group)
        if found is None:
            raise InputError(
                f"{self.folder} was changed by another run of the same job. Run again when that has ended."
            )
        return found

    def keep(self, summary: AnyEvaluation, group: int) -> AnyEvaluation:
        """Write what a group counted, and give it on."""
        CaseFolder(self.folder).write(f"{group}", self.key, {LABEL: (Frame.of(summary), summary)}, {})
        return summary

    def forget(self) -> None:
        """Remove all groups, and maps that are there."""
        place = as_path(self.folder)
        remove(place)
        write_atomic(place / MARK, self.key.encode())

    @property
    def maps(self) -> str:
        """Where maps are written while the run goes on."""
        return str(as_path(self.folder) / MAPS)


def blocks_left(blocks: int, kept: Checkpoints | None) -> int:
    """How many of so many blocks are in no finished group."""
    if kept is None:
        return blocks
    parts, finished = enumerate(cut_in_groups(blocks, GROUPS)), kept.finished()
    return sum(len(part) for number, part in parts if number not in finished)


def checkpoints_of(output: AnyPath, key: str, fresh: bool) -> Checkpoints:
    """Those that belong to an output; groups of anything else, left there, are removed.

    Raises InputError where nothing can be written beside the output.
    """
    place = absolute(output).with_name(output.name + ENDING)
    mark, found = place / MARK, Checkpoints(str(place), key)
    try:
        if fresh or not mark.is_file() or mark.read_text(encoding="utf-8") != key:
            found.forget()
        found.drop_damaged()
    except OSError as error:
        said = " ".join(str(error).split())
        raise InputError(f"{place}, beside the output, cannot be written: {said}.") from None
    return found


@contextmanager
def keeping(output: AnyPath, key: str | None, fresh: bool) -> Iterator[Checkpoints]:
    """The checkpoints of a run, removed once it ends well, or by what another run would end by as well.

    key: None where no other run may go on with them, for inputs do not tell whether they changed.
    """
    found = checkpoints_of(output, key or uuid.uuid4().hex, fresh)
    try:
        yield found
    except InputError:
        remove(as_path(found.folder))
        raise
    except BaseException:
        if key is None or not any(
            name.endswith((".case", ".log")) for name in list_names(as_path(found.folder))
        ):
            remove(as_path(found.folder))
        raise
    remove(as_path(found.folder))
