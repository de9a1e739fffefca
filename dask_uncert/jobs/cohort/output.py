"""The output folder of a cohort: its cases' counts gathered from where they lie, their sum, what people read.

Nothing here reads a voxel, and no more than a few cases' counts are in memory at a time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.map_slices import sliced, telling_slice
from dask_uncert.io.output_folder import RECORD, is_finished, read_record
from dask_uncert.io.paths import AnyPath, as_path, copy_tree, is_remote
from dask_uncert.io.saving import save
from dask_uncert.io.stack_store import has_cases, make_groups, read_cases, write_cases
from dask_uncert.io.summary_cache import CaseFolder, Frame
from dask_uncert.jobs.cohort.case import MAIN, Outcome
from dask_uncert.summaries.evaluation import Evaluation, from_plain
from dask_uncert.summaries.sparse_rows import Row, RunningTotal
from dask_uncert.summaries.stack import Case, Stack

THUMB = 160  # pixels of a side
SUMMARY, RATERS, MAPS = "summary.zarr", "raters", "maps.zarr"


@dataclass(frozen=True)
class Finished:
    """A finished cohort folder: its record, and the Stack of each label (of the cases, and for each rater)."""

    place: AnyPath
    record: dict[str, Any]
    stacks: dict[str, Stack]

    @property
    def raters(self) -> dict[str, Stack]:
        """The Stacks against single raters, by the rater's name."""
        return {label: stack for label, stack in self.stacks.items() if label != MAIN}

    def marks(self, with_maps: bool) -> dict[str, str]:
        """By case; with_maps: of those alone whose maps are there."""
        return {
            case.name: case.mark
            for case in self.stacks[MAIN].cases
            if not with_maps or (self.place / MAPS / case.name).is_dir()
        }


def load_cases(path: str | AnyPath) -> Stack:
    """The cases of a cohort: of its finished output folder, or of the Zarr group in it that keeps them.

    Their counts are read when they are asked for. Raises InputError where there are none.

    >>> import dask_uncert as du
    >>> du.load_cases("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no summary at nothing ...
    """
    folder = as_path(path)
    store = folder / SUMMARY if (folder / SUMMARY).exists() else folder
    return read_cases(str(store))


def finished_cohort(folder: AnyPath) -> Finished:
    """A finished folder of a cohort; InputError where it is unfinished, or no cohort's."""
    return Finished(folder, read_record(folder), stacks_of(folder))


def stacks_of(folder: AnyPath) -> dict[str, Stack]:
    """The Stacks in a folder, by label: of the cases, and against each rater."""
    stacks = {MAIN: read_cases(str(folder / SUMMARY))}
    raters = folder / RATERS
    for name in sorted(str(place.name) for place in raters.iterdir()) if raters.is_dir() else ():
        stacks[name] = read_cases(str(raters / name / SUMMARY))
    return stacks


def is_cohort(folder: AnyPath) -> bool:
    """Whether the folder keeps cases apart."""
    return has_cases(str(folder / SUMMARY))


def who(case: Case) -> dict[str, Any]:
    """What `run.json` says of who a case is that failed; `lost_cases` reads it."""
    return {"patient": case.patient, "visit": case.visit, "groups": dict(case.groups)}


def lost_cases(record: Mapping[str, Any]) -> dict[str, Case]:
    """Who the cases are that failed, by name, from a cohort's `run.json`."""
    found = {}
    for name in record.get("failed", {}):
        said = record.get("cases", {}).get(name, {})
        if "patient" in said:
            found[name] = Case(said["patient"], said["visit"], tuple(said["groups"].items()))
    return found


def map_pictures(
    folders: Mapping[str, AnyPath], names: Sequence[str]
) -> Callable[[str], dict[str, Any]] | None:
    """Gives the maps of a case, of a size for thumbnails; None where a cohort has none.

    folders: of each case's maps.
    """
    if not names or not folders:
        return None

    def give(case: str) -> dict[str, Any]:
        of = str(folders[case])
        at = telling_slice(of, names)
        return {name: sliced(of, name, at, THUMB) for name in names}

    return give


def earlier_output(folder: AnyPath, asked: str, fresh: bool) -> Finished | None:
    """What the output folder holds of the same job already, whatever its cases; None where there is nothing.

    asked: the digest of what cases are asked. Raises InputError where something else would be lost.
    """
    if not fresh and (folder / RECORD).exists() and read_record(folder).get("asked") == asked:
        return finished_cohort(folder)
    is_finished(folder, None, fresh)
    return None


def map_folders_of(finished: Finished) -> dict[str, AnyPath]:
    """Of each case whose maps a finished folder has."""
    store = finished.place / MAPS
    return {name: store / name for name in finished.stacks[MAIN].names} if store.is_dir() else {}


