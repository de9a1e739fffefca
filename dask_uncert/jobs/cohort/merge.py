"""Finished cohorts put together, or without some of their cases: from their counts, without reading a voxel."""

from __future__ import annotations

import hashlib
import heapq
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dask_uncert.errors import InputError
from dask_uncert.io.output_folder import being_written, is_finished, versions, write_record
from dask_uncert.io.paths import AnyPath, is_remote
from dask_uncert.io.saving import load
from dask_uncert.io.stack_store import read_cases
from dask_uncert.io.summary_cache import Frame
from dask_uncert.jobs.cohort.case import MAIN
from dask_uncert.jobs.cohort.output import (
    MAPS,
    RATERS,
    SUMMARY,
    Finished,
    finished_cohort,
    is_cohort,
    lost_cases,
    map_pictures,
    who,
    write_maps,
    write_summary,
)
from dask_uncert.reports.results.cohort import Cohort
from dask_uncert.reports.write import write_all
from dask_uncert.summaries.evaluation import Evaluation
from dask_uncert.summaries.sparse_rows import Row
from dask_uncert.summaries.stack import Case, Stack, check_equal


def merge_cohorts(
    output: AnyPath, places: Sequence[AnyPath], leave_out: Iterable[str] = (), fresh: bool = False
) -> Evaluation:
    """Write the union of finished cohorts, but for the cases left out, as an output folder; returns its sum.

    Raises InputError where a case is in two of them, one to be left out is in none, or they do not add.
    """
    single = [str(place) for place in places if not is_cohort(place)]
    if single:
        raise InputError(
            f"{', '.join(single)} holds one evaluation and no cases: it can be merged neither with cohorts nor "
            f"without some cases."
        )
    parts = [finished_cohort(place) for place in places]
    where = _where(parts)
    gone = list(leave_out)
    missing = [name for name in gone if name not in where]
    if missing:
        raise InputError(
            f"there is no case {', '.join(missing)} to leave out in {', '.join(map(str, places))}."
        )
    names = sorted(where.keys() - set(gone))
    if not names:
        raise InputError("all cases are left out; nothing remains.")
    mark = _mark(parts, gone)
    if is_finished(output, mark, fresh):
        found = load(output)
        assert isinstance(found, Evaluation)
        return found
    failed = {
        name: reason
        for part in parts
        for name, reason in part.record.get("failed", {}).items()
        if name not in where
    }
    confidence = next((c for p in parts if (c := p.record.get("job", {}).get("confidence"))), None)
    elsewhere: dict[str, AnyPath] | None = {} if is_remote(output) else None
    with being_written(output, elsewhere) as working:
        for label in sorted({label for part in parts for label in part.stacks}):
            stacks = [part.stacks[label] for part in parts if label in part.stacks]
            chosen = [stack.select(name for name in stack.names if name not in gone) for stack in stacks]
            _write_union(
                [stack for stack in chosen if len(stack)], working / RATERS / label if label else working
            )
        maps = _maps(parts)
        folders = {name: where[name].place / MAPS / name for name in names} if maps else {}
        if maps:
            write_maps(folders.items(), working, elsewhere)
        stack = read_cases(str(working / SUMMARY))
        total = load(working)
        assert isinstance(total, Evaluation)
        about = {f"part {i + 1}": str(place) for i, place in enumerate(places)}
        if gone:
            about["left out"] = ", ".join(gone)
        lost = {
            name: case for part in parts for name, case in lost_cases(part.record).items() if name in failed
        }
        pictures = map_pictures(folders, maps)
        write_all(total, working, about=about, cohort=Cohort(stack, failed, confidence, lost, pictures))
        record: dict[str, Any] = {
            "merged": [str(place) for place in places],
            "about": about,
            "left_out": gone,
            "job": {} if confidence is None else {"confidence": confidence},
            "fingerprint": mark,
            "versions": versions(),
            "cases": {name: where[name].record.get("cases", {}).get(name, {}) for name in names}
            | {name: who(case) for name, case in lost.items()},
            "failed": failed,
            "maps": maps,
            "counted": int(total.ledger.counted),
            "excluded": total.ledger.reasons(),
        }
        write_record(working, record)
    return total


def _where(parts: Sequence[Finished]) -> dict[str, Finished]:
    """By case, the folder that it is in."""
    found: dict[str, Finished] = {}
    for part in parts:
        for name in part.stacks[MAIN].names:
            if name in found:
                raise InputError(
                    f"case {name} is in {found[name].place} and in {part.place}; it would count twice. Leave it out "
                    f"of one of them first."
                )
            found[name] = part
    return found


def _mark(parts: Sequence[Finished], gone: Sequence[str]) -> str | None:
    marks = [part.record.get("fingerprint") for part in parts]
    if any(not isinstance(mark, str) for mark in marks):
        return None
    return hashlib.sha256(json.dumps([sorted(map(str, marks)), sorted(gone)]).encode()).hexdigest()


def _maps(parts: Sequence[Finished]) -> list[str]:
    """The maps that all have."""
    listed = [part.record.get("maps", []) for part in parts]
    return [] if any(maps != listed[0] for maps in listed) else list(listed[0])


def _write_union(stacks: Sequence[Stack], folder: Path) -> None:
    if not stacks:
        return
    first = stacks[0]
    for other in stacks[1:]:
        try:
            check_equal(first.frame, other.frame, other.names[0])
        except ValueError as error:
            raise InputError(f"these cohorts do not add: {error}.") from None
    columns = list(dict.fromkeys(column for stack in stacks for column in stack.groups))
    pairs = heapq.merge(*(_cases(stack) for stack in stacks), key=lambda pair: pair[0].name)
    cases = sorted((case for stack in stacks for case in stack.cases), key=lambda case: case.name)
    grouped = []
    for case in cases:
        values = dict(case.groups)
        grouped.append(replace(case, groups=tuple((column, values.get(column, "")) for column in columns)))
    write_summary(folder, Frame(first.frame, first.layout), grouped, (rows for _, rows in pairs))


def _cases(stack: Stack) -> Iterator[tuple[Case, Mapping[str, Row]]]:
    yield from stack.each()
