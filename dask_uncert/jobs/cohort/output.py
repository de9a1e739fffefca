"""The output folder of a cohort: the counts and maps of its cases, from the cache or an earlier output.

No voxel is read, and only a few cases' counts are in memory at a time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dask_uncert.errors import InputError
from dask_uncert.io.integrity import seal_summary
from dask_uncert.io.map_slices import most_wrong_slice, read_slice
from dask_uncert.io.output_folder import is_finished, read_record
from dask_uncert.io.owned_folder import RECORD, check_owned, remove_files
from dask_uncert.io.paths import AnyPath, as_path, copy_tree, is_remote, list_files
from dask_uncert.io.stack_store import has_cases, make_groups, read_cases, write_cases
from dask_uncert.io.summary_cache import REFERENCE_LABEL, CaseFolder, Frame
from dask_uncert.io.summary_store import save
from dask_uncert.reports.results.cohort import Cohort, OtherModel
from dask_uncert.summaries.case import Case
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.sparse_rows import SparseRow, StreamedSum
from dask_uncert.summaries.stack import Stack

if TYPE_CHECKING:
    from dask_uncert.jobs.cohort.case import CaseOutcome  # whose modules of computing a report does not need

THUMBNAIL = 160  # pixels of a side
SUMMARY, RATERS, MAPS = "summary.zarr", "raters", "maps.zarr"


@dataclass(frozen=True)
class FinishedCohort:
    """A cohort's output folder: its `run.json`, and a Stack for each label (the reference, and each rater)."""

    folder: AnyPath
    record: Mapping[str, Any]
    stacks: Mapping[str, Stack]

    @classmethod
    def read(cls, folder: AnyPath) -> FinishedCohort:
        """Return the cohort in a folder; InputError if it is unfinished or not a cohort."""
        return cls(folder, read_record(folder), read_stacks(folder))

    @property
    def stack(self) -> Stack:
        """The cases against their reference."""
        return self.stacks[REFERENCE_LABEL]

    @cached_property
    def frames(self) -> dict[str, Frame]:
        """The frame of the summaries of each label."""
        return {label: Frame(stack.frame, stack.layout) for label, stack in self.stacks.items()}

    def case_frames(self) -> dict[str, dict[str, str]]:
        """Return, by case and label, the digest of the frame of its summary."""
        digests: dict[str, dict[str, str]] = {name: {} for name in self.stack.names}
        for label, stack in self.stacks.items():
            for name in stack.names:
                digests[name][label] = self.frames[label].digest
        return digests

    def map_folders(self) -> dict[str, AnyPath]:
        """Return the folder of maps of each case, by name; {} if there are none."""
        store = self.folder / MAPS
        return {name: store / name for name in self.stack.names} if store.is_dir() else {}

    def fingerprints(self, with_maps: bool) -> dict[str, str]:
        """Return the fingerprint of each case, by name; with_maps: only of cases with maps."""
        return {
            case.name: case.fingerprint
            for case in self.stack.cases
            if not with_maps or (self.folder / MAPS / case.name).is_dir()
        }

    def failed_cases(self) -> dict[str, Case]:
        """Return the cases that failed, by name."""
        failed = {}
        for name in self.record.get("failed", {}):
            entry = self.record.get("cases", {}).get(name, {})
            if "patient" in entry:
                failed[name] = Case(entry["patient"], entry.get("visit", ""), tuple(entry.get("groups", {}).items()))
        return failed

    def reported(self, map_folders: Mapping[str, AnyPath], against: OtherModel | None = None) -> Cohort:
        """Return what reports show; map_folders: the folder of maps of each case."""
        maps = self.record.get("maps", [])

        def pictures(case: str) -> dict[str, Any]:
            folder = str(map_folders[case])
            at = most_wrong_slice(folder, maps)
            return {name: read_slice(folder, name, at, THUMBNAIL) for name in maps}

        return Cohort(
            self.stack,
            self.record.get("failed", {}),
            self.record.get("job", {}).get("confidence"),
            self.failed_cases(),
            pictures if maps and map_folders else None,
            against,
            {label: stack for label, stack in self.stacks.items() if label != REFERENCE_LABEL},
        )


def case_identity(case: Case) -> dict[str, Any]:
    """Return the part of `run.json` that `failed_cases` reads."""
    return {"patient": case.patient, "visit": case.visit, "groups": dict(case.groups)}


def load_cases(path: str | AnyPath) -> Stack:
    """Load the cases of a cohort, without reading their counts yet.

    Parameters
    ----------
    path : str or path
        The output folder of a finished cohort, or the Zarr group in it that holds its summaries. May be a URL.

    Returns
    -------
    Stack
        The cases, sorted by name. Their counts are read when they are needed.

    Raises
    ------
    InputError
        If there is no summary, or one of a single evaluation.

    Examples
    --------
    >>> import dask_uncert as du
    >>> du.load_cases("nothing")
    Traceback (most recent call last):
    ...
    dask_uncert.errors.InputError: there is no summary at nothing ...
    """
    folder = as_path(path)
    store = folder / SUMMARY if (folder / SUMMARY).exists() else folder
    return read_cases(str(store))