@dataclass(frozen=True)
class Gathered:
    """Cases that have an outcome, sorted by name, and where their counts and maps lie."""

    cases: tuple[tuple[Case, Outcome], ...]
    files: CaseFolder
    earlier: Finished | None

    def labels(self) -> list[str]:
        """Of the summaries: MAIN, and the raters'."""
        found = {MAIN: None}
        for _, outcome in self.cases:
            found |= dict.fromkeys(label for label, _ in outcome.frames)
        if self.earlier is not None and any(outcome.status == "output" for _, outcome in self.cases):
            found |= dict.fromkeys(self.earlier.stacks)
        return sorted(found)

    def having(self, label: str) -> list[tuple[Case, Outcome]]:
        """The cases that have a summary of this label."""
        earlier = set(self.earlier.stacks[label].names) if self.earlier and self._is_earlier(label) else set()
        return [
            (case, outcome)
            for case, outcome in self.cases
            if (case.name in earlier if outcome.status == "output" else label in dict(outcome.frames))
        ]

    def digests(self, label: str) -> dict[str, str]:
        """By case, the digest of the frame of its summary of this label."""
        earlier = ""
        if self.earlier is not None and self._is_earlier(label):
            stack = self.earlier.stacks[label]
            earlier = Frame(stack.frame, stack.layout).digest
        return {
            case.name: earlier if outcome.status == "output" else dict(outcome.frames)[label]
            for case, outcome in self.having(label)
        }

    def frame(self, label: str) -> Frame:
        """The frame of the summaries of this label, which must be one."""
        _, outcome = self.having(label)[0]
        if outcome.status != "output":
            return self.files.frame(dict(outcome.frames)[label])
        assert self.earlier is not None
        stack = self.earlier.stacks[label]
        return Frame(stack.frame, stack.layout)

    def rows(self, label: str) -> Iterator[Mapping[str, Row]]:
        """Of each case that has this label, in order."""
        having = self.having(label)
        kept = [case.name for case, outcome in having if outcome.status == "output"]
        earlier: Iterator[tuple[Case, dict[str, Row]]] = iter(())
        if kept and self.earlier is not None:
            earlier = self.earlier.stacks[label].select(kept).each()
        for case, outcome in having:
            if outcome.status == "output":
                yield next(earlier)[1]
                continue
            found = self.files.read(case.name, outcome.key)
            if found is None:
                raise InputError(
                    f"the file of case {case.name} in {self.files.place} is gone: another run of the same job has "
                    f"ended meanwhile. Run again."
                )
            yield found.rows[label]

    def map_folders(self) -> Iterator[tuple[str, AnyPath]]:
        """Name and folder of each case's maps."""
        for case, outcome in self.cases:
            if outcome.status == "output":
                assert self.earlier is not None
                yield case.name, self.earlier.place / MAPS / case.name
            else:
                yield case.name, self.files.maps(case.name, outcome.key)

    def _is_earlier(self, label: str) -> bool:
        return self.earlier is not None and label in self.earlier.stacks


def write_summaries(gathered: Gathered, folder: Path) -> Evaluation:
    """Write every label's summary into an output folder; returns the sum of the cases."""
    totals = {}
    for label in gathered.labels():
        place = folder / RATERS / label if label else folder
        cases = [case for case, _ in gathered.having(label)]
        totals[label] = write_summary(place, gathered.frame(label), cases, gathered.rows(label))
    return totals[MAIN]


def write_summary(
    folder: Path, frame: Frame, cases: Sequence[Case], rows: Iterable[Mapping[str, Row]]
) -> Evaluation:
    """Write `summary.zarr` of these cases, their rows in the same order, and their sum, which is returned."""
    total = RunningTotal({path: shape for path, (_, shape) in frame.layout.items()})

    def added() -> Iterator[Mapping[str, Row]]:
        for row in rows:
            total.add(row)
            yield row

    folder.mkdir(parents=True, exist_ok=True)
    parts = folder / "parts.zarr"  # the sum is known when all cases are written, and stands first
    write_cases(str(parts), cases, frame.layout, added())
    evaluation = from_plain(frame.frame, total.arrays)
    save(evaluation, folder / SUMMARY)
    os.replace(parts / "cases", folder / SUMMARY / "cases")
    shutil.rmtree(parts)
    return evaluation


def write_maps(
    folders: Iterable[tuple[str, AnyPath]], folder: Path, elsewhere: dict[str, AnyPath] | None = None
) -> None:
    """Put the cases' maps into `maps.zarr`, a group a case, without copying where the file system can link.

    elsewhere: of an output behind a URL; maps that lie there are only named, see `being_written`.
    """
    listed = list(folders)
    make_groups(str(folder / MAPS), [name.rpartition("/")[0] for name, _ in listed])
    for name, place in listed:
        if elsewhere is not None and is_remote(place):
            elsewhere[f"{MAPS}/{name}"] = place
        else:
            copy_tree(place, folder / MAPS / name)
