"""What finished groups of a scene's blocks counted, kept beside the output until the scene is: a crash costs little.

A group leaves one file, whole or not at all, under a key made of the job, its inputs and the cut; so a run that was
stopped, whatever stopped it, reads back what is finished and computes the rest, to the same bits.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dask_uncert.case_files import CaseFolder, Frame
from dask_uncert.errors import InputError
from dask_uncert.summaries.evaluation import Evaluation, from_plain

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
        """Whether a group is finished."""
        return self.read(group) is not None

    def read(self, group: int) -> Evaluation | None:
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
        return from_plain(
            frame.frame, {path: rows[path].dense(shape) for path, (_, shape) in frame.layout.items()}
        )

    def fetch(self, group: int) -> Evaluation:
        """What a finished group left; InputError where it is gone since it was looked for."""
        found = self.read(group)
        if found is None:
            raise InputError(
                f"{self.folder} was changed by another run of the same job. Run again when that has ended."
            )
        return found

    def keep(self, summary: Evaluation, group: int) -> Evaluation:
        """Write what a group counted, and give it on."""
        CaseFolder(self.folder).write(f"{group}", self.key, {LABEL: (Frame.of(summary), summary)}, {})
        return summary

    @property
    def maps(self) -> str:
        """Where maps are written while the run goes on."""
        return str(Path(self.folder) / MAPS)


def checkpoints_of(output: Path, key: str, fresh: bool) -> Checkpoints:
    """Those that belong to an output; groups of anything else, left there, are removed."""
    place = output.absolute().with_name(output.name + ENDING)
    mark = place / MARK
    if fresh or not mark.is_file() or mark.read_text(encoding="utf-8") != key:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        mark.write_text(key, encoding="utf-8")
    return Checkpoints(str(place), key)


@contextmanager
def keeping(output: Path, key: str | None, fresh: bool) -> Iterator[Checkpoints | None]:
    """The checkpoints of a run, removed once it ends well, or by what another run would end by as well.

    key: None where nothing can be kept, for inputs do not tell whether they changed.
    """
    if key is None:
        yield None
        return
    found = checkpoints_of(output, key, fresh)
    try:
        yield found
    except InputError:
        shutil.rmtree(found.folder, ignore_errors=True)
        raise
    except BaseException:
        if not any(Path(found.folder).glob("*.case")):
            shutil.rmtree(found.folder, ignore_errors=True)
        raise
    shutil.rmtree(found.folder, ignore_errors=True)
