"""Merge finished cohorts, or leave out some of their cases, without reading a voxel."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.paths import AnyPath
from dask_uncert.io.summary_cache import Frame
from dask_uncert.jobs.cohort.output import (
    MAPS,
    FinishedCohort,
    case_identity,
    is_cohort,
    label_folder,
    read_stacks,
    write_maps,
    write_summary,
)
from dask_uncert.jobs.provenance import RunRecord
from dask_uncert.reports.results.cohort import Cohort
from dask_uncert.summaries.layout import check_equal
from dask_uncert.summaries.stack import Stack


@dataclass(frozen=True)
class CohortUnion:
    """The cases of several finished cohorts without those left out; cases: the cohort that holds each."""

    parts: tuple[FinishedCohort, ...]
    cases: dict[str, FinishedCohort]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, folders: Sequence[AnyPath], left_out: Sequence[str]) -> CohortUnion:
        """Return the union; InputError if a case is in two folders, or one to be left out is in none."""
        single = [str(folder) for folder in folders if not is_cohort(folder)]
        if single:
            raise InputError(f"{', '.join(single)} is not a cohort: merge it separately, without --leave-out.")
        parts = tuple(map(FinishedCohort.read, folders))
        cases: dict[str, FinishedCohort] = {}
        for part in parts:
            for name in part.stack.names:
                if name in cases:
                    both = f"{cases[name].folder} and in {part.folder}"
                    raise InputError(f"case {name} is in {both}; it would count twice. Leave it out of one first.")
                cases[name] = part
        missing = [name for name in left_out if name not in cases]
        if missing:
            where = ", ".join(map(str, folders))
            raise InputError(f"there is no case {', '.join(missing)} to leave out in {where}.")
        chosen = {name: cases[name] for name in sorted(cases.keys() - set(left_out))}
        if not chosen:
            raise InputError("all cases are left out; keep at least one.")
        return cls(parts, chosen, tuple(left_out))

    def write(self, working: Path, elsewhere: dict[str, AnyPath] | None) -> tuple[RunRecord, Cohort]:
        """Write summaries and maps into an output folder; return a record for `run.json`, and what reports show."""
        for label in sorted({label for part in self.parts for label in part.stacks}):
            stacks = [part.stacks[label] for part in self.parts if label in part.stacks]
            chosen = [stack.select(n for n in stack.names if n not in self.left_out) for stack in stacks]
            _write_union([stack for stack in chosen if len(stack)], label_folder(working, label))
        maps = self.parts[0].record.get("maps", [])
        if any(part.record.get("maps", []) != maps for part in self.parts):
            maps = []
        folders = {name: part.folder / MAPS / name for name, part in self.cases.items()} if maps else {}
        if maps:
            write_maps(folders, working, elsewhere)
        known = {name for part in self.parts for name in part.stack.names}
        failed: dict[str, str] = {}
        failed_cases: dict[str, Any] = {}
        for part in self.parts:
            failed |= {n: reason for n, reason in part.record.get("failed", {}).items() if n not in known}
            failed_cases |= {n: case_identity(case) for n, case in part.failed_cases().items() if n in failed}
        confidence = next((c for p in self.parts if (c := p.record.get("job", {}).get("confidence"))), None)
        record: RunRecord = {
            "left_out": list(self.left_out),
            "job": {} if confidence is None else {"confidence": confidence},
            "cases": {n: part.record.get("cases", {}).get(n, {}) for n, part in self.cases.items()} | failed_cases,
            "failed": failed,
            "maps": maps,
        }
        return record, FinishedCohort(working, record, read_stacks(working)).reported(folders)


def _write_union(stacks: Sequence[Stack], folder: Path) -> None:
    if not stacks:
        return
    first = stacks[0]
    for other in stacks[1:]:
        try:
            check_equal(first.frame, other.frame, other.names[0])
        except ValueError as error:
            raise InputError(f"these cohorts cannot be added: {error}.") from None
    columns = list(dict.fromkeys(column for stack in stacks for column in stack.groups))
    pairs = heapq.merge(*(stack.sparse_cases() for stack in stacks), key=lambda pair: pair[0].name)
    cases = []
    for case in sorted((case for stack in stacks for case in stack.cases), key=lambda case: case.name):
        values = dict(case.groups)
        cases.append(replace(case, groups=tuple((column, values.get(column, "")) for column in columns)))
    write_summary(folder, Frame(first.frame, first.layout), cases, (rows for _, rows in pairs))