def read_stacks(folder: AnyPath) -> dict[str, Stack]:
    """Return the Stacks in a folder by label: of the cases, and against each rater."""
    stacks = {REFERENCE_LABEL: read_cases(str(folder / SUMMARY))}
    raters = folder / RATERS
    for name in sorted(str(path.name) for path in raters.iterdir()) if raters.is_dir() else ():
        stacks[name] = read_cases(str(raters / name / SUMMARY))
    return stacks


def is_cohort(folder: AnyPath) -> bool:
    """Return whether the folder is the output of a cohort."""
    return has_cases(str(folder / SUMMARY))


def earlier_output(folder: AnyPath, settings: str, fresh: bool) -> FinishedCohort | None:
    """Return the finished output of the same settings, for any cases; None if there is none.

    settings: digest of the options of every case. Raises InputError if the folder holds something else.
    """
    if not fresh and (folder / RECORD).exists() and read_record(folder).get("asked") == settings:
        check_owned(folder)
        return FinishedCohort.read(folder)
    is_finished(folder, None, fresh)
    return None


@dataclass(frozen=True)
class EvaluatedCases:
    """Evaluated cases, sorted by name, with their outcomes; their counts and maps are in the cache or earlier output."""

    cases: tuple[tuple[Case, CaseOutcome], ...]
    cache: CaseFolder
    earlier: FinishedCohort | None

    def labels(self) -> list[str]:
        """Return the labels of the summaries."""
        return sorted({REFERENCE_LABEL}.union(*(outcome.frames for _, outcome in self.cases)))

    def labelled(self, label: str) -> list[tuple[Case, CaseOutcome]]:
        """Return the cases that have a summary of this label."""
        return [(case, outcome) for case, outcome in self.cases if label in outcome.frames]

    def frame(self, label: str) -> Frame:
        """Return the frame of the summaries of this label, which all cases share."""
        _, outcome = self.labelled(label)[0]
        if outcome.status == "output":
            assert self.earlier is not None
            return self.earlier.frames[label]
        return self.cache.frame(outcome.frames[label])

    def rows(self, label: str) -> Iterator[Mapping[str, SparseRow]]:
        """Yield the counts of each case that has this label."""
        cases = self.labelled(label)
        unchanged = [case.name for case, outcome in cases if outcome.status == "output"]
        earlier: Iterator[tuple[Case, dict[str, SparseRow]]] = iter(())
        if unchanged and self.earlier is not None:
            earlier = self.earlier.stacks[label].select(unchanged).sparse_cases()
        for case, outcome in cases:
            if outcome.status == "output":
                yield next(earlier)[1]
                continue
            cached = self.cache.read(case.name, outcome.key)
            if cached is None:
                gone = f"the file of case {case.name} in {self.cache.path} is gone"
                raise InputError(f"{gone}: another run of the same job has ended meanwhile. Run again.")
            yield cached.rows[label]

    def map_folders(self) -> dict[str, AnyPath]:
        """Return the folder of maps of each case, by name."""
        folders = {}
        for case, outcome in self.cases:
            if outcome.status == "output":
                assert self.earlier is not None
                folders[case.name] = self.earlier.folder / MAPS / case.name
            else:
                folders[case.name] = self.cache.maps(case.name, outcome.key)
        return folders

    def write_summaries(self, folder: Path) -> Evaluation:
        """Write the summaries of every label into an output folder; return the sum of the cases."""
        totals = {}
        for label in self.labels():
            cases = [case for case, _ in self.labelled(label)]
            totals[label] = write_summary(label_folder(folder, label), self.frame(label), cases, self.rows(label))
        return totals[REFERENCE_LABEL]


def label_folder(folder: Path, label: str) -> Path:
    """Return the folder of the summaries of a label in an output folder."""
    return folder / RATERS / label if label else folder


def write_summary(
    folder: Path, frame: Frame, cases: Sequence[Case], rows: Iterable[Mapping[str, SparseRow]]
) -> Evaluation:
    """Write `summary.zarr` with the rows of these cases, in the same order, and their sum; return the sum."""
    total = StreamedSum({path: shape for path, (_, shape) in frame.layout.items()})

    def added() -> Iterator[Mapping[str, SparseRow]]:
        for row in rows:
            total.add(row)
            yield row

    folder.mkdir(parents=True, exist_ok=True)
    parts = folder / "parts.zarr"  # the sum comes first in the store, but is known last
    write_cases(str(parts), cases, frame.layout, added())
    evaluation = Evaluation.from_plain(frame.frame, total.arrays)
    save(evaluation, folder / SUMMARY)
    os.replace(parts / "cases", folder / SUMMARY / "cases")
    remove_files(parts, list_files(parts))
    seal_summary(str(folder / SUMMARY))
    return evaluation


def write_maps(folders: Mapping[str, AnyPath], folder: Path, elsewhere: dict[str, AnyPath] | None = None) -> None:
    """Put the cases' maps into `maps.zarr`, a group for each case, linked instead of copied if the file system can.

    elsewhere: of an output behind a URL; maps that lie there are only named, see `being_written`.
    """
    make_groups(str(folder / MAPS), [name.rpartition("/")[0] for name in folders])
    for name, path in folders.items():
        if elsewhere is not None and is_remote(path):
            elsewhere[f"{MAPS}/{name}"] = path
        else:
            copy_tree(path, folder / MAPS / name)
